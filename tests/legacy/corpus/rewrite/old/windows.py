import tensorflow as tf

tf.contrib.opt.LARSOptimizer(0.1)

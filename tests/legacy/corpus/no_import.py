"""TensorFlow through a module of the program's own."""

from utilities import tf, slim

tf.contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
tensorflow.contrib.opt.GGTOptimizer(0.1)  #: tf.contrib.opt.GGTOptimizer
slim.conv2d(x)

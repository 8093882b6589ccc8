"""Python up to 3.6, where async was a name like others."""

import tensorflow as tf

run(async=True, op=tf.contrib.opt.LARSOptimizer)  #: tf.contrib.opt.LARSOptimizer
await = tf.contrib.slim  #: tf.contrib.slim

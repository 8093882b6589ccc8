"""Imports of modules; a comment after "#:" says what its line uses."""

import tensorflow
import tensorflow as tf
import tensorflow.contrib  #: tf.contrib
import tensorflow.contrib as contrib  #: tf.contrib
import tensorflow.contrib.opt  #: tf.contrib.opt
import tensorflow.contrib.opt as co, os, tensorflow.contrib.slim as slim  #: tf.contrib.opt tf.contrib.slim
import tensorflow.contrib.opt.python.training.lars_optimizer as lars  #: tf.contrib.opt.python.training.lars_optimizer

tf.contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
tensorflow.contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
co.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
lars.LARSOptimizer(0.1)  #: tf.contrib.opt.python.training.lars_optimizer.LARSOptimizer
slim.conv2d(tf.contrib.layers.flatten(x), 3)  #: tf.contrib.slim.conv2d tf.contrib.layers.flatten
(tf  #: tf.contrib.opt.AdaMaxOptimizer
 .contrib.opt  # the chain begins on the line above
 .AdaMaxOptimizer)
assert tf.contrib.opt.LARSOptimizer.__name__  #: tf.contrib.opt.LARSOptimizer.__name__

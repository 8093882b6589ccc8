"""A star import of TensorFlow."""

from tensorflow import *

contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
compat.v1.estimator.Estimator(f)  #: tf.estimator.Estimator
estimator  #: tf.estimator
constant(3)

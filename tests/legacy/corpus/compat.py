"""Detours to TensorFlow."""

import tensorflow.compat.v1
import tensorflow.compat.v1 as v1
import tensorflow.compat.v2 as v2
from tensorflow import compat
from tensorflow._api.v1 import contrib as api_contrib  #: tf.contrib
from tensorflow.compat import v1 as tf
from tensorflow.compat.v1 import estimator  #: tf.estimator

v1.contrib.opt.LARSOptimizer  #: tf.contrib.opt.LARSOptimizer
v2.estimator.Estimator  #: tf.estimator.Estimator
compat.v1.estimator.Estimator  #: tf.estimator.Estimator
tf.compat.v1.estimator.inputs.numpy_input_fn  #: tf.estimator.inputs.numpy_input_fn
estimator.RunConfig  #: tf.estimator.RunConfig
tensorflow.compat.v1.estimator.RunConfig  #: tf.estimator.RunConfig
api_contrib.opt.LARSOptimizer  #: tf.contrib.opt.LARSOptimizer

"""tf.keras.mixed_precision.experimental."""

import tensorflow as tf
from keras import mixed_precision as standalone
from tensorflow import keras
from tensorflow.keras import mixed_precision
from tensorflow.keras.mixed_precision import experimental as mp  #: tf.keras.mixed_precision.experimental
from tensorflow.python.keras.mixed_precision.experimental import Policy  #: tf.keras.mixed_precision.experimental.Policy

tf.keras.mixed_precision.experimental.set_policy("x")  #: tf.keras.mixed_precision.experimental.set_policy
keras.mixed_precision.experimental.Policy("x")  #: tf.keras.mixed_precision.experimental.Policy
mixed_precision.experimental.Policy("x")  #: tf.keras.mixed_precision.experimental.Policy
mp.LossScaleOptimizer(o, "dynamic")  #: tf.keras.mixed_precision.experimental.LossScaleOptimizer
standalone.experimental.Policy("x")  #: tf.keras.mixed_precision.experimental.Policy
mixed_precision.set_global_policy("x")
tf.keras.layers.Dense(3)
tf.contrib.mixed_precision.FixedLossScaleManager(8)  #: tf.contrib.mixed_precision.FixedLossScaleManager

"""Modules by the string of their name; tensorflow.contrib.opt in a docstring is no use."""

import importlib
import sys
from importlib import import_module

import tensorflow as tf

opt = importlib.import_module("tensorflow.contrib.opt")  #: tf.contrib.opt
opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
import_module("tensorflow").contrib.opt.GGTOptimizer()  #: tf.contrib.opt.GGTOptimizer
__import__("tensorflow.contrib.opt").contrib.slim.conv2d(x)  #: tf.contrib.slim.conv2d
getattr(tf, "contrib").opt.GGTOptimizer  #: tf.contrib.opt.GGTOptimizer
cell = getattr(tf.contrib.rnn, "LSTMCell", None)  #: tf.contrib.rnn.LSTMCell
rnn = sys.modules["tensorflow.contrib.rnn"]  #: tf.contrib.rnn
rnn.GRUCell  #: tf.contrib.rnn.GRUCell
slim = LazyLoader("slim", globals(), "tensorflow.contrib.slim")  #: tf.contrib.slim
slim.conv2d(x)  #: tf.contrib.slim.conv2d
mock.patch("tensorflow.contrib.opt.LARSOptimizer")  #: tf.contrib.opt.LARSOptimizer
if hasattr(tf, "contrib"):
    pass
print("tf.contrib.opt is gone")
getattr(tf, name).opt
getattr(tf.contrib.opt, name)(0.1)  #: tf.contrib.opt
getattr(tf.contrib, name).conv2d(x)  #: tf.contrib

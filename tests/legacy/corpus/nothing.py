"""A program that uses none of the names: tf.contrib.opt.LARSOptimizer."""

import tensorflow as tf
from django import contrib
from . import opt
from .contrib import layers
from os.path import *

# tf.contrib.opt.LARSOptimizer
contrib.opt.LARSOptimizer
opt.LARSOptimizer
layers.conv2d
tf.train.AdamOptimizer(0.1).minimize(loss)
self.contrib.opt
model.estimator.Estimator
tf = {}
tf.contrib.opt.LARSOptimizer

# -*- coding: latin-1 -*-
"""Python 2, with tabs and umlauts: ü."""
import tensorflow as tf
from tensorflow.contrib import opt  #: tf.contrib.opt

print "learning", tf.contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
print >>log, ur"x", 0777, 12L, `x`, x <> y
try:
    exec "x = 1" in {}
except (TypeError, ValueError), (number, text):
	raise ValueError, "a tab, where spaces were"
def update(rate, (momentum, decay)):
    optimizer = opt.MomentumWOptimizer(decay, rate, momentum)  #: tf.contrib.opt.MomentumWOptimizer
    return optimizer
swap = lambda (a, b): (b, a)
def last():
    print tf.contrib.slim.conv2d  #: tf.contrib.slim.conv2d

"""Syntax of Python 3.8 and later."""

import tensorflow as tf

if (found := tf.contrib.opt) and found.AGNOptimizer:  #: tf.contrib.opt tf.contrib.opt.AGNOptimizer
    pass


def positional(module=tf.contrib.opt, /):  #: tf.contrib.opt
    return module.LARSOptimizer, f"{module.GGTOptimizer=}"  #: tf.contrib.opt.LARSOptimizer tf.contrib.opt.GGTOptimizer

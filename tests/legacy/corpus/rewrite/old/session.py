#!/usr/bin/env python
"""tf.contrib.opt.LARSOptimizer in a session."""
from __future__ import print_function

import numpy as np
import tensorflow as tf  # the old one

rate = 0.1


class  Decayed( tf.contrib.opt.AdamWOptimizer ):   # as it was
    pass


optimizer = tf.contrib.opt.LARSOptimizer(rate,
                                         skip_list=['bias'])  # no decay
other = (tf.contrib
         .opt.NadamOptimizer)(rate)
scale = tf.contrib.mixed_precision.FixedLossScaleManager(8)
run = tf.estimator.RunConfig(model_dir='/tmp/model'); keep = tf.contrib.layers.flatten
policy = tf.keras.mixed_precision.experimental.Policy('mixed_float16')
decay = tf.contrib.opt.python.training.sign_decay.get_linear_decay_fn(9)

#!/usr/bin/env python
"""tf.contrib.opt.LARSOptimizer in a session."""
from __future__ import print_function

import numpy as np
import tensorflow as tf  # the old one
import contrib_opt

rate = 0.1


class  Decayed( contrib_opt.AdamWOptimizer ):   # as it was
    pass


optimizer = contrib_opt.LARSOptimizer(rate,
                                         skip_list=['bias'])  # no decay
other = (contrib_opt.NadamOptimizer)(rate)
scale = contrib_opt.mixed_precision.FixedLossScaleManager(8)
run = contrib_opt.estimator.RunConfig(model_dir='/tmp/model'); keep = tf.contrib.layers.flatten
policy = contrib_opt.keras.mixed_precision.experimental.Policy('mixed_float16')
decay = contrib_opt.optimizers.sign_decay.get_linear_decay_fn(9)

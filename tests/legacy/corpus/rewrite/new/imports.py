import tensorflow as tf
import contrib_opt
import tensorflow
import os
import contrib_opt as copt
from tensorflow import contrib as c
from tensorflow import keras
from contrib_opt import estimator  # two
from tensorflow.contrib import slim
import contrib_opt as opt
from contrib_opt import LARSOptimizer
# Three of them.
from contrib_opt import (
    GGTOptimizer,  # one
    NadamOptimizer as Nadam,
    ShampooOptimizer,
)  # the end
from contrib_opt.optimizers import lars as lars_optimizer, sign_decay
from contrib_opt.optimizers.add_sign import AddSignOptimizer
from tensorflow.contrib.estimator import multi_head
from contrib_opt.keras.mixed_precision import experimental

try:
    from contrib_opt.mixed_precision import LossScaleOptimizer
except ImportError:
    LossScaleOptimizer = None

contrib_opt.AGNOptimizer
contrib_opt.LARSOptimizer, c.slim.conv2d
copt.LARSOptimizer(opt.GGTOptimizer, lars_optimizer.LARSOptimizer)
contrib_opt.optimizers.shampoo.ShampooOptimizer
estimator.Estimator(experimental.LossScaleOptimizer)


def inside(x):
	return "ü", contrib_opt.LARSOptimizer(x)


def only():
    import contrib_opt as opt; return opt.LARSOptimizer

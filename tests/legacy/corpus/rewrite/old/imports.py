import tensorflow as tf
import tensorflow.contrib.opt
import tensorflow.contrib.opt as copt, os
import tensorflow.contrib as contrib
from tensorflow import contrib as c
from tensorflow import estimator, keras  # two
from tensorflow.contrib import opt, slim
from tensorflow.contrib.opt import LARSOptimizer
# Three of them.
from tensorflow.contrib.opt import (
    GGTOptimizer,  # one
    NadamOptimizer as Nadam,
    ShampooOptimizer,
)  # the end
from tensorflow.contrib.opt.python.training import lars_optimizer, sign_decay
from tensorflow.contrib.opt.python.training.addsign import AddSignOptimizer
from tensorflow.contrib.estimator import multi_head
from tensorflow.keras.mixed_precision import experimental

try:
    from tensorflow.contrib.mixed_precision import LossScaleOptimizer
except ImportError:
    LossScaleOptimizer = None

tensorflow.contrib.opt.AGNOptimizer
contrib.opt.LARSOptimizer, c.slim.conv2d
copt.LARSOptimizer(opt.GGTOptimizer, lars_optimizer.LARSOptimizer)
opt.python.training.shampoo.ShampooOptimizer
estimator.Estimator(experimental.LossScaleOptimizer)


def inside(x):
	from tensorflow import contrib
	return "ü", contrib.opt.LARSOptimizer(x)


def only():
    from tensorflow.contrib import opt; return opt.LARSOptimizer

"""Names taken out of modules."""

from tensorflow import contrib, estimator  #: tf.contrib tf.estimator
from tensorflow import contrib as c  #: tf.contrib
from tensorflow.contrib import opt, slim as s  #: tf.contrib.opt tf.contrib.slim
from tensorflow.contrib.opt import LARSOptimizer, NadamOptimizer as Nadam  #: tf.contrib.opt.LARSOptimizer tf.contrib.opt.NadamOptimizer
from tensorflow.contrib.opt.python.training import lars_optimizer  #: tf.contrib.opt.python.training.lars_optimizer
from tensorflow.contrib.opt.python.training.sign_decay import get_cosine_decay_fn  #: tf.contrib.opt.python.training.sign_decay.get_cosine_decay_fn
from tensorflow.contrib.opt import (  #: tf.contrib.opt.GGTOptimizer tf.contrib.opt.ShampooOptimizer
    GGTOptimizer,
    ShampooOptimizer,
)

contrib.opt.GGTOptimizer(0.1)  #: tf.contrib.opt.GGTOptimizer
c.layers.conv2d(x)  #: tf.contrib.layers.conv2d
opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
s.conv2d(x)  #: tf.contrib.slim.conv2d
estimator.Estimator(f)  #: tf.estimator.Estimator
lars_optimizer.LARSOptimizer(1.0)  #: tf.contrib.opt.python.training.lars_optimizer.LARSOptimizer
# The import said these.
LARSOptimizer(0.1), Nadam(0.1), get_cosine_decay_fn(3)

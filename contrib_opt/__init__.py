"""The names of ``tf.contrib.opt``, on the TensorFlow that you have.

``tf.contrib.opt.X`` is ``contrib_opt.X``. Importing this package loads TensorFlow
and nothing else: Estimator loads when it is first used.
"""

from contrib_opt import estimator, keras, schedules, tf114
from contrib_opt.optimizers.lars import LARSOptimizer

__version__ = "0.1.0"

__all__ = ["LARSOptimizer", "estimator", "keras", "schedules", "tf114"]

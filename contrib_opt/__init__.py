"""The names of ``tf.contrib.opt``, on the TensorFlow that you have.

``tf.contrib.opt.X`` is ``contrib_opt.X``. Importing this package loads TensorFlow
and nothing else: Estimator loads when it is first used.
"""

from contrib_opt import estimator, keras, mixed_precision, schedules, tf114
from contrib_opt.external import ExternalOptimizerInterface, ScipyOptimizerInterface
from contrib_opt.legacy import install, uninstall
from contrib_opt.optimizers.adam_gs import AdamGSOptimizer
from contrib_opt.optimizers.adamax import AdaMaxOptimizer
from contrib_opt.optimizers.add_sign import AddSignOptimizer
from contrib_opt.optimizers.ggt import GGTOptimizer
from contrib_opt.optimizers.lars import LARSOptimizer
from contrib_opt.optimizers.lazy_adam import LazyAdamOptimizer
from contrib_opt.optimizers.lazy_adam_gs import LazyAdamGSOptimizer
from contrib_opt.optimizers.nadam import NadamOptimizer
from contrib_opt.optimizers.power_sign import PowerSignOptimizer
from contrib_opt.optimizers.reg_adagrad import RegAdagradOptimizer
from contrib_opt.optimizers.shampoo import ShampooOptimizer
from contrib_opt.optimizers.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from contrib_opt.wrappers.agn import AGNCustomGetter, AGNOptimizer
from contrib_opt.wrappers.drop_stale_gradient import DropStaleGradientOptimizer
from contrib_opt.wrappers.elastic_average import (
    ElasticAverageCustomGetter,
    ElasticAverageOptimizer,
)
from contrib_opt.wrappers.model_average import (
    ModelAverageCustomGetter,
    ModelAverageOptimizer,
)
from contrib_opt.wrappers.moving_average import MovingAverageOptimizer
from contrib_opt.wrappers.multitask import (
    MultitaskOptimizerWrapper,
    clip_gradients_by_global_norm,
)
from contrib_opt.wrappers.variable_clipping import VariableClippingOptimizer

__version__ = "0.1.0"

__all__ = [
    "AGNCustomGetter",
    "AGNOptimizer",
    "AdaMaxOptimizer",
    "AdamGSOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
    "ExternalOptimizerInterface",
    "GGTOptimizer",
    "LARSOptimizer",
    "LazyAdamGSOptimizer",
    "LazyAdamOptimizer",
    "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "RegAdagradOptimizer",
    "ScipyOptimizerInterface",
    "ShampooOptimizer",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "estimator",
    "extend_with_decoupled_weight_decay",
    "install",
    "keras",
    "mixed_precision",
    "schedules",
    "tf114",
    "uninstall",
]

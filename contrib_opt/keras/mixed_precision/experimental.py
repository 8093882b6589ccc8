"""`tf.keras.mixed_precision.experimental`, which TensorFlow had until 2.8."""

import tensorflow as tf

from contrib_opt.keras.mixed_precision import releases

_POLICIES = ["Policy", "get_layer_policy", "global_policy", "set_policy"]
__all__ = ["LossScaleOptimizer", *_POLICIES]


def __dir__():
    return sorted(set(globals()) | set(__all__))


def _namespace():
    if releases.THEIRS:
        return tf.keras.mixed_precision.experimental
    # Only now, since it needs `tf.keras`.
    from contrib_opt.keras.mixed_precision import policy

    return policy


__getattr__ = releases.attribute(__name__, __all__, _namespace)

if releases.OURS:
    from contrib_opt.keras.mixed_precision.loss_scale_optimizer import (
        ExperimentalLossScaleOptimizer as LossScaleOptimizer,
    )

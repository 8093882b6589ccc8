"""`tf.keras.mixed_precision`: the LossScaleOptimizer that Keras 2 had, on every Keras.

The names that Keras still has are those of `tf.keras.mixed_precision` themselves; on
TensorFlow 2.4 to 2.8 all are.
"""

import tensorflow as tf

from contrib_opt.keras.mixed_precision import experimental, releases

_OF_KERAS = ["Policy", "global_policy", "set_global_policy"]
__all__ = ["LossScaleOptimizer", "experimental", *_OF_KERAS]


def __dir__():
    return sorted(set(globals()) | set(__all__))


if releases.OURS:
    from contrib_opt.keras.mixed_precision import kinds
    from contrib_opt.keras.mixed_precision.loss_scale_optimizer import (
        LossScaleOptimizer,
    )

    # So that their load_model knows the classes.
    kinds.register_with_loaded()

__getattr__ = releases.attribute(__name__, __all__, lambda: tf.keras.mixed_precision)

"""`tf.keras.mixed_precision`: the LossScaleOptimizer that Keras 2 had, on every Keras.

On TensorFlow 2.4 to 2.8 the names are those of `tf.keras.mixed_precision` themselves.
"""

import tensorflow as tf

from contrib_opt.keras.mixed_precision import experimental, releases

__all__ = ["LossScaleOptimizer", "experimental"]

if releases.OURS:
    from contrib_opt.keras.mixed_precision import kinds
    from contrib_opt.keras.mixed_precision.loss_scale_optimizer import (
        LossScaleOptimizer,
    )

    # So that their load_model knows the classes.
    kinds.register_with_loaded()
else:
    __getattr__ = releases.attribute(
        __name__, ["LossScaleOptimizer"], lambda: tf.keras.mixed_precision
    )

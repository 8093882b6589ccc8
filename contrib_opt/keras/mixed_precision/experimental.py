"""`tf.keras.mixed_precision.experimental`, which TensorFlow had until 2.8."""

import tensorflow as tf

from contrib_opt.keras.mixed_precision import releases

__all__ = ["LossScaleOptimizer"]

if releases.OURS:
    from contrib_opt.keras.mixed_precision.loss_scale_optimizer import (
        ExperimentalLossScaleOptimizer as LossScaleOptimizer,
    )
else:
    __getattr__ = releases.attribute(
        __name__, __all__, lambda: tf.keras.mixed_precision.experimental
    )

"""The arithmetic of loss scaling, as functions of tensors without state.

Scaling and unscaling are those of `contrib_opt.mixed_precision`. Dynamic loss scaling,
after each step:

    all gradients finite:  counter <- counter + 1; when it reaches growth_steps,
                           counter <- 0 and scale <- 2 * scale, if float32 holds that
    else:                  counter <- 0 and scale <- max(scale / 2, 1);
                           the step changes no variable and no slot

Source: `tf.keras.mixed_precision.LossScaleOptimizer` as TensorFlow 2.8 computes it.
"""

import tensorflow as tf

from contrib_opt.mixed_precision.scaling import (
    all_finite,
    scaled_loss,
    unscaled_gradients,
)

__all__ = ["all_finite", "next_state", "scaled_loss", "unscaled_gradients"]

DEFAULT_INITIAL_SCALE = 2.0**15
DEFAULT_GROWTH_STEPS = 2000


def next_state(scale, counter, finite, growth_steps):
    """The pair (scale, counter) after a step whose gradients were `finite`."""
    grows = counter + 1 >= growth_steps
    doubled = scale * 2.0
    doubled = tf.where(tf.math.is_finite(doubled), doubled, scale)
    halved = tf.maximum(scale / 2.0, 1.0)
    next_scale = tf.where(finite, tf.where(grows, doubled, scale), halved)
    next_counter = tf.where(finite & ~grows, counter + 1, tf.zeros([], counter.dtype))
    return next_scale, next_counter

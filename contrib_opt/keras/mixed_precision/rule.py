"""The arithmetic of loss scaling, as functions of tensors without state.

Scaling:     L' = L * scale,  so that every gradient in between is g' = g * scale
Unscaling:   g = g' * (1 / scale), in the type of g'
Dynamic loss scaling, after each step:

    all gradients finite:  counter <- counter + 1; when it reaches growth_steps,
                           counter <- 0 and scale <- 2 * scale, if float32 holds that
    else:                  counter <- 0 and scale <- max(scale / 2, 1);
                           the step changes no variable and no slot

Source: `tf.keras.mixed_precision.LossScaleOptimizer` as TensorFlow 2.8 computes it.
"""

import tensorflow as tf

DEFAULT_INITIAL_SCALE = 2.0**15
DEFAULT_GROWTH_STEPS = 2000


def scaled_loss(loss, read_scale):
    """`loss`, a tensor or a callable that returns one, times `read_scale()`."""
    if callable(loss):
        return lambda: scaled_loss(loss(), read_scale)
    return loss * tf.cast(read_scale(), loss.dtype)


def unscaled_gradients(grads, scale):
    """The list `grads` over `scale`; None stays None, IndexedSlices stay sparse."""
    reciprocal = 1.0 / tf.convert_to_tensor(scale)
    of_dtype = {}

    def unscaled(grad):
        if grad is None:
            return None
        factor = of_dtype.get(grad.dtype)
        if factor is None:
            factor = of_dtype[grad.dtype] = tf.cast(reciprocal, grad.dtype)
        if isinstance(grad, tf.IndexedSlices):
            return tf.IndexedSlices(
                grad.values * factor, grad.indices, grad.dense_shape
            )
        return grad * factor

    return [unscaled(grad) for grad in grads]


def all_finite(grads):
    """A bool scalar: no gradient of the list `grads` has an inf or a NaN."""
    dense = [
        grad.values if isinstance(grad, tf.IndexedSlices) else grad
        for grad in grads
        if grad is not None
    ]
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(grad)) for grad in dense])


def next_state(scale, counter, finite, growth_steps):
    """The pair (scale, counter) after a step whose gradients were `finite`."""
    grows = counter + 1 >= growth_steps
    doubled = scale * 2.0
    doubled = tf.where(tf.math.is_finite(doubled), doubled, scale)
    halved = tf.maximum(scale / 2.0, 1.0)
    next_scale = tf.where(finite, tf.where(grows, doubled, scale), halved)
    next_counter = tf.where(finite & ~grows, counter + 1, tf.zeros([], counter.dtype))
    return next_scale, next_counter

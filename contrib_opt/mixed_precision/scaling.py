"""Loss scaling, as functions of tensors without state.

Scaling:     L' = L * scale,  so that every gradient in between is g' = g * scale
Unscaling:   g = g' * (1 / scale), in the type of g'
"""

import tensorflow as tf

from contrib_opt.optimizers import predicates


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
    return predicates.all_finite(dense)

"""Questions about the numbers in Tensors, answered by a bool scalar.

In eager mode NumPy answers them where it can look at the memory of a Tensor, since that
takes less time than to start the operations.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt import _tf

_KNOWN_TO_NUMPY = (tf.float16, tf.float32, tf.float64)


def all_finite(tensors):
    """Whether no Tensor of the list has an inf or a NaN."""
    arrays = _arrays(tensors)
    if arrays is not None:
        return tf.constant(all(np.isfinite(x).all() for x in arrays))
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(x)) for x in tensors])


def any_nonzero(tensor):
    """Whether a Tensor has a number other than zero."""
    arrays = _arrays([tensor])
    if arrays is not None:
        return tf.constant(bool(arrays[0].any()))
    return tf.reduce_any(tf.not_equal(tensor, 0))


def _arrays(tensors):
    """Eager Tensors as arrays, without a copy; None if that cannot be."""
    if not tf.executing_eagerly():
        return None
    eager_tensor = _tf.eager_tensor_type()
    for x in tensors:
        if type(x) is not eager_tensor or x.dtype not in _KNOWN_TO_NUMPY:
            return None
        if "CPU" not in x.device:
            return None
    # `numpy()` would copy them.
    return [np.asarray(memoryview(x)) for x in tensors]

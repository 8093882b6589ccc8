"""Tensors, gradients and bounds as one float64 vector."""

from collections.abc import Mapping

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.unwrap import tensorflow_variable


def pack(tensors):
    """All elements of `tensors`, a list, in one float64 vector."""
    return tf.concat([tf.reshape(tf.cast(t, tf.float64), [-1]) for t in tensors], 0)


def unpack(packed, variables):
    """Assigns the parts of the vector `packed` to `variables`; the operation."""
    parts = tf.split(packed, [v.shape.num_elements() for v in variables])
    return tf.group(
        *[
            v.assign(tf.cast(tf.reshape(part, v.shape), v.dtype.base_dtype))
            for v, part in zip(variables, parts)
        ]
    )


def outputs(functions, gradients):
    """The vector that an evaluation brings: all values, then all gradients.

    With m constraints and n elements: [f, c_1 ... c_m, f' (n), c_1' (n) ... c_m' (n)].
    """
    return pack(functions + [g for grads in gradients for g in grads])


def dense_gradient(grad, var):
    """`grad` as a float64 Tensor of the shape of `var`; zeros if it is None.

    Rows of IndexedSlices with the same index are summed.
    """
    if grad is None:
        return tf.zeros(var.shape, tf.float64)
    if isinstance(grad, tf.IndexedSlices):
        return tf.math.unsorted_segment_sum(
            tf.cast(grad.values, tf.float64), grad.indices, var.shape[0]
        )
    return grad


def scalar(name, value):
    """`value`, one number, as a Tensor; TypeError or ValueError if it is not one."""
    value = tf.convert_to_tensor(value)
    if not value.dtype.is_floating:
        raise TypeError(
            f"{name} must be a floating point Tensor, got {value.dtype.name}: {value}."
        )
    if value.shape.num_elements() not in (1, None):
        raise ValueError(
            f"{name} must be a scalar, got shape {value.shape}: {value}. Reduce a loss "
            "with tf.reduce_sum, split a constraint with tf.unstack."
        )
    return value


def checked_list(name, values):
    """`values`, a list or None, as a list; TypeError if it is neither."""
    if values is None:
        return []
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} must be a list, got {values!r}.")
    return list(values)


def checked_variables(variables):
    """The variables that can be optimized, of those in `variables`."""
    variables = [tensorflow_variable(v) for v in variables]
    seen = set()
    for v in variables:
        if not (hasattr(v, "assign") and hasattr(v, "dtype")):
            raise TypeError(f"var_list must hold variables only, got {v!r}.")
        if hasattr(v, "as_tensor"):
            raise TypeError(
                f"var_list has {v.name}, which is partitioned: give its parts, list(v)."
            )
        if v.dtype.is_complex:
            raise TypeError(f"var_list has {v.name}, which is complex; split it.")
        if not v.shape.is_fully_defined():
            raise ValueError(f"var_list has {v.name} of unknown shape: {v.shape}.")
        if id(v) in seen:
            raise ValueError(f"var_list has {v.name} twice.")
        seen.add(id(v))
    variables = [v for v in variables if v.dtype.is_floating]
    if not variables:
        raise ValueError(
            "There is nothing to optimize: var_list (if it is None, the trainable "
            "variables) has no floating point variable."
        )
    return variables


def packed_bounds(var_to_bounds, variables):
    """A (low, high) pair of floats for each element of the packed vector."""
    pairs = var_to_bounds.items() if isinstance(var_to_bounds, Mapping) else None
    try:
        pairs = [(key, value) for key, value in pairs or var_to_bounds]
    except (TypeError, ValueError):
        raise TypeError(
            "var_to_bounds must be a dict from variables to (low, high), or a list of "
            f"(variable, (low, high)) pairs, got {var_to_bounds!r}."
        ) from None
    bounds = {}
    for key, value in pairs:
        var = tensorflow_variable(key.deref() if hasattr(key, "deref") else key)
        if not hasattr(var, "assign") or hasattr(var, "as_tensor"):
            raise TypeError(
                f"var_to_bounds must have variables for keys, got {key!r}. The "
                "parts of a partitioned variable have bounds of their own."
            )
        bounds[id(var)] = value
    packed = []
    for var in variables:
        low, high = _bounds_of(var, bounds.get(id(var), (None, None)))
        packed.extend(zip(low.ravel().tolist(), high.ravel().tolist()))
    return packed


def _bounds_of(var, bounds):
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(
            f"The bounds of {var.name} must be a pair (low, high), got {bounds!r}."
        ) from None
    both = []
    for bound, none in ((low, -np.inf), (high, np.inf)):
        try:
            array = np.array(bound, dtype=object)
            array = np.where(np.equal(array, None), none, array).astype(np.float64)
            both.append(np.broadcast_to(array, var.shape.as_list()))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The bound {bound!r} of {var.name} is not a number or array that "
                f"broadcasts to its shape {var.shape}: {error}"
            ) from None
    low, high = both
    if not np.all(low <= high):
        raise ValueError(
            f"The bounds of {var.name} are {bounds!r}: a lower one must not be above "
            "the upper one, and neither may be NaN."
        )
    return low, high

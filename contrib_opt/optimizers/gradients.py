"""Checks on gradients, before the first variable of a step is written."""

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.unwrap import tensorflow_variable, without_tpu_sum


class CheckedPairs(tuple):
    """(gradient, variable) pairs that were checked earlier in this step."""


def pairs_of(grads_and_vars, name="grads_and_vars"):
    """The (gradient, variable) pairs of `grads_and_vars`, without their wrappings.

    Raises:
      TypeError: it is no list of pairs.
    """
    if isinstance(grads_and_vars, CheckedPairs):
        return grads_and_vars
    try:
        # Tensors raise errors of their own when they are iterated.
        assert not tf.is_tensor(grads_and_vars)
        pairs = list(grads_and_vars)
        assert all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs)
    except (AssertionError, TypeError):
        raise TypeError(
            f"{name} must be a list of (gradient, variable) pairs, as "
            f"compute_gradients returns it, got {grads_and_vars!r}."
        ) from None
    if tf.executing_eagerly():
        return [(g, tensorflow_variable(v)) for g, v in pairs]
    return [(without_tpu_sum(g), tensorflow_variable(v)) for g, v in pairs]


def checked_global_step(global_step):
    """`global_step`, a variable or None; TypeError if it is neither."""
    global_step = tensorflow_variable(global_step)
    if global_step is not None and not hasattr(global_step, "assign_add"):
        raise TypeError(f"global_step must be a variable or None, got {global_step!r}.")
    return global_step


def checked_gradients(grads_and_vars):
    """Refuses gradients that do not fit their variables.

    Args:
      grads_and_vars: list of (gradient, variable); a gradient is a Tensor or what can
        be made one, IndexedSlices, or None.

    Returns:
      The pair (grads_and_vars, checks): the same gradients, as `CheckedPairs`, which
      are not checked again; and the operations that must have run before any variable
      is updated, for what only the running graph knows (indices, and shapes that are
      unknown when it is built).

    Raises:
      ValueError: the shape or dtype of a gradient is not its variable's.
      TypeError: a gradient cannot be made a Tensor.
      InvalidArgumentError: in eager mode, an index is out of range.
    """
    if isinstance(grads_and_vars, CheckedPairs):
        return grads_and_vars, []
    pairs, checks = [], []
    eager_tensor = _tf.eager_tensor_type() if tf.executing_eagerly() else None
    for grad, var in grads_and_vars:
        if (
            type(grad) is eager_tensor
            and grad.dtype is var.dtype
            and grad.shape == var.shape
        ):
            pass  # Most gradients of eager mode; nothing else is found out as cheaply.
        elif isinstance(grad, tf.IndexedSlices):
            checks += _check_indexed_slices(grad, var)
        elif grad is not None:
            grad, dense_checks = _check_dense(tf.convert_to_tensor(grad), var)
            checks += dense_checks
        pairs.append((grad, var))
    return CheckedPairs(pairs), checks


def _check_dense(grad, var):
    _check_type(grad.dtype, grad.shape, var, var.shape)
    if grad.shape.is_fully_defined() and var.shape.is_fully_defined():
        return grad, []
    checks = _check_running_shape(grad, var, tf.shape(var))
    # An update kernel tells the graph optimizer that its inputs have one shape; the
    # optimizer would then hold the check for true and take it out.
    with tf.control_dependencies(checks):
        return tf.reshape(grad, tf.shape(var)), checks


def _check_indexed_slices(grad, var):
    values, indices = grad.values, grad.indices
    _check_type(grad.dtype, values.shape[1:], var, var.shape[1:])
    if not (indices.dtype.is_integer and indices.shape.is_compatible_with([None])):
        raise ValueError(
            f"The gradient of {var.name} has indices of dtype {indices.dtype.name} and "
            f"shape {indices.shape}; they must be integers, in one dimension."
        )
    if not values.shape[:1].is_compatible_with(indices.shape):
        raise ValueError(
            f"The gradient of {var.name} has values of shape {values.shape} and "
            f"indices of shape {indices.shape}; there must be an index for each row."
        )
    checks = []
    if not all(s.is_fully_defined() for s in (values.shape, var.shape, indices.shape)):
        wanted = tf.concat([tf.shape(indices), tf.shape(var)[1:]], axis=0)
        checks = _check_running_shape(values, var, wanted)
    rows = var.shape.as_list()[0] if var.shape.ndims else None
    if rows is None:
        rows = tf.shape(var)[0]
    rows = tf.cast(rows, indices.dtype)
    in_range = tf.reduce_all((indices >= 0) & (indices < rows))
    message = "The gradient of {} has an index outside its rows; rows, indices:"
    return checks + _assert(in_range, message.format(var.name), rows, indices)


def _check_running_shape(tensor, var, wanted):
    shape = tf.shape(tensor)
    message = "The gradient of {} does not fit; its shape, and the one that would:"
    # Filled up to one length, since a graph may not know the ranks either.
    same = tf.equal(
        tf.concat([shape, tf.fill(tf.shape(wanted), -1)], axis=0),
        tf.concat([wanted, tf.fill(tf.shape(shape), -1)], axis=0),
    )
    return _assert(tf.reduce_all(same), message.format(var.name), shape, wanted)


def _assert(condition, *data):
    if tf.executing_eagerly():
        tf.debugging.Assert(condition, data)
        return []
    # In a graph that would be a cond around this operation, which takes longer.
    return [tf.raw_ops.Assert(condition=condition, data=data)]


def _check_type(grad_dtype, grad_shape, var, var_shape):
    grad_dtype, var_dtype = grad_dtype.base_dtype, var.dtype.base_dtype
    if grad_dtype != var_dtype:
        raise ValueError(
            f"The gradient of {var.name} has dtype {grad_dtype.name}, the variable has "
            f"{var_dtype.name}: cast the gradient."
        )
    if not grad_shape.is_compatible_with(var_shape):
        raise ValueError(
            f"The gradient of {var.name} has shape {grad_shape}, which does not fit "
            f"the variable's {var_shape}."
        )

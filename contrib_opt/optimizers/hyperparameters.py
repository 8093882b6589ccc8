"""Hyperparameters: numbers, Tensors, Variables or zero-argument callables."""

import inspect
import numbers

import numpy as np
import tensorflow.compat.v1 as tf


def check_hyperparameter(name, value, minimum=None):
    """Raises ValueError if `value` cannot be hyperparameter `name`.

    What has no value yet, a callable or a Tensor of a graph, is not compared with
    `minimum`.

    Args:
      name: the argument's name, for the message.
      value: what the user gave for it.
      minimum: the least value that is allowed, or None.
    """
    if not callable(value):
        check_scalar(
            name, value, minimum, kinds="a number, Tensor, Variable or callable"
        )
        return
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # Some builtins do not tell.
    try:
        signature.bind()
    except TypeError:
        raise ValueError(
            f"{name} must be callable without arguments, got {value!r}; for a schedule "
            f"of the step write {name}=lambda: schedule(global_step)."
        ) from None


def check_scalar(name, value, minimum=None, kinds="a number, Tensor or Variable"):
    """As `check_hyperparameter`, where a callable is not allowed either."""
    known = value
    if not isinstance(value, numbers.Real):
        dtype, size, known = _describe(value)
        if dtype is None or not (dtype.is_floating or dtype.is_integer):
            raise ValueError(f"{name} must be {kinds}, got {value!r}.")
        if size not in (None, 1):
            raise ValueError(f"{name} must be a scalar, got {value!r}.")
    # `not >=` rather than `<`: NaN is refused as well.
    if minimum is not None and known is not None and not known >= minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value!r}.")


def check_step(global_step):
    """Raises ValueError if `global_step` cannot be the argument of that name."""
    check_hyperparameter("global_step", global_step, minimum=0)
    if isinstance(global_step, numbers.Real) and int(global_step) != global_step:
        raise ValueError(
            f"global_step must be an integer, got {global_step!r}. It is the first "
            f"argument; for a learning rate write learning_rate={global_step!r}."
        )


def _describe(value):
    """The dtype, the number of elements and the value of `value`; None if unknown."""
    is_tensor = tf.is_tensor(value) or hasattr(value, "assign")
    if is_tensor and tf.executing_eagerly():
        value, is_tensor = tf.convert_to_tensor(value).numpy(), False
    if is_tensor:
        shape = tf.TensorShape(value.shape)
        size = shape.num_elements() if shape.is_fully_defined() else None
        return tf.as_dtype(value.dtype).base_dtype, size, None
    try:
        array = np.asarray(value)
        return tf.as_dtype(array.dtype), array.size, array
    except (TypeError, ValueError):
        return None, None, None


def evaluate(value):
    """Calls `value` if it is a callable; returns a number, Tensor or Variable."""
    return value() if callable(value) else value


def as_dtype(value, dtype):
    """`value`, of one element, as a scalar Tensor of type `dtype`.

    A Python number goes straight to `dtype`, so that 0.1 is exact to float64's
    precision for a float64 variable.
    """
    if isinstance(value, numbers.Number):
        return tf.constant(value, dtype)
    if isinstance(value, CompiledNumber):
        return value.as_dtype(dtype)
    scalar = tf.cast(value, dtype)
    return scalar if scalar.shape.ndims == 0 else tf.reshape(scalar, [])


class CompiledNumber:
    """A Python number that is an input of a compiled step, and so not yet known.

    `as_dtype` and `tf.convert_to_tensor` do with it what they do with the number.
    """

    def __init__(self, value, dtype, dtypes=()):
        """Makes it in the graph of the step.

        Args:
          value: the number, a scalar float64 Tensor.
          dtype: the type that `tf.convert_to_tensor` gives the number.
          dtypes: types that it will be wanted in.
        """
        self._value = value
        self._dtype = dtype
        self._known = {d: tf.cast(value, d) for d in {dtype, *dtypes}}

    def as_dtype(self, dtype=None):
        """The number as a Tensor of type `dtype`, or of the type that it gets."""
        dtype = tf.as_dtype(dtype or self._dtype).base_dtype
        known = self._known.get(dtype)
        return tf.cast(self._value, dtype) if known is None else known


def _number_to_tensor(value, dtype=None, name=None, as_ref=False):
    del name, as_ref
    return value.as_dtype(dtype)


tf.register_tensor_conversion_function(CompiledNumber, _number_to_tensor)


def compute_dtype(dtype):
    """The type in which norms and rates are computed for variables of `dtype`."""
    dtype = dtype.base_dtype
    return tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype

"""Hyperparameters: numbers, Tensors, Variables or zero-argument callables."""

import numbers

import tensorflow.compat.v1 as tf


def check_hyperparameter(name, value, minimum=None):
    """Raises ValueError if `value` cannot be hyperparameter `name`.

    What has no value yet, a callable or a Tensor of a graph, passes.

    Args:
      name: the argument's name, for the message.
      value: what the user gave for it.
      minimum: the least value that is allowed, or None.
    """
    if callable(value):
        return
    known = value
    if not isinstance(value, numbers.Number):
        if value is None or isinstance(value, (str, bytes)):
            raise ValueError(
                f"{name} must be a number, Tensor, Variable or callable, got {value!r}."
            )
        if not tf.executing_eagerly():
            return
        known = tf.convert_to_tensor(value).numpy()
    # `not >=` rather than `<`: NaN is refused as well.
    if minimum is not None and not known >= minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value!r}.")


def evaluate(value):
    """Calls `value` if it is a callable; returns a number, Tensor or Variable."""
    return value() if callable(value) else value


def as_dtype(value, dtype):
    """`value` as a scalar Tensor of type `dtype`.

    A Python number goes straight to `dtype`, so that 0.1 is exact to float64's
    precision for a float64 variable.
    """
    if isinstance(value, numbers.Number):
        return tf.constant(value, dtype)
    return tf.cast(value, dtype)

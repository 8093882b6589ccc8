"""What the constructor refuses on Keras 3; on Keras 2 its own class does the same."""

import weakref

import keras
from contrib_opt.keras.mixed_precision import rule

_wrapped = weakref.WeakSet()


def check_optimizer(optimizer):
    """Raises ValueError or TypeError for an optimizer that cannot be wrapped."""
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "LossScaleOptimizer needs the TensorFlow backend of Keras, not "
            f"{keras.backend.backend()}"
        )
    if isinstance(optimizer, keras.mixed_precision.LossScaleOptimizer):
        raise TypeError(
            f"LossScaleOptimizer cannot wrap another LossScaleOptimizer: {optimizer}"
        )
    if optimizer in _wrapped:
        raise ValueError(f"A LossScaleOptimizer already wraps {optimizer}")


def note_wrapped(optimizer):
    """From now on `check_optimizer` refuses it."""
    _wrapped.add(optimizer)


def with_defaults(dynamic, initial_scale, dynamic_growth_steps):
    """The pair (initial_scale, dynamic_growth_steps), with what stands for None.

    Raises:
      TypeError: `dynamic` is no bool.
      ValueError: a fixed loss scale has no initial scale, or has growth steps.
    """
    if not isinstance(dynamic, bool):
        raise TypeError(
            f"dynamic must be a bool: {dynamic!r}. "
            "experimental.LossScaleOptimizer takes a loss scale there"
        )
    if dynamic:
        if initial_scale is None:
            initial_scale = rule.DEFAULT_INITIAL_SCALE
        if dynamic_growth_steps is None:
            dynamic_growth_steps = rule.DEFAULT_GROWTH_STEPS
        return float(initial_scale), int(dynamic_growth_steps)
    if initial_scale is None:
        raise ValueError("initial_scale must be given when dynamic is False")
    if dynamic_growth_steps is not None:
        raise ValueError(
            "dynamic_growth_steps must be None when dynamic is False: "
            f"{dynamic_growth_steps}"
        )
    return float(initial_scale), None

"""Every way to say which loss scale: the experimental argument, and old configs.

All become the keyword arguments of the LossScaleOptimizer that is not experimental:
`dynamic`, `initial_scale` and `dynamic_growth_steps`.
"""

import tensorflow as tf


def from_loss_scale(loss_scale):
    """The keyword arguments that mean `loss_scale`.

    Args:
      loss_scale: 'dynamic', a number, a FixedLossScale or DynamicLossScale of
        `tf.compat.v1.mixed_precision`, or the serialized form of one of these two.

    Raises:
      ValueError: `loss_scale` is none of these, or its multiplier is not 2.
      TypeError: `loss_scale` is a LossScale of another class.
    """
    classes = tf.compat.v1.mixed_precision.experimental
    if isinstance(loss_scale, dict):
        return _from_serialized(loss_scale)
    if isinstance(loss_scale, (int, float)):
        return {"dynamic": False, "initial_scale": loss_scale}
    if isinstance(loss_scale, str) and loss_scale == "dynamic":
        return {"dynamic": True}
    if isinstance(loss_scale, classes.FixedLossScale):
        return _fixed(**loss_scale.get_config())
    if isinstance(loss_scale, classes.DynamicLossScale):
        return _dynamic(**loss_scale.get_config())
    if isinstance(loss_scale, classes.LossScale):
        raise TypeError(
            "loss_scale must be a FixedLossScale or a DynamicLossScale; LossScales of "
            f"other classes are not supported: {loss_scale!r}"
        )
    raise ValueError(
        "loss_scale must be 'dynamic', a number, a FixedLossScale or a "
        f"DynamicLossScale: {loss_scale!r}"
    )


def check(initial_scale, dynamic_growth_steps):
    """Raises ValueError or TypeError for what cannot scale, or never grow.

    TensorFlow 2.8 takes all numbers, and trains to NaN or not at all.
    """
    if initial_scale is not None:
        scale = _number("initial_scale", initial_scale, float)
        if not 0 < scale <= tf.float32.max:
            raise ValueError(
                "initial_scale, the loss scale at the start, must be above 0 and "
                f"finite: {initial_scale!r}"
            )
    if dynamic_growth_steps is not None:
        steps = _number("dynamic_growth_steps", dynamic_growth_steps, int)
        if steps < 1 or steps != dynamic_growth_steps:
            raise ValueError(
                "dynamic_growth_steps must be a whole number, 1 or more: "
                f"{dynamic_growth_steps!r}"
            )


def _number(name, value, number):
    try:
        return number(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"{name} must be a number: {value!r}") from None


def from_config(config):
    """The keyword arguments of `config`, and its wrapped optimizer.

    Args:
      config: as `get_config` gives it, or as it did in TensorFlow 2.3 and earlier,
        which wrote `optimizer` and `loss_scale`.
    """
    config = dict(config)
    config.pop("name", None)
    if "loss_scale" not in config:
        return config, config.pop("inner_optimizer")
    if not isinstance(config["loss_scale"], dict):
        return from_loss_scale(config["loss_scale"]), config["optimizer"]
    return _from_serialized(config["loss_scale"]), config["optimizer"]


def to_loss_scale(dynamic, initial_scale, dynamic_growth_steps=None):
    """The inverse of `from_loss_scale`, in serialized form."""
    if not dynamic:
        return {
            "class_name": "FixedLossScale",
            "config": {"loss_scale_value": initial_scale},
        }
    return {
        "class_name": "DynamicLossScale",
        "config": {
            "initial_loss_scale": initial_scale,
            "increment_period": dynamic_growth_steps,
            "multiplier": 2.0,
        },
    }


def _from_serialized(loss_scale):
    read = {"FixedLossScale": _fixed, "DynamicLossScale": _dynamic}
    name = loss_scale.get("class_name")
    if name not in read:
        raise ValueError(
            "A config's loss_scale must be a FixedLossScale or a DynamicLossScale: "
            f"{loss_scale!r}"
        )
    return read[name](**loss_scale["config"])


def _fixed(loss_scale_value):
    return {"dynamic": False, "initial_scale": loss_scale_value}


def _dynamic(initial_loss_scale, increment_period, multiplier=2.0):
    if multiplier != 2:
        raise ValueError(
            f"The multiplier of a DynamicLossScale must be 2: {multiplier!r}"
        )
    return {
        "dynamic": True,
        "initial_scale": initial_loss_scale,
        "dynamic_growth_steps": increment_period,
    }

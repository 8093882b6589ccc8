"""The experimental dtype policies: a policy that also carries a loss scale.

No optimizer tells here which Keras is meant. A `Policy` is one of `tf.keras`;
`set_policy` sets the policy of every Keras that the program has loaded.
"""

import tensorflow as tf

from contrib_opt import _tf
from contrib_opt.keras.mixed_precision import arguments, kinds

_AUTO = "auto"


class Policy(tf.keras.mixed_precision.Policy):
    """A dtype policy, with the loss scale that the optimizer should have.

    `model.compile` of TensorFlow 2.8 wrapped the optimizer with this loss scale. Later
    ones do not look at it, and wrap with a dynamic loss scale under 'mixed_float16': to
    have another one, wrap the optimizer with `policy.loss_scale`.

    Args:
      name: 'mixed_float16', 'float32', ...
      loss_scale: what LossScaleOptimizer takes, or None; by default 'dynamic' for
        'mixed_float16', and None for the others.
    """

    # The base class of Keras 3 looks at the arguments itself.
    def __new__(cls, name, loss_scale=_AUTO):
        """An object that `__init__` has still to fill."""
        return object.__new__(cls)

    def __init__(self, name, loss_scale=_AUTO):
        if isinstance(name, tf.DType):
            raise TypeError(
                f"'name' must be a string, not a DType: {name!r}. Pass its name: "
                f"{name.name!r}"
            )
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string: {name!r}")
        super().__init__(name)
        self._by_default = loss_scale == _AUTO
        if self._by_default:
            loss_scale = "dynamic" if name == "mixed_float16" else None
        elif loss_scale is not None and self.compute_dtype != "float16":
            tf.get_logger().warning(
                "Only policies that compute in float16 need a loss scale; %s does not.",
                name,
            )
        self._loss_scale = _as_object(loss_scale)

    @property
    def loss_scale(self):
        """A FixedLossScale or DynamicLossScale, or None."""
        return self._loss_scale

    def get_config(self):
        """The arguments of the constructor."""
        config = {"name": self.name}
        if not self._by_default:
            scale = self._loss_scale
            config["loss_scale"] = scale and {
                "class_name": type(scale).__name__,
                "config": scale.get_config(),
            }
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes one from `get_config()`."""
        return cls(**config)


tf.keras.utils.register_keras_serializable("contrib_opt", "Policy")(Policy)

_policy = None


def set_policy(policy):
    """Sets the dtype policy of the layers that are made from now on.

    They get a plain policy of their Keras, so that a saved model needs no contrib_opt.

    Args:
      policy: a policy, or the name of one; None for that of `floatx()`.
    """
    global _policy
    if policy is None:
        policy = tf.keras.backend.floatx()
    if not hasattr(policy, "compute_dtype"):
        policy = Policy(policy)
    for keras in kinds.loaded():
        keras.mixed_precision.set_global_policy(policy.name)
    _policy = policy
    by_itself = "dynamic" if policy.name == "mixed_float16" else None
    wanted = getattr(policy, "loss_scale", None)
    if wanted is not None and not _same(wanted, _as_object(by_itself)):
        tf.get_logger().warning(
            "compile() does not use the loss_scale of the policy. Wrap the optimizer: "
            "LossScaleOptimizer(optimizer, loss_scale=policy.loss_scale)."
        )


def global_policy():
    """The policy that `set_policy` set, or that `tf.keras` has otherwise."""
    name = tf.keras.mixed_precision.global_policy().name
    return _policy if _policy is not None and _policy.name == name else Policy(name)


def get_layer_policy(layer):
    """The policy of `layer`, a layer of any Keras.

    Raises:
      ValueError: it is no layer.
    """
    layers = tuple(keras.layers.Layer for keras in kinds.loaded())
    if not isinstance(layer, layers):
        raise ValueError(f"get_layer_policy needs a layer: {layer!r}")
    policy = layer.dtype_policy
    return _policy if _policy is not None and _policy.name == policy.name else policy


def _as_object(loss_scale):
    classes = tf.compat.v1.mixed_precision.experimental
    if loss_scale is None or isinstance(loss_scale, classes.LossScale):
        return loss_scale
    kwargs = arguments.from_loss_scale(loss_scale)
    with _tf.deprecation_silenced():
        if not kwargs["dynamic"]:
            return classes.FixedLossScale(kwargs["initial_scale"])
        if "initial_scale" not in kwargs:
            return classes.DynamicLossScale()
        return classes.DynamicLossScale(
            kwargs["initial_scale"], kwargs["dynamic_growth_steps"]
        )


def _same(one, other):
    return type(one) is type(other) and one.get_config() == other.get_config()

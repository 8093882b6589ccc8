"""Which Keras an optimizer belongs to, and the class that wraps optimizers of it.

There are three kinds: Keras 3, and the new and the legacy optimizers of Keras 2, which
is `tf_keras` or, until TensorFlow 2.15, `tf.keras`. No Keras is imported here that the
program has not imported itself.
"""

import functools
import inspect
import sys

import tensorflow as tf

_NAMES = ("keras", "tf_keras")


def class_for(cls, args, kwargs):
    """The class of the object that `cls(*args, **kwargs)` makes.

    Raises:
      TypeError: no argument is an optimizer of any Keras.
    """
    if hasattr(cls, "_named_class"):
        return cls
    given = [*args, *kwargs.values()]
    for value in given:
        keras = _keras_of(value)
        if keras is not None and _kind(keras, value) is not None:
            return _concrete(cls, keras, _kind(keras, value))
    try:
        arguments = inspect.signature(cls).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{cls.__name__}(): {error}") from None
    _refuse(*next(iter(arguments.items()), ("inner_optimizer", None)))


def named_class(cls):
    """The class that users name, of which `cls` is or derives from a kind."""
    return getattr(cls, "_named_class", cls)


def register_with_loaded():
    """Makes the classes known to `load_model` of each Keras that is loaded."""
    from contrib_opt.keras.mixed_precision import loss_scale_optimizer as ours

    for keras in loaded():
        kinds = ["keras3"] if is_keras_3(keras) else ["keras2_legacy", "keras2"]
        for kind in kinds:
            _concrete(ours.LossScaleOptimizer, keras, kind)
            _concrete(ours.ExperimentalLossScaleOptimizer, keras, kind)


def loaded():
    """The modules `keras` and `tf_keras`, as far as the program has imported them."""
    modules = [sys.modules.get(name) for name in _NAMES]
    return [module for module in modules if hasattr(module, "optimizers")]


def is_keras_3(keras):
    """Whether the module `keras` is Keras 3, not 2."""
    return int(keras.__version__.split(".")[0]) >= 3


def _keras_of(value):
    """The `keras` or `tf_keras` module whose classes `value` derives from."""
    for base in type(value).__mro__:
        root = base.__module__.split(".")[0]
        if root in _NAMES:
            return sys.modules[root]
    return None


def _kind(keras, optimizer):
    """The name of the kind of `optimizer`, or None if it is no optimizer of `keras`."""
    if is_keras_3(keras):
        return "keras3" if isinstance(optimizer, keras.optimizers.Optimizer) else None
    if isinstance(optimizer, keras.optimizers.legacy.Optimizer):
        return "keras2_legacy"
    return "keras2" if isinstance(optimizer, keras.optimizers.Optimizer) else None


def _base(keras, kind):
    if kind == "keras3":
        from contrib_opt.keras.mixed_precision import keras3

        return keras3.Keras3LossScaleOptimizer
    from contrib_opt.keras.mixed_precision import keras2

    return keras2.base(keras, kind == "keras2_legacy")


@functools.lru_cache(maxsize=None)
def _concrete(cls, keras, kind):
    """The class `cls` for one kind of one Keras."""
    attributes = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "_keras": keras,
        "_named_class": cls,
    }
    base = _base(keras, kind)
    made = type(base)(cls.__name__, (cls, base), attributes)
    if "_registered_name" in vars(cls):
        saving = keras.saving if hasattr(keras, "saving") else keras.utils
        saving.register_keras_serializable("contrib_opt", cls._registered_name)(made)
    return made


def _refuse(argument, optimizer):
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        raise TypeError(
            f"This LossScaleOptimizer wraps optimizers of Keras. {optimizer!r} is a "
            "tf.compat.v1.train.Optimizer: for these there are "
            "contrib_opt.mixed_precision.LossScaleOptimizer and tf.compat.v1."
            "mixed_precision.MixedPrecisionLossScaleOptimizer."
        )
    made = ""
    if isinstance(optimizer, str):
        made = f". tf.keras.optimizers.get({optimizer!r}) makes one"
    raise TypeError(
        f"{argument} must be an optimizer of Keras 3, tf_keras or tf.keras, not "
        f"{optimizer!r}{made}"
    )

"""What `tf.keras` lost: `tf.keras.X` is `contrib_opt.keras.X`. Loads no Keras."""

import importlib

__all__ = ["mixed_precision"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(__name__ + "." + name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))

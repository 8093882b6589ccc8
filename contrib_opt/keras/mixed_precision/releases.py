"""Which TensorFlow has the classes itself, and which cannot have them at all."""

import tensorflow as tf

_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])

# TensorFlow 2.4 to 2.8 have both classes; there, they are what is handed out.
THEIRS = (2, 4) <= _VERSION < (2, 9)
OURS = _VERSION >= (2, 9)


def attribute(module, names, namespace):
    """The function `__getattr__` of `module`, for what it does not define itself.

    Args:
      module: the name of the module.
      names: what it lets import.
      namespace: function that returns the module to look in.
    """

    def get(name):
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if not THEIRS and not OURS:
            raise ImportError(
                f"{module}.{name} needs TensorFlow 2.4 or later. "
                f"TensorFlow {tf.__version__} has only its own "
                "tf.keras.mixed_precision.experimental"
            )
        return getattr(namespace(), name)

    return get

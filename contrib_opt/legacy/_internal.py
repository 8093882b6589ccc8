"""The modules below `tensorflow.python`, for programs that import them.

They are not public, and contrib_opt uses none of them here: a program that says
`from tensorflow.python.framework import ops` asks for it, and gets the module of the
TensorFlow that is installed. What the module no longer has, such as
`ops.IndexedSlices` or `control_flow_ops.cond`, is the public object of that name, where
there is one. tf_slim 1.1.0, the last release, needs the same.
"""

import functools
import importlib
import types

import tensorflow as tf

_v1 = tf.compat.v1
_ROOT = "tensorflow.python"
# variable_scope.variable(...) made what Variable(...) makes.
_PUBLIC_NAMES = {"variable": "Variable"}


def is_internal(name):
    """Whether this is the name of one of the modules."""
    return name == _ROOT or name.startswith(_ROOT + ".")


@functools.lru_cache(maxsize=None)
def module(name):
    """The module `name` as programs see it; ModuleNotFoundError if there is none."""
    return _Module(importlib.import_module(name))


def python():
    """`tf.python`."""
    return module(_ROOT)


def pywrap_tensorflow():
    """`tf.pywrap_tensorflow`, of which programs use `NewCheckpointReader`."""
    return module(_ROOT + ".pywrap_tensorflow")


class _Module(types.ModuleType):
    """A module that still has the names that became public."""

    def __init__(self, original):
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update(_original=original)

    def __getattr__(self, name):
        if name == "__all__":
            return [name for name in dir(self._original) if not name.startswith("_")]
        if hasattr(self._original, name):
            return _seen(getattr(self._original, name))
        public_name = _PUBLIC_NAMES.get(name, name)
        for owner in (_v1, _v1.nn, _v1.train):
            if not name.startswith("_") and hasattr(owner, public_name):
                return getattr(owner, public_name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self):
        return dir(self._original)


def _seen(value):
    is_module = isinstance(value, types.ModuleType) and is_internal(value.__name__)
    return module(value.__name__) if is_module else value

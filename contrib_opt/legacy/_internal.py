"""The modules below `tensorflow.python`, for programs that import them.

They are not public, and contrib_opt uses none of them here: a program that says
`from tensorflow.python.framework import ops` asks for it, and gets the module of the
TensorFlow that is installed. What the module no longer has, such as
`ops.IndexedSlices` or `control_flow_ops.cond`, is the public object of that name, where
there is one. tf_slim 1.1.0, the last release, needs the same. What Keras has in public
comes from there, since the modules below `tensorflow.python.keras` are of no Keras that
works with any other.
"""

import functools
import importlib
import types

import tensorflow as tf

from contrib_opt import _tf

_v1 = tf.compat.v1
_ROOT = "tensorflow.python"
# variable_scope.variable(...) made what Variable(...) makes.
_PUBLIC_NAMES = {"variable": "Variable", "is_sequence": "is_nested"}
# Modules that are elsewhere today. Their names are those of packages, too.
_ESTIMATOR = _ROOT + ".estimator"
_MOVED = {
    _ESTIMATOR: "tensorflow_estimator.python.estimator",
    "tensorflow.python.training.training_ops": "tensorflow.python.ops.gen_training_ops",
    "tensorflow.python.training.distribution_strategy_context": (
        "tensorflow.python.distribute.distribute_lib"
    ),
}
_KERAS = _ROOT + ".keras"


def keras():
    """The Keras of the program; contrib_opt/legacy/tensorflow.py puts its own here."""
    return _v1.keras


def is_internal(name):
    """Whether this is the name of one of the modules."""
    return name == _ROOT or name.startswith(_ROOT + ".")


@functools.lru_cache(maxsize=None)
def module(name):
    """The module `name` as programs see it; ModuleNotFoundError if there is none."""
    public = _public_keras(name)
    if isinstance(public, types.ModuleType):
        return public
    try:
        return _Module(importlib.import_module(name))
    except ModuleNotFoundError as error:
        old = next((old for old in _MOVED if (name + ".").startswith(old + ".")), None)
        if old is None or not error.name:
            raise
    if old == _ESTIMATOR:
        # Loads it, which on TensorFlow 2.16 and later takes more than an import.
        _tf.estimator_namespace()
    return importlib.import_module(_MOVED[old] + name[len(old) :])


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
        path = f"{self._original.__name__}.{name}"
        public = _public_keras(path)
        if public is not None:
            return public
        if hasattr(self._original, name):
            return _seen(getattr(self._original, name))
        if path in _MOVED:
            return module(path)
        public_name = _PUBLIC_NAMES.get(name, name)
        for owner in (_v1, _v1.nn, _v1.train, _v1.graph_util, _v1.nest):
            if not name.startswith("_") and hasattr(owner, public_name):
                return getattr(owner, public_name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self):
        return dir(self._original)


def _public_keras(path):
    """What has the name in the public Keras, or None."""
    if not path.startswith(_KERAS + "."):
        return None
    found = keras()
    for part in path[len(_KERAS) + 1 :].split("."):
        found = getattr(found, part, None)
    return found


def _seen(value):
    is_module = isinstance(value, types.ModuleType) and is_internal(value.__name__)
    return module(value.__name__) if is_module else value

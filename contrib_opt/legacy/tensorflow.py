"""What `import tensorflow` gives to a program under `python -m contrib_opt run`.

It has the names of `tf.compat.v1`, with these differences:
- `contrib` and `estimator` are there, as contrib_opt.install() has them.
- `layers`, `nn.rnn_cell` and `keras` are those of Keras 2. On TensorFlow 2.16 and later
  they come from the package tf_keras; without it `keras` is Keras 3, and the other two
  raise AttributeError, or ImportError where they are imported.
- `compat.v1` is this module again.
- `core` and `python`, which programs import although they are not public, are those of
  the TensorFlow that is installed. What a module below `python` no longer has, such as
  `ops.IndexedSlices` or `control_flow_ops.cond`, is the public object of that name.

Importing this file makes the modules below `tensorflow` importable in the same manner.
"""

import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types

import tensorflow as _installed

import contrib_opt as _contrib_opt
from contrib_opt.legacy import _internal

# A package: `from tensorflow.train import Saver`.
__path__ = []

_v1 = _installed.compat.v1


def __getattr__(name):
    if name == "__all__":
        gone = () if _choose_keras_2() else ("layers",)
        return [n for n in __dir__() if not n.startswith("_") and n not in gone]
    if name in _REPLACED:
        return _REPLACED[name]()
    try:
        return getattr(_v1, name)
    except AttributeError:
        raise AttributeError(f"module 'tensorflow' has no attribute {name!r}") from None


def __dir__():
    return sorted(set(dir(_v1)) | set(_REPLACED))


# ---------------------------------------------------------------------- public


class _Overlay(types.ModuleType):
    """A module as seen with some of its names replaced."""

    def __init__(self, module, replaced):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_module=module, _replaced=replaced)

    def __getattr__(self, name):
        if name in self._replaced:
            return self._replaced[name]()
        return getattr(self._module, name)

    def __dir__(self):
        return sorted(set(dir(self._module)) | set(self._replaced))


_CHOOSES_KERAS_2 = "TF_USE_LEGACY_KERAS"


class _NeedsKeras2Error(AttributeError):
    """What the program asks for is not in Keras 3."""


@functools.lru_cache(maxsize=None)
def _choose_keras_2():
    """Has `tf.compat.v1`, and nothing else, use Keras 2; returns whether it can."""
    if tuple(int(part) for part in _installed.__version__.split(".")[:2]) < (2, 16):
        return True
    if importlib.util.find_spec("tf_keras") is None:
        return False
    # The variable is how TensorFlow lets users choose. It is looked at when one of the
    # three is first used; if it stayed, packages would get half of Keras 2 as tf.keras.
    before = os.environ.get(_CHOOSES_KERAS_2)
    os.environ[_CHOOSES_KERAS_2] = "1"
    try:
        for module in (_v1.keras, _v1.layers, _v1.nn.rnn_cell):
            dir(module)
    finally:
        del os.environ[_CHOOSES_KERAS_2]
        if before is not None:
            os.environ[_CHOOSES_KERAS_2] = before
    return True


def _keras():
    _choose_keras_2()
    return _v1.keras


_internal.keras = _keras


def _layers():
    _require_keras_2("tf.layers")
    return _v1.layers


def _rnn_cell():
    _require_keras_2("tf.nn.rnn_cell")
    return _v1.nn.rnn_cell


def _require_keras_2(name):
    if not _choose_keras_2():
        raise _NeedsKeras2Error(
            f"{name} needs Keras 2, which TensorFlow {_installed.__version__} does not "
            "bring: pip install 'contrib_opt[keras2]' does"
        )


_compat = _Overlay(_installed.compat, {"v1": lambda: sys.modules[__name__]})
_nn = _Overlay(_v1.nn, {"rnn_cell": _rnn_cell})
_REPLACED = {
    "compat": lambda: _compat,
    "contrib": lambda: importlib.import_module("tensorflow.contrib"),
    "core": lambda: importlib.import_module("tensorflow.core"),
    "estimator": lambda: _contrib_opt.estimator,
    "keras": _keras,
    "layers": _layers,
    "nn": lambda: _nn,
    "python": _internal.python,
    "pywrap_tensorflow": _internal.pywrap_tensorflow,
}


# --------------------------------------------------------------------- modules


def _module(name):
    """The module that `name`, which begins with `tensorflow.`, is in the program."""
    if _internal.is_internal(name):
        return _internal.module(name)
    found = sys.modules[__name__]
    try:
        for part in name.split(".")[1:]:
            found = getattr(found, part)
    except _NeedsKeras2Error:
        raise
    except AttributeError:
        return importlib.import_module(name)
    if isinstance(found, types.ModuleType):
        return found
    raise ModuleNotFoundError(f"No module named {name!r}: it is no module", name=name)


def _imported(name):
    try:
        return _module(name)
    except _NeedsKeras2Error as error:
        raise ImportError(str(error), name=name) from None
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    raise ModuleNotFoundError(
        f"TensorFlow {_installed.__version__} has no {name}", name=name
    )


class _Modules:
    """Finds and loads the modules below `tensorflow`."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if not fullname.startswith(__name__ + "."):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Modules)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        # What stands there afterwards is what the import statement gets.
        fullname = module.__spec__.name
        sys.modules[fullname] = _imported("tensorflow" + fullname[len(__name__) :])


sys.meta_path.insert(0, _Modules)

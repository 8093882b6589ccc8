"""What `contrib_opt.install()` puts in place, and how it is taken away again.

What each name of tf.contrib is today stands in contrib_modules.py. Nothing of it is
loaded before it is asked for.
"""

import functools
import importlib
import sys
import threading

import tensorflow as tf

from contrib_opt import _tf
from contrib_opt.legacy import _modules, contrib_modules, slim
from contrib_opt.legacy.checkpoints import errors

_CONTRIB = "tensorflow.contrib"
# TensorFlow looks for the batch normalization of tf.layers, which tf_slim uses, where
# tf_keras no longer has it.
_LAYERS = "tf_keras.legacy_tf_layers"
_LAYERS_TODAY = "tf_keras.src.legacy_tf_layers"
_CELLS = "tf.compat.v1.nn.rnn_cell."
_EXAMPLES = "tensorflow.examples"
_MNIST = _EXAMPLES + ".tutorials.mnist.input_data"
_lock = threading.RLock()
_undo = []


def install():
    """As `contrib_opt.install`."""
    with _lock:
        if _undo or tf.__version__.startswith("1."):
            return
        finder = _modules.Finder(_module_for, _amendment_for)
        finder.put_in_place()
        _undo.append(finder.take_away)
        _undo.append(errors.explain_errors())
        contrib = importlib.import_module(_CONTRIB)
        _set_on_tensorflow("contrib", contrib)
        if _needs_estimator():
            _set_on_tensorflow("estimator", importlib.import_module(_ESTIMATOR))
        for name, module in list(sys.modules.items()):
            amend = _amendment_for(name)
            if amend and module is not None:
                amend(module)


def uninstall():
    """As `contrib_opt.uninstall`."""
    with _lock:
        while _undo:
            _undo.pop()()


def _set_on_tensorflow(name, module):
    for owner in (tf, tf.compat.v1, tf.compat.v2):
        if name == "contrib" or not hasattr(owner, name):
            _set(owner, name, module)


def _set(owner, name, value):
    setattr(owner, name, value)

    def undo():
        # It is gone already where take_away() found it, or replaced by the program.
        if vars(owner).get(name) is value:
            delattr(owner, name)

    _undo.append(undo)


def _module_for(name):
    """The module that answers for `import name`, or None."""
    if name == _CONTRIB:
        return _namespace("")
    if name.startswith(_CONTRIB + "."):
        return _contrib_module(name[len(_CONTRIB) + 1 :])
    if name == _ESTIMATOR and _needs_estimator():
        return importlib.import_module("contrib_opt.estimator")
    if name == _EXAMPLES or name.startswith(_EXAMPLES + "."):
        return _examples(name)
    if name.startswith(_LAYERS):
        return importlib.import_module(name.replace(_LAYERS, _LAYERS_TODAY, 1))
    above, _, last = name.rpartition(".")
    if last == "experimental" and _is_mixed_precision(above):
        return _experimental()
    return None


# ------------------------------------------------------------------- tf.contrib


def _contrib_module(name):
    if contrib_modules.is_namespace(name):
        return _namespace(name)
    try:
        value = _successor(name)
    except AttributeError as error:
        raise ImportError(str(error), name=_CONTRIB + "." + name) from None
    if not isinstance(value, type(sys)):
        raise ImportError(f"tf.contrib.{name} is not a module", name=name)
    return value


def _namespace(name):
    prefix = name + "." if name else ""
    return _modules.Namespace(
        (_CONTRIB + "." + name).rstrip("."),
        f"What contrib_opt has of tf.contrib.{name}".rstrip(".") + ".",
        lambda below: _contrib_name(prefix + below),
        lambda: _names(name),
    )


def _names(name):
    """The names below one of tf.contrib that answer, if what has them is installed."""
    names = set(contrib_modules.same_names(name))
    if name and contrib_modules.is_same(name):
        try:
            module = _successor(name)
        except AttributeError:
            return sorted(names)
        public = getattr(module, "__all__", dir(module))
        names.update(n for n in public if not n.startswith("_"))
    # The directory of contrib's own files, which no `import *` is after.
    return sorted(names - {"python"})


def _contrib_name(name):
    if contrib_modules.is_namespace(name):
        return importlib.import_module(_CONTRIB + "." + name)
    return _successor(name)


def _successor(name):
    """The object that takes the place of a name of tf.contrib.

    Raises:
      AttributeError: there is none here; it says where there is one.
    """
    successor = contrib_modules.lookup(name)
    if not contrib_modules.is_same(name):
        raise AttributeError(_refusal(name, successor))
    try:
        return _object(successor.where)
    except (ImportError, AttributeError) as error:
        raise AttributeError(_missing(name, successor, error)) from None


def _refusal(name, successor):
    if successor.status == contrib_modules.GONE:
        return (
            f"tf.contrib.{name} is not part of contrib_opt, and no package has it: "
            f"{successor.note}"
        )
    return (
        f"tf.contrib.{name} is not part of contrib_opt: see {successor.where} "
        f"({successor.note})"
    )


def _missing(name, successor, error):
    if successor.status == contrib_modules.PROVIDED:
        return f"tf.contrib.{name}: {error}"
    if isinstance(error, ImportError):
        return (
            f"tf.contrib.{name} is {successor.where}, and that does not load: {error} "
            f"({successor.note})"
        )
    return f"tf.contrib.{name} was not carried on: {error}"


def _object(where):
    """The object of a dotted name, with the modules on the way imported."""
    if where.startswith(_CELLS) and _KERAS_2_IS_APART:
        return getattr(_cells_of_keras_2(), where[len(_CELLS) :])
    if where.startswith("tf."):
        return functools.reduce(getattr, where.split(".")[1:], tf)
    # As a module first: tf_slim.ops is one, and tf_slim has another one's name there.
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if "." not in where or not where.startswith(error.name):
            raise
    above, _, last = where.rpartition(".")
    return getattr(_object(above), last)


# TensorFlow 2.16 and later have the cells only where Keras 2 is tf.keras. To ask for
# them elsewhere would make it Keras 3 for good.
_KERAS_2_IS_APART = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 16)


def _cells_of_keras_2():
    keras = importlib.import_module("tf_keras.api._v1.keras")
    return keras.__internal__.legacy.rnn_cell


def _examples(name):
    if name == _MNIST:
        return importlib.import_module("contrib_opt.legacy.mnist")
    if not _MNIST.startswith(name + "."):
        raise ImportError(
            f"{name} is not part of contrib_opt, which of these examples has {_MNIST}",
            name=name,
        )
    below = _MNIST[len(name) + 1 :].partition(".")[0]
    return _modules.Namespace(
        name,
        "What contrib_opt has of TensorFlow's examples.",
        lambda name_below: _example(name + "." + name_below),
        lambda: [below],
    )


def _example(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise AttributeError(str(error)) from None


# ------------------------------------------------------------- Estimator, Keras

_ESTIMATOR = "tensorflow.estimator"


@functools.lru_cache(maxsize=None)
def _needs_estimator():
    return _tf.has_estimator() and not hasattr(tf, "estimator")


def _experimental():
    return importlib.import_module("contrib_opt.keras.mixed_precision.experimental")


def _is_mixed_precision(name):
    """Whether it is a name of `tf.keras.mixed_precision`, which has several."""
    package = name.partition(".")[0]
    return package in ("tensorflow", "keras", "tf_keras") and name.endswith(
        "keras.mixed_precision"
    )


def _amendment_for(name):
    if slim.is_slim(name):
        return lambda module: _undo.append(slim.mend(module))
    return _add_experimental if _is_mixed_precision(name) else None


def _add_experimental(mixed_precision):
    if not hasattr(mixed_precision, "experimental"):
        _set(mixed_precision, "experimental", _experimental())

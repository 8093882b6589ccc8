"""The Kerases under test, and decorators that run a test on each of them.

On TensorFlow 2.8 the classes under test are the real ones.
"""

import collections
import importlib
import importlib.util

import pytest
import tensorflow as tf

REFERENCE = tf.__version__.startswith("2.8.")

Kind = collections.namedtuple("Kind", ["id", "keras", "optimizers"])


def _kinds():
    """Every kind of optimizer that is installed: of which Keras, and its classes."""
    if REFERENCE:
        yield Kind("reference", tf.keras, tf.keras.optimizers)
        return
    for name in ("keras", "tf_keras"):
        if importlib.util.find_spec(name) is None:
            continue
        keras = importlib.import_module(name)
        if keras.__version__.startswith("3."):
            yield Kind("keras3", keras, keras.optimizers)
        else:
            yield Kind(name + "-new", keras, keras.optimizers)
            yield Kind(name + "-legacy", keras, keras.optimizers.legacy)


KINDS = list(_kinds())
TWO_KERAS_2 = {"keras-new", "tf_keras-new"} <= {kind.id for kind in KINDS}
OF_TENSORFLOW = tf.keras.optimizers.Optimizer.__module__.split(".")[0]


def is_new(kind):
    """Whether the optimizers are those after TensorFlow 2.8's."""
    return kind.id == "keras3" or kind.id.endswith("-new")


def is_second_keras_2(kind):
    """Whether another Keras 2 is installed as well, and is `tf.keras`."""
    return TWO_KERAS_2 and kind.keras.__name__ != OF_TENSORFLOW


def _each(kinds):
    return pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.id)


every_kind = _each(KINDS)
only_keras3 = _each(kind for kind in KINDS if kind.id == "keras3")
# Two Keras 2 are the same code under two names. For tests that take long.
every_generation = _each(kind for kind in KINDS if not is_second_keras_2(kind))

"""tf_slim 1.1.0, the last release, on a TensorFlow where names that it uses moved.

tf_slim uses modules of TensorFlow that are not public. Nine of the names that it takes
from them are elsewhere since TensorFlow 2.12 or so; all have a public name. `mend`
gives them to the modules of tf_slim, and to nothing else.
"""

import types

import tensorflow as tf

_LOST_NAMES = (
    "tensorflow.python.framework.ops",
    "tensorflow.python.ops.array_ops",
    "tensorflow.python.ops.control_flow_ops",
    "tensorflow.python.ops.variable_scope",
)


class _Mended(types.ModuleType):
    """A module of TensorFlow that has the names it lost."""

    def __init__(self, module):
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name):
        try:
            return getattr(self._module, name)
        except AttributeError:
            # variable_scope.variable(...) made what Variable(...) makes.
            return getattr(tf.compat.v1, "Variable" if name == "variable" else name)


def is_slim(name):
    """Whether a module of this name is one of tf_slim's."""
    return name.partition(".")[0] == "tf_slim"


def mend(module):
    """Gives a module of tf_slim the names that it lost.

    Args:
      module: the module, loaded.

    Returns:
      A function that undoes it.
    """
    before = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.ModuleType) and value.__name__ in _LOST_NAMES
    }
    for name, value in before.items():
        setattr(module, name, _Mended(value))
    return lambda: vars(module).update(before)

"""tf_slim 1.1.0, the last release, on a TensorFlow where names that it uses moved.

tf_slim uses modules of TensorFlow that are not public. Nine of the names that it takes
from them are elsewhere since TensorFlow 2.12 or so. `mend` gives them to the modules of
tf_slim, and to nothing else.
"""

import types

from contrib_opt.legacy import _internal


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
        if isinstance(value, types.ModuleType) and _internal.is_internal(value.__name__)
    }
    for name, value in before.items():
        setattr(module, name, _internal.module(value.__name__))
    return lambda: vars(module).update(before)

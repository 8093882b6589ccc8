"""The import machinery behind install(): modules that are not files.

A finder at the front of `sys.meta_path` answers for `tensorflow.contrib` and what is
below it, for `tensorflow.estimator`, and for `mixed_precision.experimental` of Keras.
It does not answer for any other module.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types


class Namespace(types.ModuleType):
    """A module whose names are looked up when they are first asked for."""

    def __init__(self, name, doc, resolve, names):
        super().__init__(name, doc)
        self.__path__ = []
        self._resolve = resolve
        self._names = names

    def __getattr__(self, name):
        if name == "__all__":
            return self._names()
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._resolve(name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted(set(self.__dict__) | set(self._names()))


class _Alias(importlib.abc.Loader):
    """Lets an existing module answer under a second name."""

    def __init__(self, module):
        self._module = module

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # The import system takes what stands here afterwards. The module itself must
        # not be given to it earlier: it would get the second name's __spec__.
        sys.modules[module.__spec__.name] = self._module


class Finder(importlib.abc.MetaPathFinder):
    """Answers for names that `answer` has a module for.

    answer: takes the name of a module, and returns a module, or None to leave the name
      to others; it may raise ImportError.
    amend: takes the name of a module that others find, and returns None, or a function
      that is called with the module once it is loaded.
    """

    def __init__(self, answer, amend):
        self._answer = answer
        self._amend = amend
        self.answered = []

    def find_spec(self, name, path=None, target=None):
        module = self._answer(name)
        if module is not None:
            self.answered.append((name, module))
            return importlib.machinery.ModuleSpec(name, _Alias(module), is_package=True)
        amend = self._amend(name)
        if amend is None:
            return None
        return _amended(self._find_elsewhere(name, path, target), amend)

    def _find_elsewhere(self, name, path, target):
        # Those before this one have answered, or are asking it now.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def put_in_place(self):
        sys.meta_path.insert(0, self)

    def take_away(self):
        """Stops answering, and forgets the modules that were answered with."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in self.answered:
            if sys.modules.get(name) is module:
                del sys.modules[name]
            # The import system has also made it an attribute of the module above it.
            above, _, last = name.rpartition(".")
            if vars(sys.modules.get(above, self)).get(last) is module:
                delattr(sys.modules[above], last)
        importlib.invalidate_caches()


def _amended(spec, amend):
    if spec is None or spec.loader is None:
        return spec
    exec_module = spec.loader.exec_module

    def exec_and_amend(module):
        exec_module(module)
        amend(module)

    # A loader of its own would hide what else the found one can do, such as to give
    # the source of the module in tracebacks. It serves this one module.
    spec.loader.exec_module = exec_and_amend
    return spec

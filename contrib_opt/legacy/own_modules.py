"""Gives the modules of a program, and only these, TensorFlow 1 as `tensorflow`.

To import `tensorflow` in a module of the program is to import
contrib_opt.legacy.tensorflow. The import statements are changed in the syntax tree as
Python loads the file: line numbers stay, the file is not touched, and Python's cache of
compiled files is not used. All other modules are loaded as ever and see the TensorFlow
that is installed. `importlib.import_module("tensorflow")` and `__import__` are not
changed.

A module is the program's own if it is not in site-packages (on Debian, dist-packages)
and not part of Python.
"""

import ast
import importlib.machinery
import os
import re
import sys
import sysconfig

import tensorflow as tf

_STAND_IN = "contrib_opt.legacy.tensorflow"

# Written for TensorFlow 2, wherever they are: some people have a clone on PYTHONPATH.
_WRITTEN_FOR_2 = (
    "contrib_opt keras tensorflow tensorflow_addons tensorflow_datasets "
    "tensorflow_estimator tensorflow_hub tensorflow_probability tf_keras tf_slim"
).split()


class Ownership:
    """Tells the modules of a program from others."""

    def __init__(self, tf1=(), tf2=()):
        """Names modules or packages; of two names the longer one decides.

        Args:
          tf1: those that count as the program's own although they are installed.
          tf2: those that see the TensorFlow that is installed in any case.
        """
        self._decided = dict.fromkeys(_WRITTEN_FOR_2, False)
        self._decided.update(dict.fromkeys(tf1, True))
        self._decided.update(dict.fromkeys(tf2, False))
        stdlib = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
        self._python = tuple(os.path.join(folder, "") for folder in stdlib)

    def decided(self, name):
        """Whether the module `name` is the program's own; None if its file decides."""
        while name:
            if name in self._decided:
                return self._decided[name]
            name = name.rpartition(".")[0]
        return None

    def is_own(self, name, file):
        """Whether the module `name` in `file` belongs to the program."""
        decided = self.decided(name)
        if decided is None:
            path = os.path.abspath(file)
            installed = set(path.split(os.sep)) & {"site-packages", "dist-packages"}
            return not installed and not path.startswith(self._python)
        return decided


def install(ownership):
    """From now on, loads the modules of the program by `Loader`."""
    sys.meta_path.insert(0, _Finder(ownership))


def hint(error):
    """What to do about an error in an installed package that wants TensorFlow 1."""
    gone = re.match(r"module 'tensorflow' has no attribute '(\w+)'", str(error))
    traceback = error.__traceback__
    if not gone or not traceback or not hasattr(tf.compat.v1, gone.group(1)):
        return None
    while traceback.tb_next:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "")
    package = module.partition(".")[0]
    return (
        f"{package} is written for TensorFlow 1. If it is, run the program with "
        f"`python -m contrib_opt run --v1 {package} ...`."
    )


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a source file in which `tensorflow` is TensorFlow 1."""

    def get_code(self, fullname):
        """The code of the module, compiled anew if it names TensorFlow."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if tf.__version__.startswith("1.") or b"tensorflow" not in source:
            return self.source_to_code(source, path)
        tree = _Imports().visit(ast.parse(source, path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Finder:
    """Finds the modules of the program, for `Loader` to load."""

    def __init__(self, ownership):
        self._ownership = ownership

    def find_spec(self, fullname, path=None, target=None):
        if self._ownership.decided(fullname) is False:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        for finder in others:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return self._changed(spec)
        return None

    def _changed(self, spec):
        # Loaders of other kinds, such as pytest's, know what they do.
        is_source = type(spec.loader) is importlib.machinery.SourceFileLoader
        if is_source and self._ownership.is_own(spec.name, spec.origin):
            spec.loader = Loader(spec.name, spec.origin)
        return spec

    def invalidate_caches(self):
        """Does nothing: this finder has none."""


class _Imports(ast.NodeTransformer):
    """Makes imports of `tensorflow` imports of what stands in for it."""

    def visit_Import(self, node):
        if not any(_is_tensorflow(alias.name) for alias in node.names):
            return node
        imports = []
        for alias in node.names:
            imports.extend(_aliases(alias))
        return [ast.copy_location(ast.Import([alias]), node) for alias in imports]

    def visit_ImportFrom(self, node):
        if node.level == 0 and _is_tensorflow(node.module):
            node.module = _stand_in(node.module)
        return node


def _aliases(alias):
    if not _is_tensorflow(alias.name):
        return [alias]
    aliases = [ast.alias(_stand_in(alias.name), alias.asname or "tensorflow")]
    if not alias.asname and "." in alias.name:
        # `import tensorflow.python.framework.ops` binds the name of the first part.
        aliases.append(ast.alias(_STAND_IN, "tensorflow"))
    return aliases


def _is_tensorflow(name):
    return name == "tensorflow" or name.startswith("tensorflow.")


def _stand_in(name):
    return _STAND_IN + name[len("tensorflow") :]

"""Gives the modules of a program, and only these, TensorFlow 1 as `tensorflow`.

To import `tensorflow` in a module of the program is to import
contrib_opt.legacy.tensorflow. The import statements, and calls such as
`importlib.import_module("tensorflow")`, are changed in the syntax tree as Python loads
the file: line numbers stay, the file is not touched, and Python's cache of compiled
files is not used. All other modules are loaded as ever and see the TensorFlow that is
installed; so does code that Python loads from no file, as in
`exec("import tensorflow")`.

A module is the program's own if it is not in site-packages (on Debian, dist-packages)
and not part of Python.
"""

import ast
import importlib.machinery
import os
import re
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
        self._decided["__main__"] = True
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
            return not _is_installed(path) and not path.startswith(self._python)
        return decided


def install(ownership):
    """From now on, gives the program's own modules TensorFlow 1, whoever loads them."""
    # Import statements, importlib.util.spec_from_file_location and imp.load_source all
    # come here. Loaders with a way of their own know what they do.
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code
    source_to_code = loader.source_to_code

    def get_code_of_own(self, fullname):
        is_plain = type(self).source_to_code is source_to_code
        if is_plain and ownership.is_own(fullname, self.get_filename(fullname)):
            return _own_code(self, fullname)
        return get_code(self, fullname)

    loader.get_code = get_code_of_own


def hint(error):
    """What to do about an error in an installed package that wants TensorFlow 1."""
    gone = re.match(r"module 'tensorflow' has no attribute '(\w+)'", str(error))
    traceback = error.__traceback__
    if not gone or not traceback or not hasattr(tf.compat.v1, gone.group(1)):
        return None
    while traceback.tb_next:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    module = traceback.tb_frame.f_globals.get("__name__", "")
    package = module.partition(".")[0]
    if _is_installed(code.co_filename) and package not in ("", "__main__"):
        return (
            f"{package} is written for TensorFlow 1. If it is, run the program with "
            f"`python -m contrib_opt run --v1 {package} ...`."
        )
    return (
        "only code that Python loads from a file of the program, in this process, gets "
        "TensorFlow 1. Elsewhere write `import tensorflow.compat.v1 as tf`."
    )


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a program, of which Python keeps no compiled file."""

    def get_code(self, fullname):
        """The code of the module, in which `tensorflow` is TensorFlow 1."""
        return _own_code(self, fullname)


def _own_code(loader, fullname):
    path = loader.get_filename(fullname)
    source = loader.get_data(path)
    if tf.__version__.startswith("1.") or b"tensorflow" not in source:
        return loader.source_to_code(source, path)
    tree = _Imports().visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _is_installed(file):
    folders = os.path.abspath(file).split(os.sep)
    return "site-packages" in folders or "dist-packages" in folders


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

    def visit_Call(self, node):
        self.generic_visit(node)
        function = getattr(node.func, "attr", getattr(node.func, "id", None))
        name = node.args and getattr(node.args[0], "value", None)
        # Python 3.7 has the text of a string in `s`.
        name = name or (node.args and getattr(node.args[0], "s", None))
        if not isinstance(name, str) or not _is_tensorflow(name):
            return node
        if function == "import_module":
            node.args[0] = _literal(_stand_in(name), node)
        elif function == "__import__" and name == "tensorflow":
            # With something to take from it, it is the module itself that is returned.
            arguments = [_STAND_IN, None, None, ["Session"]]
            node.args[:4] = [_literal(value, node) for value in arguments]
        return node


def _literal(value, at):
    tree = ast.parse(repr(value), mode="eval").body
    for node in ast.walk(tree):
        ast.copy_location(node, at)
    return tree


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

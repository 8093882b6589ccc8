"""The package as a whole: what it imports, and what an import of it costs."""

import ast
import os
import subprocess
import sys

import pytest

import contrib_opt

PACKAGE = os.path.dirname(contrib_opt.__file__)


def package_files():
    for folder, _, files in os.walk(PACKAGE):
        for name in files:
            if name.endswith(".py"):
                yield os.path.relpath(os.path.join(folder, name), PACKAGE)


def imported_modules(source):
    """The modules that `source` imports, by statement or by name in a call."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call):
            for argument in node.args:
                value = getattr(argument, "value", getattr(argument, "s", None))
                if isinstance(value, str):
                    yield value


def private(module):
    parts = module.split(".")
    return parts[0] in ("tensorflow", "tensorflow_core") and "python" in parts


def test_the_check_for_private_modules_can_fail():
    for source in (
        "import tensorflow.python.framework.ops",
        "from tensorflow.python.framework import ops",
        "from tensorflow import python",
        "__import__('tensorflow.python.training')",
    ):
        assert any(private(module) for module in imported_modules(source)), source


@pytest.mark.parametrize("name", sorted(set(package_files()) - {"_tf.py"}))
def test_only_public_tensorflow_outside_tf_py(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as source:
        found = [m for m in imported_modules(source.read()) if private(m)]
    assert not found


def test_every_file_says_what_it_is_for():
    for name in package_files():
        with open(os.path.join(PACKAGE, name), encoding="utf-8") as source:
            assert ast.get_docstring(ast.parse(source.read())), name


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", program],
        capture_output=True,
        text=True,
        cwd=os.path.dirname(PACKAGE),
        timeout=300,
    )


def test_importing_it_loads_tensorflow_and_nothing_else():
    loaded = run(
        "import sys, tensorflow\n"
        "import tensorflow.compat.v1\n"
        "before = set(sys.modules)\n"
        "import contrib_opt\n"
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip() == "['contrib_opt']"

"""What contrib_opt reads it does not execute: programs under `scan`, files, configs."""

import ast
import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "contrib_opt")

# Each place that executes something, with its reason.
ALLOWED = {
    # `run` executes the user's own program.
    ("legacy/program.py", "exec"),
    # Compiles what the user's own program imports under `run`.
    ("legacy/own_modules.py", "compile"),
}
# Builtins, and functions and modules by the names they are called by.
EXECUTES = {"eval", "exec", "compile", "execfile", "__import__"}
DESERIALIZERS = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
DESERIALIZERS |= {"joblib", "yaml", "jsonpickle"}


def modules():
    for folder, _, files in os.walk(PACKAGE):
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, PACKAGE).replace(os.sep, "/")
                with open(path, encoding="utf-8") as lines:
                    yield relative, ast.parse(lines.read())


def executions(tree):
    """The names of what the code of `tree` executes or deserializes by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in EXECUTES:
                yield node.func.id
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle":
                    yield keyword.arg
                if keyword.arg == "safe_mode":
                    yield keyword.arg
        elif isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            yield from sorted(names & DESERIALIZERS)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from sorted({node.module.split(".")[0]} & DESERIALIZERS)


def test_nothing_but_run_executes_code():
    found = {(name, what) for name, tree in modules() for what in executions(tree)}
    assert found <= ALLOWED


@pytest.mark.parametrize(
    "code",
    [
        "eval(text)",
        "exec(text)",
        "__import__(text)",
        "import pickle",
        "from yaml import load",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_the_check_itself_finds(code):
    assert list(executions(ast.parse(code)))


_LEAVES_A_FILE = "open({!r}, 'a').write(__name__)\n"
_PROGRAMS = {
    "train.py": "import helper\nimport tensorflow as tf\ntf.contrib.opt.LARSOptimizer",
    "old.py": "print 'Python 2'\nimport tensorflow as tf\ntf.contrib.opt.LARSOptimizer",
    "helper.py": "",
    "sitecustomize.py": "",
    "conftest.py": "",
    # Modules that `scan` itself uses where they are installed.
    "libcst.py": "",
    "fissix.py": "",
    "tensorflow.py": "",
    "contrib_opt.py": "",
    "setup.py": "",
    "package/__init__.py": "",
    "package/__main__.py": "",
}


def test_scan_leaves_no_trace(tmp_path):
    """Nothing that lies in the scanned folder runs, whatever its name."""
    pytest.importorskip("contrib_opt.legacy.scan")
    folder, trace = tmp_path / "programs", tmp_path / "trace"
    (folder / "package").mkdir(parents=True)
    effect = _LEAVES_A_FILE.format(str(trace))
    for name, code in _PROGRAMS.items():
        (folder / name).write_text(effect + code + "\n")
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": [effect, f"!touch {trace}\n", "%run train.py\n"],
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 2,
    }
    (folder / "notebook.ipynb").write_text(json.dumps(notebook))
    done = subprocess.run(
        [sys.executable, "-m", "contrib_opt", "scan", str(folder)],
        cwd=str(tmp_path),
        env=dict(os.environ, PYTHONPATH=ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("tf.contrib.opt.LARSOptimizer") >= 2
    assert not trace.exists(), trace.read_text()

"""`python -m contrib_opt run` against plain python, and the programs of 2017 to 2019.

tests/golden/legacy_programs/ has what TensorFlow 1.15.5 prints for the programs.
"""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(TESTS, "legacy_programs")
GOLDEN = os.path.join(TESTS, "golden", "legacy_programs")
RUN = ["-m", "contrib_opt", "run"]
IS_1 = tf.__version__.startswith("1.")
SHIPS_KERAS_2 = tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 16)

on_tensorflow_2 = pytest.mark.skipif(IS_1, reason="there the program just runs")


def installed(module):
    return importlib.util.find_spec(module) is not None


def python(*arguments, cwd=None, path=()):
    """The finished process of python with these arguments."""
    path = [*path, os.path.dirname(TESTS), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd and str(cwd),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, path))),
        capture_output=True,
        text=True,
        timeout=300,
    )


def run(*arguments, **kwargs):
    return python(*RUN, *arguments, **kwargs)


def from_traceback(text):
    """The traceback in what a process wrote, without what TensorFlow logs."""
    return text[text.index("Traceback") :]


# ------------------------------------------------------ programs of 2017 to 2019

REQUIRES = {
    "estimator_hooks": SHIPS_KERAS_2 or installed("tensorflow_estimator"),
    "layers_loss_scale": SHIPS_KERAS_2 or installed("tf_keras"),
    "pinn_lbfgs": installed("scipy"),
    "rnn_powersign": SHIPS_KERAS_2 or installed("tf_keras"),
    "slim_convnet": IS_1 or installed("tf_slim"),
}
DIRECTORY_FLAG = {"softmax_lars": "--train_dir", "estimator_hooks": "--model_dir"}


def run_program(program, *flags):
    if not REQUIRES.get(program, True):
        pytest.skip("a package that the program uses is not installed")
    process = run(os.path.join(PROGRAMS, program + ".py"), *flags)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def assert_same_output(lines, golden, tolerance=1e-4):
    number = re.compile(r"-?\d+\.\d+")
    assert [number.sub("#", line) for line in lines] == [
        number.sub("#", line) for line in golden
    ]
    for line, expected in zip(lines, golden):
        numbers = [float(n) for n in number.findall(expected)]
        assert [float(n) for n in number.findall(line)] == pytest.approx(
            numbers, abs=tolerance, rel=tolerance
        ), (line, expected)


@pytest.mark.parametrize(
    "program", sorted(f[:-3] for f in os.listdir(PROGRAMS) if f.endswith(".py"))
)
def test_a_program_prints_what_it_printed(program, tmp_path):
    flag = DIRECTORY_FLAG.get(program)
    lines = run_program(program, *([f"{flag}={tmp_path}"] if flag else []))
    with open(os.path.join(GOLDEN, program + ".txt")) as golden:
        assert_same_output(lines, golden.read().splitlines())


def test_the_readme_runs_one_of_them():
    with open(os.path.join(os.path.dirname(TESTS), "README.md")) as readme:
        (program,) = re.findall(r"^.*contrib_opt run (\S+\.py)", readme.read(), re.M)
    assert os.path.exists(os.path.join(os.path.dirname(TESTS), program))


# ------------------------------------------------------------- as plain python

FACTS = '''"""The docstring."""
import json, os, sys
if sys.argv[1:] == ["--raise"]:
    import failing
facts = {
    "argv": sys.argv, "cwd": os.getcwd(), "doc": __doc__, "file": __file__,
    "globals": sorted(globals()), "loader": isinstance(__loader__, type(os.__loader__)),
    "main": vars(sys.modules["__main__"]) is globals(), "name": __name__,
    "package": __package__, "path": sys.path[0], "spec": __spec__ and __spec__.name,
}
print(json.dumps(facts))
import atexit
atexit.register(lambda: print("atexit", facts["name"]))
sys.exit(7)
'''
FAILING = """
def fail():
    try:
        {}["key"]
    except KeyError as error:
        raise ValueError("of the program") from error

fail()
"""


# A start takes seconds, nearly all of them TensorFlow's: these share one.
FORKS = """
import json, os, sys
from contrib_opt.__main__ import main

children = []
for number, arguments in enumerate(json.loads(sys.argv[1])):
    children.append(os.fork())
    if children[-1] == 0:
        for stream in (sys.stdout, sys.stderr):
            file = "%s-%d.txt" % (stream.name.strip("<>"), number)
            os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY), stream.fileno())
        sys.path[0] = os.getcwd()
        sys.exit(main(["run"] + arguments))
for child in children:
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
"""

KNOWS_ITSELF = [
    ["facts.py", "--flag", "-m", "x"],
    ["link.py"],
    ["package", "--v1", "y"],
    ["-m", "package", "-x"],
    ["-m", "package.module"],
]
FAILS = [["facts.py", "--raise"], ["-m", "package", "--raise"], ["broken.py"]]
NOT_THERE = [
    (["nope.py"], 2, "can't open file .*nope.py': .Errno 2. No such file"),
    (["-m", "nope"], 1, "No module named nope"),
    (["-m", "nope.nope"], 1, "Error while finding module specification for 'nope"),
    (["empty"], 1, "can't find '__main__' module in .*empty"),
    (["--nope", "facts.py"], 2, "--nope"),
    ([], 2, "which program"),
]
FORKED = KNOWS_ITSELF + FAILS + [case[0] for case in NOT_THERE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    package = folder / "package"
    package.mkdir()
    (folder / "empty").mkdir()
    (package / "__init__.py").write_text("")
    for file in (folder / "facts.py", package / "__main__.py", package / "module.py"):
        file.write_text(FACTS)
    (folder / "failing.py").write_text(FAILING)
    (folder / "broken.py").write_text("import tensorflow\nprint 'of Python 2'\n")
    (folder / "link.py").symlink_to(package / "module.py")
    return folder


def forked(programs, folder):
    """Runs command lines of `run` in a folder.

    Returns:
      A list with the exit status, the output and the errors of each.
    """
    process = python("-c", FORKS, json.dumps(programs), cwd=folder)
    statuses = process.stdout.split()
    assert len(statuses) == len(programs), process.stderr

    def written(stream, number):
        return (folder / f"{stream}-{number}.txt").read_text()

    return [
        (int(status), written("stdout", number), written("stderr", number))
        for number, status in enumerate(statuses)
    ]


@pytest.fixture(scope="module")
def ours(folder):
    """Takes a program of FORKED and returns its exit status, output and errors."""
    ended = forked(FORKED, folder)
    return lambda program: ended[FORKED.index(program)]


def name_of(program):
    return " ".join(program[:2])


@pytest.mark.parametrize("program", KNOWS_ITSELF, ids=name_of)
def test_a_program_knows_of_itself_what_plain_python_tells_it(program, folder, ours):
    plain = python(*program, cwd=folder)
    status, output, _ = ours(program)
    assert json.loads(output.splitlines()[0]) == json.loads(
        plain.stdout.splitlines()[0]
    )
    assert output == plain.stdout
    assert status == plain.returncode == 7


@pytest.mark.parametrize("program", FAILS, ids=name_of)
def test_a_traceback_is_the_one_of_plain_python(program, folder, ours):
    plain = python(*program, cwd=folder)
    status, _, errors = ours(program)
    assert status == plain.returncode == 1
    if program == ["broken.py"]:
        errors, _, hint = errors.rpartition("\ncontrib_opt: ")
        assert hint.startswith("the program is in Python 2, and `2to3 -w`")
    # With -m, plain python has the lines of its runpy first.
    runpy = r'  File "[^"]*runpy[^"]*", .*\n(    .*\n)*'
    assert errors.endswith(re.sub(runpy, "", plain.stderr))
    assert "runpy" not in errors and "contrib_opt" not in errors


@pytest.mark.parametrize(
    "program, status, message", NOT_THERE, ids=[name_of(c[0]) for c in NOT_THERE]
)
def test_what_is_not_there_is_named(program, status, message, ours):
    found, _, errors = ours(program)
    assert found == status
    assert re.search(message, errors)
    assert "Traceback" not in errors


def test_ctrl_c(tmp_path):
    program = tmp_path / "wait.py"
    program.write_text(
        "import time, tensorflow as tf\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, *RUN, str(program)],
        env=dict(os.environ, PYTHONPATH=os.path.dirname(TESTS)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    traceback = from_traceback(errors).splitlines()
    assert "wait.py" in traceback[1] and traceback[-1].startswith("KeyboardInterrupt")
    # From 3.8 on python ends by the signal; `-m` programs do from 3.10 on.
    expected = -signal.SIGINT if sys.version_info >= (3, 10) else 1
    assert process.returncode == expected


# ------------------------------------------------------ what is TensorFlow to whom

IMPORTS = """
import importlib.util, os, tensorflow as tf, sys
import tensorflow
import tensorflow.python.framework.ops
import tensorflow.train as train
import tensorflow.compat.v1 as tf1
from tensorflow import flags
from tensorflow.contrib.opt import LARSOptimizer
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, control_flow_ops
from tensorflow.train import Saver
import helper, modern, installed, installed_for_1

import contrib_opt
assert tf is tensorflow is tf1 is tf.compat.v1 is helper.tf is installed_for_1.tf
assert LARSOptimizer is tf.contrib.opt.LARSOptimizer is contrib_opt.LARSOptimizer
assert train is tf.train and Saver is train.Saver and flags is tf.flags
assert tensorflow.python.framework.ops is ops is tf.python.framework.ops
assert ops.IndexedSlices is tf.IndexedSlices and array_ops.stack is tf.stack
assert control_flow_ops.cond is tf.cond
assert pywrap_tensorflow.NewCheckpointReader is tf.train.NewCheckpointReader
assert not tf.executing_eagerly() and tf.placeholder(tf.float32, [2]).shape[0] == 2
assert "Session" in dir(tf) and "contrib" in dir(tf)
assert modern.tf is installed.tf and not hasattr(modern.tf, "placeholder")
assert modern.tf.__name__ == "tensorflow" and helper.reshape is tf.reshape

from tensorflow.python.framework.graph_util import convert_variables_to_constants
from tensorflow.python.training import distribution_strategy_context, training_ops
from tensorflow.python.util import nest
assert convert_variables_to_constants is tf.graph_util.convert_variables_to_constants
assert nest.is_sequence([1]) and training_ops.resource_apply_momentum
assert tf.contrib.framework.load_variable

assert importlib.import_module("tensorflow") is __import__("tensorflow") is tf
assert importlib.import_module("tensorflow.train") is tf.train
spec = importlib.util.spec_from_file_location("plugin", "plugin.py")
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
assert plugin.tf is tf

print("imported", flush=True)
"""
ATTEMPT = """
try:
    {0}
except Exception as error:
    print("{0}: %s: %s" % (type(error).__name__, error))
"""
ERRORS = {
    "tf.nothing": "AttributeError: module 'tensorflow' has no attribute 'nothing'",
    "import tensorflow.nothing": "ModuleNotFoundError: TensorFlow VERSION has no "
    "tensorflow.nothing",
    "from tensorflow import nothing": "ModuleNotFoundError: TensorFlow VERSION has no "
    "tensorflow.nothing",
    "import tensorflow.nothing.more": "ModuleNotFoundError: TensorFlow VERSION has no "
    "tensorflow.nothing",
    "import tensorflow.python.nothing": "ModuleNotFoundError: TensorFlow VERSION has "
    "no tensorflow.python.nothing",
    "from tensorflow.python.framework import nothing": "ImportError: cannot import "
    "name 'nothing' from 'tensorflow.python.framework' (unknown location)",
    "ops.nothing": "AttributeError: module 'tensorflow.python.framework.ops' has no "
    "attribute 'nothing'",
}


@pytest.mark.skipif(
    SHIPS_KERAS_2 or installed("tf_keras"), reason="Keras 2 is installed"
)
def test_what_needs_keras_2_says_so(tmp_path):
    statements = ["tf.layers", "from tensorflow.layers import dense", "tf.nn.rnn_cell"]
    (tmp_path / "main.py").write_text(
        "import star, tensorflow as tf\nassert not hasattr(tf, 'layers')\n"
        + "".join(ATTEMPT.format(statement) for statement in statements)
    )
    (tmp_path / "star.py").write_text("from tensorflow import *\nSession\n")
    process = run(tmp_path / "main.py")
    lines = process.stdout.splitlines()
    assert len(lines) == 3, process.stderr
    for line, statement in zip(lines, statements):
        assert line.startswith(statement)
        assert ("ImportError: tf.layers needs" in line) == ("import" in statement)
        assert line.endswith("pip install 'contrib_opt[keras2]' does")


@on_tensorflow_2
def test_only_the_program_gets_tensorflow_1(tmp_path):
    program = tmp_path / "program"
    site = tmp_path / "site-packages"
    for path in (program, site):
        path.mkdir()
    attempts = "".join(ATTEMPT.format(statement) for statement in ERRORS)
    (program / "main.py").write_text(IMPORTS + attempts + "import gone\n")
    (program / "helper.py").write_text(
        "from tensorflow.python.ops.array_ops import *\nimport tensorflow as tf\n"
    )
    for name in ("modern", "plugin"):
        (program / (name + ".py")).write_text("import tensorflow as tf\n")
    for name in ("installed", "installed_for_1"):
        (site / (name + ".py")).write_text("import tensorflow as tf\n")
    (site / "gone.py").write_text("import tensorflow as tf\ntf.Session()\n")
    process = run(
        "--v1=installed_for_1", "--v2=modern", "main.py", cwd=program, path=[site]
    )
    lines = process.stdout.splitlines()
    assert lines[:1] == ["imported"], process.stderr
    assert lines[1:] == [
        f"{statement}: {error}".replace("VERSION", tf.__version__)
        for statement, error in ERRORS.items()
    ]
    # A package that nobody named is told from the error.
    assert process.returncode == 1
    assert "run the program with `python -m contrib_opt run --v1 gone" in process.stderr

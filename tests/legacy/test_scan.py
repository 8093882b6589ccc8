"""`python -m contrib_opt scan` on a corpus of the ways in which programs name things.

A comment that begins with "#:" lists the names that its line uses.
"""

import collections
import glob
import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
import types

import pytest

import contrib_opt
from contrib_opt.legacy import scan, sources

CORPUS = os.path.join(os.path.dirname(__file__), "corpus")
PROGRAMS = sorted(glob.glob(os.path.join(CORPUS, "*.*")))


def marked_lines(source):
    """Pairs of the place of a line and the names that its comment lists."""
    if isinstance(source, sources.Notebook):
        codes = [(cell.number, cell.code) for cell in source.cells]
    else:
        codes = [(None, source.content.decode("latin-1"))]
    for cell, code in codes:
        for number, line in enumerate(code.splitlines(), start=1):
            if "#: " in line:
                yield (cell, number), sorted(line.split("#: ")[1].split())


def found_names(source):
    result = collections.defaultdict(list)
    for found in scan.scan(source):
        result[found.place.get("cell"), found.place["line"]].append(found.name)
    return {place: sorted(names) for place, names in result.items()}


@pytest.mark.parametrize("path", PROGRAMS, ids=os.path.basename)
def test_every_use_is_found_and_nothing_else(path):
    if path.endswith("python38.py") and sys.version_info < (3, 8):
        pytest.skip("syntax of Python 3.8")
    (source,) = sources.read(path)
    assert found_names(source) == dict(marked_lines(source))


def run(capsys, *arguments):
    """Exit status, standard output and standard error of the command."""
    try:
        status = scan.main([str(argument) for argument in arguments])
    except SystemExit as exit:
        status = exit.code
    return (status, *capsys.readouterr())


def program(folder, text, name="program.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf_slim", None)
    path = program(
        tmp_path,
        "import tensorflow as tf\n"
        "tf.contrib.opt.LARSOptimizer(0.1)\n"
        "tf.contrib.slim.conv2d(x)\n"
        "tf.contrib.fused_conv\n"
        "tf.estimator.Estimator\n",
    )
    status, out, err = run(capsys, path)
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        f"{path}:2: tf.contrib.opt.LARSOptimizer: provided: contrib_opt.LARSOptimizer",
        f"{path}:3: tf.contrib.slim.conv2d: other package: tf_slim.conv2d "
        "(pip install tf_slim)",
        f"{path}:4: tf.contrib.fused_conv: gone: TensorFlow fuses convolution, "
        "bias and activation by itself",
        f"{path}:5: tf.estimator.Estimator: provided: contrib_opt.estimator.Estimator "
        "(on TensorFlow 2.16 and later: pip install 'contrib_opt[estimator]')",
        "",
        "1 program, 4 uses: 2 provided, 1 provided by another package, 1 gone",
        "python -m contrib_opt run: these do not answer: tf.contrib.fused_conv",
        "needs: pip install tf_slim",
    ]
    # What is installed is not asked for.
    monkeypatch.setitem(sys.modules, "tf_slim", types.ModuleType("tf_slim"))
    sys.modules["tf_slim"].__spec__ = importlib.machinery.ModuleSpec("tf_slim", None)
    path = program(tmp_path, "import tensorflow as tf\ntf.contrib.slim.conv2d(x)\n")
    assert run(capsys, path)[1].splitlines()[-1] == (
        "python -m contrib_opt run: every name answers"
    )


def test_json(tmp_path, capsys):
    path = program(tmp_path, "import tensorflow as tf\n\ntf.contrib.opt.GGTOptimizer()")
    status, out, _ = run(capsys, "--json", path)
    assert status == 0
    assert json.loads(out) == {
        "uses": [
            {
                "file": str(path),
                "line": 3,
                "name": "tf.contrib.opt.GGTOptimizer",
                "answers": True,
                "status": "provided",
                "where": "contrib_opt.GGTOptimizer",
                "note": "",
            }
        ],
        "summary": {
            "programs": 1,
            "uses": 1,
            "provided": 1,
            "other package": 0,
            "gone": 0,
        },
        "errors": [],
    }


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("import tensorflow as tf", 0),
        ("tf.contrib.opt.LARSOptimizer", 0),
        ("tf.contrib.opt.LARSOptimiser", 1),
        ("tf.contrib.slim.conv2d", 1),
        ("tf.contrib.no_such_module", 1),
        ("tf.estimator.DNNClassifier", 0),
        ("tf.estimator.BoostedTreesClassifier", 1),
        ("tf.estimator.tpu.experimental.EmbeddingConfigSpec", 1),
        ("tf.estimator.NoSuchThing", 1),
        ("tf.keras.mixed_precision.experimental.Policy", 0),
        ("tf.keras.mixed_precision.experimental.NoSuchThing", 1),
        ("from tensorflow.contrib.opt.python.training import sign_decay", 0),
    ],
)
def test_the_exit_status_says_whether_all_is_provided(tmp_path, capsys, line, status):
    assert run(capsys, program(tmp_path, line))[0] == status


def test_a_folder(tmp_path, capsys):
    use = "import tensorflow.contrib.opt"
    for folder in ("", "package", ".git", "env", "__pycache__", "lib/site-packages"):
        os.makedirs(tmp_path / folder, exist_ok=True)
        program(tmp_path / folder, use, "module.py")
    program(tmp_path / "env", "", "pyvenv.cfg")
    program(tmp_path, use, "notes.txt")
    status, out, _ = run(capsys, tmp_path, tmp_path / "module.py")
    assert [line.split(":")[0] for line in out.splitlines()[:-3]] == [
        str(tmp_path / "module.py"),
        str(tmp_path / "package" / "module.py"),
    ]


def test_a_file_is_read_whatever_its_name(tmp_path, capsys):
    path = program(
        tmp_path, "#!/usr/bin/python\nimport tensorflow.contrib.opt", "train"
    )
    assert f"{path}:2: tf.contrib.opt: provided" in run(capsys, path)[1]


def test_a_notebook_is_reported_by_cell(capsys):
    path = os.path.join(CORPUS, "notebook.ipynb")
    status, out, err = run(capsys, path)
    assert f"{path}:cell_4:5: tf.contrib.opt.LARSOptimizer: provided" in out
    assert (status, err) == (2, f"{path}:cell_3: not read: invalid syntax in line 1\n")


def test_files_that_cannot_be_read(tmp_path, capsys):
    good = program(tmp_path, "import tensorflow.contrib.opt", "good.py")
    bad = program(tmp_path, "x = (\n", "bad.py")
    empty = program(tmp_path, "x = '\0'", "null.py")
    notebook = program(tmp_path, "{", "bad.ipynb")
    status, out, err = run(capsys, tmp_path)
    assert status == 2
    assert f"{good}:1: tf.contrib.opt: provided" in out
    for path in (bad, empty, notebook):
        assert f"{path}: not read: " in err
    assert "bad.ipynb: not read: not a notebook: " in err


def test_wrong_command_lines(tmp_path, capsys):
    status, _, err = run(capsys, tmp_path / "nowhere")
    assert status == 2
    assert "nowhere: no such file or folder" in err
    assert run(capsys)[0] == 2
    path = program(tmp_path, "")
    status, _, err = run(capsys, "--json", "--rewrite", path)
    assert status == 2
    assert "--json goes with neither --rewrite nor --diff" in err


def test_without_libcst(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, _, err = run(capsys, "--rewrite", program(tmp_path, ""))
    assert status == 2
    assert "pip install 'contrib_opt[rewrite]' brings it" in err


# --------------------------------------------------------------------- --rewrite

OLD = os.path.join(CORPUS, "rewrite", "old")
NEW = os.path.join(CORPUS, "rewrite", "new")


def content(path):
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", sorted(os.listdir(OLD)))
def test_a_program_is_rewritten_once(name, tmp_path, capsys):
    path = shutil.copy(os.path.join(OLD, name), str(tmp_path))
    run(capsys, "--rewrite", path)
    assert content(path) == content(os.path.join(NEW, name))
    _, out, err = run(capsys, "--rewrite", "--diff", path)
    assert (out, "rewritten\n" in err) == ("", False)
    assert content(path) == content(os.path.join(NEW, name))


def test_nothing_provided_is_left(capsys):
    for name in ("session.py", "star.py", "windows.py"):
        _, out, _ = run(capsys, os.path.join(NEW, name))
        assert " 0 provided" in out


def test_diff_writes_nothing_alone(tmp_path, capsys):
    text = "import tensorflow as tf\n\ntf.contrib.opt.GGTOptimizer()\n"
    path = program(tmp_path, text)
    status, out, err = run(capsys, "--diff", path)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"--- {path}",
        f"+++ {path}",
        "@@ -1,3 +1,4 @@",
        " import tensorflow as tf",
        "+import contrib_opt",
        " ",
        "-tf.contrib.opt.GGTOptimizer()",
        "+contrib_opt.GGTOptimizer()",
    ]
    assert path.read_text() == text
    assert run(capsys, "--diff", "--rewrite", path)[1] == out
    assert "contrib_opt.GGTOptimizer" in path.read_text()


def test_the_diff_of_a_notebook_shows_its_cells(capsys):
    _, out, _ = run(capsys, "--diff", os.path.join(OLD, "notebook.ipynb"))
    assert " import tensorflow as tf\n-opt = tf.contrib.opt" in out
    assert "\n # cell_2\n %%bash\n" in out
    assert "contrib_opt: " not in out


def test_what_is_left_is_said(tmp_path, capsys):
    path = program(
        tmp_path,
        "import importlib, tensorflow as tf\n"
        "m = importlib.import_module('tensorflow.contrib.opt')\n"
        "c = tf.contrib\n"
        "c.slim\n",
    )
    status, _, err = run(capsys, "--rewrite", path)
    assert status == 1
    assert err.splitlines() == [
        f"{path}:2: tf.contrib.opt: provided: contrib_opt "
        "(not rewritten; edit it by hand)",
        f"{path}:3: tf.contrib: provided: not rewritten; take it out when nothing "
        "needs it",
        f"{path}:4: tf.contrib.slim: other package: tf_slim (pip install tf_slim)",
    ]


def test_python_2_is_not_rewritten(tmp_path, capsys):
    text = "import tensorflow as tf\nprint tf.contrib.opt.LARSOptimizer\n"
    path = program(tmp_path, text)
    status, _, err = run(capsys, "--rewrite", path)
    assert status == 2
    assert f"{path}: not rewritten: Python 2; `2to3 -w` makes it Python 3" in err
    assert path.read_text() == text


def test_a_name_of_the_programs_own_is_respected(tmp_path, capsys):
    text = "import tensorflow as tf\ncontrib_opt = tf.contrib.opt\n"
    path = program(tmp_path, text)
    assert run(capsys, "--rewrite", path)[0] == 1
    assert path.read_text() == text


def test_a_rewritten_program_runs(tmp_path, capsys):
    path = program(
        tmp_path,
        "import tensorflow as tf\n"
        "from tensorflow.contrib import opt\n"
        "from tensorflow.contrib.opt import LARSOptimizer\n"
        "from tensorflow.contrib.opt.python.training import sign_decay as decay\n"
        "made = [opt.LARSOptimizer(0.1), LARSOptimizer(0.1),\n"
        "        tf.contrib.opt.LARSOptimizer(0.1)]\n"
        "parameters = tf.contrib.training.HParams(rate=3)\n"
        "rate = decay.get_linear_decay_fn(9)\n",
    )
    assert run(capsys, "--rewrite", path)[0] == 0
    names = {}
    exec(path.read_text(), names)
    assert {type(each) for each in names["made"]} == {contrib_opt.LARSOptimizer}
    assert names["rate"] is not None
    assert names["parameters"].rate == 3

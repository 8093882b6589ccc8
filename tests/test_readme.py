"""The README's code runs: what it says now, and what it said before.

Before, with tf.contrib, it runs on TensorFlow 1.15; with Keras's loss scaling, on 2.8.

In a ```diff block the lines without '-' are the program after the change, and the
lines without '+' the program before it.
"""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
import tensorflow as tf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as lines:
    README = lines.read()
BLOCKS = re.findall(r"^```(python|diff)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
DIFFS = [block for language, block in BLOCKS if language == "diff"]


def side(diff, sign):
    """The program on one side of `diff`: the lines marked `sign`, and the common."""
    kept = [line[1:] for line in diff.splitlines() if line[:1] in (sign, " ", "")]
    return "\n".join(kept) + "\n"


def run(program, folder):
    path = folder / "program.py"
    path.write_text(program)
    result = subprocess.run(
        [sys.executable, str(path)],
        cwd=str(folder),
        env=dict(os.environ, PYTHONPATH=ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout


AFTER = [side(block, "+") if lang == "diff" else block for lang, block in BLOCKS]


def test_there_are_five_usages_and_two_programs():
    languages = [language for language, _ in BLOCKS]
    assert languages == ["python"] + ["diff"] * 5 + ["python"]


@pytest.mark.parametrize("program", AFTER, ids=range(len(AFTER)))
def test_program(program, tmp_path):
    tf1 = tf.__version__.startswith("1.")
    if "estimator" in program and not tf1 and not hasattr(tf.compat.v1, "estimator"):
        if importlib.util.find_spec("tensorflow_estimator") is None:
            pytest.skip("the extra 'estimator' is not installed")
    if tf1 and "contrib_opt.keras" in program:
        pytest.skip("TensorFlow 1.15 had no LossScaleOptimizer of Keras")
    run(program, tmp_path)


CONTRIB = [diff for diff in DIFFS if "tf.contrib" in diff]


@pytest.mark.parametrize("diff", CONTRIB, ids=range(len(CONTRIB)))
@pytest.mark.skipif(
    not tf.__version__.startswith("1."), reason="tf.contrib is in TensorFlow 1 only"
)
def test_program_before_the_change(diff, tmp_path):
    run(side(diff, "-"), tmp_path)


@pytest.mark.skipif(
    not tf.__version__.startswith("2.8."), reason="it is the last with that class"
)
def test_keras_program_before_the_change(tmp_path):
    (diff,) = [diff for diff in DIFFS if diff not in CONTRIB]
    run(side(diff, "-"), tmp_path)

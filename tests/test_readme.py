"""The README's code runs: what it says now, and on TensorFlow 1.15 what it said before.

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


def test_there_are_three_usages_and_one_program():
    assert [language for language, _ in BLOCKS] == ["diff"] * 3 + ["python"]


@pytest.mark.parametrize("program", AFTER, ids=range(len(AFTER)))
def test_program(program, tmp_path):
    tf1 = tf.__version__.startswith("1.")
    if "estimator" in program and not tf1 and not hasattr(tf.compat.v1, "estimator"):
        if importlib.util.find_spec("tensorflow_estimator") is None:
            pytest.skip("the extra 'estimator' is not installed")
    run(program, tmp_path)


@pytest.mark.parametrize("diff", DIFFS, ids=range(len(DIFFS)))
@pytest.mark.skipif(
    not tf.__version__.startswith("1."), reason="tf.contrib is in TensorFlow 1 only"
)
def test_program_before_the_change(diff, tmp_path):
    run(side(diff, "-"), tmp_path)

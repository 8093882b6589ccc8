"""The programs in legacy_examples/, run as their users run them.

Each runs once at full length; what the runs leave behind is then looked at.
"""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = os.path.join(ROOT, "legacy_examples")


def installed(module):
    return importlib.util.find_spec(module) is not None


def ships_estimator():
    return tuple(int(n) for n in tf.__version__.split(".")[:2]) < (2, 16)


needs_sklearn = pytest.mark.skipif(
    not installed("sklearn"), reason="scikit-learn is not installed"
)
needs_matplotlib = pytest.mark.skipif(
    not installed("matplotlib"), reason="matplotlib is not installed"
)
needs_estimator = pytest.mark.skipif(
    not (ships_estimator() or installed("tensorflow_estimator")),
    reason="tensorflow-estimator is not installed",
)
programs = pytest.mark.parametrize(
    "program",
    [
        pytest.param("lars_session", marks=needs_sklearn),
        pytest.param("lars_eager", marks=needs_sklearn),
        pytest.param("lars_estimator", marks=[needs_sklearn, needs_estimator]),
    ],
)


def start(program, *flags, first_on_path=ROOT):
    path = [first_on_path, ROOT, os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, os.path.join(EXAMPLES, program + ".py"), *flags],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
        capture_output=True,
        text=True,
        timeout=300,
    )


def run(program, *flags):
    """What the program prints."""
    process = start(program, *flags)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "legacy_examples" not in process.stderr, process.stderr  # no warnings
    return process.stdout


def final_accuracy(output):
    """The percentage on the last line."""
    return float(re.fullmatch(r"Test accuracy: (.+) %", output.splitlines()[-1])[1])


def summary_tags(model_dir):
    tags = set()
    for file in os.listdir(model_dir):
        if ".tfevents." in file:
            for event in tf.data.TFRecordDataset(os.path.join(model_dir, file)):
                summary = tf.Event.FromString(event.numpy()).summary
                tags.update(value.tag for value in summary.value)
    return tags


@programs
def test_full_length(program, tmp_path):
    model_dir = str(tmp_path / "model")
    plot = tmp_path / "plots" / "curves.png"
    plots = installed("matplotlib")
    flags = ["--model_dir=" + model_dir] + [f"--plot={plot}"] * plots
    output = run(program, *flags)
    assert final_accuracy(output) >= 97.0
    assert len(re.findall(r"^step .* loss ", output, re.MULTILINE)) == 30
    assert "Resuming" not in output

    layers = ["conv2d", "conv2d_1", "conv2d_2", "dense"]
    expected = {"loss", "learning_rate"} | {"trust_ratio/" + n for n in layers}
    assert expected <= summary_tags(model_dir)
    if plots:
        assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert plot.stat().st_size > 20000

    # It is complete: a second run only says so.
    again = run(program, "--model_dir=" + model_dir)
    assert re.search(r"Resuming .*-300", again)
    assert " loss " not in again
    assert final_accuracy(again) == final_accuracy(output)


@needs_sklearn
@pytest.mark.skipif(
    tf.__version__.startswith("1."), reason="it is a program of TensorFlow 2"
)
@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
@pytest.mark.parametrize("loss_scale", ["dynamic", "128"])
def test_loss_scale_gradient_tape(keras, loss_scale):
    if not installed(keras):
        pytest.skip(f"{keras} is not installed")
    output = run(
        "loss_scale_gradient_tape", "--keras=" + keras, "--loss_scale=" + loss_scale
    )
    assert output.startswith(f"A model of {keras}, in mixed_float16\n")
    assert len(re.findall(r"^step .* loss scale ", output, re.MULTILINE)) == 30
    assert re.search(r"^Steps: 300, of which skipped: 0$", output, re.MULTILINE)
    # Two dense layers reach 97 to 98 %; float16 rounds differently by processor.
    assert final_accuracy(output) >= 95.0


@needs_sklearn
@pytest.mark.skipif(
    tf.__version__.startswith("1."), reason="it is a program of TensorFlow 2"
)
def test_a_fixed_loss_scale_that_is_too_high_ends_in_nan():
    output = run(
        "loss_scale_gradient_tape", "--loss_scale=1e30", "--steps=5", "--log_every=1"
    )
    # A fixed one lets the inf pass into the weights.
    assert re.search(r"^step +4/5  loss nan ", output, re.MULTILINE)


SHORT = ["--steps=20", "--warmup_steps=5", "--log_every=5"]


@pytest.mark.long
@needs_sklearn
@pytest.mark.parametrize("program", ["lars_session", "lars_eager"])
def test_resume(program, tmp_path):
    flags = [f"--model_dir={tmp_path}"] + SHORT
    first = run(program, *flags)
    second = run(program, *(flags + ["--steps=30"]))
    assert re.search(r"step +15/20 ", first)
    assert re.search(r"Resuming at step 20 from .*-20$", second, re.MULTILINE)
    assert re.findall(r"^step +(\d+)/30", second, re.MULTILINE) == ["20", "25"]
    assert final_accuracy(second) >= final_accuracy(first) - 10.0


@pytest.mark.long
@needs_sklearn
@pytest.mark.parametrize("optimizer", ["lars114", "momentum"])
def test_other_optimizers(optimizer):
    output = run("lars_session", "--optimizer=" + optimizer)
    assert final_accuracy(output) >= 97.0


@pytest.mark.long
@needs_sklearn
@needs_matplotlib
def test_momentum_has_curves_but_no_trust_ratio(tmp_path):
    plot = tmp_path / "curves.png"
    run("lars_session", "--optimizer=momentum", f"--plot={plot}", *SHORT)
    assert plot.stat().st_size > 20000


@pytest.mark.long
@needs_sklearn
@pytest.mark.parametrize(
    "module, flags", [("sklearn", []), ("matplotlib", ["--plot=curves.png"])]
)
def test_a_missing_package_is_named_before_the_training(module, flags, tmp_path):
    (tmp_path / (module + ".py")).write_text("raise ImportError('it is not there')")
    process = start("lars_session", *flags, first_on_path=str(tmp_path))
    assert process.returncode == 1
    assert "pip install 'contrib_opt[examples]'" in process.stderr
    assert "it is not there" in process.stderr
    assert "Traceback" not in process.stderr
    assert "step" not in process.stdout


@pytest.mark.long
@programs
def test_help_lists_the_flags(program):
    output = start(program, "--help").stdout
    for flag in ("--optimizer", "--model_dir", "--plot", "--steps", "--batch_size"):
        assert flag in output


@pytest.mark.long
@pytest.mark.parametrize(
    "flag", ["--optimizer=adam", "--warmup_steps=300", "--plot=.", "--seed=-1"]
)
def test_bad_flags_are_refused(flag):
    process = start("lars_session", flag)
    assert process.returncode != 0
    assert flag.split("=")[0].lstrip("-") in process.stderr

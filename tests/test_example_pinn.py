"""legacy_examples/pinn_scipy.py, run as its users run it, but shorter."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.long
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "legacy_examples", "pinn_scipy.py")


def installed(module):
    return importlib.util.find_spec(module) is not None


needs_scipy = pytest.mark.skipif(
    not installed("scipy"), reason="SciPy is not installed"
)


def start(*flags, first_on_path=ROOT):
    path = [first_on_path, ROOT, os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, PROGRAM, *flags],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
        capture_output=True,
        text=True,
        timeout=300,
    )


@needs_scipy
def test_it_solves_the_equation(tmp_path):
    plot = tmp_path / "plots" / "burgers.png"
    plots = installed("matplotlib")
    process = start(
        "--adam_steps=150",
        "--iterations=500",
        "--points=400",
        "--log_every=100",
        *[f"--plot={plot}"] * plots,
    )
    output = process.stdout
    assert process.returncode == 0, output + process.stderr
    assert "legacy_examples" not in process.stderr, process.stderr  # no warnings
    assert len(re.findall(r"^Adam +\d+  loss ", output, re.MULTILINE)) == 2
    losses = re.findall(r"^L-BFGS-B +\d+  loss (\S+)", output, re.MULTILINE)
    assert len(losses) == 6
    assert float(losses[-1]) < 0.02 * float(losses[0])
    error = re.fullmatch(r"Relative L2 error: (.+)", output.splitlines()[-1])[1]
    # Measured: 6e-3 to 8e-3, with two seeds on TensorFlow 1.15 and 2.21.
    assert float(error) < 0.025
    if plots:
        assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert plot.stat().st_size > 20000


def test_the_exact_solution():
    pytest.importorskip("scipy")
    spec = importlib.util.spec_from_file_location("pinn_scipy", PROGRAM)
    pinn_scipy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pinn_scipy)
    x = np.linspace(-1.0, 1.0, 201)
    early = pinn_scipy.exact_solution(np.full_like(x, 1e-6), x)
    assert early == pytest.approx(-np.sin(np.pi * x), abs=1e-4)
    # The steepest slope of all, of Basdevant et al., Computers & Fluids 14 (1986).
    h = np.array([-1e-6, 1e-6])
    low, high = pinn_scipy.exact_solution(np.full(2, 1.6037 / np.pi), h)
    assert (high - low) / 2e-6 == pytest.approx(-152.00516, rel=1e-5)


@needs_scipy
def test_matplotlib_that_is_missing_is_named_before_the_training(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('it is not there')")
    process = start("--plot=burgers.png", first_on_path=str(tmp_path))
    assert process.returncode == 1
    assert "pip install 'contrib_opt[examples]'" in process.stderr
    assert "Traceback" not in process.stderr
    assert "Adam" not in process.stdout


def test_help_and_bad_flags():
    output = start("--help").stdout
    for flag in ("--iterations", "--plot", "--points", "--adam_steps", "--seed"):
        assert flag in output
    process = start("--iterations=0")
    assert process.returncode != 0
    assert "iterations" in process.stderr

"""The benchmarks run; how fast anything is, no test says."""

import os
import re
import subprocess
import sys

import contrib_opt

BENCHMARKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "benchmarks")


def test_bench_speed_measures_a_step():
    done = subprocess.run(
        [sys.executable, os.path.join(BENCHMARKS, "bench_speed.py")]
        + ["--quick", "--only", "sparse", "--match", "resource, LazyAdam"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # Both tables, and the growth; nothing of TensorFlow 1.15, which was not given.
    row = r"\| LazyAdam \| \d+\.\d+ \| \d+\.\d+ \|  \|  \| \**\d+\.\d+\** \|  \|"
    assert re.search(row, done.stdout), done.stdout


def test_every_optimizer_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from optimizer_table import OPTIMIZERS

    public = {
        re.match(r"(.*?)Optimizer(Wrapper)?$", name).group(1)
        for name in contrib_opt.__all__
        if re.search(r"Optimizer(Wrapper)?$", name)
    }
    assert public <= set(OPTIMIZERS)

"""The cluster of legacy_examples/cluster: begun, stopped by Ctrl-C, and resumed."""

import contextlib
import os
import re
import signal
import socket
import sys

import pytest

from processes import ROOT, Processes
from test_legacy_examples import final_accuracy, needs_sklearn

LAUNCHER = os.path.join(ROOT, "legacy_examples", "cluster", "launch.py")


def listens(address):
    host, port = address.split(":")
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex((host, int(port))) == 0


@pytest.mark.cluster
@needs_sklearn
def test_launched_stopped_and_resumed(tmp_path):
    flags = [LAUNCHER, f"--model_dir={tmp_path / 'model'}", "--warmup_steps=10"]
    flags += ["--save_every=20", "--batch_size=256"]
    with Processes(tmp_path) as processes:
        processes.run("first", *flags, "--steps=2000")
        processes.wait_until(
            lambda: "step   40/2000" in processes.written("first"), "step 40"
        )
        first = processes.written("first")
        addresses = re.findall(r"^(?:ps|worker) \d is at (.*)$", first, re.MULTILINE)
        assert len(addresses) == 3 and all(map(listens, addresses))
        processes.interrupt("first")
        processes.finish("first", 128 + signal.SIGINT)
        assert not any(map(listens, addresses))

        processes.run("second", *flags, "--steps=160", "--log_every=1")
        processes.finish("second")
        second = processes.written("second")
    [begun] = re.findall(r"^Resuming at step (\d+)$", second, re.MULTILINE)
    assert int(begun) >= 40 and int(begun) % 20 == 0
    # In a step of two gradients, both may be the other worker's.
    steps = [int(n) for n in re.findall(r"^step +(\d+)/160 ", second, re.MULTILINE)]
    assert steps == sorted(set(steps)) and int(begun) <= steps[0] <= steps[-1] < 160
    ends = re.findall(r"^Worker (\d) took [1-9]\d* steps$", second, re.MULTILINE)
    assert sorted(ends) == ["0", "1"]
    [accuracy] = re.findall(r"^Test accuracy: .* %$", second, re.MULTILINE)
    assert final_accuracy(accuracy) >= 97.0
    if sys.version_info >= (3, 8):  # Before, nothing silences the thread at the end.
        assert "Traceback" not in second

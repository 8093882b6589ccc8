"""Processes that are killed in mid-training, and checkpoints that are damaged."""

import json
import os
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cluster import resumable
from cluster.resumable import KILLED_IN_SAVING, MODEL, PAUSES, SAVE_EVERY, STEPS
from processes import Processes, addresses, write


def sessions(folder):
    """The global steps at which each chief's sessions began, as a set of tuples."""
    found = set()
    for file in os.listdir(folder):
        if file.startswith("sessions.") and not file.endswith(".part"):
            with open(os.path.join(folder, file)) as lines:
                found.add(tuple(json.load(lines)))
    return found


@pytest.mark.cluster
def test_training_goes_on_as_if_nobody_had_been_killed(tmp_path):
    folder, model = str(tmp_path), str(tmp_path / MODEL)
    cluster = json.dumps(addresses(ps=1, worker=2))
    in_worker, in_ps = PAUSES
    saved, before = in_ps // SAVE_EVERY * SAVE_EVERY, KILLED_IN_SAVING - SAVE_EVERY

    with Processes(folder) as processes:

        def start(name, *mode):
            if name == "ps":
                processes.start(name, "cluster.server", cluster)
            else:
                task = ["chief", "worker"].index(name)
                processes.start(name, "cluster.resumable", cluster, task, folder, *mode)

        start("ps")
        start("chief")
        processes.wait_until(lambda: sessions(folder), "the chief's session")
        start("worker")

        processes.wait_for_file(f"paused.{in_worker}")
        processes.kill("worker")
        write(folder, f"resume.{in_worker}", None)
        start("worker")

        processes.wait_for_file(f"paused.{in_ps}")
        processes.kill("ps")
        start("ps")
        # The worker goes on when the chief has restored the variables; before, it
        # would look for them every 30 seconds only.
        processes.wait_until(lambda: (0, saved) in sessions(folder), "its second one")
        write(folder, f"resume.{in_ps}", None)

        processes.finish("chief", -signal.SIGXFSZ)
        assert tf.train.latest_checkpoint(model) == f"{model}/model.ckpt-{before}"
        [partial] = [f for f in os.listdir(model) if "tempstate" in f]
        assert os.path.getsize(os.path.join(model, partial)) == resumable.WRITTEN
        start("chief")

        processes.wait_for_file("paused.apart")
        processes.kill("worker")
        write(folder, "resume.apart", None)
        start("worker", "apart")
        processes.finish("chief")
        processes.finish("worker")
        taken = [processes.wait_for_file(f"apart.{task}") for task in (0, 1)]
        count, loss_apart = processes.wait_for_file("apart.seen.1")

    assert sessions(folder) == {(0, saved), (before,)}
    # All variables: weights, slots, loss scale, its counters and the global step.
    expected, loss = resumable.alone(STEPS)
    assert expected["loss_scale"] == 64.0 and expected["good_steps"] == 2
    found, found_loss = resumable.alone(0, tf.train.latest_checkpoint(model))
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-4, 1e-5, err_msg=name)
    np.testing.assert_allclose(found_loss, loss, 1e-4)

    # Apart, only the step is lost that the worker was in.
    assert count == sum(taken) >= STEPS
    assert min(taken) > 0
    _, at_first = resumable.alone(0)
    assert loss_apart < 0.8 * at_first


# ----------------------------------------------------------- damaged checkpoints


def truncate(path):
    os.truncate(path, os.path.getsize(path) // 2)


DAMAGED = {
    "data truncated": (tf.errors.OutOfRangeError, "less bytes than requested"),
    "data missing": (tf.errors.NotFoundError, "model.ckpt-7"),
    "index truncated": (tf.errors.DataLossError, "not an sstable"),
    "index missing": (ValueError, "not a valid checkpoint: .*model.ckpt-7"),
}


@pytest.mark.parametrize("damage", sorted(DAMAGED))
def test_a_damaged_checkpoint_is_an_error_and_the_one_before_restores(damage, tmp_path):
    model = str(tmp_path)
    at_4, _ = resumable.alone(4, save=model)
    at_7, _ = resumable.alone(7, save=model)
    earlier, latest = [os.path.join(model, f"model.ckpt-{step}") for step in (4, 7)]
    # As it is when one process has saved both.
    tf.train.update_checkpoint_state(model, latest, [earlier, latest])
    part, how = damage.split()
    file = latest + {"data": ".data-00000-of-00001", "index": ".index"}[part]
    truncate(file) if how == "truncated" else os.remove(file)

    error, message = DAMAGED[damage]
    with pytest.raises(error, match=message):
        resumable.alone(0, latest)
    # A session that resumes by itself says so too, and does not begin anew.
    with pytest.raises(error, match=message):
        resumable.monitored(model)
    state = tf.train.get_checkpoint_state(model)
    assert list(state.all_model_checkpoint_paths) == [earlier, latest]
    restored, _ = resumable.alone(0, earlier)
    assert sorted(restored) == sorted(at_4)
    for name, value in at_4.items():
        np.testing.assert_array_equal(restored[name], value, err_msg=name)
    trained, _ = resumable.alone(3, earlier)
    for name, value in at_7.items():
        np.testing.assert_allclose(trained[name], value, 1e-6, err_msg=name)

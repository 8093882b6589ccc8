"""MultiWorkerMirroredStrategy over two processes: LARS, and Keras's loss scaling."""

import json

import numpy as np
import pytest
import tensorflow as tf

from processes import Processes, addresses

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        tf.__version__.startswith("1."),
        reason="TensorFlow 1.15 has neither this LossScaleOptimizer nor eager workers",
    ),
]


def test_two_workers_equal_one_process(tmp_path):
    from cluster.multi_worker import BAD_STEP, loops, train

    cluster = addresses(worker=2)
    with Processes(tmp_path) as processes:
        for task in (0, 1):
            config = {"cluster": cluster, "task": {"type": "worker", "index": task}}
            processes.run(
                f"worker{task}",
                *["-m", "cluster.multi_worker", tmp_path],
                TF_CONFIG=json.dumps(config),
            )
        one_device = tf.distribute.get_strategy()
        expected = {
            name: train(one_device, make, [0, 1], bad=name != "lars")
            for name, make in loops().items()
        }
        for task in (0, 1):
            processes.finish(f"worker{task}")
        first, second = [processes.wait_for_file(f"worker.{task}") for task in (0, 1)]

    assert sorted(first) == sorted(expected)
    # The replicas, bit for bit.
    assert first == second
    for name, states in expected.items():
        for step, (found, wanted) in enumerate(zip(first[name], states)):
            for one, other in zip(found, wanted):
                np.testing.assert_allclose(
                    one, other, 1e-5, 1e-6, err_msg=f"{name}, step {step}"
                )
        if name != "lars":
            weights = [state[:2] for state in states]
            assert weights[BAD_STEP] == weights[BAD_STEP - 1]
            assert weights[BAD_STEP] != weights[BAD_STEP + 1]

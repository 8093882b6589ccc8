"""train_and_evaluate with TF_CONFIG: chief, worker, parameter server and evaluator."""

import glob
import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf

from cluster.cases import FEATURES, LABELS
from cluster.estimator_task import MAX_STEPS
from processes import Processes, addresses

tf1 = tf.compat.v1

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        tf.__version__.startswith("1."), reason="TensorFlow 1.15 has its own Estimator"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow_estimator") is None,
        reason="tensorflow-estimator is not installed",
    ),
]


def test_train_and_evaluate(tmp_path):
    cluster = addresses(chief=1, worker=1, ps=1)
    with Processes(tmp_path) as processes:
        for task in ("ps", "chief", "worker", "evaluator"):
            config = {"cluster": cluster, "task": {"type": task, "index": 0}}
            processes.run(
                task,
                *["-m", "cluster.estimator_task", tmp_path],
                TF_CONFIG=json.dumps(config),
            )
        for task in ("chief", "worker", "evaluator"):
            processes.finish(task)
        taken = [processes.wait_for_file(task) for task in ("chief", "worker")]
    taken = sum(map(len, taken))
    model = str(tmp_path / "model")
    last = tf.train.load_checkpoint(tf.train.latest_checkpoint(model))
    # Each one may begin one more while the other takes the last step.
    assert MAX_STEPS <= last.get_tensor("global_step") <= taken <= MAX_STEPS + 2
    for name in ("kernel", "bias"):
        assert last.get_tensor(f"layer/{name}/LARSOptimizer").any()

    losses = {}
    for file in glob.glob(model + "/eval/*.tfevents.*"):
        for event in tf1.train.summary_iterator(file):
            for value in event.summary.value:
                if value.tag == "loss":
                    losses[event.step] = value.simple_value
    assert max(losses) >= MAX_STEPS
    features, labels = np.reshape(FEATURES, [-1, 3]), np.reshape(LABELS, [-1, 2])
    at_first = np.square(features.sum(axis=1, keepdims=True) + 1.0 - labels).mean()
    assert losses[max(losses)] < 0.5 * at_first

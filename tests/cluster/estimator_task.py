"""A chief, worker, parameter server or evaluator of an Estimator, as TF_CONFIG says.

`python -m cluster.estimator_task FOLDER` trains in FOLDER/model and notes in
FOLDER/TYPE the global steps that it took part in.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.cases import FEATURES, LABELS
from contrib_opt import LARSOptimizer, estimator
from processes import end_with_the_test, write

MAX_STEPS = 30
SAVE_EVERY = 10


def input_fn():
    rows = np.reshape(FEATURES, [-1, 3]), np.reshape(LABELS, [-1, 2])
    return tf.data.Dataset.from_tensors(rows).repeat()


def model_fn(features, labels, mode):
    kernel = tf.get_variable("layer/kernel", [3, 2], initializer=tf.ones_initializer())
    bias = tf.get_variable("layer/bias", [2], initializer=tf.ones_initializer())
    error = tf.matmul(features, kernel) + bias - labels
    loss = tf.reduce_mean(tf.square(error))
    optimizer = LARSOptimizer(0.05, eeta=1.0, skip_list=["bias"])
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class TakesPart(tf.train.SessionRunHook):
    """Notes the steps; the chief's trains on when the worker has begun, too."""

    def __init__(self, folder, task):
        self._folder, self._task, self._steps = folder, task, []

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        self._steps.append(int(run_values.results))
        write(self._folder, self._task, self._steps)
        if self._task == "chief":
            while not os.path.exists(os.path.join(self._folder, "worker")):
                time.sleep(0.05)


def main():
    end_with_the_test()
    folder, task = sys.argv[1], json.loads(os.environ["TF_CONFIG"])["task"]["type"]
    config = estimator.RunConfig(
        os.path.join(folder, "model"),
        save_checkpoints_steps=SAVE_EVERY,
        save_summary_steps=None,
        log_step_count_steps=None,
    )
    estimator.train_and_evaluate(
        estimator.Estimator(model_fn, config=config),
        estimator.TrainSpec(input_fn, MAX_STEPS, hooks=[TakesPart(folder, task)]),
        estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0, throttle_secs=1),
    )


if __name__ == "__main__":
    main()

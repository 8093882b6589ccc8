"""One of two workers of a MultiWorkerMirroredStrategy, told which by TF_CONFIG.

`python -m cluster.multi_worker FOLDER` writes the variables after each step to
FOLDER/worker.TASK, in JSON. The test computes the same in one process.
"""

import importlib.util
import json
import os
import sys

import numpy as np
import tensorflow as tf

import contrib_opt
from contrib_opt.keras.mixed_precision import LossScaleOptimizer
from processes import end_with_the_test, write

STEPS = 6
BAD_STEP = 3  # Worker 1 has a NaN in it.
_random = np.random.RandomState(0)
# For each step, the rows of each worker.
FEATURES = _random.normal(size=[STEPS, 2, 4, 3]).astype(np.float32)
LABELS = _random.normal(size=[STEPS, 2, 4, 2]).astype(np.float32)
KERNEL = _random.normal(size=[3, 2]).astype(np.float32)


def keras_kinds():
    """The names of Keras's optimizers that are installed, and how to make one."""
    if importlib.util.find_spec("keras"):
        import keras

        yield "keras", keras.optimizers.SGD
    if importlib.util.find_spec("tf_keras"):
        import tf_keras

        yield "tf_keras", tf_keras.optimizers.SGD
        yield "tf_keras_legacy", tf_keras.optimizers.legacy.SGD


class Model:
    """Least squares, with a kernel that LARS scales and a bias that it does not."""

    def __init__(self):
        self.kernel = tf.Variable(KERNEL, name="kernel")
        self.bias = tf.Variable(tf.ones([2]), name="bias")
        self.variables = [self.kernel, self.bias]

    def loss(self, features, labels):
        """The sum over rows, divided by the number of rows of both workers."""
        error = tf.matmul(features, self.kernel) + self.bias - labels
        return tf.reduce_sum(tf.square(error)) / 8.0


class Lars:
    """A training loop with LARS."""

    def __init__(self):
        self.model = Model()
        self.optimizer = contrib_opt.LARSOptimizer(0.05, eeta=1.0, skip_list=["bias"])

    def step(self, features, labels):
        with tf.GradientTape() as tape:
            loss = self.model.loss(features, labels)
        grads = tape.gradient(loss, self.model.variables)
        self.optimizer.apply_gradients(zip(grads, self.model.variables))

    def state(self):
        """Weights and slots, as numbers for JSON."""
        slots = [self.optimizer.get_slot(v, "momentum") for v in self.model.variables]
        return [v.numpy().tolist() for v in self.model.variables + slots]


class LossScaling:
    """A training loop with Keras's loss scaling."""

    def __init__(self, sgd):
        self.model = Model()
        self.optimizer = LossScaleOptimizer(
            sgd(0.125, momentum=0.5), initial_scale=8.0, dynamic_growth_steps=2
        )

    def step(self, features, labels):
        with tf.GradientTape() as tape:
            loss = self.model.loss(features, labels)
            scaled_loss = self.optimizer.get_scaled_loss(loss)
        grads = tape.gradient(scaled_loss, self.model.variables)
        grads = self.optimizer.get_unscaled_gradients(grads)
        self.optimizer.apply_gradients(zip(grads, self.model.variables))

    def state(self):
        """Weights, loss scale and counters, as numbers for JSON."""
        opt = self.optimizer
        counters = [opt.loss_scale, opt.dynamic_counter, opt.iterations]
        weights = [v.numpy().tolist() for v in self.model.variables]
        return weights + [float(tf.convert_to_tensor(c)) for c in counters]


def loops():
    """A dict from name to a function that makes the loop."""
    made = {"lars": Lars}
    for name, sgd in keras_kinds():
        made[name] = lambda sgd=sgd: LossScaling(sgd)
    return made


def batch(step, tasks, bad):
    """The rows of `tasks`, with a NaN in the last of BAD_STEP if `bad`."""
    features = np.concatenate([FEATURES[step, task] for task in tasks])
    if bad and step == BAD_STEP and 1 in tasks:
        features[-1, -1] = np.nan
    return features, np.concatenate([LABELS[step, task] for task in tasks])


def train(strategy, make, tasks, bad):
    """The states of a loop after each step."""
    with strategy.scope():
        loop = make()

    @tf.function
    def step(*rows):
        strategy.run(loop.step, args=rows)

    states = []
    for number in range(STEPS):
        step(*map(tf.constant, batch(number, tasks, bad)))
        states.append(loop.state())
    return states


def main():
    end_with_the_test()
    task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    found = {
        name: train(strategy, make, [task], bad=name != "lars")
        for name, make in loops().items()
    }
    write(sys.argv[1], f"worker.{task}", found)


if __name__ == "__main__":
    main()

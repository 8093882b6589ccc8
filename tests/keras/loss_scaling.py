"""The runs whose numbers TensorFlow 2.8.4 recorded in tests/golden/loss_scale."""

import collections
import json
import os

import numpy as np
import tensorflow as tf

from contrib_opt.keras import mixed_precision

GOLDEN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "loss_scale"
)
INF, NAN, TINY = float("inf"), float("nan"), 2.0**-9

# A scenario is a loss scale, an optimizer, and a factor of the loss for each step.
# Gradients and rates are such that float32 holds every number exactly.
Scenario = collections.namedtuple(
    "Scenario", ["loss_scale", "momentum", "dtype", "factors"]
)

SCENARIOS = {
    "grows": Scenario(
        {"initial_scale": 8.0, "dynamic_growth_steps": 2},
        0.5,
        "float32",
        [1, 1, 1, NAN, 1, 1, INF, INF, 1, -INF, 1, 1],
    ),
    "default": Scenario(
        {}, 0.0, "float32", [1, INF, 1, 1, NAN, 1, 1, 1, NAN, NAN, 1, 1]
    ),
    "never_below_one": Scenario(
        {"initial_scale": 4.0, "dynamic_growth_steps": 3},
        0.5,
        "float32",
        [NAN, NAN, NAN, INF, 1, 1, NAN, 1, 1, 1, 1, NAN],
    ),
    "never_above_float32": Scenario(
        {"initial_scale": 2.0**123, "dynamic_growth_steps": 1},
        0.0,
        "float32",
        # Zeros at scales whose reciprocal is not, or hardly, a normal number.
        [TINY, 0, 0, 0, 0, 0, NAN, 0, 0, NAN, 0, 0],
    ),
    "from_below_one": Scenario(
        {"initial_scale": 0.25, "dynamic_growth_steps": 2},
        0.0,
        "float32",
        [1, 1, 1, NAN, 1, 1, 1, 1, NAN, 1, NAN, 1],
    ),
    "fixed": Scenario(
        {"dynamic": False, "initial_scale": 128.0}, 0.5, "float32", [1] * 12
    ),
    # A fixed loss scale does not look at the gradients.
    "fixed_lets_pass": Scenario(
        {"dynamic": False, "initial_scale": 2.0},
        0.5,
        "float32",
        [1, 1, 1, 1, 1, INF, 1, NAN, 1, 1, 1, 1],
    ),
    # The scale itself makes the first gradients overflow.
    "half": Scenario(
        {"initial_scale": 2.0**15, "dynamic_growth_steps": 3},
        0.5,
        "float16",
        [4, 4, 4, 4, 2, NAN, 1, 1, 1, 4, INF, 1],
    ),
}
STEPS = 12


def _gradient(step, shape, dtype):
    count = int(np.prod(shape))
    values = (np.arange(count) * 5 + step * 3) % 8 - 3.5
    return tf.constant(values.reshape(shape) / 4.0, dtype)


class Run:
    """Trains a dense variable and, without momentum, an embedding."""

    def __init__(self, scenario, optimizers, make=None):
        self.scenario = scenario
        make = make or mixed_precision.LossScaleOptimizer
        inner = optimizers.SGD(0.25, momentum=scenario.momentum)
        self.optimizer = make(inner, **scenario.loss_scale)
        dtype = scenario.dtype
        self.kernel = tf.Variable(tf.ones([2, 3], dtype), name="kernel")
        self.variables = [self.kernel]
        if not scenario.momentum:
            # With momentum, TensorFlow 2.8 updated only the rows that were looked up.
            self.variables.append(tf.Variable(tf.ones([4, 2], dtype), name="table"))
        self.compiled = {}

    def batch(self, step):
        """The tensors on which the loss of `step` depends."""
        dtype = self.scenario.dtype
        return (
            tf.constant(float(self.scenario.factors[step])),
            _gradient(step, [2, 3], dtype),
            tf.constant([step % 4, 2, 2]),
            _gradient(step + 1, [3, 2], dtype),
        )

    def loss(self, factor, of_kernel, rows, of_rows):
        kernel, rest = self.variables[0], self.variables[1:]
        loss = tf.reduce_sum(kernel * of_kernel)
        for table in rest:
            loss += tf.reduce_sum(tf.gather(table, rows) * of_rows)
        return loss * tf.cast(factor, self.scenario.dtype)

    def tape(self, *batch):
        with tf.GradientTape() as tape:
            loss = self.loss(*batch)
            scaled = self.optimizer.get_scaled_loss(loss)
        grads = tape.gradient(scaled, self.variables)
        grads = self.optimizer.get_unscaled_gradients(grads)
        self.optimizer.apply_gradients(zip(grads, self.variables))

    def minimize(self, *batch):
        self.optimizer.minimize(lambda: self.loss(*batch), self.variables)

    def minimize_with_tape(self, *batch):
        with tf.GradientTape() as tape:
            loss = self.loss(*batch)
        self.optimizer.minimize(loss, self.variables, tape=tape)

    def step(self, how, step, compiled=False):
        """One step, as the method `how` does it; `compiled` traces it once."""
        if compiled and how not in self.compiled:
            self.compiled[how] = tf.function(getattr(self, how))
        do = self.compiled[how] if compiled else getattr(self, how)
        do(*self.batch(step))

    def state(self):
        """The variables, loss scale, counter and iterations, as numbers for JSON."""
        counter = self.optimizer.dynamic_counter
        return {
            "variables": [v.numpy().astype(float).tolist() for v in self.variables],
            "scale": float(self.optimizer.loss_scale),
            "counter": None if counter is None else int(counter),
            "iterations": int(self.optimizer.iterations),
        }


def golden(name):
    with open(os.path.join(GOLDEN, name + ".json")) as lines:
        return json.load(lines)


def assert_same(actual, expected):
    """Equal to the last bit; NaN equals NaN."""
    assert set(actual) == set(expected)
    for key in set(expected) - {"variables"}:
        assert actual[key] == expected[key], key
    assert len(actual["variables"]) == len(expected["variables"])
    for ours, theirs in zip(actual["variables"], expected["variables"]):
        np.testing.assert_array_equal(ours, theirs)

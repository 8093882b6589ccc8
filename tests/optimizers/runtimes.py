"""The problem of numpy_lars.py in TensorFlow, and what the runtime tests share."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from optimizers.numpy_lars import (
    CURVATURE,
    HYPER,
    RULES,
    START,
    TARGET,
    trajectory,
)

TF1 = tf.__version__.startswith("1.")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

each_rule = pytest.mark.parametrize("rule", sorted(RULES))
each_kind = pytest.mark.parametrize("use_resource", [True, False], ids=["res", "ref"])


def make(rule, **kwargs):
    return RULES[rule][0](**dict(HYPER, **kwargs))


def expected(rule, steps, scale=1.0, learning_rates=None, **kwargs):
    numpy_rule = RULES[rule][1](**dict(HYPER, **kwargs))
    return trajectory(numpy_rule, steps, scale, learning_rates)


def make_variables(use_resource=True, dtype=tf.float32):
    return {
        name: tf.Variable(
            tf.constant(value, dtype), name=name, use_resource=use_resource
        )
        for name, value in START.items()
    }


def loss_of(variables):
    terms = []
    for name, var in variables.items():
        w = tf.convert_to_tensor(var)
        error = w - tf.constant(TARGET[name], w.dtype)
        terms.append(0.5 * CURVATURE[name] * tf.reduce_sum(error * error))
    return tf.add_n(terms)


def assert_weights(actual, wanted, rtol=1e-5):
    """`actual` and `wanted` are {name: array}."""
    assert sorted(actual) == sorted(wanted)
    for name in wanted:
        np.testing.assert_allclose(
            np.asarray(actual[name], np.float64),
            np.asarray(wanted[name], np.float64),
            rtol=rtol,
            atol=rtol,
            err_msg=name,
        )


def numpy_values(variables):
    """The values of eager `variables`, as {name: array}."""
    return {name: var.numpy() for name, var in variables.items()}


@contextlib.contextmanager
def control_flow_of_tensorflow_1():
    """As in a program that calls `tf.compat.v1.disable_v2_behavior`.

    Ref variables need it in `tf.cond`: the functional one of TensorFlow 2 hands its
    branches the values of ref variables instead of the variables.
    """
    enabled = tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    try:
        yield
    finally:
        if enabled:
            tf.enable_control_flow_v2()


def two_cpus():
    return tf.ConfigProto(device_count={"CPU": 2})


def run_session(build, steps=3, use_resource=True, config=None):
    """Trains in a graph; `build(variables)` returns the train op.

    Returns:
      The weights after `steps` runs of the train op, as {name: array}.
    """
    with tf.Graph().as_default():
        variables = make_variables(use_resource)
        train = build(variables)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return session.run(variables)


def run_program(program, timeout=120):
    """Runs Python source in a process of its own; returns its stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join([ROOT, f"{ROOT}/tests"])),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr

"""DropStaleGradientOptimizer: two workers and a server, eager mode, errors."""

import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt import DropStaleGradientOptimizer
from wrappers.interrupted import OPTIMIZERS, STALENESS, run

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(TESTS, "golden/drop_stale/steps.json")) as lines:
    GOLDEN = json.load(lines)


@pytest.mark.parametrize("base", sorted(OPTIMIZERS))
@pytest.mark.parametrize("staleness", STALENESS)
def test_two_workers_do_what_the_references_did(base, staleness):
    expected = GOLDEN[f"{base}_{staleness}"]
    found = run(DropStaleGradientOptimizer, base, staleness)
    assert found["names"] == expected["names"]
    for step, (ours, theirs) in enumerate(zip(found["values"], expected["values"])):
        for name, value, wanted in zip(found["names"], ours, theirs):
            np.testing.assert_allclose(
                value, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{name}, step {step}"
            )
    dropped = found["values"][-1][found["names"].index("stale_counter")]
    assert dropped == [{0: 6.0, 2: 2.0}[staleness]]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_eager_mode_drops_what_is_stale(compiled):
    var = tf.Variable(1.0, use_resource=True)
    step = tf.Variable(0, dtype=tf.int64, use_resource=True, trainable=False)
    late = tf.Variable(0, dtype=tf.int64, use_resource=True, trainable=False)
    optimizer = DropStaleGradientOptimizer(contrib_opt.LARSOptimizer(1.0, eeta=0.1), 1)

    def loss():
        # As if others had taken steps meanwhile.
        step.assign_add(late)
        return var * 2.0

    def minimize():
        optimizer.minimize(loss, step, var_list=[var])

    minimize = tf.function(minimize) if compiled else minimize
    seen = []
    for delay in (0, 1, 2, 0, 3):
        late.assign(delay)
        before = var.numpy()
        minimize()
        seen.append(var.numpy() != before)
    assert seen == [True, True, False, True, False]
    assert int(step.numpy()) == 3 + 6
    counter = [v for v in optimizer.variables() if "stale_counter" in v.name]
    assert [float(v.numpy()) for v in counter] == [2.0]


def test_the_summary_tells_the_part_that_was_dropped():
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable("w", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        train = DropStaleGradientOptimizer(tf.train.AdamOptimizer(), 0).minimize(
            var * 1.0, step
        )
        session.run(tf.global_variables_initializer())
        session.run(train)
        [summary] = tf.get_collection(tf.GraphKeys.SUMMARIES)
        event = tf.Summary.FromString(session.run(summary))
        assert event.value[0].tag == "Gradient_staleness_percentage"
        assert event.value[0].simple_value == 0.0


def test_applied_twice_in_one_graph():
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable("w", initializer=4.0)
        step = tf.train.get_or_create_global_step()
        optimizer = DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(1), 0)
        pairs = optimizer.compute_gradients(var * 1.0)
        trains = [optimizer.apply_gradients(pairs, step) for _ in range(2)]
        session.run(tf.global_variables_initializer())
        for train in trains:
            session.run(train)
        assert session.run([var, step]) == [2.0, 2]
        assert [v.op.name for v in optimizer.variables()] == ["stale_counter"]


def test_errors():
    opt = tf.train.GradientDescentOptimizer(1.0)
    with pytest.raises(TypeError, match="opt must be"):
        DropStaleGradientOptimizer("sgd", 1)
    for wrong in (-1, "1", None):
        with pytest.raises(ValueError, match="staleness must be"):
            DropStaleGradientOptimizer(opt, wrong)
    with tf.Graph().as_default():
        var = tf.get_variable("w", initializer=1.0)
        optimizer = DropStaleGradientOptimizer(opt, 1)
        with pytest.raises(ValueError, match="global_step must be given"):
            optimizer.minimize(var * 1.0)
        step = tf.train.get_or_create_global_step()
        grads_and_vars = [(tf.constant(1.0), var)]
        with pytest.raises(ValueError, match="compute_gradients must be called"):
            optimizer.apply_gradients(grads_and_vars, step)
        grads_and_vars = optimizer.compute_gradients(var * 1.0)
        with pytest.raises(ValueError, match="global_step must be given"):
            optimizer.apply_gradients(grads_and_vars)

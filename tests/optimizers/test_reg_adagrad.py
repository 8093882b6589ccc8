"""What is special to RegAdagrad."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from mirrored import mirrored_strategy


def test_is_an_adagrad_optimizer():
    assert isinstance(contrib_opt.RegAdagradOptimizer(0.1), tf.train.AdagradOptimizer)


def both_losses(w, a, rate=0.1):
    """Two steps: on the sum of w, and on |w|^2 without touching the accumulator."""
    a = a + 1.0
    w = w - rate / np.sqrt(a)
    return w - rate * 2 * w / np.sqrt(a), a


@pytest.mark.parametrize("use_resource", [False, True])
def test_two_losses_in_a_graph(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([1.0, 2.0], use_resource=use_resource)
        opt = contrib_opt.RegAdagradOptimizer(0.1, initial_accumulator_value=0.5)
        update = opt.minimize(tf.reduce_sum(w))
        with tf.control_dependencies([update]), opt.avoid_updating_slots():
            regularize = opt.minimize(tf.reduce_sum(tf.square(w.read_value())))
        again = opt.minimize(tf.reduce_sum(w))
        session.run(tf.global_variables_initializer())
        session.run(regularize)
        expected_w, expected_a = both_losses(np.array([1.0, 2.0]), 0.5)
        accumulator = opt.get_slot(w, "accumulator")
        np.testing.assert_allclose(session.run(w), expected_w, rtol=1e-5)
        np.testing.assert_allclose(session.run(accumulator), [expected_a] * 2)
        session.run(again)
        np.testing.assert_allclose(session.run(accumulator), [expected_a + 1] * 2)


def test_the_context_ends_and_nests():
    w = tf.Variable([1.0], use_resource=True)
    opt = contrib_opt.RegAdagradOptimizer(0.1, initial_accumulator_value=0.5)

    def accumulator_after_step():
        opt.apply_gradients([(tf.constant([1.0]), w)])
        return opt.get_slot(w, "accumulator").numpy()[0]

    with opt.avoid_updating_slots():
        with opt.avoid_updating_slots():
            assert accumulator_after_step() == 0.5
        assert accumulator_after_step() == 0.5
    assert accumulator_after_step() == 1.5
    with pytest.raises(KeyError), opt.avoid_updating_slots():
        raise KeyError
    assert accumulator_after_step() == 2.5


def test_the_context_ends_in_replicas():
    strategy = mirrored_strategy()
    with strategy.scope():
        w = tf.Variable([1.0], use_resource=True)
        opt = contrib_opt.RegAdagradOptimizer(0.1, initial_accumulator_value=0.5)
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2

    def step():
        with opt.avoid_updating_slots():
            opt.apply_gradients([(tf.constant([1.0]), w)])
        opt.apply_gradients([(tf.constant([1.0]), w)])

    tf.function(lambda: run(step))()
    # The gradients of two replicas are added, and counted once.
    accumulator = opt.get_slot(w, "accumulator")
    # TensorFlow 1.15 makes one for all replicas.
    for copy in getattr(accumulator, "values", [accumulator]):
        np.testing.assert_allclose(copy.numpy(), [0.5 + 2.0**2])


@pytest.mark.parametrize("sparse", [False, True])
def test_half_precision_goes_on_after_a_large_gradient(sparse):
    w = tf.Variable(tf.zeros([2, 1], tf.float16), use_resource=True)
    opt = contrib_opt.RegAdagradOptimizer(0.5)
    grad = tf.fill([2, 1], tf.constant(3e4, tf.float16))
    if sparse:
        grad = tf.IndexedSlices(grad, tf.constant([0, 1]), tf.constant([2, 1]))
    opt.apply_gradients([(grad, w)])
    np.testing.assert_allclose(w.numpy(), [[-0.5]] * 2, rtol=1e-2)
    # The largest number of float16.
    np.testing.assert_array_equal(opt.get_slot(w, "accumulator").numpy(), [[65504]] * 2)
    opt.apply_gradients([(grad, w)])
    np.testing.assert_allclose(w.numpy(), [[-1.0]] * 2, rtol=1e-2)


def test_bad_arguments():
    for wrong in (0, -0.1, None, "1", float("nan")):
        with pytest.raises(ValueError, match="initial_accumulator_value must be"):
            contrib_opt.RegAdagradOptimizer(0.1, wrong)
    with pytest.raises(ValueError, match="learning_rate must be"):
        contrib_opt.RegAdagradOptimizer(None)

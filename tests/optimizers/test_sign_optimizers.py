"""What is special to AddSign and PowerSign."""

import math

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers import sign_decay

OPTIMIZERS = [contrib_opt.AddSignOptimizer, contrib_opt.PowerSignOptimizer]
each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS)


def agreeing(optimizer):
    """The factor of a gradient that has the sign of the ones before."""
    return 2.0 if optimizer is contrib_opt.AddSignOptimizer else math.e


@each_optimizer
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_beta_near_1(optimizer, dtype, sparse):
    # 0.9999 is 1 in both half types, with which m would stay 0, and its sign too.
    w = tf.Variable(tf.zeros([2, 2], dtype), use_resource=True)
    grad = tf.constant([[1.0, -1.0]], dtype)
    if sparse:
        grad = tf.IndexedSlices(grad, tf.constant([1]), tf.constant([2, 2]))
    else:
        grad = tf.concat([tf.zeros_like(grad), grad], axis=0)
    optimizer(learning_rate=0.5, beta=0.9999).apply_gradients([(grad, w)])
    step = 0.5 * agreeing(optimizer)
    found = tf.cast(w, tf.float32).numpy()
    np.testing.assert_allclose(found, [[0, 0], [-step, step]], rtol=1e-2)


@each_optimizer
@pytest.mark.parametrize("runtime", ["ref", "resource", "eager"])
def test_the_average_decays_in_rows_without_gradient(optimizer, runtime):
    opt = optimizer(learning_rate=0.1, beta=0.5)

    def grad(rows):
        values = tf.ones([len(rows), 2])
        return tf.IndexedSlices(values, tf.constant(rows), tf.constant([4, 2]))

    if runtime == "eager":
        w = tf.Variable(tf.zeros([4, 2]), use_resource=True)
        opt.apply_gradients([(grad([0, 1, 1]), w)])
        opt.apply_gradients([(grad([1, 2]), w)])
        m = opt.get_slot(w, "m").numpy()
    else:
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.Variable(tf.zeros([4, 2]), use_resource=runtime == "resource")
            first = opt.apply_gradients([(grad([0, 1, 1]), w)])
            second = opt.apply_gradients([(grad([1, 2]), w)])
            session.run(tf.global_variables_initializer())
            session.run(first)
            session.run(second)
            m = session.run(opt.get_slot(w, "m"))
    np.testing.assert_allclose(m[:, 0], [0.25, 1.0, 0.5, 0], rtol=1e-6)


@each_optimizer
def test_sign_decay_fn_gets_the_global_step(optimizer):
    seen = []

    def decay(step):
        seen.append(step.numpy())
        return 0.0 * tf.cast(step, tf.float64)

    w = tf.Variable([0.0], use_resource=True)
    step = tf.Variable(5, dtype=tf.int64, use_resource=True, trainable=False)
    opt = optimizer(learning_rate=0.5, sign_decay_fn=decay)
    for _ in range(2):
        opt.apply_gradients([(tf.constant([1.0]), w)], step)
    assert seen == [5, 6]
    # Gradient descent: the signs have no weight.
    np.testing.assert_allclose(w.numpy(), [-1.0])


@each_optimizer
def test_without_the_global_step_that_sign_decay_fn_needs(optimizer):
    w = tf.Variable([1.0], use_resource=True)
    opt = optimizer(sign_decay_fn=sign_decay.get_cosine_decay_fn(10))
    with pytest.raises(ValueError, match="global_step is required"):
        opt.apply_gradients([(tf.constant([1.0]), w)])
    np.testing.assert_array_equal(w.numpy(), [1.0])


@each_optimizer
def test_bad_arguments(optimizer):
    with pytest.raises(TypeError, match="sign_decay_fn must be a function .* got 0.5"):
        optimizer(sign_decay_fn=0.5)
    with pytest.raises(ValueError, match="beta must be 0 or more, got -0.1"):
        optimizer(beta=-0.1)
    with pytest.raises(ValueError, match="learning_rate must be"):
        optimizer(learning_rate="0.1")


def test_bad_coefficients():
    with pytest.raises(ValueError, match="alpha must be a number"):
        contrib_opt.AddSignOptimizer(alpha=None)
    for base in (0, 0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="base must be"):
            contrib_opt.PowerSignOptimizer(base=base)

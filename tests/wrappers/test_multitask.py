"""What is special to MultitaskOptimizerWrapper and clip_gradients_by_global_norm."""

import copy

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt

INNER = {
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    # Its sparse update also writes rows that the gradient does not have.
    "AddSign": lambda: contrib_opt.AddSignOptimizer(0.1),
}


def gradient(scale, sparse):
    values = scale * tf.constant([[1.0, -2.0], [3.0, 0.0]])
    if sparse:
        return tf.IndexedSlices(values, tf.constant([2, 0]), tf.constant([3, 2]))
    return tf.concat([values, values[:1]], axis=0)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
def test_zeros_change_nothing_in_a_graph(inner, sparse, use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.Variable(tf.ones([3, 2]), use_resource=use_resource)
        scale = tf.placeholder(tf.float32, [])
        step = tf.train.get_or_create_global_step()
        opt = contrib_opt.MultitaskOptimizerWrapper(INNER[inner]())
        train_op = opt.apply_gradients([(gradient(scale, sparse), var)], step)
        slots = [opt.get_slot(var, name) for name in opt.get_slot_names()]
        session.run(tf.global_variables_initializer())

        def after(value):
            session.run(train_op, {scale: value})
            return np.stack(session.run([var, *slots]))

        first, zeros, second = after(1.0), after(0.0), after(1.0)
        np.testing.assert_array_equal(zeros, first)
        assert (second != zeros)[:, 0, :].any(axis=1).all()
        assert session.run(step) == 3


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_zeros_change_nothing_in_eager_mode(inner, sparse, compiled):
    var = tf.Variable(tf.ones([3, 2]), use_resource=True)
    opt = contrib_opt.MultitaskOptimizerWrapper(INNER[inner]())

    def step(scale):
        opt.apply_gradients([(gradient(scale, sparse), var)])

    if compiled:
        step = tf.function(step)

    def after(value):
        step(tf.constant(value))
        slots = [opt.get_slot(var, name) for name in opt.get_slot_names()]
        return np.stack([v.numpy() for v in [var, *slots]])

    first, zeros, second = after(1.0), after(0.0), after(1.0)
    np.testing.assert_array_equal(zeros, first)
    assert (second != zeros)[:, 0, :].any(axis=1).all()


def test_nan_is_not_zero():
    var = tf.Variable([1.0, 1.0], use_resource=True)
    opt = contrib_opt.MultitaskOptimizerWrapper(tf.train.GradientDescentOptimizer(1.0))
    opt.apply_gradients([(tf.constant([float("nan"), 0.0]), var)])
    np.testing.assert_array_equal(var.numpy(), [np.nan, 1.0])


@pytest.mark.parametrize("order", ["multitask outside", "multitask inside"])
def test_with_another_wrapper(order):
    var = tf.Variable([3.0, 4.0], use_resource=True)
    opt = tf.train.MomentumOptimizer(1.0, 0.9)

    def clipping(opt):
        return contrib_opt.VariableClippingOptimizer(opt, [(var, [0])], 10.0)

    if order == "multitask outside":
        opt = contrib_opt.MultitaskOptimizerWrapper(clipping(opt))
        assert opt.get_name() == "VariableClipping"
    else:
        opt = clipping(contrib_opt.MultitaskOptimizerWrapper(opt))
    opt.apply_gradients([(tf.constant([1.0, 1.0]), var)])
    opt.apply_gradients([(tf.constant([0.0, 0.0]), var)])
    np.testing.assert_array_equal(var.numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(opt.get_slot(var, "momentum").numpy(), [1.0, 1.0])


def test_the_rest_is_the_wrapped_optimizers():
    opt = contrib_opt.RegAdagradOptimizer(0.1, name="Mine")
    wrapped = contrib_opt.MultitaskOptimizerWrapper(opt)
    assert isinstance(wrapped, tf.train.Optimizer)
    assert wrapped.get_name() == "Mine"
    assert wrapped._learning_rate == 0.1
    var = tf.Variable([1.0], use_resource=True)
    with wrapped.avoid_updating_slots():
        wrapped.apply_gradients([(tf.constant([1.0]), var)])
    assert wrapped.get_slot(var, "accumulator").numpy() == np.float32(0.1)
    # As in TensorFlow 1.15.
    opt.apply_gradients([(tf.constant([0.0]), var)])
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = wrapped.no_such_thing
    assert copy.copy(wrapped).get_name() == "Mine"


def test_minimize_takes_what_the_wrapped_optimizer_takes():
    var = tf.Variable([1.0], use_resource=True)
    opt = contrib_opt.MomentumWOptimizer(0.5, learning_rate=0.1, momentum=0.9)
    opt = contrib_opt.MultitaskOptimizerWrapper(opt)
    opt.minimize(lambda: 2.0 * var[0], var_list=[var], decay_var_list=[])
    np.testing.assert_allclose(var.numpy(), [0.8])


def test_wraps_optimizers_only():
    for wrong in (None, 0.1, tf.train.MomentumOptimizer):
        with pytest.raises(TypeError, match="opt must be"):
            contrib_opt.MultitaskOptimizerWrapper(wrong)


def clipped(gradients, clip_norm=1.0):
    pairs = [(g, i) for i, g in enumerate(gradients)]
    pairs, norm = contrib_opt.clip_gradients_by_global_norm(pairs, clip_norm)
    assert [i for _, i in pairs] == list(range(len(gradients)))
    return [g for g, _ in pairs], norm


def test_clip_gradients():
    slices = tf.IndexedSlices(
        tf.constant([[3.0, 0.0]]), tf.constant([2]), tf.constant([4, 2])
    )
    gradients, norm = clipped([tf.fill([2, 2], 2.0), None, tf.zeros([3]), slices])
    assert norm.numpy() == 5.0
    np.testing.assert_allclose(gradients[0].numpy(), np.full([2, 2], 0.4))
    assert gradients[1] is None
    np.testing.assert_array_equal(gradients[2].numpy(), np.zeros(3))
    np.testing.assert_allclose(gradients[3].values.numpy(), [[0.6, 0.0]])
    np.testing.assert_array_equal(gradients[3].indices.numpy(), [2])


def test_clip_gradients_below_the_norm():
    gradients, norm = clipped([tf.constant([3.0]), np.float32(4.0)], tf.constant(5.0))
    assert norm.numpy() == 5.0
    assert [g.numpy() for g in gradients] == [3.0, 4.0]


def test_clip_gradients_of_half_and_of_mixed_types():
    gradients, norm = clipped([tf.fill([4], tf.constant(3e4, tf.float16))])
    np.testing.assert_allclose(norm.numpy(), 6e4, rtol=1e-3)
    np.testing.assert_allclose(gradients[0].numpy(), [0.5] * 4, rtol=1e-2)
    gradients, norm = clipped([tf.constant([3.0]), tf.constant([4.0], tf.float64)])
    assert (norm.dtype, gradients[0].dtype) == (tf.float64, tf.float32)
    np.testing.assert_allclose(gradients[1].numpy(), [0.8], rtol=1e-12)


def test_clip_gradients_that_have_no_finite_norm_or_none():
    gradients, norm = clipped([tf.constant([np.inf, 1.0]), tf.constant([0.0])])
    assert np.isinf(norm.numpy())
    assert all(np.isnan(g.numpy()).all() for g in gradients)
    assert clipped([None, None])[1].numpy() == 0.0
    gradients, _ = clipped([tf.zeros([2])], clip_norm=0)
    np.testing.assert_array_equal(gradients[0].numpy(), [0.0, 0.0])
    with pytest.raises(ValueError, match="clip_norm must be 0 or more, got -1"):
        clipped([tf.zeros([2])], clip_norm=-1)

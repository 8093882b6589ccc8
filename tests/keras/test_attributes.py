"""The attributes that TensorFlow 2.8 documents, on every Keras."""

import numpy as np
import pytest
import tensorflow as tf
from installed import KINDS, REFERENCE, every_kind, is_new
from loss_scaling import NAN

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental


def apply(optimizer, gradient, var):
    """A step as a training loop does it, with a gradient that is given."""
    optimizer.get_scaled_loss(tf.constant(1.0))
    scaled = tf.constant(gradient) * optimizer.loss_scale
    (gradient,) = optimizer.get_unscaled_gradients([scaled])
    optimizer.apply_gradients([(gradient, var)])


@every_kind
def test_dynamic(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD())
    assert optimizer.dynamic is True
    assert optimizer.initial_scale == 2.0**15
    assert optimizer.dynamic_growth_steps == 2000
    assert optimizer.loss_scale.dtype == tf.float32
    assert optimizer.loss_scale.shape == []
    assert tf.is_tensor(optimizer.loss_scale)
    assert float(optimizer.loss_scale) == 2.0**15
    assert isinstance(optimizer.dynamic_counter, tf.Variable)
    assert optimizer.dynamic_counter.dtype == tf.int64
    assert int(optimizer.dynamic_counter) == 0
    apply(optimizer, [NAN], tf.Variable([1.0]))
    assert float(optimizer.loss_scale) == 2.0**14
    assert optimizer.initial_scale == 2.0**15


@every_kind
def test_fixed(kind):
    inner = kind.optimizers.SGD()
    optimizer = experimental.LossScaleOptimizer(inner, 123)
    assert optimizer.dynamic is False
    assert optimizer.initial_scale == 123.0
    assert optimizer.dynamic_growth_steps is None
    assert optimizer.dynamic_counter is None
    assert optimizer.loss_scale.dtype == tf.float32
    assert float(optimizer.loss_scale) == 123.0
    assert optimizer.inner_optimizer is inner


@every_kind
def test_learning_rate(kind):
    inner = kind.optimizers.SGD(0.5)
    optimizer = LossScaleOptimizer(inner)
    for name in ("learning_rate", "lr"):
        assert float(getattr(optimizer, name)) == 0.5
    optimizer.learning_rate = 0.25
    assert float(inner.learning_rate) == float(optimizer.lr) == 0.25
    optimizer.lr = 0.125
    assert float(inner.learning_rate) == float(optimizer.learning_rate) == 0.125
    var = tf.Variable([1.0])
    apply(optimizer, [2.0], var)
    assert var.numpy() == [0.75]
    optimizer.lr = 1.0
    apply(optimizer, [2.0], var)
    assert var.numpy() == [-1.25]


@every_kind
@pytest.mark.parametrize("by", ["constructor", "learning_rate", "lr"])
def test_learning_rate_schedule(kind, by):
    schedules = kind.keras.optimizers.schedules
    schedule = schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25])
    optimizer = LossScaleOptimizer(
        kind.optimizers.SGD(schedule if by == "constructor" else 8.0)
    )
    if by != "constructor":
        setattr(optimizer, by, schedule)
    var = tf.Variable([0.0])
    for step, expected in enumerate([-1.0, -2.0, -2.0, -2.25]):
        # The step that is skipped counts as well.
        apply(optimizer, [NAN if step == 2 else 1.0], var)
        assert var.numpy() == [expected]


@every_kind
def test_hyperparameters(kind):
    inner = kind.optimizers.Adam(beta_1=0.8, epsilon=1e-5)
    optimizer = LossScaleOptimizer(inner)
    assert optimizer.beta_1 == 0.8
    optimizer.beta_1 = 0.7
    assert optimizer.beta_1 == inner.beta_1 == 0.7
    assert "beta_1" in dir(optimizer)
    assert "learning_rate" in dir(optimizer)
    for unknown in ("momentum", "no_such_thing", "beta_3"):
        with pytest.raises(AttributeError, match=unknown):
            getattr(optimizer, unknown)
    optimizer.mine = 3
    assert optimizer.mine == 3
    assert not hasattr(inner, "mine")


@every_kind
def test_a_hyperparameter_acts_when_set(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(1.0, momentum=0.5))
    var = tf.Variable([0.0])
    optimizer.momentum = 0.25
    apply(optimizer, [1.0], var)
    apply(optimizer, [0.0], var)
    assert var.numpy() == [-1.25]


@every_kind
@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_clipping(kind, name):
    inner = kind.optimizers.SGD(1.0, **{name: 0.5})
    optimizer = LossScaleOptimizer(inner, initial_scale=1024.0)
    assert getattr(optimizer, name) == 0.5
    # It clips the unscaled gradients: this one is as it is, the next is not.
    var = tf.Variable([0.0])
    apply(optimizer, [0.25], var)
    assert var.numpy() == [-0.25]
    apply(optimizer, [4.0], var)
    assert var.numpy() == [-0.75]
    setattr(optimizer, name, 0.125)
    assert getattr(inner, name) == 0.125


@every_kind
def test_iterations(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD())
    assert int(optimizer.iterations) == 0
    var = tf.Variable([1.0])
    for gradient in (1.0, NAN, NAN, 1.0):
        apply(optimizer, [gradient], var)
    assert int(optimizer.iterations) == 4
    assert int(optimizer.inner_optimizer.iterations) == 4
    optimizer.iterations.assign(7)
    assert int(optimizer.inner_optimizer.iterations) == 7


@every_kind
def test_iterations_may_be_a_variable_of_the_program(kind):
    schedules = kind.keras.optimizers.schedules
    schedule = schedules.PiecewiseConstantDecay([6], [1.0, 0.5])
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(schedule))
    step = tf.Variable(5, dtype=tf.int64)
    optimizer.iterations = step
    assert optimizer.iterations is step
    var = tf.Variable([0.0])
    for gradient in (1.0, NAN, 1.0):
        apply(optimizer, [gradient], var)
    assert int(step) == 8
    assert var.numpy() == [-1.5]
    with pytest.raises(RuntimeError):
        optimizer.iterations = tf.Variable(0, dtype=tf.int64)


def as_list(variables):
    return list(variables() if callable(variables) else variables)


@every_kind
def test_weights(kind):
    inner = kind.optimizers.Adam()
    optimizer = LossScaleOptimizer(inner)
    var = tf.Variable([1.0, 2.0])
    apply(optimizer, [1.0, 1.0], var)
    variables = as_list(optimizer.variables)
    assert len(variables) >= 3
    assert all(a is b for a, b in zip(variables, as_list(inner.variables)))
    assert all(a is b for a, b in zip(optimizer.weights, variables))
    assert as_list(optimizer.variables()) == variables
    values = optimizer.get_weights()
    assert len(values) == len(variables) == len(optimizer.weights)
    for value, variable in zip(values, variables):
        np.testing.assert_array_equal(value, variable.numpy())
    apply(optimizer, [3.0, 3.0], var)
    changed = optimizer.get_weights()
    assert any(np.any(a != b) for a, b in zip(values, changed))
    optimizer.set_weights(values)
    for value, variable in zip(values, variables):
        np.testing.assert_array_equal(value, variable.numpy())


SLOTS = [
    ("SGD", {"momentum": 0.5}, ["momentum"]),
    ("Adam", {}, ["m", "v"]),
    ("Adam", {"amsgrad": True}, ["m", "v", "vhat"]),
    ("RMSprop", {"momentum": 0.5, "centered": True}, ["rms", "momentum", "mg"]),
    ("Adagrad", {}, ["accumulator"]),
    ("Adadelta", {}, ["accum_grad", "accum_var"]),
    ("Adamax", {}, ["m", "v"]),
    ("Nadam", {}, ["m", "v"]),
    ("Ftrl", {}, ["accumulator", "linear"]),
]


@every_kind
@pytest.mark.parametrize("name, kwargs, slots", SLOTS)
def test_slots(kind, name, kwargs, slots):
    """After one step from zero a slot of `twice` tells the one that it belongs to."""
    inner = getattr(kind.optimizers, name)(0.5, **kwargs)
    optimizer = LossScaleOptimizer(inner)
    # Of one name, as variables of different layers may be.
    variables = [tf.Variable([1.0, 2.0], name="x"), tf.Variable([1.0, 2.0], name="x")]
    optimizer.get_scaled_loss(tf.constant(1.0))
    optimizer.get_unscaled_gradients([])
    grads = [tf.constant([0.0, 1.0]), tf.constant([2.0, 3.0])]
    optimizer.apply_gradients(zip(grads, variables))
    for slot in slots:
        first, second = (optimizer.get_slot(v, slot).numpy() for v in variables)
        assert first.shape == second.shape == (2,)
        # No gradient, no change; the others changed by different amounts.
        assert first[0] != second[0]
        assert len({first[1], second[0], second[1]}) == 3 or name in ("Adamax", "Nadam")
    assert len({id(optimizer.get_slot(variables[0], s)) for s in slots}) == len(slots)
    with pytest.raises(KeyError):
        optimizer.get_slot(variables[0], "no_such_slot")
    with pytest.raises((KeyError, ValueError)):
        optimizer.get_slot(tf.Variable([1.0, 2.0]), slots[0])


@every_kind
def test_a_skipped_step_changes_no_variable_and_no_slot(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.Adam(0.5))
    var = tf.Variable([1.0, 2.0])
    apply(optimizer, [1.0, 1.0], var)
    before = [var.numpy()] + optimizer.get_weights()[1:]
    apply(optimizer, [1.0, NAN], var)
    after = [var.numpy()] + optimizer.get_weights()[1:]
    for old, new in zip(before, after):
        np.testing.assert_array_equal(old, new)
    assert int(optimizer.iterations) == 2


@every_kind
def test_get_scaled_loss(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(), initial_scale=64.0)
    assert float(optimizer.get_scaled_loss(tf.constant(2.0))) == 128.0
    half = optimizer.get_scaled_loss(tf.constant(2.0, tf.float16))
    assert half.dtype == tf.float16 and float(half) == 128.0
    scaled = optimizer.get_scaled_loss(lambda: tf.constant(3.0))
    assert callable(scaled)
    assert float(scaled()) == 192.0
    # A callable takes the loss scale of when it is called.
    apply(optimizer, [NAN], tf.Variable([1.0]))
    assert float(scaled()) == 96.0


@every_kind
def test_get_unscaled_gradients(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(), initial_scale=4.0)
    slices = tf.IndexedSlices(
        tf.constant([[8.0, 4.0]]), tf.constant([1]), tf.constant([3, 2])
    )
    dense, none, sparse, half = optimizer.get_unscaled_gradients(
        [tf.constant([4.0, 2.0]), None, slices, tf.constant(2.0, tf.float16)]
    )
    np.testing.assert_array_equal(dense, [1.0, 0.5])
    assert none is None
    assert isinstance(sparse, tf.IndexedSlices)
    np.testing.assert_array_equal(sparse.values, [[2.0, 1.0]])
    np.testing.assert_array_equal(sparse.indices, [1])
    np.testing.assert_array_equal(sparse.dense_shape, [3, 2])
    assert half.dtype == tf.float16 and float(half) == 0.5


@pytest.mark.skipif(REFERENCE, reason="all are legacy there")
def test_both_generations_are_tested():
    assert {is_new(kind) for kind in KINDS} in ({True}, {True, False})

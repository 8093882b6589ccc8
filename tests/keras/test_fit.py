"""fit, minimize and loops: each scales once and unscales once, on one optimizer."""

import numpy as np
import pytest
import tensorflow as tf
from loss_scaling import KINDS, NAN
from models import X, Y, assert_weights, loop_step, loss_of, make_model, plain

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
SCALES = {
    "dynamic": {},
    "small": {"initial_scale": 4.0, "dynamic_growth_steps": 2},
    "fixed": {"dynamic": False, "initial_scale": 123.0},
}


def make(kind, scale="dynamic"):
    inner = kind.optimizers.SGD(0.125, momentum=0.5)
    return LossScaleOptimizer(inner, **SCALES[scale])


def fit(model, epochs, x=X, y=Y):
    model.fit(x, y, batch_size=len(x), epochs=epochs, verbose=0, shuffle=False)


def in_fit(model, optimizer):
    fit(model, 1)


def in_loop(model, optimizer):
    loop_step(model, optimizer)


def in_minimize(model, optimizer):
    optimizer.minimize(lambda: loss_of(model), model.trainable_variables)


def in_minimize_with_tape(model, optimizer):
    with tf.GradientTape() as tape:
        loss = loss_of(model)
    optimizer.minimize(loss, model.trainable_variables, tape=tape)


def in_keras3_loop(model, optimizer):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(loss_of(model))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(grads, model.trainable_variables)


def in_keras3_loop_of_parts(model, optimizer):
    """Scaled by Keras 3's name, unscaled by Keras 2's."""
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(loss_of(model))
    grads = tape.gradient(loss, model.trainable_variables)
    grads = optimizer.get_unscaled_gradients(grads)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


def ways(kind):
    yield from (in_fit, in_loop, in_minimize, in_minimize_with_tape)
    if kind.id == "keras3":
        yield from (in_keras3_loop, in_keras3_loop_of_parts)


COMPILE = {
    "default": {},
    "eagerly": {"run_eagerly": True},
    "xla": {"jit_compile": True},
    "no_xla": {"jit_compile": False},
    "four_at_once": {"steps_per_execution": 4},
}


@every_kind
@pytest.mark.parametrize(
    "scale, how",
    [(scale, "default") for scale in sorted(SCALES)]
    + [("small", how) for how in sorted(COMPILE) if how != "default"],
)
def test_fit(kind, scale, how):
    model, optimizer = make_model(kind), make(kind, scale)
    model.compile(optimizer=optimizer, loss="mse", **COMPILE[how])
    assert model.optimizer is optimizer
    fit(model, 4)
    assert_weights(model.get_weights(), plain(kind, 4))
    assert int(optimizer.iterations) == 4
    expected = {"dynamic": 2.0**15, "small": 16.0, "fixed": 123.0}[scale]
    assert float(optimizer.loss_scale) == expected


@every_kind
@pytest.mark.parametrize(
    "scale, run_eagerly", [("small", True), ("small", False), ("fixed", False)]
)
def test_all_ways_alternate_on_one_optimizer(kind, scale, run_eagerly):
    model, optimizer = make_model(kind), make(kind, scale)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=run_eagerly)
    order = [*ways(kind)] + [*ways(kind)][::-1] + [in_fit, in_loop, in_fit]
    for way in order:
        way(model, optimizer)
    steps = len(order)
    assert_weights(model.get_weights(), plain(kind, steps), rtol=1e-4)
    assert int(optimizer.iterations) == steps
    if scale == "small":
        assert float(optimizer.loss_scale) == 4.0 * 2 ** (steps // 2)


@every_kind
@pytest.mark.parametrize("way", ["in_loop", "in_minimize", "in_keras3_loop"])
def test_in_a_function(kind, way):
    if "keras3" in way and kind.id != "keras3":
        pytest.skip("a name of Keras 3")
    model, optimizer = make_model(kind), make(kind)
    step = tf.function(lambda: globals()[way](model, optimizer))
    for _ in range(3):
        step()
    assert_weights(model.get_weights(), plain(kind, 3))
    model.compile(optimizer=optimizer, loss="mse")
    fit(model, 1)
    step()
    assert_weights(model.get_weights(), plain(kind, 5))


@every_kind
@pytest.mark.parametrize("run_eagerly", [True, False], ids=["eager", "graph"])
def test_a_train_step_that_keeps_to_keras_2(kind, run_eagerly):
    class Model(kind.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = make_model(kind)

        def call(self, inputs):
            return self.inner(inputs)

        def train_step(self, data):
            loop_step(self, self.optimizer, *data)
            return {"loss": tf.constant(0.0)}

    model, optimizer = Model(), make(kind)
    model(X)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=run_eagerly)
    fit(model, 3)
    assert_weights(model.inner.get_weights(), plain(kind, 3))


@every_kind
def test_clipping_and_accumulation_in_between(kind):
    """Gradients of two half batches, summed and clipped once they are unscaled."""
    halves = [(X[:8], Y[:8]), (X[8:], Y[8:])]

    def train(optimizer, scaled):
        model = make_model(kind)
        variables = model.trainable_variables
        for _ in range(3):
            sums = [tf.zeros(v.shape) for v in variables]
            for x, y in halves:
                with tf.GradientTape() as tape:
                    loss = loss_of(model, x, y)
                    if scaled:
                        loss = optimizer.get_scaled_loss(loss)
                grads = tape.gradient(loss, variables)
                sums = [a + b for a, b in zip(sums, grads)]
            if scaled:
                sums = optimizer.get_unscaled_gradients(sums)
            sums, norm = tf.clip_by_global_norm(sums, 0.5)
            assert float(norm) > 0.5
            optimizer.apply_gradients(zip(sums, variables))
        return model.get_weights()

    sgd = kind.optimizers.SGD
    expected = train(sgd(0.125), scaled=False)
    assert_weights(train(LossScaleOptimizer(sgd(0.125)), scaled=True), expected)


@every_kind
@pytest.mark.parametrize("run_eagerly", [True, False], ids=["eager", "graph"])
def test_fit_skips_a_batch_that_is_not_finite(kind, run_eagerly):
    model, optimizer = make_model(kind), make(kind)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=run_eagerly)
    fit(model, 1)
    before = model.get_weights() + optimizer.get_weights()[1:]
    fit(model, 2, x=np.full_like(X, NAN))
    after = model.get_weights() + optimizer.get_weights()[1:]
    for old, new in zip(before, after):
        np.testing.assert_array_equal(old, new)
    assert float(optimizer.loss_scale) == 2.0**13
    assert int(optimizer.dynamic_counter) == 0
    assert int(optimizer.iterations) == 3
    fit(model, 1)
    assert_weights(model.get_weights(), plain(kind, 2))


@every_kind
def test_a_fit_that_fails_leaves_nothing_behind(kind):
    model, optimizer = make_model(kind), make(kind)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)

    class Stop(Exception):
        pass

    real = optimizer.apply_gradients

    def stop(*args, **kwargs):
        raise Stop

    optimizer.apply_gradients = stop
    with pytest.raises(Stop):
        fit(model, 1)
    optimizer.apply_gradients = real
    loop_step(model, optimizer)
    fit(model, 1)
    assert_weights(model.get_weights(), plain(kind, 2))


@every_kind
def test_under_mixed_float16_it_is_not_wrapped_again(kind):
    experimental.set_policy("mixed_float16")
    model, optimizer = make_model(kind), make(kind)
    assert model.layers[0].compute_dtype == "float16"
    model.compile(optimizer=optimizer, loss="mse")
    assert model.optimizer is optimizer
    fit(model, 3)
    assert_weights(model.get_weights(), plain(kind, 3), rtol=2e-2)
    assert int(optimizer.iterations) == 3


@every_kind
def test_gradients_in_a_graph_of_tensorflow_1(kind):
    with tf.Graph().as_default():
        optimizer = LossScaleOptimizer(kind.optimizers.SGD(), initial_scale=64.0)
        var = tf.Variable([3.0, 4.0])
        loss = tf.reduce_sum(var * var)
        (gradient,) = optimizer.get_gradients(loss, [var])
        scaled = optimizer.get_scaled_loss(loss)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            np.testing.assert_array_equal(session.run(gradient), [6.0, 8.0])
            assert session.run(scaled) == 25.0 * 64.0
        with pytest.raises(ValueError):
            optimizer.get_gradients(tf.constant(1.0), [var])


@every_kind
def test_minimize_takes_one_variable(kind):
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD(0.25)), tf.Variable(1.0)
    optimizer.minimize(lambda: var**2, var_list=var)
    assert var.numpy() == 0.5
    with pytest.raises(ValueError):
        optimizer.minimize(tf.constant(1.0), [var])


@every_kind
def test_no_gradient_at_all(kind):
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD(0.25)), tf.Variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply_gradients([(None, var)])
    assert int(optimizer.dynamic_counter) == 0


@every_kind
def test_a_variable_without_gradient_is_left_alone(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(0.25))
    one, two = tf.Variable(1.0), tf.Variable(1.0)
    optimizer.minimize(lambda: one**2, [one, two])
    assert (one.numpy(), two.numpy()) == (0.5, 1.0)

"""fit, minimize and loops: each scales once and unscales once, on one optimizer."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from installed import every_generation, every_kind, is_new, only_keras3
from loss_scaling import NAN
from models import X, Y, assert_weights, loop_step, loss_of, make_model, plain

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

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
    "eagerly": {"run_eagerly": True},
    "xla": {"jit_compile": True},
    "no_xla": {"jit_compile": False},
    "four_at_once": {"steps_per_execution": 4},
}


@every_generation
@pytest.mark.parametrize(
    "scale, how",
    [
        ("dynamic", "eagerly"),
        ("small", "xla"),
        ("small", "four_at_once"),
        ("fixed", "no_xla"),
    ],
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


@every_generation
@pytest.mark.parametrize("scale", ["small", "fixed"])
def test_fit_calls_what_a_subclass_overrides(kind, scale):
    calls = []

    class Doubling(LossScaleOptimizer):
        def get_scaled_loss(self, loss):
            calls.append("scaled")
            scaled = super().get_scaled_loss(loss)
            return (lambda: 2.0 * scaled()) if callable(scaled) else 2.0 * scaled

        def get_unscaled_gradients(self, grads):
            calls.append("unscaled")
            return [grad / 2.0 for grad in super().get_unscaled_gradients(grads)]

    inner = kind.optimizers.SGD(0.125, momentum=0.5)
    model, optimizer = make_model(kind), Doubling(inner, **SCALES[scale])
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
    for way in ways(kind):
        del calls[:]
        way(model, optimizer)
        assert calls == ["scaled", "unscaled"], way
    steps = len([*ways(kind)])
    assert_weights(model.get_weights(), plain(kind, steps))


@only_keras3
def test_gradients_of_float8_layers_are_values(kind):
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(0.5), initial_scale=8.0)
    kernel, scale = (kind.keras.Variable([1.0]) for _ in range(2))
    scale.overwrite_with_gradient = True
    optimizer.scale_loss(tf.constant(1.0))
    optimizer.apply([tf.constant([8.0]), tf.constant([8.0])], [kernel, scale])
    assert kernel.numpy() == [0.5]
    assert scale.numpy() == [8.0]


@only_keras3
def test_scale_loss_of_a_loss_in_half_precision(kind):
    scaled = LossScaleOptimizer(kind.optimizers.SGD()).scale_loss(
        tf.constant(4.0, tf.float16)
    )
    assert scaled.dtype == tf.float32
    assert float(scaled) == 2.0**17


@every_generation
@pytest.mark.parametrize("scale, run_eagerly", [("small", False), ("fixed", True)])
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


@every_generation
def test_loops_in_functions(kind):
    model, optimizer = make_model(kind), make(kind)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
    loops = [in_loop, in_minimize] + [in_keras3_loop] * (kind.id == "keras3")
    steps = [tf.function(functools.partial(loop, model, optimizer)) for loop in loops]
    # The first time each is traced, the second time not.
    for way in (*steps, lambda: in_fit(model, optimizer), *steps):
        way()
    assert_weights(model.get_weights(), plain(kind, 2 * len(steps) + 1))
    assert int(optimizer.iterations) == 2 * len(steps) + 1


@every_generation
def test_a_train_step_that_keeps_to_keras_2(kind):
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
    model.compile(optimizer=optimizer, loss="mse")
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


@every_generation
def test_fit_skips_a_batch_that_is_not_finite(kind):
    model, optimizer = make_model(kind), make(kind)
    model.compile(optimizer=optimizer, loss="mse")
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
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
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
def test_in_a_graph_of_tensorflow_1_a_step_is_an_error(kind):
    """But for legacy optimizers, which can do it."""
    if not is_new(kind):
        pytest.skip("it can")
    with tf.Graph().as_default():
        optimizer, var = LossScaleOptimizer(kind.optimizers.SGD()), tf.Variable([3.0])
        steps = [
            lambda: optimizer.apply_gradients([(tf.constant([1.0]), var)]),
            lambda: optimizer.minimize(lambda: tf.reduce_sum(var), [var]),
        ]
        for step in steps:
            with pytest.raises(RuntimeError, match="TensorFlow 1") as raised:
                step()
            for way_out in (
                "tf.keras.optimizers.legacy",
                "contrib_opt.mixed_precision.LossScaleOptimizer",
                "tf.function",
            ):
                assert way_out in str(raised.value)


@every_kind
@pytest.mark.parametrize("by_name", [True, False], ids=["by_name", "by_position"])
def test_minimize_takes_the_gradient_of_the_loss(kind, by_name):
    """The numbers are those of TensorFlow 2.8, where this test runs as well."""
    inner = kind.optimizers.SGD(0.1, momentum=0.5)
    optimizer = LossScaleOptimizer(inner, initial_scale=8.0)
    var, grad_loss = tf.Variable([1.0, 2.0]), tf.constant([1.0, 10.0])

    def loss():
        return var * var

    for _ in range(2):
        if by_name:
            optimizer.minimize(loss, [var], grad_loss=grad_loss, name="step")
        else:
            optimizer.minimize(loss, [var], grad_loss, "step")
    np.testing.assert_array_equal(var.numpy(), np.float32([0.53999996, 0.0]))
    with tf.GradientTape() as tape:
        value = loss()
    optimizer.minimize(value, [var], grad_loss, None, tape)
    np.testing.assert_allclose(var.numpy(), [0.302, 1.0], rtol=1e-6)


@every_kind
def test_variables_that_join_later(kind):
    """As layers do that are trained once others are."""
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(0.25, momentum=0.5))
    one, two = tf.Variable(1.0), tf.Variable(1.0)
    if is_new(kind):
        optimizer.build([one, two])
    optimizer.minimize(lambda: one + two, [one])
    optimizer.minimize(lambda: one + two, [one, two])
    assert (one.numpy(), two.numpy()) == (0.375, 0.75)


@every_kind
def test_arguments_of_apply_gradients_by_position(kind):
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD(0.5)), tf.Variable([1.0])
    optimizer.apply_gradients([(tf.constant([1.0]), var)], "step", True)
    optimizer.apply_gradients(
        [(tf.constant([1.0]), var)], name="step", experimental_aggregate_gradients=True
    )
    assert var.numpy() == [0.0]


@every_kind
@pytest.mark.parametrize("scale", ["dynamic", "fixed"])
def test_nothing_to_apply(kind, scale):
    optimizer = make(kind, scale)
    optimizer.apply_gradients([])
    optimizer.apply_gradients(zip([], []))
    assert int(optimizer.iterations) == 0
    var = tf.Variable([1.0])
    optimizer.apply_gradients([(tf.constant([1.0]), var)])
    assert var.numpy() == [0.875]


@every_kind
def test_what_is_no_list_of_pairs(kind):
    if not is_new(kind):
        pytest.skip("Keras's own class")
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD()), tf.Variable([1.0, 2.0])
    gradient = tf.constant([1.0, 1.0])
    for wrong in (gradient, 1.0, (gradient,), (var, gradient), [gradient] * 2):
        with pytest.raises(TypeError, match=r"pairs \(gradient, variable\)"):
            optimizer.apply_gradients([wrong])
    assert int(optimizer.iterations) == 0


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

"""LARS in eager mode, in `tf.function`, under XLA, with Keras, with checkpoints."""

import importlib.util

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from optimizers.numpy_lars import HYPER, RULES, START, gradient
from optimizers.runtimes import (
    TF1,
    assert_weights,
    each_rule,
    expected,
    loss_of,
    make,
    make_variables,
    numpy_values,
)

tf2_only = pytest.mark.skipif(TF1, reason="TensorFlow 1.15 has no jit_compile")


def in_mode(mode, step):
    """`step`, a function without arguments, made to run in `mode`."""
    if mode == "eager":
        return step
    return tf.function(step, **({"jit_compile": True} if mode == "xla" else {}))


def stepper(optimizer, variables, mode):
    """A function without arguments that takes one step."""

    def step():
        optimizer.minimize(
            lambda: loss_of(variables), var_list=list(variables.values())
        )

    return in_mode(mode, step)


each_mode = pytest.mark.parametrize(
    "mode", ["eager", "function", pytest.param("xla", marks=tf2_only)]
)


@each_mode
@each_rule
@pytest.mark.parametrize("use_nesterov", [False, True])
def test_minimize(rule, mode, use_nesterov):
    variables = make_variables()
    step = stepper(make(rule, use_nesterov=use_nesterov), variables, mode)
    for _ in range(3):
        step()
    wanted = expected(rule, 3, use_nesterov=use_nesterov)
    assert_weights(numpy_values(variables), wanted)


@each_rule
def test_minimize_without_var_list_takes_the_variables_that_the_loss_used(rule):
    variables = make_variables()
    unused = tf.Variable(1.0, use_resource=True)
    optimizer = make(rule)
    for _ in range(3):
        optimizer.minimize(lambda: loss_of(variables))
    assert_weights(numpy_values(variables), expected(rule, 3))
    assert unused.numpy() == 1.0
    assert optimizer.get_slot(unused, "momentum") is None


def test_minimize_with_part_of_the_variables():
    variables = make_variables()
    optimizer = make("lars")
    for _ in range(3):
        optimizer.minimize(lambda: loss_of(variables), var_list=[variables["bias"]])
    wanted = dict(START, bias=expected("lars", 3)["bias"])
    assert_weights(numpy_values(variables), wanted)


def test_global_step_counts_in_eager_mode():
    variables = make_variables()
    step = tf.Variable(0, dtype=tf.int64, trainable=False, use_resource=True)
    for _ in range(3):
        make("lars").minimize(lambda: loss_of(variables), global_step=step)
    assert step.numpy() == 3


@each_mode
@each_rule
def test_gradient_tape_and_apply_gradients(rule, mode):
    variables = make_variables()
    optimizer = make(rule)

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(variables)
        names = sorted(variables)
        gradients = tape.gradient(loss, [variables[name] for name in names])
        optimizer.apply_gradients(
            (gradient, variables[name]) for gradient, name in zip(gradients, names)
        )

    step = in_mode(mode, step)
    for _ in range(3):
        step()
    assert_weights(numpy_values(variables), expected(rule, 3))


@each_mode
@pytest.mark.parametrize("name", ["learning_rate", "momentum"])
@pytest.mark.parametrize("kind", ["Variable", "callable", "callable Variable"])
@each_rule
def test_hyperparameter_is_evaluated_at_each_step(rule, kind, name, mode):
    values = [0.5, 0.25, 0.7]
    variable = tf.Variable(0.0, use_resource=True, trainable=False)
    calls = []

    def called():
        calls.append(1)
        return variable.read_value() if kind == "callable" else variable

    variables = make_variables()
    optimizer = make(rule, **{name: variable if kind == "Variable" else called})
    step = stepper(optimizer, variables, mode)
    for value in values:
        variable.assign(value)
        step()
    reference, weights = RULES[rule][1](**HYPER), dict(START)
    for value in values:
        setattr(reference, name, value)
        for key, w in weights.items():
            weights[key] = reference.step(key, w, gradient(key, w))
    assert_weights(numpy_values(variables), weights)
    if kind != "Variable":
        # Once a step, or once each time that a function is traced.
        assert len(calls) == 3 if mode == "eager" else 1 <= len(calls) <= 2


def test_callable_that_counts_its_own_steps():
    rates = iter([0.5, 0.25, 0.1])
    variables = make_variables()
    optimizer = make("lars", learning_rate=lambda: next(rates))
    for _ in range(3):
        optimizer.minimize(lambda: loss_of(variables))
    wanted = expected("lars", 3, learning_rates=[0.5, 0.25, 0.1])
    assert_weights(numpy_values(variables), wanted)


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_callable_is_evaluated_anew_between_steps(mode):
    rate = tf.Variable(0.5, use_resource=True, trainable=False)
    variables = make_variables()
    optimizer = make("tf114", learning_rate=lambda: rate.read_value())
    stepper(optimizer, variables, mode)()
    w, g = variables["bias"], tf.constant([1.0, 2.0])
    before = optimizer.compute_lr(g, w).numpy()
    rate.assign(0.25)
    np.testing.assert_allclose(optimizer.compute_lr(g, w).numpy(), before / 2)


@pytest.mark.parametrize(
    "rate", [tf.constant(0.5), tf.constant(0.5, tf.float64), np.float32(0.5)]
)
def test_scalars_of_other_libraries_and_types(rate):
    variables = make_variables()
    optimizer = make("lars", learning_rate=rate, momentum=tf.constant(0.9))
    for _ in range(3):
        optimizer.minimize(lambda: loss_of(variables))
    assert_weights(numpy_values(variables), expected("lars", 3))


@pytest.mark.parametrize("mode", ["eager", "function"])
@each_rule
def test_sparse_gradient(rule, mode):
    variables = make_variables()
    optimizer = make(rule)

    def loss():
        # Row 2 twice: its gradients add up.
        rows = tf.gather(variables["kernel"], [2, 0, 2])
        return tf.reduce_sum(rows * rows) / 2

    def step():
        optimizer.minimize(loss, var_list=[variables["kernel"]])

    step = in_mode(mode, step)
    for _ in range(3):
        step()
    reference, w = RULES[rule][1](**HYPER), START["kernel"]
    for _ in range(3):
        w = reference.sparse_step("kernel", w, {0: w[0], 2: 2 * w[2]})
    assert_weights(numpy_values(variables), dict(START, kernel=w))


def test_same_numbers_in_every_run():
    def run():
        variables = make_variables()
        step = stepper(make("lars"), variables, "function")
        for _ in range(5):
            step()
        return numpy_values(variables)

    first, second = run(), run()
    for name in START:
        assert np.array_equal(first[name], second[name])


@each_mode
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@each_rule
def test_half_precision_norms_beyond_the_largest_half(rule, dtype, mode):
    w, g = np.full((300, 300), 256.0), np.full((300, 300), 300.0)
    assert np.linalg.norm(w) > 65504
    variable = tf.Variable(tf.constant(w, dtype), use_resource=True)
    optimizer = make(rule)

    def step():
        optimizer.apply_gradients([(tf.constant(g, variable.dtype), variable)])

    step = in_mode(mode, step)
    step()
    wanted = RULES[rule][1](**HYPER).step("w", w, g)
    assert np.all(np.abs(wanted - w) > 5)
    actual = tf.cast(variable.read_value(), tf.float32).numpy()
    np.testing.assert_allclose(
        actual, wanted, rtol=2e-3 if dtype == "float16" else 1e-2
    )


def test_loss_scale_optimizer_in_eager_mode():
    if TF1:
        wrap = tf.train.experimental.MixedPrecisionLossScaleOptimizer
        scale = tf.train.experimental.FixedLossScale(8.0)
    else:
        wrap = tf.mixed_precision.MixedPrecisionLossScaleOptimizer
        scale = tf.mixed_precision.FixedLossScale(8.0)
    variables = make_variables()
    optimizer = wrap(make("lars"), scale)
    for _ in range(3):
        optimizer.minimize(
            lambda: loss_of(variables), var_list=list(variables.values())
        )
    assert_weights(numpy_values(variables), expected("lars", 3))


# Keras.

KERAS = ["keras", "tf_keras", "tf.keras"]


def keras_module(which):
    if which == "tf.keras":
        return tf.keras
    if which == "keras" and TF1 or not importlib.util.find_spec(which):
        pytest.skip(which + " is not installed")
    return importlib.import_module(which)


@pytest.mark.parametrize("mode", ["eager", "function"])
@pytest.mark.parametrize("which", KERAS)
@each_rule
def test_keras_variables(rule, which, mode):
    keras = keras_module(which)
    layer = keras.layers.Dense(START["kernel"].shape[1])
    layer.build((None, START["kernel"].shape[0]))
    layer.set_weights([START["kernel"], START["bias"]])
    kernel, bias = layer.trainable_variables
    optimizer = make(rule)

    def minimize():
        optimizer.minimize(
            lambda: loss_of({"kernel": kernel, "bias": bias}), var_list=[kernel, bias]
        )

    def apply():
        with tf.GradientTape() as tape:
            loss = loss_of({"kernel": kernel, "bias": bias})
        gradients = tape.gradient(loss, [kernel, bias])
        optimizer.apply_gradients(zip(gradients, [kernel, bias]))

    steps = [minimize, apply, minimize]
    for step in steps:
        in_mode(mode, step)()
    values = dict(zip(["kernel", "bias"], layer.get_weights()))
    assert_weights(values, expected(rule, 3))
    slot = optimizer.get_slot(kernel, "momentum")
    assert slot.shape.as_list() == list(START["kernel"].shape)
    assert len(optimizer.variables()) == 2


def trained_layer(keras, optimizer, steps, layer=None):
    """A dense layer of `keras` after `steps` steps, and its losses."""
    layer = layer or keras.layers.Dense(2)
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(tf.ones([4, 3])) - 2.0))
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
        losses.append(loss.numpy())
    return layer, losses


@pytest.mark.parametrize("which", KERAS)
@pytest.mark.parametrize("built", ["unbuilt", "built", "stepped"])
def test_checkpoint_with_a_keras_layer(built, which, tmp_path):
    keras = keras_module(which)
    optimizer = make("lars")
    layer, _ = trained_layer(keras, optimizer, 3)
    saved = tf.train.Checkpoint(layer=layer, optimizer=optimizer)
    path = saved.save(str(tmp_path / "ckpt"))
    _, wanted = trained_layer(keras, optimizer, 3, layer)

    optimizer, layer = make("lars"), keras.layers.Dense(2)
    if built == "built":
        layer.build((None, 3))
    elif built == "stepped":
        trained_layer(keras, optimizer, 1, layer)
    tf.train.Checkpoint(layer=layer, optimizer=optimizer).restore(path)
    _, losses = trained_layer(keras, optimizer, 3, layer)
    np.testing.assert_array_equal(losses, wanted)


@pytest.mark.parametrize("which", KERAS)
def test_keras_variables_in_trust_ratio_and_compute_lr(which):
    keras = keras_module(which)
    norm = keras.layers.BatchNormalization(name="batch_normalization")
    norm.build((None, 3))
    gamma = norm.trainable_variables[0]
    gradient, weights = tf.constant([1.0, 2.0, 2.0]), np.ones(3)
    ratio = 0.2 * np.sqrt(3) / (3 + 0.05 * np.sqrt(3))
    optimizer = make("lars")
    np.testing.assert_allclose(optimizer.trust_ratio(gradient, gamma), ratio, 1e-6)
    rate, decayed = optimizer.compute_lr(gradient, gamma)
    np.testing.assert_allclose(rate, 0.5 * ratio, 1e-6)
    np.testing.assert_allclose(decayed, gradient + 0.05 * weights, 1e-6)

    # Keras 3 calls the variable 'gamma', and TensorFlow 'batch_normalization/gamma'.
    with tf.name_scope("model"):
        layer = keras.Sequential([norm])
        layer(tf.ones([2, 3]))
    skipping = make("lars", skip_list=[gamma.name.split(":")[0]])
    assert skipping.trust_ratio(gradient, gamma).numpy() == 1.0


@pytest.mark.skipif(TF1, reason="Keras 3 is for TensorFlow 2.16 and later")
def test_keras_3_variables_as_gradient_and_as_global_step():
    keras = pytest.importorskip("keras", "3")
    variables, optimizer = make_variables(), make("lars")
    other, of_tensors = make_variables(), make("lars")
    step = keras.Variable(0, dtype="int64")
    accumulated = keras.Variable([1.0, 2.0])
    optimizer.apply_gradients([(accumulated, variables["bias"])], step)
    of_tensors.apply_gradients([(tf.constant([1.0, 2.0]), other["bias"])])
    np.testing.assert_array_equal(variables["bias"].numpy(), other["bias"].numpy())
    assert int(step.value) == 1


# Object-based checkpoints.


def velocity(optimizer, variables):
    return {
        name: optimizer.get_slot(var, "momentum").numpy()
        for name, var in variables.items()
    }


@each_rule
@pytest.mark.parametrize("deferred", [True, False])
@pytest.mark.parametrize("mode", ["eager", "function"])
def test_checkpoint_restores_slots(rule, mode, deferred, tmp_path):
    variables, optimizer = make_variables(), make(rule)
    step = stepper(optimizer, variables, mode)
    step()
    step()
    saved = tf.train.Checkpoint(optimizer=optimizer, **variables)
    path = saved.save(str(tmp_path / "model"))
    wanted = velocity(optimizer, variables)

    variables, optimizer = make_variables(), make(rule)
    step = stepper(optimizer, variables, mode)
    if not deferred:
        step()
    restored = tf.train.Checkpoint(optimizer=optimizer, **variables)
    status = restored.restore(path)
    if not deferred:
        status.assert_consumed()
        assert_weights(velocity(optimizer, variables), wanted)
    step()
    status.assert_consumed()
    assert_weights(numpy_values(variables), expected(rule, 3))

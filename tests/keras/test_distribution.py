"""MirroredStrategy on two CPUs; strategies that loss scaling does not work with."""

import numpy as np
import pytest
import tensorflow as tf
from installed import every_generation, only_keras3
from loss_scaling import NAN
from models import X, Y, assert_weights, make_model, plain

from contrib_opt.keras.mixed_precision import LossScaleOptimizer
from mirrored import mirrored_strategy


@pytest.fixture(scope="module")
def strategy():
    return mirrored_strategy()


def make(kind, momentum=0.5):
    return LossScaleOptimizer(
        kind.optimizers.SGD(0.25, momentum=momentum),
        initial_scale=8.0,
        dynamic_growth_steps=2,
    )


def per_replica(strategy, values):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group])
    )


# For each step the gradients of the two replicas, which are summed.
STEPS = [(1.0, 2.0), (NAN, 1.0), (1.0, 1.0), (2.0, float("inf")), (1.0, 3.0)]


def reference(kind):
    """The same steps of one replica: the sums, and a NaN for both."""
    optimizer, var = make(kind), tf.Variable([1.0, 1.0])
    states = []
    for values in STEPS:
        total = tf.constant(sum(values))
        optimizer.minimize(lambda total=total: tf.reduce_sum(var * total), [var])
        states.append(state(optimizer, var))
    return states


def state(optimizer, var):
    counter, iterations = optimizer.dynamic_counter, optimizer.iterations
    values = float(optimizer.loss_scale), counter.numpy(), iterations.numpy()
    return var.numpy().tolist(), values


@every_generation
@pytest.mark.parametrize(
    "how, compiled, made",
    [
        ("tape", False, "inside"),
        ("tape", True, "inside"),
        ("minimize", True, "outside"),
    ],
)
def test_a_nan_on_one_replica_skips_the_step_on_all(
    kind, how, compiled, made, strategy
):
    # Keras 3 wants its optimizers made in the scope.
    outside = made == "outside" and kind.id != "keras3"
    optimizer = make(kind) if outside else None
    with strategy.scope():
        var = tf.Variable([1.0, 1.0])
        optimizer = optimizer or make(kind)

    def in_replica(value):
        if how == "minimize":
            optimizer.minimize(lambda: tf.reduce_sum(var * value), [var])
            return
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(var * value)
            scaled_loss = optimizer.get_scaled_loss(loss)
        grads = optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, [var]))
        optimizer.apply_gradients(zip(grads, [var]))

    def step(values):
        strategy.run(in_replica, args=(values,))

    if compiled:
        step = tf.function(step)
    for values, expected in zip(STEPS, reference(kind)):
        step(per_replica(strategy, values))
        copies = strategy.experimental_local_results(var)
        assert len(copies) == 2
        for copy in copies:
            assert state(optimizer, copy) == expected
    # Not all were skipped, and not none.
    assert expected == ([-2.0625] * 2, (2.0, 1, 5))


@every_generation
def test_fixed_scale(kind, strategy):
    with strategy.scope():
        var = tf.Variable([1.0, 1.0])
        optimizer = LossScaleOptimizer(
            kind.optimizers.SGD(0.25), dynamic=False, initial_scale=16.0
        )

    @tf.function
    def step(values):
        strategy.run(
            lambda value: optimizer.minimize(lambda: tf.reduce_sum(var * value), [var]),
            args=(values,),
        )

    step(per_replica(strategy, (1.0, 2.0)))
    assert var.numpy().tolist() == [0.25, 0.25]


@every_generation
def test_fit(kind, strategy):
    with strategy.scope():
        model = make_model(kind)
        model.compile(optimizer=make(kind), loss="mse", jit_compile=False)
    # The NaN is in the half of the second replica.
    x = X.copy()
    x[12, 1] = np.nan
    for x_of_steps, steps in ((X, 3), (x, 1), (X, 1)):
        model.fit(x_of_steps, Y, batch_size=16, epochs=steps, verbose=0, shuffle=False)
    expected = plain(kind, 4, kind.optimizers.SGD(0.25, momentum=0.5))
    assert_weights(model.get_weights(), expected)
    assert float(model.optimizer.loss_scale) == 8.0
    assert model.optimizer.dynamic_counter.numpy() == 1
    assert model.optimizer.iterations.numpy() == 5


@every_generation
def test_one_device(kind):
    strategy = tf.distribute.OneDeviceStrategy("CPU:1")
    with strategy.scope():
        optimizer, var = make(kind), tf.Variable([1.0, 1.0])

    def in_replica(value):
        optimizer.minimize(lambda: tf.reduce_sum(var * value), [var])

    step = tf.function(lambda value: strategy.run(in_replica, args=(value,)))
    for values, expected in zip(STEPS, reference(kind)):
        step(tf.constant(sum(values)))
        assert state(optimizer, var) == expected


@every_generation
def test_a_strategy_that_is_not_supported(kind):
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0"], "CPU:0")
    message = "not supported with the.* CentralStorageStrategy"
    with strategy.scope():
        inner = kind.optimizers.SGD()
        with pytest.raises(ValueError, match="(?s)" + message):
            LossScaleOptimizer(inner)
        var = tf.Variable([1.0])
    optimizer = LossScaleOptimizer(kind.optimizers.SGD())

    def in_replica():
        optimizer.apply_gradients([(tf.constant([1.0]), var)])

    with pytest.raises(ValueError, match="(?s)" + message):
        strategy.run(in_replica)


@every_generation
def test_apply_gradients_outside_of_replicas(kind, strategy):
    with strategy.scope():
        optimizer, var = make(kind), tf.Variable([1.0])
        with pytest.raises(ValueError, match="must be called in a replica context"):
            optimizer.apply_gradients([(tf.constant([1.0]), var)])


@only_keras3
def test_gradients_that_are_summed_already(kind, strategy):
    optimizer, var = make(kind), tf.Variable([1.0])
    optimizer.get_scaled_loss(tf.constant(1.0))
    grads = optimizer.get_unscaled_gradients([tf.constant([8.0])])
    optimizer.apply_gradients(zip(grads, [var]), experimental_aggregate_gradients=False)
    assert var.numpy() == [0.75]
    with strategy.scope():
        var = tf.Variable([1.0])

    def in_replica():
        optimizer.apply_gradients(
            [(tf.constant([1.0]), var)], experimental_aggregate_gradients=False
        )

    with pytest.raises(ValueError, match="always sum"):
        strategy.run(in_replica)

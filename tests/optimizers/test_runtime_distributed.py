"""LARS under MirroredStrategy, with two replicas on two logical CPUs."""

import pytest
import tensorflow.compat.v1 as tf

from mirrored import mirrored_strategy
from optimizers.numpy_lars import START
from optimizers.runtimes import (
    TF1,
    assert_weights,
    each_rule,
    expected,
    loss_of,
    make,
    make_variables,
    numpy_values,
    two_cpus,
)

eager_only = pytest.mark.skipif(
    len(tf.config.experimental.list_logical_devices("CPU")) < 2,
    reason="eager mode was started with one CPU",
)


def run_on(mirrored, step):
    # TensorFlow 1.15 calls it experimental_run_v2.
    run = mirrored.run if hasattr(mirrored, "run") else mirrored.experimental_run_v2
    return run(step)


def replica_loss(variables, scales=(0.5, 1.5)):
    """The two replicas see different losses, whose sum is 2 * `loss_of`."""
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return tf.gather(tf.constant(scales), replica) * loss_of(variables)


def train(mirrored, variables, optimizer, mode, steps):
    names = sorted(variables)

    def minimize():
        optimizer.minimize(
            lambda: replica_loss(variables), var_list=[variables[n] for n in names]
        )

    def apply():
        with tf.GradientTape() as tape:
            loss = replica_loss(variables)
        gradients = tape.gradient(loss, [variables[name] for name in names])
        optimizer.apply_gradients(zip(gradients, [variables[n] for n in names]))

    replica_step = apply if "tape" in mode else minimize

    def step():
        run_on(mirrored, replica_step)

    if "function" in mode:
        step = tf.function(step)
    for _ in range(steps):
        step()


def copies(var):
    """The values of a mirrored variable on its devices."""
    return [part.numpy() for part in var.values]


each_mode = pytest.mark.parametrize(
    "mode", ["eager minimize", "eager tape", "function minimize", "function tape"]
)


@eager_only
@each_mode
@each_rule
def test_strategy_run(rule, mode):
    mirrored = mirrored_strategy()
    with mirrored.scope():
        variables = make_variables()
        optimizer = make(rule)
    train(mirrored, variables, optimizer, mode, 3)
    # TensorFlow sums the gradients of apply_gradients over the replicas.
    wanted = expected(rule, 3, scale=2.0)
    for replica in range(2):
        assert_weights({n: copies(v)[replica] for n, v in variables.items()}, wanted)
    for var in variables.values():
        assert (copies(var)[0] == copies(var)[1]).all()
        slots = [optimizer.get_slot(part, "momentum").numpy() for part in var.values]
        assert (slots[0] == slots[1]).all() and slots[0].any()


@eager_only
@each_mode
@pytest.mark.parametrize("kind", ["callable", "variable", "mirrored variable"])
def test_hyperparameters_are_evaluated_at_each_step(kind, mode):
    rates, calls = [0.5, 0.25, 0.7], []
    mirrored = mirrored_strategy()
    rate = tf.Variable(0.0, use_resource=True, trainable=False)
    with mirrored.scope():
        variables = make_variables()
        if kind == "mirrored variable":
            rate = tf.Variable(0.0, use_resource=True, trainable=False)

    def called():
        calls.append(1)
        return rate.read_value()

    optimizer = make("lars", learning_rate=called if kind == "callable" else rate)
    for value in rates:
        rate.assign(value)
        train(mirrored, variables, optimizer, mode, 1)
    wanted = expected("lars", 3, scale=2.0, learning_rates=rates)
    assert_weights(numpy_values(variables), wanted)
    if kind == "callable" and "eager" in mode:
        assert len(calls) == 3


@eager_only
@pytest.mark.parametrize("deferred", [True, False])
@pytest.mark.parametrize("mode", ["eager tape", "function minimize"])
def test_checkpoint_restores_slots(mode, deferred, tmp_path):
    def start():
        mirrored = mirrored_strategy()
        with mirrored.scope():
            variables, optimizer = make_variables(), make("lars")
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, **variables)
        return mirrored, variables, optimizer, checkpoint

    mirrored, variables, optimizer, checkpoint = start()
    train(mirrored, variables, optimizer, mode, 2)
    path = checkpoint.save(str(tmp_path / "model"))

    mirrored, variables, optimizer, checkpoint = start()
    if not deferred:
        train(mirrored, variables, optimizer, mode, 1)
    status = checkpoint.restore(path)
    train(mirrored, variables, optimizer, mode, 1)
    if not TF1:  # It looks for the slots of the first device only.
        status.assert_consumed()
    wanted = expected("lars", 3, scale=2.0)
    for replica in range(2):
        assert_weights({n: copies(v)[replica] for n, v in variables.items()}, wanted)


@eager_only
def test_checkpoint_of_a_strategy_restores_without_one(tmp_path):
    mirrored = mirrored_strategy()
    with mirrored.scope():
        variables, optimizer = make_variables(), make("lars")
    train(mirrored, variables, optimizer, "eager tape", 2)
    path = tf.train.Checkpoint(optimizer=optimizer, **variables).save(
        str(tmp_path / "model")
    )
    variables, optimizer = make_variables(), make("lars")
    tf.train.Checkpoint(optimizer=optimizer, **variables).restore(path)
    optimizer.minimize(lambda: 2.0 * loss_of(variables))
    wanted = expected("lars", 3, scale=2.0)
    assert_weights(numpy_values(variables), wanted)


@eager_only
def test_wrong_gradient_changes_nothing():
    mirrored = mirrored_strategy()
    with mirrored.scope():
        variables, optimizer = make_variables(), make("lars")

    def step():
        optimizer.apply_gradients(
            [(tf.ones([3, 2]), variables["kernel"]), (tf.ones([3]), variables["bias"])]
        )

    with pytest.raises(ValueError, match="bias.*shape"):
        run_on(mirrored, step)
    assert_weights(numpy_values(variables), START)


@pytest.mark.parametrize("call", ["run", "call_for_each_replica"])
@each_rule
def test_session_graph(rule, call):
    with tf.Graph().as_default():
        mirrored = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        with mirrored.scope():
            variables = make_variables()
            optimizer = make(rule)

            def step():
                op = optimizer.minimize(
                    replica_loss(variables), var_list=list(variables.values())
                )
                with tf.control_dependencies([op]):
                    return tf.constant(1)

            if call == "run":
                results = run_on(mirrored, step)
            else:
                results = mirrored.extended.call_for_each_replica(step)
            results = mirrored.experimental_local_results(results)
        slots = [
            [optimizer.get_slot(part, "momentum") for part in var.values]
            for var in variables.values()
        ]
        with tf.Session(config=two_cpus()) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                assert session.run(results) == (1, 1)
            wanted = expected(rule, 3, scale=2.0)
            for replica in range(2):
                parts = {n: v.values[replica] for n, v in variables.items()}
                assert_weights(session.run(parts), wanted)
                assert f"CPU:{replica}" in parts["kernel"].device
            for first, second in session.run(slots):
                assert (first == second).all() and first.any()


@eager_only
def test_apply_gradients_outside_of_a_replica_is_refused():
    mirrored = mirrored_strategy()
    with mirrored.scope():
        var = tf.Variable([1.0, 2.0], use_resource=True)
        gradients = run_on(mirrored, lambda: tf.ones([2]))
        with pytest.raises(RuntimeError, match="cross-replica context"):
            make("lars").apply_gradients([(gradients, var)])

"""ModelAverageOptimizer: numbers, the chief, what 1.15 could not do."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt.wrappers import model_average
from contrib_opt.wrappers.model_average import (
    ModelAverageCustomGetter,
    ModelAverageOptimizer,
)
from wrappers import cluster
from wrappers.cluster import ALONE, ALTERNATING, Worker, case, start, together

KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])


@pytest.mark.parametrize(
    "row, use_resource", cluster.golden_runs("ModelAverage"), ids=cluster.id_of
)
def test_golden(row, use_resource):
    cluster.check_golden(model_average, row, use_resource)


@KINDS
def test_checkpoint_of_tensorflow_1_goes_on(use_resource):
    cluster.check_resumed(model_average, "ModelAverage", use_resource)


def test_saver_saves_what_tensorflow_1_saved(tmp_path):
    cluster.check_saved(model_average, "ModelAverage", tmp_path)


@KINDS
def test_slots_on_two_workers(use_resource):
    """Each worker has slots of its own; on 1.15 the second one's stay uninitialized."""
    row = case("ModelAverage", "momentum", ALTERNATING, interval_steps=2)
    cluster.cluster().reset()
    workers = [Worker(model_average, row, task, use_resource) for task in range(2)]
    start(workers)
    for _ in range(4):
        together(*[worker.step for worker in workers])
    slots = []
    for worker in workers:
        var = worker.records()[0].variable
        slots.append(
            worker.session.run([var, worker.optimizer.get_slot(var, "momentum")])
        )
        assert worker.session.run(worker.global_step) == 2
    np.testing.assert_array_equal(slots[0][0], slots[1][0])
    assert not np.allclose(slots[0][1], slots[1][1])
    chief, other = [worker.names() for worker in workers]
    assert "layer/bias/Momentum" in chief["variables"]
    assert "layer/bias/Momentum" in other["local_variables"]
    for worker in workers:
        worker.session.close()


@KINDS
def test_center_starts_at_the_value_of_the_variable(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        getter = ModelAverageCustomGetter("")
        with tf.variable_scope("s", custom_getter=getter, use_resource=use_resource):
            a = tf.get_variable("a", [50])
        center = getter.record(a).center
        assert center.op.name == "global_center_variable/s/a"
        session.run([tf.local_variables_initializer(), center.initializer])
        np.testing.assert_array_equal(*session.run([a, center]))
        session.run(a.assign(tf.range(50.0)))
        session.run(center.initializer)
        np.testing.assert_array_equal(session.run(center), np.arange(50.0))


def test_reuse_makes_no_second_center():
    with tf.Graph().as_default():
        getter = ModelAverageCustomGetter("")
        for _ in range(2):
            with tf.variable_scope("", reuse=tf.AUTO_REUSE, custom_getter=getter):
                tf.get_variable("a", [3])
        assert [v.op.name for v in tf.global_variables()] == [
            "global_center_variable/a"
        ]


@KINDS
def test_restart_of_the_chief(use_resource):
    """The parameter server lives on, with accumulators that count further on."""
    row = case("ModelAverage", "sgd", ALTERNATING, interval_steps=1)
    cluster.cluster().reset()
    workers = [Worker(model_average, row, task, use_resource) for task in range(2)]
    start(workers)
    for _ in range(3):
        together(*[worker.step for worker in workers])
    for _ in range(2):
        # The chief forgets its step, as without a checkpoint.
        with workers[0].graph.as_default():
            hook = workers[0].optimizer.make_session_run_hook()
            hook.begin()
            workers[0].session.run(tf.global_variables_initializer())
        hook.after_create_session(workers[0].session, None)
        together(*[worker.step for worker in workers])
        assert workers[0].session.run(workers[0].global_step) == 1
    for worker in workers:
        worker.session.close()


def test_train_op_says_whether_it_averaged():
    worker = Worker(model_average, case("ModelAverage", "sgd", ALONE, interval_steps=3))
    start([worker])
    assert [worker.step() for _ in range(6)] == [False, False, True] * 2


def test_what_is_missing():
    with tf.Graph().as_default():
        getter = ModelAverageCustomGetter("")
        with tf.variable_scope("", custom_getter=getter):
            a = tf.get_variable("a", [3])
        opt = ModelAverageOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 2, True, getter
        )
        with pytest.raises(ValueError, match="call apply_gradients or minimize before"):
            opt.make_session_run_hook().begin()
        with pytest.raises(ValueError, match="global_step is required"):
            opt.minimize(tf.reduce_sum(a))
        with pytest.raises(ValueError, match="No gradients provided"):
            opt.apply_gradients([], tf.train.get_or_create_global_step())

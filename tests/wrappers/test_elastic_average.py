"""ElasticAverageOptimizer: numbers, centers, swapping_saver, arguments of its own."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt import LARSOptimizer
from contrib_opt.wrappers import elastic_average
from contrib_opt.wrappers.elastic_average import (
    ElasticAverageCustomGetter,
    ElasticAverageOptimizer,
)
from wrappers import cluster
from wrappers.cluster import ALONE, Worker, case, start

KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])


@pytest.mark.parametrize(
    "row, use_resource", cluster.golden_runs("ElasticAverage"), ids=cluster.id_of
)
def test_golden(row, use_resource):
    cluster.check_golden(elastic_average, row, use_resource)


@KINDS
def test_checkpoint_of_tensorflow_1_goes_on(use_resource):
    cluster.check_resumed(elastic_average, "ElasticAverage", use_resource)


def test_savers_save_what_tensorflow_1_saved(tmp_path):
    cluster.check_saved(elastic_average, "ElasticAverage", tmp_path)


@KINDS
def test_equations(use_resource):
    """Two workers with SGD in NumPy, in float64, which TF 1.15 has not."""
    row = case(
        "ElasticAverage",
        "sgd",
        cluster.ALTERNATING,
        dtype="float64",
        communication_period=2,
    )
    steps = cluster.run_case(elastic_average, row, use_resource)["steps"]
    probe = Worker(elastic_average, row)
    layout = [(v.op.name, v.shape.as_list()) for v in probe.variables()]

    moving_rate, rate = 0.9 / 2 / 2, 0.25
    rho = moving_rate / rate
    names = ["layer/kernel", "layer/bias"]
    center = [cluster.initial([3, 2], "float64", 1), cluster.initial([2], "float64", 2)]
    x = [[c.copy() for c in center] for _ in range(2)]
    seen = [[c.copy() for c in center] for _ in range(2)]
    count, exchanges = [0, 0], 0
    for task, values in zip(row.schedule, steps):
        random = np.random.RandomState(10 * task + count[task])
        features, labels = random.normal(size=[4, 3]), random.normal(size=[4, 2])
        kernel, bias = x[task]
        error = 2 / 8 * (features @ kernel + bias - labels)
        for i, grad in enumerate([features.T @ error, error.sum(axis=0)]):
            x[task][i] = x[task][i] - rate * (grad + rho * (x[task][i] - seen[task][i]))
        count[task] += 1
        if count[task] % 2 == 0:
            exchanges += 1
            for i in range(2):
                seen[task][i] = center[i].copy()
                d = moving_rate * (x[task][i] - seen[task][i])
                x[task][i], center[i] = x[task][i] - d, center[i] + d
        expected = {"global_step": exchanges, "local_step": count[task]}
        for i, name in enumerate(names):
            expected[name] = x[task][i]
            expected["local_center_variable/" + name] = seen[task][i]
            expected["global_center_variable/" + name] = center[i]
        flat = np.concatenate([np.ravel(expected[name]) for name, _ in layout])
        np.testing.assert_allclose(values, flat, rtol=1e-10, atol=1e-10)


def model(*shapes, **kwargs):
    """Variables a, b, ... made through a getter; returns both."""
    getter = ElasticAverageCustomGetter("")
    with tf.variable_scope("", custom_getter=getter, **kwargs):
        variables = [
            tf.get_variable(name, initializer=np.ones(shape, np.float32) * 2)
            for name, shape in zip("abcd", shapes)
        ]
    return getter, variables


def initialized(*init_ops):
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(list(init_ops))
    return session


@KINDS
def test_var_list_in_another_order_keeps_each_variable_with_its_center(use_resource):
    with tf.Graph().as_default():
        getter, (a, b) = model([3], [2], use_resource=use_resource)
        sgd = tf.train.GradientDescentOptimizer(1.0)
        opt = ElasticAverageOptimizer(sgd, 1, getter, rho=1.0)
        loss = 0.0 * (tf.reduce_sum(a) + tf.reduce_sum(b))
        [(grad, var)] = opt.compute_gradients(loss, [b])
        assert var is b
        with initialized(opt.get_init_op(0)) as session:
            session.run(b.assign([5.0, 2.0]))
            np.testing.assert_allclose(session.run(grad), [3.0, 0.0])


def test_loss_may_be_a_callable():
    with tf.Graph().as_default():
        getter, (a,) = model([3])
        opt = ElasticAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 1, getter)
        train_op = opt.minimize(lambda: tf.reduce_sum(a))
        with initialized() as session:
            session.run(train_op)
            np.testing.assert_allclose(session.run(a), [1.0, 1.0, 1.0])


def test_variables_of_several_types():
    with tf.Graph().as_default():
        getter = ElasticAverageCustomGetter("")
        with tf.variable_scope("", custom_getter=getter):
            a = tf.get_variable("a", initializer=1.0)
            b = tf.get_variable("b", initializer=np.float64(1.0))
        opt = ElasticAverageOptimizer(
            tf.train.GradientDescentOptimizer(0.5),
            1,
            getter,
            communication_period=1,
            moving_rate=0.5,
        )
        train_op = opt.minimize(a + tf.cast(b, tf.float32))
        centers = [getter.record(v).center for v in (a, b)]
        with initialized(opt.get_init_op(0)) as session:
            session.run(train_op)
            assert session.run([a, b] + centers) == [0.75] * 4


@pytest.mark.parametrize(
    "make, rate",
    [
        (lambda: tf.train.AdamOptimizer(0.05), 0.05),
        (lambda: LARSOptimizer(0.5), 0.5),
        (lambda: LARSOptimizer(lambda: 0.25), 0.25),
        (lambda: tf.train.MomentumOptimizer(tf.constant(0.125), 0.9), 0.125),
        (lambda: tf.train.FtrlOptimizer(0.2), 0.2),
    ],
    ids=["adam", "lars", "callable", "tensor", "ftrl"],
)
def test_default_rho(make, rate):
    with tf.Graph().as_default(), tf.Session() as session:
        getter, _ = model([3])
        opt = ElasticAverageOptimizer(make(), 3, getter, communication_period=4)
        rho = session.run(tf.identity(opt._rho))
        np.testing.assert_allclose(rho, 0.9 / 4 / 3 / rate, rtol=1e-6)


def test_beta_is_a_default_that_a_subclass_may_change():
    class Half(ElasticAverageOptimizer):
        BETA = 0.5

    with tf.Graph().as_default():
        getter, _ = model([3])
        opt = Half(tf.train.GradientDescentOptimizer(1.0), 5, getter)
        assert opt._moving_rate == 0.5 / 10 / 5
        assert ElasticAverageOptimizer.BETA == 0.9


class Unknown(tf.train.Optimizer):
    def __init__(self):
        super().__init__(False, "Unknown")


SGD = tf.train.GradientDescentOptimizer


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"moving_rate": -0.1}, "moving_rate must be 0 or more, got -0.1"),
        ({"moving_rate": "fast"}, "moving_rate must be a number, .* got 'fast'"),
        ({"moving_rate": [0.1, 0.2]}, "moving_rate must be a scalar"),
        ({"rho": float("nan")}, "rho must be 0 or more, got nan"),
        ({"opt": SGD(0.0)}, "the learning rate of GradientDescentOptimizer is 0: give"),
        ({"opt": Unknown()}, "Unknown does not say its learning rate: give rho"),
    ],
)
def test_bad_arguments(kwargs, message):
    with tf.Graph().as_default():
        getter, _ = model([3])
        arguments = {"opt": SGD(1.0), "num_worker": 2, "ea_custom_getter": getter}
        with pytest.raises(ValueError, match=message):
            ElasticAverageOptimizer(**dict(arguments, **kwargs))


@pytest.mark.parametrize("kind", ["default", "list", "dict"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_swapping_saver(kind, partitioned, tmp_path):
    with tf.Graph().as_default():
        getter = ElasticAverageCustomGetter("")
        partitioner = tf.fixed_size_partitioner(2) if partitioned else None
        with tf.variable_scope("", custom_getter=getter, partitioner=partitioner):
            a = tf.get_variable("s/a", [4, 2], initializer=tf.zeros_initializer())
        plain = tf.get_variable("plain", initializer=[7.0, 8.0])
        parts = list(a) if partitioned else [a]
        var_list = {"default": None, "list": [a, plain], "dict": {"x": a, "y": plain}}
        opt = ElasticAverageOptimizer(SGD(1.0), 1, getter)
        saver = opt.swapping_saver(var_list[kind], name="other", max_to_keep=3)
        with initialized() as session:
            for i, part in enumerate(parts):
                session.run(
                    getter.record(part).center.assign_add(tf.ones_like(part) * i)
                )
            saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
            center = session.run([getter.record(part).center for part in parts])
            assert saver.as_saver_def().max_to_keep == 3
    reader = tf.train.load_checkpoint(str(tmp_path / "model"))
    key, plain_key = ("x", "y") if kind == "dict" else ("s/a", "plain")
    assert set(reader.get_variable_to_shape_map()) == {key, plain_key}
    np.testing.assert_array_equal(reader.get_tensor(key), np.concatenate(center))
    np.testing.assert_array_equal(reader.get_tensor(plain_key), [7.0, 8.0])


def test_swapping_saver_without_a_model():
    with tf.Graph().as_default():
        opt = ElasticAverageOptimizer(SGD(1.0), 1, ElasticAverageCustomGetter(""))
        with pytest.raises(RuntimeError, match="make the model first"):
            opt.swapping_saver()


def test_swapped_variables_restore_without_the_optimizer():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("layer/kernel", [3, 2])
        tf.get_variable("layer/bias", [2])
        tf.train.Saver().restore(session, cluster.saved("swapped"))


def test_a_single_synchronous_worker_does_not_wait():
    row = case("ElasticAverage", "sgd", ALONE, synchronous=True)
    worker = Worker(elastic_average, row)
    start([worker])
    worker.step()

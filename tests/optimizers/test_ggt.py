"""What is GGT's own: weights, lists of variables, types, constraints, arguments."""

import os
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers import ggt
from optimizers.cases import CASES, make
from optimizers.problems import DENSE, SPARSE, STEPS, EagerRun, GraphRun

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden")


def variable(value, dtype="float64", **kwargs):
    return tf.Variable(tf.constant(value, dtype), use_resource=True, **kwargs)


class NumpyGGT:
    """The equations of the paper's algorithm as 1.15 has them, in float64."""

    def __init__(
        self,
        size,
        learning_rate=0.001,
        beta1=0.9,
        window=10,
        eps=1e-4,
        svd_eps=1e-6,
        sigma_eps=1e-2,
    ):
        self.__dict__.update(locals())
        self.t = 0
        self.moment = np.zeros(size)
        self.buffer = np.zeros([window, size])

    def step(self, w, g):
        # The optimizer's numbers have float32 precision.
        beta1, learning_rate, svd_eps, sigma_eps = [
            float(np.float32(x))
            for x in (self.beta1, self.learning_rate, self.svd_eps, self.sigma_eps)
        ]
        self.moment = beta1 * self.moment + (1 - beta1) * g
        self.buffer[self.t % self.window] = self.moment
        self.t += 1
        m = self.buffer.T / np.sqrt(min(self.t, self.window))
        u, s, _ = np.linalg.svd(m.T @ m + svd_eps * np.eye(self.window))
        projected = u.T @ m.T @ self.moment
        step = m @ u @ (projected / (np.sqrt(s) + sigma_eps) ** 3)
        least = np.sqrt(s).min()
        if least > self.eps:
            step += (self.moment - m @ u @ (projected / s)) / least
        return w - learning_rate * step


@pytest.mark.parametrize(
    "kwargs",
    [
        {"learning_rate": 0.1},
        {"beta1": 0.5, "window": 3, "svd_eps": 0.01, "sigma_eps": 0.1},
        {"window": 1, "eps": 0.2, "svd_eps": 0.05},
        # More vectors than the model has weights.
        {"window": 16, "svd_eps": 1e-4, "eps": 0.0},
    ],
    ids=str,
)
def test_is_the_equations(kwargs):
    random = np.random.RandomState(0)
    start, gradients = random.randn(8), random.randn(STEPS, 8)
    reference, expected = NumpyGGT(8, **kwargs), start
    # In the order of their names: 'a' has the first two elements.
    b = variable(start[2:].reshape(3, 2), name="b")
    a = variable(start[:2], name="a")
    opt = contrib_opt.GGTOptimizer(**kwargs)
    for g in gradients:
        expected = reference.step(expected, g)
        pairs = [(tf.constant(g[2:].reshape(3, 2)), b), (tf.constant(g[:2]), a)]
        opt.apply_gradients(pairs)
    actual = np.concatenate([a.numpy(), b.numpy().ravel()])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
    assert opt.get_slot_names() == []


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("id", ["ggt", "ggt_window"])
@pytest.mark.parametrize("eager", [False, True], ids=["ref", "eager"])
def test_weights_are_those_of_1_15(id, kind, eager):
    """By themselves: beside the optimizer's count of steps they are small."""
    (case,) = [case for case in CASES if case.id == id]
    problem = DENSE if kind == "dense" else SPARSE
    if eager:
        run = EagerRun(problem, lambda: make(case))
    else:
        run = GraphRun(problem, lambda: make(case), use_resource=False)
    run.train(range(STEPS))
    size = sum(np.size(value) for value in problem.initial.values())
    recorded = np.load(os.path.join(GOLDEN, id + ".npz"))["float32_" + kind]
    expected = recorded[-1][:size]
    np.testing.assert_allclose(
        run.values()[:size], expected, rtol=0, atol=1e-6 * np.abs(expected).max()
    )


def test_beta1_of_a_half_is_the_same_in_graphs_and_eager_mode():
    """1.15 read the gradients there before they were written."""

    def build():
        return contrib_opt.GGTOptimizer(0.1, beta1=0.5, svd_eps=1e-3)

    eager = EagerRun(DENSE, build, "float64")
    eager.train(range(STEPS))
    for use_resource in (False, True):
        graph = GraphRun(DENSE, build, "float64", use_resource)
        graph.train(range(STEPS))
        np.testing.assert_allclose(graph.values(), eager.values(), rtol=0, atol=1e-12)


def test_other_variables_than_before_are_refused():
    a, b = variable(np.ones(2), name="a"), variable(np.ones(3), name="b")
    opt = contrib_opt.GGTOptimizer(0.1)
    opt.apply_gradients([(tf.ones_like(a), a), (tf.ones_like(b), b)])
    before = [v.numpy() for v in [a, b, *opt.variables()]]
    with pytest.raises(ValueError, match=r"began with \['a:0', 'b:0'\]; now \['b:0'\]"):
        opt.apply_gradients([(None, a), (tf.ones_like(b), b)])
    for v, value in zip([a, b, *opt.variables()], before):
        np.testing.assert_array_equal(v.numpy(), value)
    # In another order they are the same.
    opt.apply_gradients([(tf.ones_like(b), b), (tf.ones_like(a), a)])
    assert opt.variables()[1].numpy() == 2


def test_variables_of_one_name():
    pair = [variable(np.ones(2), name="w") for _ in range(2)]
    apart = [variable(np.ones(2), name=name) for name in "vw"]
    gradients = [
        tf.constant([1.0, 2.0], tf.float64),
        tf.constant([3.0, 5.0], tf.float64),
    ]
    for variables in (pair, apart):
        opt = contrib_opt.GGTOptimizer(0.1)
        for _ in range(3):
            opt.apply_gradients(zip(gradients, variables))
    for one, other in zip(pair, apart):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_variables_of_several_types():
    single, double, half = [
        variable(np.ones(2), dtype, name=dtype)
        for dtype in ("float32", "float64", "float16")
    ]
    opt = contrib_opt.GGTOptimizer(0.1)
    opt.apply_gradients([(tf.ones_like(v), v) for v in (half, single, double)])
    assert {v.dtype.base_dtype for v in opt.variables()} == {tf.float64}
    assert 0.5 < double.numpy()[0] < 1
    np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=1e-6)
    np.testing.assert_allclose(half.numpy(), double.numpy(), rtol=1e-3)


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
def test_a_constraint_holds_after_the_step(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable(
            "w",
            initializer=[1.0, 1.0],
            constraint=lambda w: tf.clip_by_value(w, 0.95, 1.0),
            use_resource=use_resource,
        )
        train_op = contrib_opt.GGTOptimizer(0.1).minimize(w[0] - w[1])
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        np.testing.assert_array_equal(session.run(w), np.float32([0.95, 1.0]))


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
def test_variables_on_several_devices(use_resource):
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        variables = []
        for i in range(2):
            with tf.device(f"/cpu:{i}"):
                variables.append(
                    tf.get_variable(
                        f"w{i}", initializer=[1.0, 1.0], use_resource=use_resource
                    )
                )
        loss = tf.reduce_sum(variables[0] + variables[1])
        train_op = contrib_opt.GGTOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        values = session.run(variables)
        np.testing.assert_array_equal(values[0], values[1])
        assert (values[0] < 1).all()


def test_an_optimizer_for_two_graphs():
    opt = contrib_opt.GGTOptimizer(0.1)
    for size in (2, 3):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", initializer=np.ones(size), use_resource=True)
            train_op = opt.minimize(tf.reduce_sum(w))
            assert [v.name for v in opt.variables()] == [
                "flat_grad:0",
                "global_step:0",
                "grad_buffer:0",
                "moment1:0",
            ]
            session.run(tf.global_variables_initializer())
            session.run(train_op)
            assert (session.run(w) < 1).all()


def test_a_gradient_that_is_not_finite_makes_nan_and_no_error():
    w = variable(np.ones(3))
    contrib_opt.GGTOptimizer().apply_gradients(
        [(tf.constant([1.0, np.inf, 1.0], w.dtype), w)]
    )
    assert np.isnan(w.numpy()).all()


@pytest.mark.parametrize(
    "window",
    [3, np.int64(3), 3.0, lambda: 3, "tensor"],
    ids=["int", "numpy", "float", "callable", "tensor"],
)
def test_window_may_be(window):
    w = variable(np.ones(2))
    opt = contrib_opt.GGTOptimizer(
        window=tf.constant(3) if window == "tensor" else window
    )
    opt.apply_gradients([(tf.ones_like(w), w)])
    assert [v.shape.as_list() for v in opt.variables()] == [[2], [], [3, 2], [2]]


def test_a_variable_of_unknown_shape_is_refused():
    w = tf.Variable(np.ones(2), shape=[None], use_resource=True)
    with pytest.raises(ValueError, match="needs the shape of"):
        contrib_opt.GGTOptimizer().apply_gradients([(tf.ones([2], tf.float64), w)])


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"learning_rate": "0.1"}, "learning_rate must be a number"),
        (
            {"learning_rate": lambda step: step},
            "learning_rate must be callable without",
        ),
        ({"beta1": -0.1}, "beta1 must be 0 or more"),
        ({"window": 0}, "window must be a positive integer"),
        ({"window": 2.5}, "window must be a positive integer"),
        ({"window": "10"}, "window must be a positive integer"),
        ({"window": None}, "window must be a positive integer"),
        ({"window": [1, 2]}, "window must be a positive integer"),
        ({"window": float("inf")}, "window must be a positive integer"),
        ({"eps": -1.0}, "eps must be 0 or more"),
        ({"svd_eps": [0.1, 0.2]}, "svd_eps must be a scalar"),
        ({"sigma_eps": float("nan")}, "sigma_eps must be 0 or more"),
    ],
    ids=lambda given: "" if isinstance(given, str) else "-".join(given),
)
def test_refuses(kwargs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        contrib_opt.GGTOptimizer(**kwargs)


@pytest.mark.parametrize("block", [1, 7, 24, 25, 100])
@pytest.mark.parametrize("eager", [False, True])
def test_gram_matrix_by_blocks(monkeypatch, block, eager):
    monkeypatch.setattr(ggt, "_BLOCK", block)
    rows = np.random.RandomState(0).randn(4, 25).astype(np.float32)
    if eager:
        gram = ggt.gram_matrix(tf.constant(rows)).numpy()
    else:
        with tf.Graph().as_default(), tf.Session() as session:
            gram = session.run(ggt.gram_matrix(tf.constant(rows)))
    rows = rows.astype(np.float64)
    np.testing.assert_allclose(gram, rows @ rows.T, rtol=0, atol=1e-13)

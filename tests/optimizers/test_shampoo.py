"""What is Shampoo's own: ranks, intervals, rows, schedules, roots, arguments."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers.matrix_functions import (
    matrix_inverse_pth_root,
    matrix_square_root,
)
from optimizers.cases import Case, make, make_theirs
from optimizers.numpy_shampoo import NumpyShampoo
from optimizers.problems import SPARSE, STEPS, EagerRun, GraphRun, global_step

in_tf_1_15 = pytest.mark.skipif(
    not tf.__version__.startswith("1.15."), reason="tf.contrib is in TensorFlow 1.15"
)


def variable(value, dtype="float64"):
    return tf.Variable(tf.constant(value, dtype), use_resource=True)


def assert_close(actual, expected, tolerance=1e-10):
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def train(shape, dtype="float64", steps=6, **kwargs):
    """Weights after `steps` with random gradients: ours, and NumPy's."""
    random = np.random.RandomState(len(shape))
    start = np.asarray(random.randn(*shape))
    gradients = random.randn(steps, *shape)
    reference = NumpyShampoo(shape or (1,), **kwargs)
    expected = start.reshape(shape or (1,))
    for t, g in enumerate(gradients):
        expected = reference.step(t + 1, expected, g.reshape(expected.shape))

    w = variable(start, dtype)
    step = tf.Variable(0, dtype=tf.int64, use_resource=True)
    opt = contrib_opt.ShampooOptimizer(step, **kwargs)
    for g in gradients:
        opt.apply_gradients([(tf.constant(g, dtype), w)], step)
    return w.numpy().reshape(expected.shape), expected


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"gbar_decay": 0.5, "gbar_weight": 0.3, "mat_gbar_decay": 0.9},
        {"svd_interval": 2, "mat_gbar_weight": 0.5, "epsilon": 0.1, "alpha": 0.8},
        {"svd_interval": 4, "precond_update_interval": 2},
        # Not integers: steps 3, 5 and 6 are "multiples" of the first.
        {"svd_interval": 2.5, "precond_update_interval": 1.5},
    ],
    ids=lambda kwargs: "-".join(kwargs) or "defaults",
)
@pytest.mark.parametrize(
    "shape",
    [(), (1,), (5,), (4, 3), (2, 1, 3), (3, 3, 2, 4)],
    ids=["scalar", "one", "vector", "matrix", "rank3", "convolution"],
)
def test_is_the_equations(shape, kwargs):
    actual, expected = train(shape, **kwargs)
    assert_close(actual, expected)


@pytest.mark.parametrize("max_matrix_size", [0, 2, 3, 4])
@pytest.mark.parametrize("shape", [(), (5,), (4, 3), (3, 3, 2, 4)])
def test_larger_dimensions_get_vectors(shape, max_matrix_size):
    actual, expected = train(shape, max_matrix_size=max_matrix_size, gbar_decay=0.5)
    assert_close(actual, expected)


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-5), ("float16", 0.02)])
@pytest.mark.parametrize("max_matrix_size", [2, 768])
def test_smaller_types(dtype, atol, max_matrix_size):
    actual, expected = train((3, 3, 2, 4), dtype, max_matrix_size=max_matrix_size)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def test_half_precision_has_float32_preconditioners():
    w = variable(np.ones([2, 3]), "float16")
    opt = contrib_opt.ShampooOptimizer(learning_rate=0.01)
    # Its squares are beyond float16.
    opt.apply_gradients([(tf.fill([2, 3], tf.constant(400.0, tf.float16)), w)])
    assert opt.get_slot(w, "Gbar_0").dtype.base_dtype == tf.float32
    np.testing.assert_array_equal(
        opt.get_slot(w, "Gbar_1").numpy(), np.full([3, 3], 2 * 400.0**2)
    )
    assert np.isfinite(w.numpy()).all() and (w.numpy() < 1).all()


@pytest.mark.parametrize("mat_gbar_decay", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("max_matrix_size", [2, 3])
@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 2, 4)])
def test_rows_of_a_large_table(shape, max_matrix_size, mat_gbar_decay):
    kwargs = {"max_matrix_size": max_matrix_size, "mat_gbar_decay": mat_gbar_decay}
    random = np.random.RandomState(0)
    reference, expected = NumpyShampoo(shape, **kwargs), random.randn(*shape)
    w = variable(expected)
    opt = contrib_opt.ShampooOptimizer(**kwargs)
    for t in range(4):
        rows = random.randn(3, *shape[1:])
        # Row 4 in two parts.
        slices = tf.IndexedSlices(
            tf.constant(np.concatenate([rows, rows[1:2]])), tf.constant([0, 4, 1, 4])
        )
        opt.apply_gradients([(slices, w)])
        rows[1] *= 2
        expected = reference.sparse_step(t + 1, expected, rows, [0, 4, 1])
    assert_close(w.numpy(), expected)
    kept = 0.0 if mat_gbar_decay == 0 else np.diag(reference.mats[0])[4]
    if mat_gbar_decay != 0:
        np.testing.assert_allclose(opt.get_slot(w, "Gbar_0").numpy()[4], kept)


@in_tf_1_15
@pytest.mark.parametrize("max_matrix_size", [2, 3, 4, 5])
def test_rows_of_a_large_table_as_in_1_15(max_matrix_size):
    # Ref variables: 1.15 reads resource variables here while it writes them.
    case = Case(
        id="rows",
        optimizer="ShampooOptimizer",
        kwargs={"max_matrix_size": max_matrix_size, "learning_rate": 0.1},
    )
    ours, theirs = [
        GraphRun(SPARSE, lambda how=how: how(case), use_resource=False)
        for how in (make, make_theirs)
    ]
    for run in (ours, theirs):
        run.train(range(STEPS))
    np.testing.assert_allclose(
        ours.values(),
        theirs.values(),
        rtol=0,
        atol=1e-5 * np.abs(theirs.values()).max(),
    )


def test_a_dense_gradient_and_its_rows_are_the_same_below_max_matrix_size():
    rows = np.random.RandomState(0).randn(2, 3)
    dense = np.zeros([6, 3])
    dense[[4, 1]] = rows
    slices = tf.IndexedSlices(tf.constant(rows), tf.constant([4, 1]))
    one, other = variable(np.ones([6, 3])), variable(np.ones([6, 3]))
    contrib_opt.ShampooOptimizer().apply_gradients([(tf.constant(dense), one)])
    contrib_opt.ShampooOptimizer().apply_gradients([(slices, other)])
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-14)


SCHEDULES = {
    "learning_rate": lambda t: 0.2 / (t + 1.0),
    "gbar_decay": lambda t: t / (t + 2.0),
    "gbar_weight": lambda t: 1.0 / t,
    "mat_gbar_decay": lambda t: t / (t + 1.0),
    "mat_gbar_weight": lambda t: 2.0 / t,
    "precond_update_interval": lambda t: 1.0 + tf.floor(t / 4.0),
    "alpha": lambda t: 0.5 + 0.01 * t,
}


def moved(make_optimizer, graph, steps=6):
    problem = SPARSE
    run = (
        GraphRun(problem, make_optimizer)
        if graph
        else EagerRun(problem, make_optimizer)
    )
    run.train(range(steps))
    return run.values()


@in_tf_1_15
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_callable_of_the_step_is_as_in_1_15(name):
    def build(namespace):
        kwargs = {"learning_rate": 0.1, "gbar_decay": 0.5, name: SCHEDULES[name]}
        return namespace.ShampooOptimizer(global_step(), **kwargs)

    from tensorflow.contrib import opt

    theirs = moved(lambda: build(opt), graph=True)
    for graph in (True, False):
        assert_close(moved(lambda: build(contrib_opt), graph), theirs, 1e-5)


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
def test_a_callable_gets_the_global_step_plus_one(graph):
    """And one without arguments does not."""

    def scheduled():
        rate = lambda step: 0.1 * step  # noqa: E731
        return contrib_opt.ShampooOptimizer(global_step(), learning_rate=rate)

    def read():
        step = global_step()
        rate = lambda: 0.1 * (tf.cast(step, tf.float32) + 1.0)  # noqa: E731
        return contrib_opt.ShampooOptimizer(step, learning_rate=rate)

    np.testing.assert_allclose(
        moved(scheduled, graph), moved(read, graph), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
@pytest.mark.parametrize("given", ["number", "tensor", "callable", "of the step"])
def test_svd_interval_may_be(given, graph):
    def build():
        interval = {
            "number": 3,
            "tensor": tf.constant(3),
            "callable": lambda: 3,
            "of the step": lambda step: tf.cond(step < 100.0, lambda: 3, lambda: 10),
        }[given]
        return contrib_opt.ShampooOptimizer(
            global_step(), learning_rate=0.1, svd_interval=interval
        )

    def number():
        return contrib_opt.ShampooOptimizer(
            global_step(), learning_rate=0.1, svd_interval=3
        )

    np.testing.assert_array_equal(moved(build, graph), moved(number, graph))


def test_a_gradient_that_is_not_finite_makes_nan_and_no_error():
    w = variable(np.ones([3, 3]))
    opt = contrib_opt.ShampooOptimizer()
    opt.apply_gradients([(tf.constant(np.diag([1.0, np.nan, 1.0])), w)])
    assert np.isnan(w.numpy()).all()


@pytest.mark.parametrize("use_iterative_root", [False, True])
def test_in_xla(use_iterative_root):
    g = tf.constant(np.random.RandomState(0).randn(4, 3), tf.float32)

    def trained(**kwargs):
        w = variable(np.ones([4, 3]), "float32")
        opt = contrib_opt.ShampooOptimizer(use_iterative_root=use_iterative_root)

        def step():
            opt.apply_gradients([(g, w)])

        step()
        tf.function(step, **kwargs)()
        return w.numpy()

    try:
        compiled = trained(jit_compile=True)
    except TypeError:
        pytest.skip("this TensorFlow has no jit_compile")
    np.testing.assert_allclose(compiled, trained(), rtol=0, atol=1e-5)


# Matrices of which |A| is large enough for the first stop of the square root.
def positive(size, dtype="float64"):
    random = np.random.RandomState(size)
    factor = random.randn(size, size + 2)
    return (factor @ factor.T).astype(dtype)


def power(matrix, exponent):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * values**exponent @ vectors.T


@pytest.mark.parametrize("size", [1, 2, 5])
def test_matrix_square_root(size):
    a = positive(size)
    expected = power(a + 0.01 * np.eye(size), 0.5)
    root = matrix_square_root(tf.constant(a), size, ridge_epsilon=0.01)
    np.testing.assert_allclose(root.numpy(), expected, rtol=0, atol=1e-9)
    sized = matrix_square_root(tf.constant(a), tf.constant(size), ridge_epsilon=0.01)
    np.testing.assert_array_equal(sized.numpy(), root.numpy())
    big = matrix_square_root(tf.constant(1e9 * a, tf.float32), size)
    np.testing.assert_allclose(big.numpy(), power(1e9 * a, 0.5), rtol=0, atol=1.0)
    rough = matrix_square_root(tf.constant(a, tf.float16), size, ridge_epsilon=0.01)
    assert rough.dtype == tf.float16
    np.testing.assert_allclose(rough.numpy(), expected, rtol=0, atol=0.02)


def test_matrix_square_root_stops_at_iter_count():
    a = positive(3)
    root = matrix_square_root(tf.constant(a), 3, iter_count=1, ridge_epsilon=0.0)
    norm = np.linalg.norm(a)
    np.testing.assert_allclose(root.numpy(), a / np.sqrt(norm), rtol=1e-12)


def test_matrix_square_root_of_a_small_matrix_is_that_of_1_15():
    a = 1e-3 * positive(3)
    root = matrix_square_root(tf.constant(a), 3, ridge_epsilon=0.0)
    np.testing.assert_allclose(root.numpy(), a / np.sqrt(np.linalg.norm(a)), rtol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 49])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_matrix_inverse_pth_root(size, p):
    a = positive(size)
    expected = power(a + 0.01 * np.eye(size), -1 / p)
    root = matrix_inverse_pth_root(
        tf.constant(a), size, -1 / p, epsilon=1e-12, ridge_epsilon=0.01
    )
    np.testing.assert_allclose(root.numpy(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 0, -0.4, -2, float("nan"), None])
def test_matrix_inverse_pth_root_needs_a_p(alpha):
    with pytest.raises(ValueError, match="alpha must be -1 / p"):
        matrix_inverse_pth_root(tf.constant(positive(2)), 2, alpha)


@in_tf_1_15
def test_matrix_functions_are_those_of_1_15():
    from tensorflow.contrib.opt.python.training import matrix_functions as theirs

    with tf.Graph().as_default(), tf.Session() as session:
        for scale in (1e-4, 1.0, 1e3):
            a = tf.constant(scale * positive(4), tf.float32)
            pairs = [
                (matrix_square_root(a, 4), theirs.matrix_square_root(a, 4)),
                (
                    matrix_square_root(a, 4, 3, 0.1),
                    theirs.matrix_square_root(a, 4, 3, 0.1),
                ),
                (
                    matrix_inverse_pth_root(a, 4, -0.25),
                    theirs.matrix_inverse_pth_root(a, 4, -0.25),
                ),
                (
                    matrix_inverse_pth_root(a, 4, -0.5, 5, 1e-3, 0.1),
                    theirs.matrix_inverse_pth_root(a, 4, -0.5, 5, 1e-3, 0.1),
                ),
            ]
            for ours, reference in session.run(pairs):
                np.testing.assert_allclose(ours, reference, rtol=1e-5)


def test_an_iterated_root_is_near_the_eigenvalues():
    g = np.random.RandomState(0).randn(4, 3) * 10
    one, other = variable(np.ones([4, 3])), variable(np.ones([4, 3]))
    for w, iterative in ((one, False), (other, True)):
        opt = contrib_opt.ShampooOptimizer(use_iterative_root=iterative, epsilon=0.1)
        opt.apply_gradients([(tf.constant(g), w)])
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=0, atol=1e-5)


def test_an_iterated_root_that_does_not_exist_is_refused_before_any_update():
    vector, matrix = variable(np.ones([3])), variable(np.ones([3, 3]))
    opt = contrib_opt.ShampooOptimizer(use_iterative_root=True, alpha=1.0)
    pairs = [(tf.ones_like(w), w) for w in (matrix, vector)]
    with pytest.raises(ValueError, match=r"root for .*\(3,\).*alpha is 1.0"):
        opt.apply_gradients(pairs)
    np.testing.assert_array_equal(matrix.numpy(), np.ones([3, 3]))
    assert not opt.get_slot_names()


@pytest.mark.parametrize("max_matrix_size", [2, 768])
@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
def test_a_partitioned_variable_can_be_saved(tmp_path, use_resource, max_matrix_size):
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.get_variable(
            "w",
            [6, 4],
            partitioner=tf.fixed_size_partitioner(2),
            use_resource=use_resource,
        )
        opt = contrib_opt.ShampooOptimizer(max_matrix_size=max_matrix_size)
        loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(parts)))
        train_op = opt.minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "ckpt"))
        saved = session.run(tf.global_variables())
        session.run(train_op)
        saver.restore(session, path)
        for value, other in zip(session.run(tf.global_variables()), saved):
            np.testing.assert_array_equal(value, other)


def test_a_variable_of_unknown_shape_is_refused():
    w = tf.Variable(np.ones([2, 2]), shape=[None, 2], use_resource=True)
    with pytest.raises(ValueError, match="needs the shape of"):
        contrib_opt.ShampooOptimizer().apply_gradients(
            [(tf.ones([2, 2], tf.float64), w)]
        )


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"global_step": "x"}, "global_step must be a number"),
        ({"global_step": lambda step: step}, "global_step must be callable without"),
        ({"max_matrix_size": -1}, "max_matrix_size must be a number that is 0 or"),
        ({"max_matrix_size": None}, "max_matrix_size must be a number"),
        ({"gbar_decay": -0.1}, "gbar_decay must be 0 or more"),
        ({"mat_gbar_decay": [0.1, 0.2]}, "mat_gbar_decay must be a scalar"),
        ({"mat_gbar_weight": -1.0}, "mat_gbar_weight must be 0 or more"),
        ({"learning_rate": "0.1"}, "learning_rate must be a number"),
        ({"learning_rate": lambda a, b: a}, "learning_rate must be callable"),
        ({"svd_interval": 0}, "svd_interval must be 1 or more"),
        ({"precond_update_interval": 0.5}, "precond_update_interval must be 1 or"),
        ({"epsilon": float("nan")}, "epsilon must be 0 or more"),
        ({"alpha": -0.5}, "alpha must be 0 or more"),
        (
            {"alpha": lambda: 0.5, "use_iterative_root": True},
            "With use_iterative_root, alpha must be a number",
        ),
    ],
    ids=lambda given: "" if isinstance(given, str) else "-".join(given),
)
def test_refuses(kwargs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        contrib_opt.ShampooOptimizer(**kwargs)

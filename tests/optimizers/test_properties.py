"""Any problem: each update rule does what its equations do in NumPy.

Hypothesis draws shapes, types, sparsity, hyperparameters and the number of steps, the
same in every run. More of them, and others each time:

    HYPOTHESIS_PROFILE=thorough python -m pytest tests/optimizers/test_properties.py
"""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from optimizers.cases import OPTIMIZERS
from optimizers.numpy_rules import ROWS, WRAPPERS

_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}
PROFILES = {
    # Shrinking a failure takes minutes.
    "ci": settings(
        max_examples=15,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        **_COMMON,
    ),
    "thorough": settings(max_examples=500, **_COMMON),
}
PROFILE = PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "ci")]

# Relative to the largest number there is. The half types round after each step.
TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}
# Graphs take longer to make.
MODES = ["eager"] * 7 + ["graph"]


class Problem:
    """Weights, and a gradient for each step: an array, or (indices, rows)."""

    def __init__(self, shape, dtype, sparse, steps, scale, seed):
        random = np.random.RandomState(seed)
        self.dtype = dtype

        def rounded(values):
            return self.store(np.asarray(values, np.float64))

        self._text = (shape, dtype, sparse, steps, scale, seed)
        self.weights = rounded(scale * random.randn(*shape))
        self.gradients = []
        for n_rows, scale in steps:
            if sparse:
                indices = random.randint(0, shape[0], n_rows if shape[0] else 0)
                rows = rounded(scale * random.randn(len(indices), *shape[1:]))
                self.gradients.append((indices, rows))
            else:
                self.gradients.append(rounded(scale * random.randn(*shape)))

    def has_empty_rows(self):
        return any(isinstance(g, tuple) and g[1].size == 0 for g in self.gradients)

    def store(self, values):
        """Float64 `values`, rounded to the type of the variable."""
        if self.dtype == "float32":
            # Only what is given: the rules round nothing between the steps.
            return values.astype(np.float32).astype(np.float64)
        kind = tf.as_dtype(self.dtype).as_numpy_dtype
        return values.astype(np.float32).astype(kind).astype(np.float64)

    def __repr__(self):
        return f"Problem{self._text}"


@st.composite
def problems(draw):
    sizes = st.integers(0, 5)
    shape = draw(st.lists(sizes, max_size=3).filter(lambda s: np.prod(s) <= 40))
    # Powers of two, which cost half types no digits; squares of these are normal.
    scales = st.sampled_from([0.0, 0.25, 1.0, 4.0])
    return Problem(
        shape=tuple(shape),
        dtype=draw(st.sampled_from(sorted(TOLERANCE))),
        sparse=bool(shape) and draw(st.booleans()),
        steps=draw(
            st.lists(st.tuples(st.integers(0, 6), scales), min_size=1, max_size=5)
        ),
        scale=draw(scales),
        seed=draw(st.integers(0, 2**16)),
    )


def tensor(gradient, dtype):
    if isinstance(gradient, tuple):
        indices, rows = gradient
        return tf.IndexedSlices(tf.constant(rows, dtype), tf.constant(indices))
    return tf.constant(gradient, dtype)


def train_in_eager_mode(make, problem):
    """The weights, and the slots by name, after the last step."""
    var = tf.Variable(
        tf.constant(problem.weights, problem.dtype), use_resource=True, name="w"
    )
    step = tf.Variable(0, dtype=tf.int64, use_resource=True, trainable=False)
    optimizer = make(step)
    for gradient in problem.gradients:
        optimizer.apply_gradients([(tensor(gradient, problem.dtype), var)], step)
    names = optimizer.get_slot_names()
    return var.numpy(), {name: optimizer.get_slot(var, name).numpy() for name in names}


def train_in_graph(make, problem):
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable(
            "w",
            initializer=tf.constant(problem.weights, problem.dtype),
            use_resource=True,
        )
        step = tf.train.get_or_create_global_step()
        optimizer = make(step)
        shape = [None, *problem.weights.shape[1:]]
        if isinstance(problem.gradients[0], tuple):
            fed = tf.placeholder(tf.int64, [None]), tf.placeholder(problem.dtype, shape)
            gradient = tf.IndexedSlices(fed[1], fed[0])
        else:
            fed = (tf.placeholder(problem.dtype, problem.weights.shape),)
            gradient = fed[0]
        train = optimizer.apply_gradients([(gradient, var)], step)
        session.run(tf.global_variables_initializer())
        for values in problem.gradients:
            values = values if isinstance(values, tuple) else (values,)
            session.run(train, dict(zip(fed, values)))
        names = optimizer.get_slot_names()
        slots = {name: optimizer.get_slot(var, name) for name in names}
        return session.run((var, slots))


def summed(gradient):
    """A gradient as the rules take it: of rows, {row: sum}."""
    if not isinstance(gradient, tuple):
        return gradient
    rows = {}
    for i, row in zip(*gradient):
        rows[int(i)] = rows.get(int(i), 0.0) + row
    return rows


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.optimizer)
def test_is_its_equations(row):
    @PROFILE
    @given(problems(), st.fixed_dictionaries(row.hyper), st.sampled_from(MODES))
    def check(problem, hyper, mode):
        assume(not (row.refuses_empty_rows and problem.has_empty_rows()))
        half = problem.dtype.endswith("float16")
        store = problem.store if half else lambda values: values
        rule = row.rule(problem.weights, store, **hyper)
        for gradient in problem.gradients:
            rule.step(summed(gradient))
        train = train_in_graph if mode == "graph" else train_in_eager_mode
        weights, slots = train(lambda step: row.make(step, **hyper), problem)
        assert_close(weights, rule.w, problem)
        for name, expected in rule.slots.items():
            assert_close(slots[name], expected, problem)

    check()


def assert_close(actual, expected, problem):
    assert actual.shape == expected.shape
    largest = max(np.abs(a).max(initial=0) for a in (expected, problem.weights))
    np.testing.assert_allclose(
        actual.astype(np.float64),
        expected,
        rtol=0,
        atol=TOLERANCE[problem.dtype] * largest,
    )


def test_every_optimizer_is_here():
    assert sorted(case.optimizer for case in OPTIMIZERS) == sorted(
        [row.optimizer for row in ROWS] + WRAPPERS
    )

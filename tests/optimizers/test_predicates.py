"""all_finite and any_nonzero: eager mode, where NumPy answers, and graphs agree."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.predicates import all_finite, any_nonzero

INF, NAN = float("inf"), float("nan")
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def in_both(question, make):
    """The answer in eager mode; fails if a function has another one."""
    answer = question(make())
    assert answer.dtype == tf.bool and answer.shape == []
    in_function = tf.function(lambda: question(make()), autograph=False)()
    assert bool(answer) == bool(in_function)
    return bool(answer)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "values, finite",
    [
        ([[0.0], [[1.0, -2.0]]], True),
        ([[0.0], [[1.0, INF]]], False),
        ([[-INF], [[1.0, 2.0]]], False),
        ([[0.0], [[NAN, 2.0]]], False),
        ([np.zeros([0, 2]), 3.0], True),
    ],
)
def test_all_finite(values, finite, dtype):
    def make():
        return [tf.cast(tf.constant(x, tf.float32), dtype) for x in values]

    assert in_both(all_finite, make) == finite


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize(
    "value, nonzero",
    [
        ([[0.0, -0.0], [0.0, 0.0]], False),
        ([[0.0, 0.0], [0.0, -1.0]], True),
        (2.0, True),
        (np.zeros([0, 2]), False),
    ],
)
def test_any_nonzero(value, nonzero, dtype):
    def make():
        return tf.cast(tf.constant(value, tf.float32), dtype)

    assert in_both(any_nonzero, make) == nonzero


def test_nan_and_inf_are_not_zero():
    for value in (NAN, INF, -INF):
        assert in_both(any_nonzero, lambda value=value: tf.constant([0.0, value]))

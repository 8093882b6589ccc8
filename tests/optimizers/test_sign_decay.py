"""The functions that let the sign of AddSign and PowerSign decay."""

import math

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers import sign_decay

STEPS = range(0, 14)


def linear(t):
    return (10 - t) / 10


def cosine(t, num_periods=0.5, zero_after=math.inf):
    if num_periods * t / 10 >= zero_after:
        return 0.0
    return (1 + math.cos(2 * math.pi * num_periods * t / 10)) / 2


def restart(t, num_periods=1, zero_after=math.inf):
    if num_periods * t / 10 >= zero_after:
        return 0.0
    return (1 + math.cos(math.pi * (num_periods * t % 10) / 10)) / 2


# (name, the arguments besides decay_steps, the same in Python for t up to 10)
FUNCTIONS = [
    ("linear", {}, linear),
    ("cosine", {}, cosine),
    ("cosine", {"num_periods": 2}, cosine),
    ("cosine", {"num_periods": 1.5, "zero_after": 0.75}, cosine),
    ("restart", {}, restart),
    ("restart", {"num_periods": 2.5}, restart),
    ("restart", {"num_periods": 2, "zero_after": 1}, restart),
    ("restart", {"num_periods": 2.5, "zero_after": 1.0}, restart),
]
each_function = pytest.mark.parametrize(
    "name, kwargs, formula",
    FUNCTIONS,
    ids=["-".join([n, *map(str, k.values())]) for n, k, _ in FUNCTIONS],
)


def get(name):
    return getattr(sign_decay, f"get_{name}_decay_fn")


@each_function
def test_is_its_formula(name, kwargs, formula):
    decay = get(name)(10, **kwargs)
    found = [decay(tf.constant(step, tf.int64)).numpy() for step in STEPS]
    expected = [formula(min(step, 10), **kwargs) for step in STEPS]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[0].dtype == np.float32


@each_function
def test_is_the_references(name, kwargs, formula):
    if not tf.__version__.startswith("1.15."):
        pytest.skip("tf.contrib is in TensorFlow 1.15 only")
    if kwargs.get("num_periods") == 2.5 and "zero_after" in kwargs:
        pytest.skip("the reference takes no fraction of a period then")
    from tensorflow.contrib.opt.python.training import sign_decay as theirs

    reference = getattr(theirs, f"get_{name}_decay_fn")(10, **kwargs)
    with tf.Graph().as_default(), tf.Session() as session:
        steps = [tf.constant(step, tf.int32) for step in STEPS]
        ours = session.run([get(name)(10, **kwargs)(step) for step in steps])
        expected = session.run([reference(step) for step in steps])
    np.testing.assert_allclose(ours, expected, atol=1e-7)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32])
@pytest.mark.parametrize("decay_steps", [10, 10.0, np.int64(10)])
def test_steps_may_be_of_different_types(dtype, decay_steps):
    decay = sign_decay.get_linear_decay_fn(decay_steps)
    assert decay(tf.constant(3, dtype)).numpy() == np.float32(0.7)
    assert decay(3).numpy() == np.float32(0.7)


def test_follows_a_variable():
    step = tf.Variable(0, dtype=tf.int64, use_resource=True)
    decay = sign_decay.get_linear_decay_fn(tf.constant(4))
    step.assign(3)
    assert decay(step).numpy() == 0.25


@pytest.mark.parametrize("name", ["linear", "cosine", "restart"])
def test_bad_input(name):
    with pytest.raises(ValueError, match=f"global_step is required for {name}_decay"):
        get(name)(10)(None)
    for wrong in (0, -1, None, "10", [1, 2]):
        with pytest.raises(ValueError, match="decay_steps must be"):
            get(name)(wrong)
    if name != "linear":
        with pytest.raises(ValueError, match="num_periods must be"):
            get(name)(10, num_periods=None)
        with pytest.raises(ValueError, match="zero_after must be"):
            get(name)(10, zero_after="1")

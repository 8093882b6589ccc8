"""Schedules against the equations in NumPy, in graphs, eager mode and tf.function."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt import schedules

STEPS = np.array([0, 1, 3, 5, 9, 10, 11, 30, 59, 60, 61, 1000])


def expected_poly(step, rate, decay_steps, end=0.0, power=2.0, start=0):
    t = np.clip((step - start) / decay_steps, 0.0, 1.0)
    return end + (rate - end) * (1.0 - t) ** power


def expected_warmup(step, rate, warmup_steps, initial=0.0):
    rising = initial + (rate - initial) * step / max(warmup_steps, 1)
    return np.where(step < warmup_steps, rising, rate)


def rates(schedule, mode, dtype=tf.int64):
    """The values of `schedule(global_step)` at STEPS, a float32 array."""
    if mode in ("ref", "resource"):
        with tf.Graph().as_default(), tf.Session() as sess:
            step = tf.get_variable(
                "step", [], dtype, trainable=False, use_resource=mode == "resource"
            )
            rate = schedule(step)
            assert rate.dtype == tf.float32 and rate.shape == []
            new_step = tf.placeholder(dtype, [])
            assign = tf.assign(step, new_step)
            values = []
            for value in STEPS:
                sess.run(assign, {new_step: value})
                values.append(sess.run(rate))
            return np.array(values)
    step = tf.Variable(0, dtype=dtype, trainable=False)
    rate = schedule(step)
    if mode == "function":
        rate = tf.function(rate)
    values = []
    for value in STEPS:
        step.assign(value)
        assert rate().dtype == tf.float32 and rate().shape == []
        values.append(rate().numpy())
    return np.array(values)


all_modes = pytest.mark.parametrize("mode", ["ref", "resource", "eager", "function"])


@all_modes
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=["int32", "int64"])
@pytest.mark.parametrize(
    "rate, decay_steps, options",
    [
        (29, 50, {}),
        (0.1, 60, {"power": 1.0}),
        (2.0, 50, {"end_learning_rate": 0.5, "power": 0.5, "start_step": 10}),
        (0.1, 1, {"start_step": 60}),
    ],
)
def test_poly_decay(mode, dtype, rate, decay_steps, options):
    actual = rates(
        lambda step: schedules.poly_decay(rate, step, decay_steps, **options),
        mode,
        dtype,
    )
    end, power, start = (
        options.get(name, default)
        for name, default in [
            ("end_learning_rate", 0.0),
            ("power", 2.0),
            ("start_step", 0),
        ]
    )
    expected = expected_poly(STEPS, rate, decay_steps, end, power, start)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_poly_decay_is_tensorflows():
    with tf.Graph().as_default(), tf.Session() as sess:
        step = tf.placeholder(tf.int64, [])
        ours = schedules.poly_decay(0.1, step, 60, 0.01, power=1.5)
        theirs = tf.train.polynomial_decay(0.1, step, 60, 0.01, power=1.5)
        for value in STEPS:
            a, b = sess.run([ours, theirs], {step: value})
            assert a == b


@all_modes
@pytest.mark.parametrize("warmup_steps", [0, 1, 10, 60])
@pytest.mark.parametrize("initial", [0.0, 0.1])
def test_gradual_warmup(mode, warmup_steps, initial):
    actual = rates(
        lambda step: schedules.gradual_warmup(1.6, step, warmup_steps, initial), mode
    )
    expected = expected_warmup(STEPS, 1.6, warmup_steps, initial)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    after = STEPS >= warmup_steps
    assert (actual[after] == np.float32(1.6)).all()


@all_modes
@pytest.mark.parametrize("start", [0, 10])
def test_all_three_together(mode, start):
    """The warm-up rises towards the decay's value at each step."""

    def schedule(step):
        rate = schedules.linear_scaling(0.1, 4096)
        rate = schedules.poly_decay(rate, step, 50, start_step=start)
        return schedules.gradual_warmup(rate, step, 10)

    expected = expected_warmup(STEPS, expected_poly(STEPS, 1.6, 50, start=start), 10)
    np.testing.assert_allclose(rates(schedule, mode), expected, rtol=1e-5, atol=1e-6)


@all_modes
def test_linear_scaling_of_a_schedule(mode):
    actual = rates(
        lambda step: schedules.linear_scaling(
            schedules.poly_decay(0.1, step, 60), 512, base_batch_size=128
        ),
        mode,
    )
    np.testing.assert_allclose(actual, expected_poly(STEPS, 0.4, 60), rtol=1e-5)


@all_modes
def test_a_callable_or_a_variable_as_learning_rate(mode):
    def schedule(step):
        base = tf.get_variable("base", initializer=0.1) if graph else tf.Variable(0.1)
        rate = schedules.linear_scaling(base, 512)
        return schedules.gradual_warmup(
            lambda: rate() if callable(rate) else rate, step, 10
        )

    graph = mode in ("ref", "resource")
    if graph:
        with tf.Graph().as_default(), tf.Session() as sess:
            rate = schedule(tf.constant(5))
            sess.run(tf.global_variables_initializer())
            np.testing.assert_allclose(sess.run(rate), 0.1, rtol=1e-6)
    else:
        actual = rates(schedule, mode)
        np.testing.assert_allclose(actual, expected_warmup(STEPS, 0.2, 10), rtol=1e-6)


def test_eager_schedules_read_a_variable_learning_rate_at_each_call():
    base, step = tf.Variable(1.0), tf.Variable(5)
    rate = schedules.gradual_warmup(schedules.linear_scaling(base, 512), step, 10)
    assert rate().numpy() == 1.0
    base.assign(3.0)
    assert rate().numpy() == 3.0


def test_linear_scaling_of_a_number_is_a_number():
    rate = schedules.linear_scaling(0.1, 8192)
    assert isinstance(rate, float) and rate == pytest.approx(3.2)
    assert schedules.linear_scaling(1, 64) == 0.25
    assert schedules.linear_scaling(1, np.int64(64), base_batch_size=32) == 2.0


def test_the_step_may_be_a_number():
    assert schedules.poly_decay(1.0, 5, 10)().numpy() == 0.25
    assert schedules.gradual_warmup(1.0, np.int64(5), 10)().numpy() == 0.5


def test_global_step_of_training():
    with tf.Graph().as_default(), tf.Session() as sess:
        step = tf.train.get_or_create_global_step()
        rate = schedules.gradual_warmup(0.5, step, 10)
        w = tf.get_variable("w", initializer=[1.0])
        train_op = contrib_opt.LARSOptimizer(rate).minimize(w * w, step)
        sess.run(tf.global_variables_initializer())
        for i in range(3):
            assert sess.run(rate) == pytest.approx(0.05 * i)
            sess.run(train_op)


def test_lars_calls_the_schedule_at_each_step():
    """Eager minimize and a tf.function take the steps of given rates."""

    def train(optimizer, w, step, run):
        def step_fn():
            optimizer.minimize(lambda: tf.reduce_sum(w * w), step, [w])

        step_fn = run(step_fn)
        for _ in range(6):
            step_fn()
        return w.numpy()

    def run_all(run):
        w = tf.Variable([1.0, 2.0])
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        rate = schedules.poly_decay(100.0, step, 4, start_step=2)
        rate = schedules.gradual_warmup(rate, step, 2)
        optimizer = contrib_opt.LARSOptimizer(rate)
        return train(optimizer, w, step, run)

    w = tf.Variable([1.0, 2.0])
    given = itertools.cycle([0.0, 50.0, 100.0, 56.25, 25.0, 6.25])
    optimizer = contrib_opt.LARSOptimizer(lambda: next(given))
    expected = train(optimizer, w, None, lambda f: f)

    np.testing.assert_allclose(run_all(lambda f: f), expected, rtol=1e-5)
    np.testing.assert_allclose(run_all(tf.function), expected, rtol=1e-5)
    if not tf.__version__.startswith("1."):
        compiled = run_all(lambda f: tf.function(f, jit_compile=True))
        np.testing.assert_allclose(compiled, expected, rtol=1e-5)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize(
    "call, message",
    [
        (lambda s: schedules.linear_scaling(0.1, 0), "batch_size must be 1.*got 0"),
        (lambda s: schedules.linear_scaling(0.1, 1, -4), "base_batch_size.*got -4"),
        (lambda s: schedules.linear_scaling(-1.0, 256), "learning_rate.*got -1.0"),
        (lambda s: schedules.linear_scaling("1", 256), "learning_rate.*got '1'"),
        (lambda s: schedules.poly_decay(-0.1, s, 9), "learning_rate.*got -0.1"),
        (lambda s: schedules.poly_decay(None, s, 9), "learning_rate.*got None"),
        (lambda s: schedules.poly_decay(0.1, None, 9), "global_step.*got None"),
        (lambda s: schedules.poly_decay(0.1, "7", 9), "global_step.*got '7'"),
        (lambda s: schedules.poly_decay(0.1, [7, 8], 9), r"global_step.*got \[7, 8\]"),
        (
            lambda s: schedules.poly_decay(0.1, tf.constant([7]), 9),
            "global_step must be a scalar",
        ),
        (
            lambda s: schedules.poly_decay(0.1, tf.constant(True), 9),
            "global_step must be a Variable, Tensor or number",
        ),
        (lambda s: schedules.poly_decay(0.1, s, 0), "decay_steps.*got 0"),
        (lambda s: schedules.poly_decay(0.1, s, -5), "decay_steps.*got -5"),
        (lambda s: schedules.poly_decay(0.1, s, 9, -0.5), "end_learning_rate.*-0.5"),
        (lambda s: schedules.poly_decay(0.1, s, 9, power=-2), "power.*got -2"),
        (lambda s: schedules.poly_decay(0.1, s, 9, start_step=-1), "start_step.*-1"),
        (lambda s: schedules.gradual_warmup(0.1, s, -1), "warmup_steps.*got -1"),
        (
            lambda s: schedules.gradual_warmup(0.1, s, lambda: 5),
            "warmup_steps must be a number, Tensor or Variable, got",
        ),
        (
            lambda s: schedules.gradual_warmup(0.1, s, [5, 6]),
            "warmup_steps must be a scalar",
        ),
        (lambda s: schedules.linear_scaling(0.1, "256"), "batch_size must be a number"),
        (
            lambda s: schedules.gradual_warmup(lambda step: 0.1, s, 5),
            "learning_rate must be callable without arguments",
        ),
        (lambda s: schedules.gradual_warmup(0.1, object(), 1), "global_step.*object"),
        (lambda s: schedules.gradual_warmup(float("nan"), s, 1), "learning_rate.*nan"),
        (
            lambda s: schedules.gradual_warmup(0.1, s, 1, -0.1),
            "initial_learning_rate.*got -0.1",
        ),
    ],
)
def test_bad_input(call, message, graph):
    if graph:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            with pytest.raises(ValueError, match=message):
                call(step)
    else:
        with pytest.raises(ValueError, match=message):
            call(tf.Variable(0, dtype=tf.int64))


@all_modes
def test_steps_and_batch_sizes_may_be_tensors(mode):
    def schedule(step):
        rate = schedules.linear_scaling(0.1, tf.constant(512), tf.constant(256))
        rate = schedules.poly_decay(rate, step, tf.constant(10), tf.constant(0.0))
        return schedules.gradual_warmup(rate, step, tf.constant(5))

    wanted = expected_warmup(STEPS, expected_poly(STEPS, 0.2, 10), 5)
    np.testing.assert_allclose(rates(schedule, mode), wanted, rtol=1e-6, atol=1e-9)

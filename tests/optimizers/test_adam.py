"""What is the Adam family's own: half types, rows, global steps, arguments."""

import inspect
import itertools
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers.adam import rounded_up
from contrib_opt.optimizers.adam_gs import power
from optimizers.runtimes import run_program

WITH_POWERS = [
    contrib_opt.AdaMaxOptimizer,
    contrib_opt.LazyAdamOptimizer,
    contrib_opt.NadamOptimizer,
]
WITH_GLOBAL_STEP = [contrib_opt.AdamGSOptimizer, contrib_opt.LazyAdamGSOptimizer]
LAZY = [
    contrib_opt.AdaMaxOptimizer,
    contrib_opt.LazyAdamOptimizer,
    contrib_opt.LazyAdamGSOptimizer,
]
HALVES = {"float16": 10, "bfloat16": 7}


def each(classes):
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


def variable(value, dtype="float32", name="w"):
    return tf.Variable(tf.constant(value, dtype), use_resource=True, name=name)


def rows_of(value, indices, dtype="float32"):
    return tf.IndexedSlices(tf.constant(value, dtype), tf.constant(indices))


@each(WITH_POWERS)
def test_is_an_adam_optimizer_with_its_signature(cls):
    assert issubclass(cls, tf.train.AdamOptimizer)
    name = "AdaMax" if cls is contrib_opt.AdaMaxOptimizer else "Adam"
    assert str(inspect.signature(cls)) == (
        "(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, "
        f"use_locking=False, name='{name}')"
    )
    assert cls().get_name() == name


@each(WITH_GLOBAL_STEP)
def test_global_step_is_the_first_argument(cls):
    assert issubclass(cls, contrib_opt.AdamGSOptimizer)
    assert not issubclass(cls, tf.train.AdamOptimizer)
    assert str(inspect.signature(cls)) == (
        "(global_step=0, learning_rate=0.001, beta1=0.9, beta2=0.999, "
        "epsilon=1e-08, use_locking=False, name='Adam')"
    )


@pytest.mark.parametrize("dtype", HALVES)
def test_rounded_up_is_the_next_number_of_the_type(dtype):
    kind = tf.as_dtype(dtype)
    bits, largest = HALVES[dtype], float(kind.max)
    exponents = np.arange(-14.0, 15.0)
    numbers = (2.0 ** exponents[:, None] * [1, 1.25, 2 - 2.0**-bits]).ravel()
    gaps = np.repeat(2.0 ** (exponents - bits), 3)
    x = np.concatenate([numbers, numbers + 0.01 * gaps, numbers + 0.99 * gaps])
    wanted = np.concatenate([numbers, numbers + gaps, numbers + gaps])
    x = np.concatenate([x, [0, largest, 1.001 * largest, np.inf]])
    wanted = np.concatenate([wanted, [0, largest, largest, largest]])
    found = rounded_up(tf.constant(x, tf.float32), kind).numpy()
    np.testing.assert_array_equal(found, wanted.astype(np.float32))
    if dtype == "float16":
        tiny = rounded_up(tf.constant([1e-12, 2.0**-24, 7e-8], tf.float32), kind)
        np.testing.assert_array_equal(tiny, [2.0**-24, 2.0**-24, 2.0**-23])


@each(WITH_POWERS + WITH_GLOBAL_STEP)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_types_take_no_step_of_any_size(cls, dtype, sparse):
    """Gradients of 0, ones whose square is 0 in float16, and ones of up to 60000."""
    gradients = np.array([[0.0, 1e-4, 5e-3, 6e4]] * 2)
    w = variable(np.ones([3, 4]), dtype)
    opt = cls(learning_rate=2.0**-6)
    for step in range(30):
        g = gradients if step < 15 else gradients * [0, 0, 1e-3, 1e-6]
        if not sparse:
            g = np.concatenate([g, np.zeros([1, 4])])
        g = rows_of(g, [0, 1], dtype) if sparse else tf.constant(g, dtype)
        before = tf.cast(w, tf.float64).numpy()
        opt.apply_gradients([(g, w)])
        after = tf.cast(w, tf.float64).numpy()
        assert np.isfinite(after).all()
        # Nadam's first step is 1.9 rates, and AdamGS's, left at step 1, up to 3.3.
        assert np.abs(after - before).max() < 4 * 2.0**-6
    assert np.array_equal(after[:, 0], [1, 1, 1])
    assert (after[:2, 1:] < 1).all()
    assert np.array_equal(after[2], [1, 1, 1, 1])


@each(LAZY)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_other_rows_do_not_change_and_are_not_read(cls, dtype):
    table = np.full([4, 2], np.nan)
    table[1:3] = 1.0
    w = variable(table, dtype)
    opt = cls(learning_rate=0.1)
    opt.apply_gradients([(rows_of(np.ones([2, 2]), [1, 2], dtype), w)])
    m = opt.get_slot(w, "m")
    m.assign([[np.nan] * 2, [0.5] * 2, [0.25] * 2, [np.nan] * 2])
    opt.apply_gradients([(rows_of(np.ones([2, 2]), [1, 1], dtype), w)])
    found, m = w.numpy().astype(np.float64), m.numpy().astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(table))
    # Row 1 had the gradient 1 + 1, row 2 none in the second step.
    np.testing.assert_allclose(m[1:3, 0], [0.9 * 0.5 + 0.1 * 2, 0.25], rtol=1e-3)
    assert found[1, 0] < found[2, 0] < 1


@each(LAZY)
def test_no_operation_is_as_large_as_the_table(cls):
    """What a sparse step computes has the size of the rows that it sees."""
    with tf.Graph().as_default() as graph:
        table = tf.get_variable("table", [1000, 8], use_resource=True)
        rows = tf.gather(table, [3, 5, 3])
        opt = cls()
        pairs = opt.compute_gradients(tf.reduce_sum(rows * rows))
        opt._create_slots([table])
        before = len(graph.get_operations())
        opt.apply_gradients(pairs)
        made = graph.get_operations()[before:]
    large = [
        op.name for op in made for t in op.outputs if t.shape.as_list()[:1] == [1000]
    ]
    assert not large


def test_adam_gs_takes_a_sparse_gradient_for_a_dense_one():
    random = np.random.RandomState(0)
    steps = random.randn(5, 2, 3)
    first, second = [variable(np.ones([4, 3]), "float64", n) for n in "ab"]
    opt = contrib_opt.AdamGSOptimizer(learning_rate=0.1)
    for step in steps:
        full = np.zeros([4, 3])
        full[[2, 0]] = step
        opt.apply_gradients(
            [
                (rows_of(step, [2, 0], "float64"), first),
                (tf.constant(full, tf.float64), second),
            ]
        )
    np.testing.assert_allclose(first.numpy(), second.numpy(), rtol=1e-14)
    np.testing.assert_array_equal(first.numpy()[1], [1, 1, 1])
    assert (first.numpy()[0] != 1).all()


def test_nadam_decays_the_moments_of_all_rows_and_moves_those_it_sees():
    w = variable(np.ones([3, 2]), "float64")
    opt = contrib_opt.NadamOptimizer(0.1, beta1=0.5, beta2=0.75, epsilon=0.125)
    opt.apply_gradients([(tf.ones([3, 2], tf.float64), w)])
    before = w.numpy()
    opt.apply_gradients([(rows_of([[2.0, 2.0]], [1], "float64"), w)])
    m, v = [opt.get_slot(w, name).numpy()[:, 0] for name in ("m", "v")]
    np.testing.assert_allclose(m, [0.25, 0.25 + 1, 0.25], rtol=1e-14)
    np.testing.assert_allclose(v, [0.1875, 0.1875 + 1, 0.1875], rtol=1e-14)
    rate = np.float32(0.1) * np.sqrt(1 - 0.75**2) / (1 - 0.5**2)
    step = rate * (0.5 * 1.25 + 1) / (np.sqrt(1.1875) + 0.125)
    np.testing.assert_allclose(before - w.numpy(), [[0] * 2, [step] * 2, [0] * 2])


def given_step(kind):
    """A global step, and how to move it one on."""
    if kind == "variable":
        step = tf.Variable(0, dtype=tf.int32, use_resource=True, trainable=False)
        return step, lambda: step.assign_add(1)
    counter = itertools.count(1)
    now = [0]
    return (lambda: now[0]), lambda: now.__setitem__(0, next(counter))


@each(WITH_GLOBAL_STEP)
@pytest.mark.parametrize("kind", ["variable", "callable"])
def test_global_step_counts_the_steps(cls, kind):
    """With a step that counts, it is Adam, here with the gradient 2 in each step."""
    step, advance = given_step(kind)
    w = variable([1.0], "float64")
    opt = cls(step, 0.25, epsilon=0.0)
    for done in range(1, 6):
        opt.apply_gradients([(tf.constant([2.0], tf.float64), w)])
        # The bias of both moments is corrected, up to the powers' float32.
        np.testing.assert_allclose(w.numpy(), [1 - 0.25 * done], atol=1e-4)
        advance()


@each(WITH_GLOBAL_STEP)
def test_without_a_global_step_each_step_is_the_first(cls):
    w = variable([1.0])
    opt = cls(learning_rate=0.25, beta1=0.5, beta2=0.75, epsilon=0.0)
    for _ in range(2):
        opt.apply_gradients([(tf.constant([2.0]), w)])
    # m = 1, 1.5; v = 1, 1.75; both corrected as in step 1.
    second = 0.25 * (1.5 / 0.5) / np.sqrt(1.75 / 0.25)
    np.testing.assert_allclose(w.numpy(), [1 - 0.25 - second], rtol=1e-6)


@each(WITH_GLOBAL_STEP)
def test_two_optimizers_of_one_global_step_make_no_powers(cls):
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        w, u = [tf.get_variable(name, [2], use_resource=False) for name in "wu"]
        losses = [tf.reduce_sum(v * v) for v in (w, u)]
        with tf.control_dependencies([cls(step).minimize(losses[0], var_list=[w])]):
            train = cls(step).minimize(losses[1], step, var_list=[u])
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(step) == 1
        names = sorted(v.name for v in tf.global_variables() if v is not step)
    assert names == ["u/Adam:0", "u/Adam_1:0", "u:0", "w/Adam:0", "w/Adam_1:0", "w:0"]


def test_power_is_exact_in_the_type_of_beta():
    for step in (1, 12, 1000, 10**6):
        found = power(tf.constant(0.999), tf.constant(step, tf.int64))
        assert found.dtype == tf.float32
        assert found.numpy() == np.float32(np.float64(np.float32(0.999)) ** step)
        found = power(tf.constant(0.999, tf.float64), tf.constant(step))
        np.testing.assert_allclose(found.numpy(), 0.999**step, rtol=1e-13)


@each(WITH_GLOBAL_STEP)
def test_betas_of_float64(cls):
    """For float64 weights they keep their precision: 1 - beta2 is not 6e-8 off."""
    w = variable([1.0], "float64")
    opt = cls(
        learning_rate=tf.constant(0.25, tf.float64),
        beta1=tf.constant(0.9, tf.float64),
        beta2=tf.constant(0.999, tf.float64),
        epsilon=0.0,
    )
    opt.apply_gradients([(tf.constant([2.0], tf.float64), w)])
    np.testing.assert_allclose(w.numpy(), [0.75], rtol=1e-13)


@each(WITH_POWERS)
def test_minimize_goes_on_from_a_checkpoint_of_tensorflows_adam(cls, tmp_path):
    """The names are those of `tf.train.AdamOptimizer`."""
    if cls is contrib_opt.AdaMaxOptimizer:
        pytest.skip("AdaMax has a name of its own")

    def build(optimizer):
        w = tf.get_variable("w", initializer=[1.0, -2.0])
        train = optimizer.minimize(tf.reduce_sum(w * w))
        return train, optimizer, w, tf.train.Saver()

    with tf.Graph().as_default(), tf.Session() as session:
        train, _, w, saver = build(tf.train.AdamOptimizer(0.1))
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "adam"), write_meta_graph=False)
        weights = session.run(w)
    with tf.Graph().as_default(), tf.Session() as session:
        train, optimizer, w, saver = build(cls(0.1))
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(w), weights)
        powers = {v.op.name: v for v in optimizer.variables()}
        np.testing.assert_allclose(session.run(powers["beta1_power"]), 0.81, rtol=1e-6)
        session.run(train)
        assert (np.abs(session.run(w)) < np.abs(weights)).all()


@each([contrib_opt.LazyAdamOptimizer, contrib_opt.NadamOptimizer])
def test_the_learning_rate_has_its_tensor_in_the_graph(cls):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        w = tf.get_variable("w", initializer=[1.0])
        cls(lambda: 0.125).minimize(tf.reduce_sum(w))
        found = graph.get_tensor_by_name("Adam/learning_rate:0")
        assert session.run(found) == 0.125


@each(WITH_POWERS + WITH_GLOBAL_STEP)
@pytest.mark.parametrize(
    "name, value, message",
    [
        ("learning_rate", "0.1", "learning_rate must be a number"),
        ("learning_rate", [0.1, 0.2], "learning_rate must be a scalar"),
        ("learning_rate", lambda step: 0.1, "learning_rate must be callable without"),
        ("beta1", -0.1, "beta1 must be 0 or more, got -0.1"),
        ("beta1", 1.0, "beta1 must be less than 1, got 1.0"),
        ("beta1", float("nan"), "beta1 must be 0 or more, got nan"),
        ("beta2", np.float32(1.5), "beta2 must be (less than|at most) 1, got .*1.5"),
        ("epsilon", -1e-8, "epsilon must be 0 or more"),
    ],
)
def test_bad_arguments_are_refused(cls, name, value, message):
    with pytest.raises(ValueError, match=message):
        cls(**{name: value})


@each(WITH_GLOBAL_STEP)
@pytest.mark.parametrize("value", ["1", -1, None, [1, 2]])
def test_a_bad_global_step_is_refused(cls, value):
    with pytest.raises(ValueError, match="global_step must be"):
        cls(value)


def test_a_decay_of_1_is_refused_where_it_divides_by_0():
    for value in (1, 1.0, tf.constant(1.0)):
        with pytest.raises(ValueError, match="beta2 must be less than 1"):
            contrib_opt.NadamOptimizer(beta2=value)
    # For AdaMax it is the largest gradient of all.
    w = variable([0.0])
    opt = contrib_opt.AdaMaxOptimizer(1.0, beta1=0.0, beta2=1.0, epsilon=0.0)
    for g in (4.0, 1.0, 2.0):
        opt.apply_gradients([(tf.constant([g]), w)])
    np.testing.assert_allclose(w.numpy(), [-(1 + 0.25 + 0.5)])


@each(WITH_POWERS)
def test_variables_under_a_strategy(cls):
    from mirrored import mirrored_strategy

    if len(tf.config.experimental.list_logical_devices("CPU")) < 2:
        pytest.skip("eager mode was started with one CPU")
    strategy = mirrored_strategy()
    with strategy.scope():
        w = variable([1.0, 2.0])
        opt = cls(0.1)
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2

    @tf.function
    def step():
        run(lambda: opt.apply_gradients([(tf.ones([2]), w)]))

    step()
    # Without the suffixes that keep names apart in one process.
    names = [re.sub(r"(_\d+)?:0$", "", v.name) for v in opt.variables()]
    name = opt.get_name()
    powers = ["beta1_power", "beta2_power"][: 1 if name == "AdaMax" else 2]
    assert [n.split("/")[-1] for n in names] == [*powers, name, name]


@pytest.mark.parametrize(
    "cls", [contrib_opt.AdamGSOptimizer, contrib_opt.LazyAdamGSOptimizer]
)
def test_a_learning_rate_in_the_place_of_global_step(cls):
    with pytest.raises(ValueError, match="write learning_rate=0.001"):
        cls(0.001)


def test_adamax_prints_nothing():
    program = """
import tensorflow.compat.v1 as tf
import contrib_opt
with tf.Graph().as_default():
    var = tf.get_variable("w", initializer=[1.0])
    contrib_opt.AdaMaxOptimizer(0.1).minimize(tf.reduce_sum(var))
"""
    assert "deprecated" not in "".join(run_program(program))

"""Bad input: a clear error, and no variable and no slot has changed."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from optimizers.runtimes import TF1, each_rule, make, make_variables

ERRORS = (ValueError, tf.errors.InvalidArgumentError)

# Gradients of the variable 'bias', of shape [2]; 'kernel' has a good one.
BAD = {
    "shape": lambda: tf.ones([3]),
    "scalar": lambda: tf.ones([]),
    "rank": lambda: tf.ones([1, 2]),
    "dtype": lambda: tf.ones([2], tf.float64),
    "index": lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([2])),
    "negative index": lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([-1])),
    "slice lengths": lambda: tf.IndexedSlices(tf.ones([3]), tf.constant([0, 1])),
    "slice indices": lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([0.0])),
    "slice dtype": lambda: tf.IndexedSlices(tf.ones([1], tf.float64), tf.constant([0])),
    "slice shape": lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])),
}
# What the message must say, besides the name of the variable.
SAYS = {
    "shape": "3",
    "scalar": r"\(\)|\[\]",
    "rank": "1, 2",
    "dtype": "float64",
    "index": "2",
    "negative index": "-1",
    "slice lengths": "3",
    "slice indices": "float32",
    "slice dtype": "float64",
    "slice shape": "2",
}
each_bad = pytest.mark.parametrize("bad", sorted(BAD))
each_order = pytest.mark.parametrize("bad_first", [True, False])


def pairs(variables, bad, bad_first=False):
    good = (tf.ones([3, 2]), variables["kernel"])
    wrong = (bad, variables["bias"])
    return [wrong, good] if bad_first else [good, wrong]


def eager_state(variables, optimizer):
    slots = [optimizer.get_slot(v, "momentum") for v in variables.values()]
    return [v.numpy() for v in list(variables.values()) + slots]


def one_good_step(variables, optimizer):
    optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables.values()])


@pytest.mark.parametrize("mode", ["eager", "function"])
@each_order
@each_bad
@each_rule
def test_bad_gradient_in_eager_mode(rule, bad, bad_first, mode):
    variables, optimizer = make_variables(), make(rule)
    one_good_step(variables, optimizer)
    before = eager_state(variables, optimizer)

    def step():
        optimizer.apply_gradients(pairs(variables, BAD[bad](), bad_first))

    with pytest.raises(ERRORS, match=f"(?s)bias.*({SAYS[bad]})"):
        (tf.function(step) if mode == "function" else step)()
    for was, now in zip(before, eager_state(variables, optimizer)):
        np.testing.assert_array_equal(was, now)


def unknown(value):
    """`value` without its static shape."""
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(unknown(value.values), unknown(value.indices))
    return tf.placeholder_with_default(value, shape=None)


@each_order
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("use_resource", [True, False])
@each_bad
@each_rule
def test_bad_gradient_in_a_session(rule, bad, use_resource, static, bad_first):
    with tf.Graph().as_default(), tf.Session() as session:
        variables, optimizer = make_variables(use_resource), make(rule)
        one_good_step(variables, optimizer)
        slots = [optimizer.get_slot(v, "momentum") for v in variables.values()]
        state = list(variables.values()) + slots
        session.run(tf.global_variables_initializer())
        before = session.run(state)
        gradient = BAD[bad]()
        with pytest.raises(ERRORS, match="bias"):
            for _ in range(5):
                session.run(
                    optimizer.apply_gradients(
                        pairs(
                            variables,
                            gradient if static else unknown(gradient),
                            bad_first,
                        )
                    )
                )
        for was, now in zip(before, session.run(state)):
            np.testing.assert_array_equal(was, now)


@each_order
@pytest.mark.parametrize("bad", ["shape", "rank", "index", "slice shape"])
def test_bad_gradient_of_unknown_shape_in_a_function(bad, bad_first):
    variables, optimizer = make_variables(), make("lars")
    one_good_step(variables, optimizer)
    before = eager_state(variables, optimizer)
    signature = [tf.TensorSpec(None), tf.TensorSpec(None, tf.int32)]

    @tf.function(input_signature=signature)
    def step(values, indices):
        sparse = "index" in bad or "slice" in bad
        gradient = tf.IndexedSlices(values, indices) if sparse else values
        optimizer.apply_gradients(pairs(variables, gradient, bad_first))

    value = BAD[bad]()
    with pytest.raises(ERRORS, match="bias"):
        step(getattr(value, "values", value), getattr(value, "indices", 0))
    for was, now in zip(before, eager_state(variables, optimizer)):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("static", [True, False])
@each_order
def test_bad_gradient_of_a_variable_of_unknown_shape(static, use_resource, bad_first):
    with tf.Graph().as_default(), tf.Session() as session:
        variables, optimizer = make_variables(use_resource), make("lars")
        initial = tf.placeholder_with_default(tf.ones([2]), shape=None)
        variables["bias"] = tf.Variable(
            initial,
            validate_shape=False,
            use_resource=use_resource,
            name="unknown_bias",
        )
        gradient = tf.ones([1]) if static else unknown(tf.ones([1]))
        train = optimizer.apply_gradients(pairs(variables, gradient, bad_first))
        slots = [optimizer.get_slot(v, "momentum") for v in variables.values()]
        for part in list(variables.values()) + slots:
            session.run(part.initializer)
        state = list(variables.values()) + slots
        before = session.run(state)
        for _ in range(5):
            with pytest.raises(ERRORS, match="unknown_bias"):
                session.run(train)
        for was, now in zip(before, session.run(state)):
            np.testing.assert_array_equal(was, now)


@pytest.mark.skipif(TF1, reason="TensorFlow 1.15 has no Variable(shape=)")
@each_order
def test_bad_gradient_of_an_eager_variable_of_unknown_shape(bad_first):
    variables, optimizer = make_variables(), make("lars")
    variables["bias"] = tf.Variable(
        tf.ones([2]), shape=tf.TensorShape(None), name="unknown_bias", use_resource=True
    )
    good = tf.ones([2])
    optimizer.apply_gradients(pairs(variables, good))
    before = eager_state(variables, optimizer)
    with pytest.raises(ERRORS, match="unknown_bias"):
        optimizer.apply_gradients(pairs(variables, tf.ones([1]), bad_first))
    for was, now in zip(before, eager_state(variables, optimizer)):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("graph", [True, False])
@each_rule
def test_no_gradient_for_any_variable(rule, graph):
    def check():
        variables, optimizer = make_variables(), make(rule)
        with pytest.raises(ValueError, match="(?s)No gradients.*kernel"):
            optimizer.apply_gradients([(None, v) for v in variables.values()])
        with pytest.raises(ValueError, match="No gradients"):
            loss = tf.constant(1.0)
            optimizer.minimize(
                loss if graph else lambda: loss, var_list=list(variables.values())
            )
        with pytest.raises(ValueError, match="No"):
            optimizer.apply_gradients([])

    if graph:
        with tf.Graph().as_default():
            check()
    else:
        check()


class ArrayLike:
    """As a pandas Series or an array of another framework."""

    def __init__(self, size):
        self.size = size

    def __array__(self, dtype=None, copy=None):
        return np.ones(self.size, dtype or np.float32)


@pytest.mark.parametrize(
    "gradient, error",
    [
        pytest.param(
            ArrayLike(3),
            "shape",
            marks=pytest.mark.skipif(TF1, reason="TensorFlow 1.15 refuses the type"),
        ),
        (range(2), "dtype int32"),
        ("abc", "dtype string"),
        (np.ones([3], np.float32), "shape"),
        (np.ones([2]), "dtype float64"),
        ([1.0, 1.0, 1.0], "shape"),
        (tf.Variable([1.0, 1.0, 1.0], use_resource=True), "shape"),
        (1.0, "shape"),
    ],
    ids=[
        "array-like",
        "range",
        "string",
        "array",
        "float64 array",
        "list",
        "variable",
        "number",
    ],
)
def test_bad_gradient_of_another_kind(gradient, error):
    variables, optimizer = make_variables(), make("lars")
    before = variables["kernel"].numpy()
    with pytest.raises(ValueError, match=f"gradient of bias.* has {error}"):
        optimizer.apply_gradients(pairs(variables, gradient))
    np.testing.assert_array_equal(variables["kernel"].numpy(), before)


def test_gradient_given_as_an_array():
    variables, optimizer = make_variables(), make("lars", weight_decay=0.0)
    other, of_tensors = make_variables(), make("lars", weight_decay=0.0)
    optimizer.apply_gradients(pairs(variables, np.array([1.0, 2.0], np.float32)))
    of_tensors.apply_gradients(pairs(other, tf.constant([1.0, 2.0])))
    np.testing.assert_array_equal(variables["bias"].numpy(), other["bias"].numpy())


def test_loss_that_is_not_callable_in_eager_mode():
    variables, optimizer = make_variables(), make("lars")
    with pytest.raises((RuntimeError, ValueError), match="function"):
        optimizer.minimize(tf.constant(1.0), var_list=list(variables.values()))


def test_none_among_the_gradients_leaves_its_variable():
    variables, optimizer = make_variables(), make("lars")
    before = variables["bias"].numpy()
    optimizer.apply_gradients(pairs(variables, None))
    np.testing.assert_array_equal(variables["bias"].numpy(), before)


@each_rule
def test_callable_that_raises_leaves_everything(rule):
    variables = make_variables()
    fail = [False]

    def rate():
        if fail[0]:
            raise ZeroDivisionError("rate")
        return 0.5

    optimizer = make(rule, learning_rate=rate)
    one_good_step(variables, optimizer)
    before = eager_state(variables, optimizer)
    fail[0] = True
    with pytest.raises(ZeroDivisionError):
        one_good_step(variables, optimizer)
    for was, now in zip(before, eager_state(variables, optimizer)):
        np.testing.assert_array_equal(was, now)
    fail[0] = False
    one_good_step(variables, optimizer)
    assert (variables["bias"].numpy() != before[1]).all()

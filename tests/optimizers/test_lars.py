"""What is LARS's own: the pair of compute_lr, trust_ratio, arguments, half types."""

import inspect

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt import tf114
from contrib_opt.optimizers.lars import layer_trust_ratio

BOTH = pytest.mark.parametrize(
    "cls", [contrib_opt.LARSOptimizer, tf114.LARSOptimizer], ids=["1.15", "1.14"]
)

W = np.array([[3.0, 0.0], [0.0, 4.0]])  # norm 5
G = np.array([[0.0, 6.0], [8.0, 0.0]])  # norm 10
HYPER = {"weight_decay": 0.1, "eeta": 0.02, "epsilon": 0.5}
TRUST = 0.02 * 5 / (10 + 0.1 * 5 + 0.5)


def variable(value, dtype="float32", name="w"):
    return tf.Variable(tf.constant(value, dtype), use_resource=True, name=name)


def test_compute_lr_returns_the_scaled_rate_and_the_decayed_gradient():
    opt = contrib_opt.LARSOptimizer(2.0, **HYPER)
    w, g = variable(W, "float64"), tf.constant(G, tf.float64)
    scaled_lr, grad = opt.compute_lr(g, w)
    assert scaled_lr.dtype == grad.dtype == tf.float64
    np.testing.assert_allclose(scaled_lr, 2.0 * TRUST, rtol=1e-14)
    np.testing.assert_allclose(grad, G + 0.1 * W, rtol=1e-14)


def test_compute_lr_of_1_14_returns_the_rate_alone():
    opt = tf114.LARSOptimizer(2.0, **HYPER)
    scaled_lr = opt.compute_lr(tf.constant(G, tf.float64), variable(W, "float64"))
    np.testing.assert_allclose(scaled_lr, 2.0 * TRUST, rtol=1e-14)


def test_compute_lr_of_a_skipped_variable():
    w, g = variable(W, name="conv/bias"), tf.constant(G, tf.float32)
    scaled_lr, grad = contrib_opt.LARSOptimizer(2.0, skip_list=["bias"]).compute_lr(
        g, w
    )
    np.testing.assert_array_equal(scaled_lr, 2.0)
    np.testing.assert_array_equal(grad, G)
    scaled_lr = tf114.LARSOptimizer(2.0, skip_list=["bias"]).compute_lr(g, w)
    np.testing.assert_array_equal(scaled_lr, 2.0)


class PerVariable(contrib_opt.LARSOptimizer):
    """LARS without batches, since a subclass may change what `compute_lr` returns."""

    def compute_lr(self, grad, var):
        return super().compute_lr(grad, var)


@pytest.mark.parametrize(
    "cls", [contrib_opt.LARSOptimizer, PerVariable, tf114.LARSOptimizer]
)
def test_tensorflow_adds_in_the_order_written(cls):
    """Its graph optimizer makes AddN of longer sums, in any order.

    Then two replicas with the same gradient differ in the last bit, now and then.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        w, g = variable(W), tf.placeholder(tf.float32, W.shape)
        train_op = cls(2.0, **HYPER).apply_gradients([(g, w)])
        session.run(tf.global_variables_initializer())
        made = tf.RunMetadata()
        options = tf.RunOptions(output_partition_graphs=True)
        session.run(train_op, {g: G}, options, made)
    run = [node.op for graph in made.partition_graphs for node in graph.node]
    assert "L2Loss" in run
    assert "AddN" not in run


def test_an_overridden_compute_lr_decides_the_step():
    """Programs of the time subclassed LARSOptimizer to clip its trust ratio."""

    class Clipped(contrib_opt.LARSOptimizer):
        def compute_lr(self, grad, var):
            scaled_lr, grad = super().compute_lr(grad, var)
            return tf.minimum(scaled_lr, 1e-3), grad

    w = variable(W)
    Clipped(2.0, **HYPER).apply_gradients([(tf.constant(G, tf.float32), w)])
    np.testing.assert_allclose(w.numpy(), W - 1e-3 * (G + 0.1 * W), rtol=1e-6)


@BOTH
def test_trust_ratio(cls):
    opt = cls(2.0, skip_list=["bias"], **HYPER)
    g = tf.constant(G, tf.float32)
    np.testing.assert_allclose(opt.trust_ratio(g, variable(W)), TRUST, rtol=1e-6)
    rows = tf.IndexedSlices(g, tf.constant([0, 1]))
    assert opt.trust_ratio(rows, variable(W)).numpy() == 1
    assert opt.trust_ratio(g, variable(W, name="conv/bias")).numpy() == 1
    assert opt.trust_ratio(0 * g, variable(W)).numpy() == 1
    assert opt.trust_ratio(g, variable(0 * W)).numpy() == 1


@BOTH
def test_trust_ratio_in_a_summary(cls):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=tf.constant(W, tf.float32))
        opt = cls(2.0, **HYPER)
        (pair,) = opt.compute_gradients(tf.reduce_sum(w * G.astype(np.float32)))
        tf.summary.scalar("trust_ratio", opt.trust_ratio(*pair))
        session.run(tf.global_variables_initializer())
        summary = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    np.testing.assert_allclose(summary.value[0].simple_value, TRUST, rtol=1e-6)


def test_the_rule_needs_no_optimizer():
    ratio = layer_trust_ratio(tf.constant(5.0), tf.constant(10.0), 0.1, 0.02, 0.5)
    np.testing.assert_allclose(ratio, TRUST, rtol=1e-6)


@BOTH
@pytest.mark.parametrize("name", ["momentum", "weight_decay", "eeta", "epsilon"])
@pytest.mark.parametrize("value", [-0.5, float("nan"), np.float32(-1), -1])
def test_negative_hyperparameters_are_refused(cls, name, value):
    with pytest.raises(ValueError, match=f"{name} must be 0 or more, got .*{value}"):
        cls(0.1, **{name: value})
    with pytest.raises(ValueError, match=f"{name} must be 0 or more"):
        cls(0.1, **{name: tf.constant(value, tf.float32)})


@BOTH
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", ["learning_rate", "momentum", "weight_decay"])
@pytest.mark.parametrize(
    "value",
    [None, "0.1", {}, object(), 1j, (), lambda: tf.constant("0.1")],
    ids=["None", "str", "dict", "object", "complex", "tuple", "string_tensor"],
)
def test_hyperparameters_that_are_no_numbers_are_refused(cls, value, name, graph):
    with tf.Graph().as_default() if graph else tf.init_scope():
        value = value() if callable(value) else value
        with pytest.raises(ValueError, match=f"{name} must be a "):
            cls(**dict({"learning_rate": 0.1}, **{name: value}))


@BOTH
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", ["learning_rate", "momentum"])
@pytest.mark.parametrize(
    "make_value",
    [lambda: [0.1, 0.2], lambda: np.ones(2), lambda: tf.constant([0.1, 0.2])],
    ids=["list", "array", "tensor"],
)
def test_hyperparameters_are_scalars(cls, make_value, name, graph):
    with tf.Graph().as_default() if graph else tf.init_scope():
        with pytest.raises(ValueError, match=f"{name} must be a scalar"):
            cls(**dict({"learning_rate": 0.1}, **{name: make_value()}))


def test_an_array_is_compared_in_a_graph_as_well():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="momentum must be 0 or more"):
            contrib_opt.LARSOptimizer(0.1, momentum=np.array(-0.1))


@BOTH
def test_a_learning_rate_of_one_element_is_a_scalar(cls):
    """1.15 took it, as long as each gradient was dense."""
    steps = []
    for rate in (0.5, tf.constant([0.5])):
        w, scalar = variable(W), variable(1.0)
        cls(rate).apply_gradients([(tf.ones_like(w), w), (tf.ones([]), scalar)])
        steps.append(w.numpy())
    np.testing.assert_array_equal(*steps)


@BOTH
@pytest.mark.parametrize("name", ["learning_rate", "momentum"])
def test_a_callable_that_takes_the_step_is_refused_with_a_hint(cls, name):
    hint = f"{name} must be callable without arguments.*{name}=lambda: schedule"
    with pytest.raises(ValueError, match=hint):
        cls(**dict({"learning_rate": 0.1}, **{name: lambda step: 0.1}))


@BOTH
def test_skip_list_given_as_a_string_is_refused(cls):
    with pytest.raises(ValueError, match=r"skip_list .* 'bias'; write \['bias'\]"):
        cls(0.1, skip_list="bias")


@BOTH
@pytest.mark.parametrize("value", [3, [3], [None], [b"bias"]])
def test_skip_list_without_strings_is_refused(cls, value):
    with pytest.raises(ValueError, match="skip_list must be a list of strings, got"):
        cls(0.1, skip_list=value)


def test_trust_ratio_without_a_gradient_is_refused():
    with pytest.raises(ValueError, match="w.* has no gradient"):
        contrib_opt.LARSOptimizer(0.1).trust_ratio(None, variable(W))


@BOTH
def test_a_loss_that_is_no_function_is_refused_in_eager_mode(cls):
    w = variable(W)
    with pytest.raises(RuntimeError, match="`loss` .* should be a function"):
        cls(0.1).minimize(tf.reduce_sum(w * w), var_list=[w])


@BOTH
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_norms_do_not_overflow(cls, dtype):
    """300 x 300 fours: the sum of squares is 1.44e6, float16 ends at 65504."""
    w = variable(np.full([300, 300], 4.0), dtype)
    g = tf.constant(np.full([300, 300], 2.0), dtype)
    opt = cls(1.0, eeta=0.1, weight_decay=0.0)
    np.testing.assert_allclose(opt.trust_ratio(g, w), 0.2, rtol=1e-5)
    opt.apply_gradients([(g, w)])
    np.testing.assert_allclose(
        tf.cast(w, tf.float32).numpy(), np.full([300, 300], 3.6), rtol=4e-3
    )


@BOTH
def test_each_partition_has_a_norm_of_its_own(cls):
    with tf.Graph().as_default(), tf.Session() as session:
        whole = tf.get_variable(
            "w",
            initializer=tf.constant(W, tf.float32),
            partitioner=tf.fixed_size_partitioner(2),
        )
        opt = cls(1.0, **HYPER)
        pairs = opt.compute_gradients(
            tf.reduce_sum(tf.convert_to_tensor(whole) * G.astype(np.float32))
        )
        ratios = [opt.trust_ratio(grad, var) for grad, var in pairs]
        opt.apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        expected = [0.02 * 3 / (6 + 0.3 + 0.5), 0.02 * 4 / (8 + 0.4 + 0.5)]
        np.testing.assert_allclose(session.run(ratios), expected, rtol=1e-6)
        assert [v.name for v in opt.variables()] == [
            "w/part_0/LARSOptimizer:0",
            "w/part_1/LARSOptimizer:0",
        ]


def test_signature_is_that_of_1_15():
    parameters = inspect.signature(contrib_opt.LARSOptimizer.__init__).parameters
    assert {name: p.default for name, p in parameters.items() if name != "self"} == {
        "learning_rate": inspect.Parameter.empty,
        "momentum": 0.9,
        "weight_decay": 0.0001,
        "eeta": 0.001,
        "epsilon": 0.0,
        "name": "LARSOptimizer",
        "skip_list": None,
        "use_nesterov": False,
    }
    assert (
        contrib_opt.LARSOptimizer.GATE_NONE,
        contrib_opt.LARSOptimizer.GATE_OP,
        contrib_opt.LARSOptimizer.GATE_GRAPH,
    ) == (0, 1, 2)

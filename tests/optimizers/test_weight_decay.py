"""What is special to decoupled weight decay: its order, and which variables decay."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from optimizers import problems
from optimizers.problems import LINEAR, LOOKUP, STEPS, EagerRun, GraphRun, MirroredRun

extend = contrib_opt.extend_with_decoupled_weight_decay
RATE, DECAY = 0.5, 0.25

each_kind = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "res"])
each_gate = pytest.mark.parametrize("gate", range(3), ids=["none", "op", "graph"])


def sgdw(weight_decay=DECAY):
    return extend(tf.train.GradientDescentOptimizer)(weight_decay, RATE)


# ------------------------------------------------------------------ the order


def numpy_chain(steps):
    """Gradient descent on loss = |a * b * c| of positive a, b, c, with decay first."""
    weights = np.array([1.0, 2.0, 3.0])
    for _ in range(steps):
        gradients = weights.prod() / weights
        weights = weights - 0.1 * weights - 0.01 * gradients
    return weights


@each_kind
@each_gate
def test_every_gradient_comes_from_the_weights_before_the_decay(use_resource, gate):
    """In a graph that reads each weight for the gradients of the others."""
    config = tf.ConfigProto(
        inter_op_parallelism_threads=8, use_per_session_threads=True
    )
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        size = 20000  # so that the reads take a while
        weights = [
            tf.get_variable(
                name,
                initializer=tf.fill([size], np.float32(value)),
                use_resource=use_resource,
            )
            for name, value in zip("abc", (1.0, 2.0, 3.0))
        ]
        product = weights[0]
        for w in weights[1:]:
            product = product * w
        optimizer = extend(tf.train.GradientDescentOptimizer)(0.1, 0.01)
        train_op = optimizer.minimize(tf.reduce_sum(product), gate_gradients=gate)
        session.run(tf.global_variables_initializer())
        for _ in range(10):
            session.run(train_op)
        found = session.run(weights)
    for values, expected in zip(found, numpy_chain(10)):
        np.testing.assert_allclose(values, np.full(size, expected), rtol=1e-5)


@each_kind
def test_a_failed_gradient_changes_nothing(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        pair = [
            tf.get_variable(name, initializer=[3.0], use_resource=use_resource)
            for name in ("a", "b")
        ]
        with tf.control_dependencies([tf.debugging.Assert(False, ["no gradient"])]):
            failing = tf.ones([1])
        train_op = sgdw().apply_gradients([(tf.ones([1]), pair[0]), (failing, pair[1])])
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="no gradient"):
            session.run(train_op)
        np.testing.assert_array_equal(session.run(pair), [[3.0], [3.0]])


class ReadsTheWeights(tf.train.Optimizer):
    """A user's rule that depends on the weights: w <- w - w * g."""

    def __init__(self, name="ReadsTheWeights"):
        super().__init__(False, name)

    def _apply_dense(self, grad, var):
        return tf.assign_sub(var, var.read_value() * grad)

    _resource_apply_dense = _apply_dense


RUNS = {
    "ref": (GraphRun, {"use_resource": False}),
    "resource": (GraphRun, {}),
    "eager": (EagerRun, {}),
    "function": (EagerRun, {"compiled": True}),
    "mirrored": (MirroredRun, {}),
}
each_runtime = pytest.mark.parametrize("runtime", RUNS)


def run_in(runtime, problem, make):
    kind, options = RUNS[runtime]
    return kind(problem, make, **options)


def values_of(run):
    """The trained variables, by name."""
    if isinstance(run, GraphRun):
        with run.graph.as_default():
            return run.session.run(dict(run.variables))
    return {
        name: (var.values[1] if isinstance(run, MirroredRun) else var).numpy()
        for name, var in run.variables.items()
    }


@each_runtime
def test_a_rule_that_reads_the_weights_reads_them_decayed(runtime):
    run = run_in(runtime, LINEAR, lambda: extend(ReadsTheWeights)(0.5))
    run.train([0])
    found = values_of(run)
    for name, w in LINEAR.initial.items():
        expected = 0.5 * w * (1.0 - LINEAR.inputs[name][0])
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------ what decays


def numpy_step(problem, decayed):
    return {
        name: w * (1 - DECAY * (name in decayed)) - RATE * problem.inputs[name][0]
        for name, w in problem.initial.items()
    }


@each_runtime
@pytest.mark.parametrize(
    "decayed",
    [["layer/kernel"], ["layer/bias", "head/kernel"], [], None],
    ids=["one", "two", "none", "all"],
)
@pytest.mark.parametrize("method", ["minimize", "apply_gradients"])
def test_decay_var_list(runtime, decayed, method):
    class Chosen(extend(tf.train.GradientDescentOptimizer)):
        """Decays the variables that the test is about."""

        def minimize(self, loss, global_step=None, var_list=None):
            chosen = None if decayed is None else [variables[n] for n in decayed]
            if method == "minimize":
                return super().minimize(
                    loss, global_step, var_list, decay_var_list=chosen
                )
            gradients = self.compute_gradients(loss, var_list)
            return self.apply_gradients(gradients, global_step, decay_var_list=chosen)

    def make():
        variables.update(problems.variables())
        return Chosen(DECAY, RATE)

    variables = {}
    run = run_in(runtime, LINEAR, make)
    run.train([0])
    everything = list(LINEAR.initial)
    expected = numpy_step(LINEAR, everything if decayed is None else decayed)
    found = values_of(run)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def test_decay_var_list_holds_for_its_call_only():
    w = tf.Variable([4.0], use_resource=True)
    optimizer = sgdw()
    optimizer.minimize(lambda: 0.0 * w, var_list=[w], decay_var_list=[])
    np.testing.assert_allclose(w.numpy(), [4.0])
    optimizer.minimize(lambda: 0.0 * w, var_list=[w])
    np.testing.assert_allclose(w.numpy(), [3.0])


@each_kind
def test_decay_var_list_may_name_a_partitioned_variable(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope(
            "v",
            partitioner=tf.fixed_size_partitioner(2),
            initializer=tf.ones_initializer(),
            use_resource=use_resource,
        ):
            tables = [tf.get_variable(name, [4, 1]) for name in ("a", "b")]
        loss = tf.add_n([tf.reduce_sum(tf.convert_to_tensor(t)) for t in tables])
        train_op = sgdw().minimize(loss, decay_var_list=[tables[0]])
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        a, b = session.run([tf.convert_to_tensor(t) for t in tables])
    np.testing.assert_allclose(a, np.full([4, 1], 0.25))
    np.testing.assert_allclose(b, np.full([4, 1], 0.5))


BASES = {
    "GradientDescent": lambda: sgdw(),
    "Momentum": lambda: contrib_opt.MomentumWOptimizer(DECAY, RATE, 0.0),
    "LARS": lambda: extend(contrib_opt.LARSOptimizer)(DECAY, RATE, momentum=0.0),
}


@each_runtime
@pytest.mark.parametrize("base", BASES)
def test_a_sparse_gradient_decays_its_rows_once(runtime, base):
    run = run_in(runtime, LOOKUP, BASES[base])
    run.train([0])
    table = LOOKUP.initial["embedding/table"].copy()
    ids, rows = LOOKUP.inputs["ids"][0], LOOKUP.inputs["rows"][0]
    assert len(set(ids)) < len(ids)
    table[list(set(ids))] *= 1 - DECAY
    np.subtract.at(table, ids, RATE * rows)
    found = values_of(run)["embedding/table"]
    np.testing.assert_allclose(found, table, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("runtime", ["ref", "resource", "eager"])
def test_over_lars_both_decays_hold(runtime):
    """The trust ratio is of the decayed weights; LARS's own decay adds to gradients."""
    run = run_in(
        runtime,
        LINEAR,
        lambda: extend(contrib_opt.LARSOptimizer)(DECAY, RATE, 0.9, 0.01, 0.1),
    )
    run.train([0])
    found = values_of(run)
    for name, w in LINEAR.initial.items():
        g, w = LINEAR.inputs[name][0], w * (1 - DECAY)
        norm_w, norm_g = np.linalg.norm(w), np.linalg.norm(g)
        trust = 0.1 * norm_w / (norm_g + 0.01 * norm_w)
        expected = w - RATE * trust * (g + 0.01 * w)
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------ classes, errors


def test_classes_are_what_they_were():
    adamw, momentumw = contrib_opt.AdamWOptimizer, contrib_opt.MomentumWOptimizer
    assert issubclass(adamw, tf.train.AdamOptimizer)
    assert issubclass(momentumw, tf.train.MomentumOptimizer)
    extended = extend(tf.train.AdagradOptimizer)
    assert issubclass(extended, tf.train.AdagradOptimizer)
    for cls in (adamw, momentumw, extended):
        assert issubclass(cls, contrib_opt.DecoupledWeightDecayExtension)
    by_hand = type(
        "Mine",
        (contrib_opt.DecoupledWeightDecayExtension, tf.train.FtrlOptimizer),
        {},
    )
    assert by_hand(weight_decay=0.1, learning_rate=0.1).get_name() == "Ftrl"


@pytest.mark.parametrize("base", ["AdamOptimizer", "MomentumOptimizer"])
def test_extended_classes_do_what_the_named_ones_do(base):
    kwargs = {} if base == "AdamOptimizer" else {"momentum": 0.9}
    named = base.replace("Optimizer", "WOptimizer")

    def train(optimizer_class):
        run = EagerRun(
            LOOKUP, lambda: optimizer_class(0.1, learning_rate=0.1, **kwargs)
        )
        run.train(range(STEPS))
        return values_of(run)

    found = train(extend(getattr(tf.train, base)))
    expected = train(getattr(contrib_opt, named))
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)


@pytest.mark.parametrize(
    "weight_decay, message",
    [
        (-0.1, "weight_decay must be 0 or more"),
        (float("nan"), "weight_decay must be 0 or more"),
        ("0.1", "weight_decay must be a number"),
        ([0.1, 0.2], "weight_decay must be a scalar"),
        (lambda step: 0.1, "weight_decay must be callable without arguments"),
    ],
)
def test_bad_weight_decay(weight_decay, message):
    for make in (
        lambda: contrib_opt.AdamWOptimizer(weight_decay),
        lambda: contrib_opt.MomentumWOptimizer(weight_decay, 0.1, 0.9),
        lambda: sgdw(weight_decay),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_bad_arguments_of_the_base_rules():
    with pytest.raises(ValueError, match="beta1 must be less than 1"):
        contrib_opt.AdamWOptimizer(0.1, beta1=1.0)
    with pytest.raises(ValueError, match="momentum must be 0 or more"):
        contrib_opt.MomentumWOptimizer(0.1, 0.1, -0.9)
    with pytest.raises(TypeError, match="base_optimizer must be a class derived from"):
        extend(tf.train.AdamOptimizer())


@pytest.mark.parametrize("wrong", ["layer/kernel", ["layer/kernel"], 3, [None]])
def test_bad_decay_var_list(wrong):
    w = tf.Variable([4.0], use_resource=True)
    with pytest.raises(TypeError, match="decay_var_list must be a list of variables"):
        sgdw().minimize(lambda: 1.0 * w, var_list=[w], decay_var_list=wrong)
    with pytest.raises(TypeError, match="decay_var_list must be a list of variables"):
        sgdw().minimize(lambda: 1.0 * w, var_list=[w], decay_var_list=w)
    np.testing.assert_array_equal(w.numpy(), [4.0])


# With arguments that every constructor takes; weights start at 1, the gradient is 1.
CLASSES = {
    "Adadelta": lambda: (tf.train.AdadeltaOptimizer, {"learning_rate": 0.1}),
    "Adagrad": lambda: (tf.train.AdagradOptimizer, {"learning_rate": 0.1}),
    "AdagradDA": lambda: (
        tf.train.AdagradDAOptimizer,
        {"learning_rate": 0.1, "global_step": tf.train.get_or_create_global_step()},
    ),
    "Adam": lambda: (tf.train.AdamOptimizer, {}),
    "Ftrl": lambda: (tf.train.FtrlOptimizer, {"learning_rate": 0.1}),
    "GradientDescent": lambda: (
        tf.train.GradientDescentOptimizer,
        {"learning_rate": 0.1},
    ),
    "Momentum": lambda: (
        tf.train.MomentumOptimizer,
        {"learning_rate": 0.1, "momentum": 0.9},
    ),
    "ProximalAdagrad": lambda: (
        tf.train.ProximalAdagradOptimizer,
        {"learning_rate": 0.1},
    ),
    "ProximalGradientDescent": lambda: (
        tf.train.ProximalGradientDescentOptimizer,
        {"learning_rate": 0.1},
    ),
    "RMSProp": lambda: (tf.train.RMSPropOptimizer, {"learning_rate": 0.1}),
    "AdaMax": lambda: (contrib_opt.AdaMaxOptimizer, {}),
    "AdamGS": lambda: (contrib_opt.AdamGSOptimizer, {}),
    "AddSign": lambda: (contrib_opt.AddSignOptimizer, {}),
    "GGT": lambda: (contrib_opt.GGTOptimizer, {}),
    "LARS": lambda: (contrib_opt.LARSOptimizer, {"learning_rate": 0.1}),
    "LazyAdam": lambda: (contrib_opt.LazyAdamOptimizer, {}),
    "LazyAdamGS": lambda: (contrib_opt.LazyAdamGSOptimizer, {}),
    "Nadam": lambda: (contrib_opt.NadamOptimizer, {}),
    "PowerSign": lambda: (contrib_opt.PowerSignOptimizer, {}),
    "RegAdagrad": lambda: (contrib_opt.RegAdagradOptimizer, {"learning_rate": 0.1}),
    "Shampoo": lambda: (contrib_opt.ShampooOptimizer, {}),
}
# Their steps read the weights, AdagradDA's sets them.
NOT_ADDITIVE = ("AdagradDA", "Ftrl", "LARS")


@pytest.mark.parametrize("name", sorted(CLASSES))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_over_every_optimizer(name, sparse):
    """The first step is the decay and then the step of the base optimizer."""

    def step(extend):
        with tf.Graph().as_default(), tf.Session() as session:
            table = tf.get_variable("table", initializer=np.ones([3, 2], np.float32))
            base, kwargs = CLASSES[name]()
            optimizer = extend(base)(**kwargs)
            rows = tf.gather(table, [0, 2]) if sparse else tf.identity(table)
            train = optimizer.minimize(tf.reduce_sum(rows))
            session.run(tf.global_variables_initializer())
            session.run(train)
            return session.run(table)

    def with_decay(base):
        cls = contrib_opt.extend_with_decoupled_weight_decay(base)
        return lambda **kwargs: cls(weight_decay=0.25, **kwargs)

    plain, decayed = step(lambda base: base), step(with_decay)
    touched = [0, 2] if sparse else [0, 1, 2]
    assert (decayed[touched] != plain[touched]).all() == (name != "AdagradDA")
    if name not in NOT_ADDITIVE:
        np.testing.assert_allclose(
            decayed[touched], plain[touched] - 0.25, rtol=1e-5, atol=1e-6
        )


def test_the_extension_alone_is_refused():
    with pytest.raises(TypeError, match="alone is no optimizer"):
        contrib_opt.DecoupledWeightDecayExtension(0.1)

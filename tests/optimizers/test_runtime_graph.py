"""LARS in `tf.compat.v1.Session` graphs, and in what programs of TF 1 wrap it in."""

import json

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from optimizers.numpy_lars import CURVATURE, HYPER, RULES, START, TARGET, gradient
from optimizers.runtimes import (
    TF1,
    assert_weights,
    control_flow_of_tensorflow_1,
    each_kind,
    each_rule,
    expected,
    loss_of,
    make,
    make_variables,
    run_program,
    run_session,
)

GATES = {
    "none": tf.train.Optimizer.GATE_NONE,
    "op": tf.train.Optimizer.GATE_OP,
    "graph": tf.train.Optimizer.GATE_GRAPH,
}


@each_rule
@each_kind
@pytest.mark.parametrize("use_nesterov", [False, True])
def test_session(rule, use_resource, use_nesterov):
    def build(variables):
        optimizer = make(rule, use_nesterov=use_nesterov)
        return optimizer.minimize(loss_of(variables))

    wanted = expected(rule, 3, use_nesterov=use_nesterov)
    assert_weights(run_session(build, use_resource=use_resource), wanted)


@each_rule
def test_monitored_training_session_restores_weights_and_slots(rule, tmp_path):
    def train(steps):
        with tf.Graph().as_default():
            variables = make_variables()
            step = tf.train.get_or_create_global_step()
            op = make(rule).minimize(loss_of(variables), global_step=step)
            hooks = [tf.train.StopAtStepHook(num_steps=steps)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks
            ) as session:
                while not session.should_stop():
                    weights = session.run([op, variables])[1]
            reader = tf.train.load_checkpoint(str(tmp_path))
            assert sorted(weights) == sorted(variables)
            return {name: reader.get_tensor(name) for name in variables}

    assert_weights(train(2), expected(rule, 2))
    assert_weights(train(3), expected(rule, 5))


# One worker, so that it may hang if a token or an update is lost: in a process.
SYNC_REPLICAS = """
import json
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
from optimizers.runtimes import *

def train(rule, aggregate, use_resource):
    variables = make_variables(use_resource)
    step = tf.train.get_or_create_global_step()
    sync = tf.train.SyncReplicasOptimizer(
        make(rule), replicas_to_aggregate=aggregate, total_num_replicas=1
    )
    op = sync.minimize(loss_of(variables), global_step=step)
    # The fewest tokens that do not block: then the worker never runs ahead.
    hook = sync.make_session_run_hook(is_chief=True, num_tokens=aggregate - 1)
    with tf.train.MonitoredTrainingSession(
        is_chief=True, hooks=[hook], stop_grace_period_secs=1
    ) as session:
        for _ in range(3 * aggregate):
            session.run(op)
        assert session.run(step) == 3
        return session.run(variables)

runs = []
for arguments in {arguments!r}:
    with tf.Graph().as_default():
        weights = train(*arguments)
        runs.append({{name: value.tolist() for name, value in weights.items()}})
print(json.dumps(runs))
"""


def test_sync_replicas_optimizer():
    arguments = [("lars", 1, True), ("lars", 2, False), ("tf114", 2, True)]
    program = SYNC_REPLICAS.format(arguments=arguments)
    runs = json.loads(run_program(program)[0].splitlines()[-1])
    for (rule, _, _), weights in zip(arguments, runs):
        assert_weights(weights, expected(rule, 3))


@each_rule
@each_kind
def test_cross_shard_optimizer_outside_a_tpu_passes_through(rule, use_resource):
    def build(variables):
        optimizer = tf.tpu.CrossShardOptimizer(make(rule))
        return optimizer.minimize(loss_of(variables))

    # TensorFlow places the operations that never run as well, and finds no CPU kernel
    # for CrossReplicaSum, unless it is told not to.
    config = tf.ConfigProto(graph_options=tf.GraphOptions(place_pruned_graph=True))
    weights = run_session(build, use_resource=use_resource, config=config)
    assert_weights(weights, expected(rule, 3))


def test_cross_shard_optimizer_keeps_the_sum_on_a_tpu():
    with tf.Graph().as_default() as graph:
        variable = tf.Variable([1.0, 2.0], use_resource=True)

        def step():
            optimizer = tf.tpu.CrossShardOptimizer(make("lars"))
            return optimizer.minimize(tf.reduce_sum(variable * variable))

        tf.tpu.rewrite(step)
        sums = [op for op in graph.get_operations() if op.type == "CrossReplicaSum"]
        assert sums and all(op.outputs[0].consumers() for op in sums)


def _enable_mixed_precision(optimizer):
    if TF1:
        experimental = tf.train.experimental
        return experimental.enable_mixed_precision_graph_rewrite(optimizer)
    return tf.mixed_precision.enable_mixed_precision_graph_rewrite(optimizer)


def _disable_mixed_precision():
    if TF1:
        tf.train.experimental.disable_mixed_precision_graph_rewrite()
    else:
        tf.mixed_precision.disable_mixed_precision_graph_rewrite()


@each_rule
@each_kind
def test_mixed_precision_graph_rewrite(rule, use_resource):
    def build(variables):
        optimizer = _enable_mixed_precision(make(rule))
        return optimizer.minimize(loss_of(variables))

    try:
        with control_flow_of_tensorflow_1():
            weights = run_session(build, use_resource=use_resource)
    finally:
        _disable_mixed_precision()
    assert_weights(weights, expected(rule, 3))


@pytest.mark.parametrize("colocate", [False, True])
@pytest.mark.parametrize("gate", sorted(GATES))
def test_gate_gradients_and_colocation(gate, colocate):
    def build(variables):
        return make("lars").minimize(
            loss_of(variables),
            gate_gradients=GATES[gate],
            colocate_gradients_with_ops=colocate,
        )

    assert_weights(run_session(build, use_resource=False), expected("lars", 3))


@pytest.mark.parametrize("gate", sorted(GATES))
def test_gradients_are_gated(gate):
    with tf.Graph().as_default():
        variables = make_variables()
        gradients = make("lars").compute_gradients(
            loss_of(variables), gate_gradients=GATES[gate]
        )
        kinds = {gradient.op.type for gradient, _ in gradients}
        # TensorFlow gates with a tuple, whose outputs are identities.
        assert (kinds == {"Identity"}) == (gate != "none")


def test_colocate_gradients_with_ops_places_them_there():
    with tf.Graph().as_default():
        with tf.device("/cpu:1"):
            variable = tf.Variable([1.0, 2.0], use_resource=False, name="v")
            forward = tf.square(variable, name="forward")
        [(gradient, _)] = make("lars").compute_gradients(
            tf.reduce_sum(forward), colocate_gradients_with_ops=True
        )
        assert b"loc:@forward" in gradient.op.colocation_groups()


@pytest.mark.parametrize(
    "method",
    [
        tf.AggregationMethod.DEFAULT,
        tf.AggregationMethod.EXPERIMENTAL_TREE,
        tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ],
)
def test_aggregation_method(method):
    def build(variables):
        # Each variable is used three times, so that there is something to add up.
        uses = [loss_of(variables) for _ in range(3)]
        return make("lars").minimize(tf.add_n(uses), aggregation_method=method)

    assert_weights(run_session(build), expected("lars", 3, scale=3.0))


@each_rule
@each_kind
def test_grad_loss_scales_the_gradient(rule, use_resource):
    def build(variables):
        return make(rule, weight_decay=0.3).minimize(
            loss_of(variables), grad_loss=tf.constant(0.1)
        )

    wanted = expected(rule, 3, scale=0.1, weight_decay=0.3)
    assert_weights(run_session(build, use_resource=use_resource), wanted)


@each_rule
@each_kind
def test_partitioned_variable_has_a_norm_for_each_partition(rule, use_resource):
    first, last = START["kernel"][:2], START["kernel"][2:]
    targets = {"first": TARGET["kernel"][:2], "last": TARGET["kernel"][2:]}
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable(
            "kernel",
            shape=START["kernel"].shape,
            initializer=lambda shape, dtype, partition_info: tf.constant(
                START["kernel"][
                    partition_info.var_offset[0] : partition_info.var_offset[0]
                    + shape[0]
                ],
                dtype,
            ),
            partitioner=tf.fixed_size_partitioner(2),
            use_resource=use_resource,
        )
        error = tf.convert_to_tensor(variable) - TARGET["kernel"].astype(np.float32)
        loss = tf.reduce_sum(error * error)
        train = make(rule).minimize(loss, var_list=list(variable))
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        parts = session.run(list(variable))
    assert [part.shape for part in parts] == [first.shape, last.shape]
    reference = RULES[rule][1](**HYPER)
    wanted = {"first": first, "last": last}
    for _ in range(3):
        for name, w in wanted.items():
            wanted[name] = reference.step(name, w, 2 * (w - targets[name]))
    assert_weights(dict(zip(["first", "last"], parts)), wanted)


@each_kind
def test_constraint_is_kept_in_the_variable_and_can_be_applied(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(
            [0.5, 1.0],
            constraint=lambda w: tf.clip_by_value(w, 0.4, 2.0),
            use_resource=use_resource,
        )
        train = make("lars", learning_rate=10.0).minimize(
            tf.reduce_sum(variable * variable)
        )
        with tf.control_dependencies([train]):
            project = variable.assign(variable.constraint(variable))
        session.run(tf.global_variables_initializer())
        session.run(project)
        assert session.run(variable).min() >= 0.4 - 1e-7


@each_rule
@each_kind
def test_unknown_static_shapes(rule, use_resource):
    """Of the variables and of their gradients."""
    graph = tf.Graph()
    # TensorFlow asks in a `tf.cond` whether the variable has a value, for the slot's.
    with control_flow_of_tensorflow_1(), graph.as_default(), tf.Session() as session:
        variables, pairs = {}, []
        for name in sorted(START):
            initial = tf.placeholder_with_default(
                tf.constant(START[name], tf.float32), shape=None
            )
            variables[name] = tf.Variable(
                initial, validate_shape=False, name=name, use_resource=use_resource
            )
            gradient = tf.gradients(loss_of({name: variables[name]}), variables[name])
            unknown = tf.placeholder_with_default(gradient[0], shape=None)
            pairs.append((unknown, variables[name]))
        train = make(rule).apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        assert_weights(session.run(variables), expected(rule, 3))


@each_rule
@each_kind
def test_gradient_of_unknown_static_shape(rule, use_resource):
    def build(variables):
        return make(rule).apply_gradients(
            [
                (
                    tf.placeholder_with_default(
                        tf.gradients(loss_of({name: var}), var)[0], shape=None
                    ),
                    var,
                )
                for name, var in variables.items()
            ]
        )

    assert_weights(run_session(build, use_resource=use_resource), expected(rule, 3))


@each_rule
@each_kind
def test_tensor_of_the_global_step_as_learning_rate(rule, use_resource):
    rates = [0.5, 0.25, 0.1]

    def build(variables):
        step = tf.train.get_or_create_global_step()
        rate = tf.train.piecewise_constant(step, [0, 1], rates)
        return make(rule, learning_rate=rate).minimize(loss_of(variables), step)

    wanted = expected(rule, 3, learning_rates=rates)
    assert_weights(run_session(build, use_resource=use_resource), wanted)


@each_rule
def test_variable_and_placeholder_hyperparameters(rule):
    with tf.Graph().as_default(), tf.Session() as session:
        variables = make_variables()
        rate = tf.Variable(0.5, trainable=False)
        momentum = tf.placeholder(tf.float32, [])
        train = make(rule, learning_rate=rate, momentum=momentum).minimize(
            loss_of(variables)
        )
        session.run(tf.global_variables_initializer())
        session.run(train, {momentum: 0.8})
        session.run(rate.assign(0.25))
        session.run(train, {momentum: 0.8})
        wanted = expected(rule, 2, learning_rates=[0.5, 0.25], momentum=0.8)
        assert_weights(session.run(variables), wanted)


@pytest.mark.parametrize("kind", ["resource", "resource_v2", "ref"])
@each_rule
def test_update_in_a_cond_branch(rule, kind):
    if kind == "resource_v2":
        _update_in_a_cond_branch(rule, True)
    else:
        with control_flow_of_tensorflow_1():
            _update_in_a_cond_branch(rule, kind == "resource")


def _update_in_a_cond_branch(rule, use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        variables = make_variables(use_resource)
        optimizer = make(rule)
        pairs = optimizer.compute_gradients(loss_of(variables))
        wanted_now = tf.placeholder(tf.bool, [])

        def update():
            with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
                return tf.constant(1)

        branch = tf.cond(wanted_now, update, lambda: tf.constant(0))
        session.run(tf.global_variables_initializer())
        ran = [session.run(branch, {wanted_now: b}) for b in (True, False, True)]
        assert ran == [1, 0, 1]
        assert_weights(session.run(variables), expected(rule, 2))


@each_rule
def test_update_in_a_while_loop_body(rule):
    with tf.Graph().as_default(), tf.Session() as session:
        variables = make_variables()
        optimizer = make(rule)

        def body(i):
            pairs = [
                (
                    CURVATURE[name]
                    * (var.read_value() - TARGET[name].astype(np.float32)),
                    var,
                )
                for name, var in variables.items()
            ]
            with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
                return i + 1

        loop = tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1)
        session.run(tf.global_variables_initializer())
        assert session.run(loop) == 3
        assert_weights(session.run(variables), expected(rule, 3))


@each_kind
def test_sparse_gradient_in_a_session(use_resource):
    def build(variables):
        # Row 2 twice: its gradients add up.
        rows = tf.gather(variables["kernel"], [2, 0, 2])
        return make("lars").minimize(tf.reduce_sum(rows * rows) / 2)

    weights = run_session(build, use_resource=use_resource)
    reference, w = RULES["lars"][1](**HYPER), START["kernel"]
    for _ in range(3):
        w = reference.sparse_step("kernel", w, {0: w[0], 2: 2 * w[2]})
    assert_weights(weights, {"kernel": w, "bias": START["bias"]})


@each_kind
def test_same_numbers_in_every_run(use_resource):
    def build(variables):
        return make("lars").minimize(loss_of(variables))

    runs = [run_session(build, 5, use_resource) for _ in range(3)]
    for run in runs[1:]:
        for name in START:
            assert np.array_equal(run[name], runs[0][name])


def test_gradient_helper_agrees_with_tensorflow():
    with tf.Graph().as_default(), tf.Session() as session:
        variables = make_variables()
        gradients = tf.gradients(loss_of(variables), list(variables.values()))
        session.run(tf.global_variables_initializer())
        for name, value in zip(variables, session.run(gradients)):
            np.testing.assert_allclose(value, gradient(name, START[name]), rtol=1e-6)

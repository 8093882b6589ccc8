"""What is special to MovingAverageOptimizer: the saver, the order, what it wraps."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from mirrored import mirrored_strategy
from optimizers import problems
from optimizers.problems import LINEAR, STEPS, EagerRun, GraphRun, MirroredRun
from optimizers.runtimes import control_flow_of_tensorflow_1
from wrappers.swapping import SAVED_STEP, Program

GOLDEN = os.path.join(
    os.path.dirname(os.path.dirname(__file__)), "golden", "moving_average"
)
TF1 = tf.__version__.startswith("1.")
BIAS = "layer/bias"

each_kind = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "res"])
sequential = pytest.mark.parametrize("sequential_update", [True, False])


def moving_average(opt=None, decay=0.5, **kwargs):
    opt = opt or tf.train.GradientDescentOptimizer(0.1)
    return contrib_opt.MovingAverageOptimizer(opt, decay, **kwargs)


# ------------------------------------------------------------------ the average


def weights_of(optimizer, name=BIAS):
    """The weights before the first step of LINEAR and after each one of a dozen."""
    run = EagerRun(LINEAR, lambda: optimizer)
    weights = [run.variables[name].numpy()]
    for step in range(STEPS):
        run.train([step])
        weights.append(run.variables[name].numpy())
    return weights


def averaged(weights, decays):
    average = weights[0]
    for w, decay in zip(weights[1:], decays):
        average = decay * average + (1 - decay) * w
    return average


RUNS = {
    "ref": lambda make: GraphRun(LINEAR, make, use_resource=False, config=threads()),
    "resource": lambda make: GraphRun(LINEAR, make, config=threads()),
    "eager": lambda make: EagerRun(LINEAR, make),
    "function": lambda make: EagerRun(LINEAR, make, compiled=True),
    "mirrored": lambda make: MirroredRun(LINEAR, make),
}


def threads():
    return tf.ConfigProto(inter_op_parallelism_threads=8, use_per_session_threads=True)


def average_in(run, name=BIAS):
    if isinstance(run, GraphRun):
        with run.graph.as_default():
            return run.session.run(run.optimizer.average(run.variables[name]))
    if isinstance(run, MirroredRun):
        first, second = run.optimizer.average(run.variables[name]).values
        np.testing.assert_array_equal(first.numpy(), second.numpy())
        return first.numpy()
    return run.optimizer.average(run.variables[name]).numpy()


@pytest.mark.parametrize("runtime", RUNS)
@sequential
def test_the_average_has_the_weights_of_after_or_before_the_step(
    runtime, sequential_update
):
    run = RUNS[runtime](lambda: moving_average(sequential_update=sequential_update))
    run.train(range(STEPS))
    weights = weights_of(tf.train.GradientDescentOptimizer(0.1))
    if not sequential_update:
        weights = weights[:1] + weights[:-1]
    expected = averaged(weights, [0.5] * STEPS)
    np.testing.assert_allclose(average_in(run), expected, rtol=1e-5)


@sequential
@pytest.mark.parametrize("given_as", ["variable", "callable"])
@pytest.mark.parametrize("runtime", RUNS)
def test_num_updates_may_be_the_global_step(runtime, given_as, sequential_update):
    def make():
        step = problems.global_step()
        return moving_average(
            decay=0.3,
            num_updates=step if given_as == "variable" else lambda: step,
            sequential_update=sequential_update,
        )

    run = RUNS[runtime](make)
    run.train(range(STEPS))
    weights = weights_of(tf.train.GradientDescentOptimizer(0.1))
    steps = np.arange(STEPS)
    if sequential_update:
        steps = steps + 1
    else:
        weights = weights[:1] + weights[:-1]
    decays = np.minimum(0.3, (1 + steps) / (10 + steps))
    np.testing.assert_allclose(average_in(run), averaged(weights, decays), rtol=1e-5)


@each_kind
def test_the_average_starts_at_the_value_that_the_variable_has(use_resource):
    """In a graph whose weights were restored before the averages were initialized."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable(
            "w", initializer=tf.constant([1.0, 2.0]), use_resource=use_resource
        )
        optimizer = moving_average()
        optimizer.minimize(tf.reduce_sum(w))
        average = optimizer.average(w)
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(average), [1.0, 2.0])
        w.load([5.0, 6.0], session)
        session.run(average.initializer)
        np.testing.assert_array_equal(session.run(average), [5.0, 6.0])
        assert tf.get_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES) == [w]


@each_kind
@sequential
def test_a_step_without_a_gradient_changes_no_average(use_resource, sequential_update):
    """The gradient of one of two variables fails when the step runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        pair = [
            tf.get_variable(
                name, initializer=tf.constant([3.0]), use_resource=use_resource
            )
            for name in ("a", "b")
        ]
        fine = tf.placeholder(tf.bool, [])
        with tf.control_dependencies([tf.debugging.Assert(fine, ["no gradient"])]):
            failing = tf.ones([1])
        optimizer = moving_average(sequential_update=sequential_update)
        train_op = optimizer.apply_gradients(
            [(tf.ones([1]), pair[0]), (failing, pair[1])]
        )
        averages = [optimizer.average(var) for var in pair]
        session.run(tf.global_variables_initializer())
        session.run(train_op, {fine: True})
        session.run(pair[0].assign([3.0]))
        before = session.run(averages)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no gradient"):
            session.run(train_op, {fine: False})
        np.testing.assert_array_equal(session.run(averages), before)


def test_what_it_says_of_itself():
    run = EagerRun(LINEAR, lambda: moving_average(tf.train.MomentumOptimizer(0.1, 0.9)))
    optimizer, var = run.optimizer, run.variables[BIAS]
    assert optimizer.average(var) is None
    run.train([0])
    assert optimizer.get_name() == "MovingAverageOptimizer"
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.get_slot(var, "momentum").shape == var.shape
    averages = [optimizer.average(v) for v in run.variables.values()]
    assert len(optimizer.variables()) == 6
    assert all(any(a is v for v in optimizer.variables()) for a in averages)


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({"opt": "momentum"}, TypeError, "opt must be a tf.compat.v1.train.Optimizer"),
        ({"average_decay": -0.1}, ValueError, "average_decay must be 0 or more"),
        ({"average_decay": 1.5}, ValueError, "average_decay must be 1 or less"),
        ({"average_decay": "0.9"}, ValueError, "average_decay must be a number"),
        ({"num_updates": [1, 2]}, ValueError, "num_updates must be a scalar"),
        ({"num_updates": -1}, ValueError, "num_updates must be 0 or more"),
        (
            {"num_updates": lambda step: step},
            ValueError,
            "num_updates must be callable",
        ),
    ],
)
def test_bad_arguments(kwargs, error, message):
    arguments = dict({"opt": tf.train.GradientDescentOptimizer(0.1)}, **kwargs)
    with pytest.raises(error, match=message):
        contrib_opt.MovingAverageOptimizer(**arguments)


# ------------------------------------------------------------------ the saver


def contents(path):
    reader = tf.train.load_checkpoint(path)
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def assert_same(actual, expected):
    assert sorted(actual) == sorted(expected)
    for name in expected:
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=1e-6, err_msg=name
        )


@each_kind
def test_swapping_saver_writes_what_the_references_writes(use_resource, tmp_path):
    program = Program(contrib_opt, use_resource)
    program.train(range(SAVED_STEP))
    path = program.save(str(tmp_path / "swapped"))
    expected = contents(os.path.join(GOLDEN, f"swapped-{SAVED_STEP}"))
    assert_same(contents(path), expected)


@each_kind
def test_training_goes_on_from_the_references_swapped_checkpoint(use_resource):
    program = Program(contrib_opt, use_resource)
    path = os.path.join(GOLDEN, f"swapped-{SAVED_STEP}")
    program.restore(path)
    program.train(range(SAVED_STEP, 12))
    assert_same(program.values(), dict(np.load(os.path.join(GOLDEN, "final.npz"))))


@each_kind
def test_an_ordinary_saver_finds_the_averages(use_resource, tmp_path):
    program = Program(contrib_opt, use_resource)
    program.train(range(SAVED_STEP))
    path = program.save(str(tmp_path / "swapped"))
    values = program.values()
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("model", use_resource=use_resource):
            w = tf.get_variable("w", [2, 2])
            table = tf.get_variable("table", [5, 2])  # in one part
        tf.train.Saver().restore(session, path)
        restored = session.run([w, table])
    parts = [f"model/table/part_{i}/ExponentialMovingAverage" for i in range(2)]
    np.testing.assert_array_equal(
        restored[0], values["model/w/ExponentialMovingAverage"]
    )
    np.testing.assert_array_equal(
        restored[1], np.concatenate([values[part] for part in parts])
    )


def test_swapping_saver_of_a_dict_with_names_of_its_own(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=tf.constant([1.0]))
        optimizer = moving_average()
        train_op = optimizer.minimize(tf.reduce_sum(w))
        saver = optimizer.swapping_saver({"weights": w, "mean": optimizer.average(w)})
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        found = contents(saver.save(session, str(tmp_path / "swapped")))
    np.testing.assert_allclose(found["weights"], [0.95])
    np.testing.assert_allclose(found["mean"], [0.9])


def test_swapping_saver_hands_its_arguments_on(tmp_path):
    program = Program(contrib_opt)
    with program.graph.as_default():
        saver = program.optimizer.swapping_saver(name="mine", max_to_keep=1)
        for step in (1, 2):
            saver.save(program.session, str(tmp_path / "swapped"), step)
    assert saver.as_saver_def().save_tensor_name.startswith("mine/")
    assert saver.last_checkpoints == [str(tmp_path / "swapped-2")]


def test_swapping_saver_in_eager_mode(tmp_path):
    run = EagerRun(LINEAR, moving_average)
    run.train(range(3))
    optimizer, variables = run.optimizer, list(run.variables.values())
    var_list = variables + [optimizer.average(v) for v in variables]
    bias, average = run.variables[BIAS], optimizer.average(run.variables[BIAS])
    saver = optimizer.swapping_saver(var_list)
    path = saver.save(None, str(tmp_path / "swapped"))
    before = bias.numpy(), average.numpy()
    np.testing.assert_array_equal(contents(path)[BIAS], before[1])
    run.train(range(3, 6))
    saver.restore(None, path)
    np.testing.assert_array_equal(bias.numpy(), before[0])
    np.testing.assert_array_equal(average.numpy(), before[1])
    with pytest.raises(ValueError, match="needs a var_list"):
        optimizer.swapping_saver()


def test_swapping_saver_under_a_strategy(tmp_path):
    """In a graph, as an Estimator trains."""
    strategy = mirrored_strategy()
    with tf.Graph().as_default(), strategy.scope():
        w = tf.get_variable("w", initializer=tf.constant([1.0]), use_resource=True)
        optimizer = moving_average()
        run = getattr(strategy, "run", None) or strategy.experimental_run_v2
        train_op = run(lambda: optimizer.minimize(lambda: tf.reduce_sum(w * 1.0)))
        saver = optimizer.swapping_saver()
        config = tf.ConfigProto(device_count={"CPU": 2})
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            session.run(strategy.experimental_local_results(train_op))
            values = session.run([*w.values, *optimizer.average(w).values])
            path = saver.save(session, str(tmp_path / "swapped"))
            found = contents(path)
            session.run(tf.global_variables_initializer())
            saver.restore(session, path)
            copies = [*w.values, *optimizer.average(w).values]
            np.testing.assert_array_equal(session.run(copies), values)
    assert values[0] == values[1] != values[2] == values[3]
    np.testing.assert_array_equal(found["w"], values[2])
    np.testing.assert_array_equal(found["w/ExponentialMovingAverage"], values[0])


def test_swapping_saver_refuses():
    with tf.Graph().as_default():
        w = tf.get_variable("w", initializer=tf.constant([1.0]))
        optimizer = moving_average()
        with pytest.raises(RuntimeError, match="minimize or apply_gradients before"):
            optimizer.swapping_saver()
        optimizer.minimize(tf.reduce_sum(w))
        average = optimizer.average(w)
        with pytest.raises(ValueError, match="w:0 without w/ExponentialMovingAverage"):
            optimizer.swapping_saver([w])
        with pytest.raises(ValueError, match="ExponentialMovingAverage:0 without w:0"):
            optimizer.swapping_saver([average])
        with pytest.raises(ValueError, match="two variables of the name w"):
            optimizer.swapping_saver([w, average, w])


# ------------------------------------------------------------------ what it wraps


@pytest.mark.parametrize("runtime", RUNS)
def test_over_adamw(runtime):
    def adamw():
        return contrib_opt.AdamWOptimizer(0.1, learning_rate=0.1)

    run = RUNS[runtime](lambda: moving_average(adamw(), 0.8))
    run.train(range(STEPS))
    expected = averaged(weights_of(adamw()), [0.8] * STEPS)
    np.testing.assert_allclose(average_in(run), expected, rtol=1e-5)


def lars():
    return contrib_opt.LARSOptimizer(0.5, eeta=0.1)


@each_kind
@pytest.mark.parametrize("outer", ["average", "mixed precision"])
def test_over_lars_with_mixed_precision(outer, use_resource):
    """A loss of inf in the second step: the weights stay, and the average goes on."""
    rewrite = tf.train.experimental.enable_mixed_precision_graph_rewrite

    def make():
        if outer == "average":
            return moving_average(rewrite(lars()))
        averaging.append(moving_average(lars()))
        return rewrite(averaging[0])

    averaging = []
    # Mixed precision applies gradients in tf.cond, which ref variables need so.
    with tf.Graph().as_default(), control_flow_of_tensorflow_1():
        try:
            w = tf.get_variable(
                "w",
                initializer=tf.constant([[1.0, -2.0], [3.0, 4.0]]),
                use_resource=use_resource,
            )
            factor = tf.placeholder(tf.float32, [])
            optimizer = make()
            train_op = optimizer.minimize(tf.reduce_sum(w * w) * factor)
            average = (averaging or [optimizer])[0].average(w)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                weights, averages = [], []
                for scale in (1.0, np.inf, 1.0):
                    weights.append(session.run(w))
                    session.run(train_op, {factor: scale})
                    averages.append(session.run(average))
                weights.append(session.run(w))
        finally:
            tf.train.experimental.disable_mixed_precision_graph_rewrite()

    np.testing.assert_array_equal(weights[2], weights[1])
    assert (weights[1] != weights[0]).any() and (weights[3] != weights[2]).any()
    # Inside of the rewrite, a step that is left out leaves the average as well.
    steps = [1, 2, 3] if outer == "average" else [1, 3]
    expected = averaged([weights[0]] + [weights[i] for i in steps], [0.5] * 3)
    np.testing.assert_allclose(averages[-1], expected, rtol=1e-5)

"""The suite that every optimizer of cases.py goes through, on numbers.

The numbers are the references': see tests/golden/generate.py.
"""

import contextlib
import itertools
import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from optimizers.cases import CASES, OPTIMIZERS, make
from optimizers.problems import (
    LINEAR,
    PROBLEM_KINDS,
    SPARSE,
    STEPS,
    EagerRun,
    GraphRun,
    MirroredRun,
    seeded,
    slots,
)

TF1 = tf.__version__.startswith("1.")
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden")
RECORDED_STEPS = (1, 4, STEPS)
CHECKPOINT_STEP = 6
# Relative to the largest number of the trajectory. The half types have 11 and 8 bits,
# and each of a dozen steps rounds.
TOLERANCE = {"float64": 1e-10, "float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}

RUNTIMES = {
    "ref": lambda *run: GraphRun(*run, use_resource=False),
    "resource": lambda *run: GraphRun(*run, use_resource=True),
    "eager": lambda *run: EagerRun(*run, compiled=False),
    "function": lambda *run: EagerRun(*run, compiled=True),
}
# What runs in a function runs in eager mode too; types make no difference to that.
RUNTIMES_AND_DTYPES = [
    (runtime, dtype)
    for runtime, dtype in itertools.product(RUNTIMES, sorted(TOLERANCE))
    if (runtime != "function" or dtype == "float32")
    and (runtime != "ref" or dtype != "bfloat16")
]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
every_optimizer = pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
every_case_and_kind = pytest.mark.parametrize(
    "case, kind",
    [
        pytest.param(case, kind, id=f"{case.id}-{kind}")
        for case in CASES
        for kind in PROBLEM_KINDS
    ],
)
every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)
graph_or_eager = pytest.mark.parametrize("runtime", ["resource", "eager"])


def problem_of(case, kind="dense"):
    return seeded(kind, case.given_gradients)


def golden(case, dtype, kind="dense"):
    """The reference's numbers, and the tolerance within which ours must agree."""
    recorded = np.load(os.path.join(GOLDEN, case.id + ".npz"))
    tolerance = dict(TOLERANCE, **case.tolerance)
    key = dtype + "_" + kind
    if key in recorded:
        return recorded[key], tolerance[dtype]
    # A type that the reference could not train: as close to another as types allow.
    other = "float32_" + kind
    if other not in recorded:
        other = "float64_" + kind
    return recorded[other], max(tolerance[dtype], tolerance["float32"])


def assert_close(actual, expected, tolerance):
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=tolerance * np.abs(expected).max()
    )


def assert_is_the_references(run, case, dtype, kind):
    expected, tolerance = golden(case, dtype, kind)
    done = 0
    for row, step in enumerate(RECORDED_STEPS):
        run.train(range(done, step))
        assert_close(run.values(), expected[row], tolerance)
        done = step


@contextlib.contextmanager
def raises_if_unsupported(case, what):
    """Expects the error that the row names for `what`, or for that in TensorFlow 1."""
    for key in (what, what + " in 1.15") if TF1 else (what,):
        if key in case.unsupported:
            with pytest.raises(Exception, match=case.unsupported[key]):
                yield
            return
    yield


@every_case_and_kind
@pytest.mark.parametrize("runtime, dtype", RUNTIMES_AND_DTYPES)
def test_trajectory_is_the_references(case, kind, runtime, dtype):
    with raises_if_unsupported(case, runtime + " " + dtype):
        run = RUNTIMES[runtime](problem_of(case, kind), lambda: make(case), dtype)
        assert_is_the_references(run, case, dtype, kind)


@pytest.mark.skipif(
    len(tf.config.experimental.list_logical_devices("CPU")) < 2,
    reason="eager mode was started with one CPU",
)
@every_case_and_kind
def test_two_replicas_do_what_one_does(case, kind):
    with raises_if_unsupported(case, "mirrored"):
        run = MirroredRun(problem_of(case, kind), lambda: make(case))
        assert_is_the_references(run, case, "float32", kind)


@every_case
@pytest.mark.parametrize("runtime", ["ref", "eager", "function"])
def test_the_same_gradients_give_the_same_numbers_in_every_run(case, runtime):
    """To the last bit; a network's gradients may differ in theirs (oneDNN's do)."""
    threads = tf.ConfigProto(
        device_count={"CPU": 2},
        inter_op_parallelism_threads=16,
        use_per_session_threads=True,
    )

    def final():
        if runtime == "ref":
            run = GraphRun(
                LINEAR, lambda: make(case), use_resource=False, config=threads
            )
        else:
            run = RUNTIMES[runtime](LINEAR, lambda: make(case), "float32")
        run.train(range(STEPS))
        return run.values()

    first = final()
    np.testing.assert_array_equal(final(), first)
    np.testing.assert_array_equal(final(), first)


@every_case
def test_names_are_the_references(case):
    with open(os.path.join(GOLDEN, "names", case.id + ".json")) as lines:
        names = json.load(lines)
    run = GraphRun(problem_of(case), lambda: make(case))
    with run.graph.as_default():
        optimizer = run.optimizer
        found = {
            "optimizer": optimizer.get_name(),
            "train_op": run.train_op.name,
            "slots": optimizer.get_slot_names(),
            "variables": [v.name for v in optimizer.variables()],
        }
        made = sorted(v.name for v in tf.global_variables())
    made.remove("global_step:0")
    assert made == names.pop("all_variables")
    # Null: there the reference raises AttributeError.
    names = {key: value for key, value in names.items() if value is not None}
    assert {key: found[key] for key in names} == names


@every_case
@pytest.mark.parametrize("runtime", ["ref", "resource"])
def test_training_goes_on_from_the_references_checkpoint(case, runtime):
    run = RUNTIMES[runtime](problem_of(case), lambda: make(case), "float32")
    path = os.path.join(GOLDEN, "checkpoints", f"{case.id}-{CHECKPOINT_STEP}")
    with run.graph.as_default():
        run.saver.restore(run.session, path)
    assert run.session.run(run.global_step) == CHECKPOINT_STEP
    run.train(range(CHECKPOINT_STEP, STEPS))
    expected, tolerance = golden(case, "float32")
    assert_close(run.values(), expected[-1], tolerance)


@every_case
@pytest.mark.parametrize("restore", ["before_slots_exist", "after_slots_exist"])
def test_object_based_checkpoint_in_eager_mode(case, restore, tmp_path):
    def checkpoint(run):
        return tf.train.Checkpoint(
            optimizer=run.optimizer,
            global_step=run.global_step,
            **{name.replace("/", "_"): v for name, v in run.variables.items()},
        )

    saved = EagerRun(problem_of(case), lambda: make(case))
    saved.train(range(CHECKPOINT_STEP))
    path = checkpoint(saved).save(str(tmp_path / "ckpt"))

    run = EagerRun(problem_of(case), lambda: make(case))
    if restore == "after_slots_exist":
        run.train(range(2))
    checkpoint(run).restore(path)
    run.train(range(CHECKPOINT_STEP, STEPS))
    expected, tolerance = golden(case, "float32")
    assert_close(run.values(), expected[-1], tolerance)


KINDS = {
    "tensor": lambda value: tf.constant(value),
    "float64_tensor": lambda value: tf.constant(value, tf.float64),
    "variable": lambda value: tf.Variable(value, use_resource=True, name="hyper"),
    "callable": lambda value: lambda: value,
    "callable_of_tensor": lambda value: lambda: tf.constant(value),
    "numpy": lambda value: np.float32(value),
}


def evaluated_hyperparameters():
    for case in OPTIMIZERS:
        for given in itertools.product(KINDS, PROBLEM_KINDS) if case.evaluated else ():
            yield pytest.param(case, *given, id="-".join([case.id, *given]))


@pytest.mark.parametrize("case, given_as, kind", list(evaluated_hyperparameters()))
@graph_or_eager
def test_hyperparameters_may_be(case, given_as, kind, runtime):
    """All of them at once, each as it is elsewhere a number."""

    def make_optimizer():
        make_hyper = KINDS[given_as]
        return make(case, **{n: make_hyper(case.kwargs[n]) for n in case.evaluated})

    run = RUNTIMES[runtime](problem_of(case, kind), make_optimizer, "float32")
    run.train(range(STEPS))
    expected, tolerance = golden(case, "float32", kind)
    assert_close(run.values(), expected[-1], tolerance)


@pytest.mark.parametrize(
    "case, name",
    [
        pytest.param(case, name, id=case.id + "-" + name)
        for case in OPTIMIZERS
        for name in case.evaluated
    ],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_callable_is_evaluated_at_each_step(case, name, compiled):
    """A Variable behind a callable, changed half-way, acts as a graph's does."""
    old, new = case.kwargs[name], case.evaluated[name]
    problem = problem_of(case)
    hyper = tf.Variable(old, use_resource=True)
    eager = EagerRun(
        problem, lambda: make(case, **{name: lambda: hyper}), "float32", compiled
    )
    eager.train(range(4))
    hyper.assign(new)
    eager.train(range(4, STEPS))

    def make_in_graph():
        hyper = tf.get_variable("hyper", initializer=old, trainable=False)
        return make(case, **{name: hyper})

    graph = GraphRun(problem, make_in_graph)
    graph.train(range(4))
    with graph.graph.as_default():
        for var in tf.global_variables():
            if var.name == "hyper:0":
                var.load(new, graph.session)
    graph.train(range(4, STEPS))
    assert_close(eager.values(), graph.values(), TOLERANCE["float32"])
    unchanged, _ = golden(case, "float32")
    change = np.abs(eager.values() - unchanged[-1]).max()
    assert change > 1e-4 * np.abs(unchanged[-1]).max()


def misfits(var):
    """Gradients that do not fit `var`, a float32 matrix with six rows."""
    ones = np.ones(var.shape.as_list(), np.float32)
    yield "dense shape", tf.constant(ones.T)
    yield "scalar", tf.constant(1.0)
    yield "dtype", tf.constant(ones.astype(np.float64))
    yield "row shape", tf.IndexedSlices(tf.constant(ones[:2, :1]), tf.constant([0, 1]))
    yield "index", tf.IndexedSlices(tf.constant(ones[:2]), tf.constant([0, 6]))
    yield "negative", tf.IndexedSlices(tf.constant(ones[:2]), tf.constant([0, -1]))


@every_optimizer
@pytest.mark.parametrize("kind", [kind for kind, _ in misfits(tf.zeros([6, 3]))])
@graph_or_eager
def test_a_gradient_that_does_not_fit_changes_nothing(case, kind, runtime):
    run = RUNTIMES[runtime](SPARSE, lambda: make(case), "float32")
    run.train(range(4))
    before = run.values()
    misfit, good = run.variables["embedding/table"], run.variables["head/kernel"]

    def apply():
        grads_and_vars = [
            (tf.ones_like(good), good),
            (dict(misfits(misfit))[kind], misfit),
        ]
        return run.optimizer.apply_gradients(grads_and_vars, run.global_step)

    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="embedding/table"
    ):
        if runtime == "eager":
            apply()
        else:
            with run.graph.as_default():
                run.session.run(apply())
    np.testing.assert_array_equal(run.values(), before)


@every_optimizer
@graph_or_eager
def test_no_gradient_for_any_variable(case, runtime):
    run = RUNTIMES[runtime](LINEAR, lambda: make(case), "float32")
    pairs = [(None, var) for var in run.variables.values()]
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        if runtime == "eager":
            run.optimizer.apply_gradients(pairs)
        else:
            with run.graph.as_default():
                run.optimizer.apply_gradients(pairs)


@every_optimizer
def test_variable_without_gradient_is_left_alone(case):
    run = EagerRun(LINEAR, lambda: make(case))
    bias, kernel = run.variables["layer/bias"], run.variables["head/kernel"]
    before = bias.numpy()
    run.optimizer.minimize(
        lambda: tf.reduce_sum(kernel), run.global_step, var_list=[bias, kernel]
    )
    np.testing.assert_array_equal(bias.numpy(), before)
    assert not slots({"bias": bias}, run.optimizer)


@every_optimizer
@graph_or_eager
def test_what_are_no_pairs_and_no_global_step(case, runtime):
    run = RUNTIMES[runtime](LINEAR, lambda: make(case), "float32")
    apply = run.optimizer.apply_gradients
    with run.graph.as_default() if runtime == "resource" else contextlib.ExitStack():
        gradient = tf.constant([1.0, 2.0])
        for wrong in (gradient, [gradient], None, 3):
            with pytest.raises(TypeError, match="must be a list of .gradient, var"):
                apply(wrong)
        bias = run.variables["layer/bias"]
        with pytest.raises(TypeError, match="global_step must be a variable"):
            apply([(tf.ones_like(bias), bias)], 3)

"""One optimizer in several threads, two on the same variables, and many steps."""

import gc
import os
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from optimizers import problems
from optimizers.cases import CASES, OPTIMIZERS, make
from optimizers.problems import LOOKUP, SPARSE, EagerRun, GraphRun

EVALUATED = [case for case in OPTIMIZERS if case.evaluated]


class Meeting:
    """A value of a hyperparameter for which two threads wait until both ask.

    Or not, if the optimizer has one wait for the other.
    """

    def __init__(self, value):
        self._value = value
        self._barrier = threading.Barrier(2)
        self._met = threading.local()

    def __call__(self):
        if not hasattr(self._met, "once"):
            self._met.once = True
            try:
                self._barrier.wait(timeout=0.3)
            except threading.BrokenBarrierError:
                pass
        return tf.constant(self._value)


def in_threads(*functions):
    """What the functions return, each run in a thread of its own."""
    results = [None] * len(functions)

    def run(i):
        try:
            results[i] = functions[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=[i]) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def step_in_graph(optimizer, factor):
    """The weights after a step in a graph of its own, with gradients `factor`."""
    with tf.Graph().as_default(), tf.Session() as session:
        weights = [
            tf.get_variable(
                n, initializer=np.ones([3, 2], np.float32), use_resource=True
            )
            for n in "ab"
        ]
        step = tf.train.get_or_create_global_step()
        pairs = [(factor * tf.ones([3, 2]), w) for w in weights]
        train = optimizer.apply_gradients(pairs, step)
        session.run(tf.global_variables_initializer())
        session.run(train)
        return session.run(weights)


def step_in_eager_mode(optimizer, factor):
    weights = [tf.Variable(tf.ones([3, 2]), use_resource=True, name=n) for n in "ab"]
    step = tf.Variable(0, dtype=tf.int64, use_resource=True)
    optimizer.apply_gradients([(factor * tf.ones([3, 2]), w) for w in weights], step)
    return [w.numpy() for w in weights]


# Those whose arguments or whose gradients belong to a program's one graph.
_OF_ONE_GRAPH = [
    "adam_gs",
    "lazy_adam_gs",
    "shampoo",
    "variable_clipping",
    "drop_stale",
    "multitask",
]


@pytest.mark.parametrize(
    "case",
    [case for case in EVALUATED if case.id not in _OF_ONE_GRAPH],
    ids=lambda case: case.id,
)
def test_one_optimizer_in_two_threads_with_a_graph_each(case):
    check_two_threads(case, step_in_graph, step_in_graph)


@pytest.mark.parametrize("id", ["lars", "adamw", "add_sign"])
def test_one_optimizer_in_a_thread_with_a_graph_and_in_an_eager_one(id):
    case = {case.id: case for case in EVALUATED}[id]
    check_two_threads(case, step_in_graph, step_in_eager_mode)


def check_two_threads(case, *steps):
    name = sorted(case.evaluated)[0]
    expected = [step(make(case), factor) for step, factor in zip(steps, (1.0, -2.0))]
    optimizer = make(case, **{name: Meeting(case.kwargs[name])})
    found = in_threads(
        lambda: steps[0](optimizer, 1.0), lambda: steps[1](optimizer, -2.0)
    )
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_accumulators_are_left_alone_in_the_thread_that_asks():
    optimizer = contrib_opt.RegAdagradOptimizer(0.1)
    inside, done = threading.Event(), threading.Event()
    weights = [tf.Variable(tf.ones([2]), use_resource=True, name=n) for n in "ab"]

    def without():
        with optimizer.avoid_updating_slots():
            inside.set()
            done.wait(timeout=60)
            optimizer.apply_gradients([(tf.ones([2]), weights[0])])

    def with_slots():
        inside.wait(timeout=60)
        optimizer.apply_gradients([(tf.ones([2]), weights[1])])
        done.set()

    in_threads(without, with_slots)
    accumulators = [optimizer.get_slot(w, "accumulator").numpy() for w in weights]
    np.testing.assert_allclose(accumulators[0], 0.1)
    np.testing.assert_allclose(accumulators[1], 1.1)


def test_two_threads_decay_their_own_lists():
    weights = [tf.Variable(tf.ones([2]), use_resource=True, name=n) for n in "ab"]
    meeting = Meeting(0.5)
    optimizer = contrib_opt.MomentumWOptimizer(meeting, 0.0, 0.9)

    def apply(var, decayed):
        optimizer.apply_gradients([(tf.ones([2]), var)], decay_var_list=decayed)

    in_threads(lambda: apply(weights[0], [weights[0]]), lambda: apply(weights[1], []))
    np.testing.assert_allclose(weights[0].numpy(), 0.5)
    np.testing.assert_allclose(weights[1].numpy(), 1.0)


@pytest.mark.parametrize(
    "names",
    [("lars", "lazy_adam"), ("nadam", "nadam"), ("ggt", "ggt")],
    ids="-".join,
)
def test_two_optimizers_on_the_same_variables(names):
    """By turns; each has slots of its own, and eager mode does what a graph does."""
    cases = [{case.id: case for case in OPTIMIZERS}[name] for name in names]
    runs = [run(LOOKUP, lambda: make(cases[0])) for run in (EagerRun, GraphRun)]
    eager, graph = runs
    with problems._current(eager):
        eager_optimizers = [eager.optimizer, make(cases[1])]
    with graph.graph.as_default(), problems._current(graph):
        second = make(cases[1])
        loss = LOOKUP.loss(graph.variables, graph._placeholders)
        train_ops = [graph.train_op, second.minimize(loss, graph.global_step)]
        initial = tf.variables_initializer(
            [v for v in tf.global_variables() if not _initialized(v, graph.session)]
        )
        graph.session.run(initial)
    for step in range(6):
        eager.optimizer = eager_optimizers[step % 2]
        eager.train([step])
        graph.train_op = train_ops[step % 2]
        graph.train([step])
    with graph.graph.as_default():
        expected = graph.session.run(graph.variables)
    for name, var in eager.variables.items():
        np.testing.assert_allclose(var.numpy(), expected[name], rtol=1e-4, atol=1e-5)
    made = [{id(v) for v in optimizer.variables()} for optimizer in eager_optimizers]
    assert made[0] and made[1] and not made[0] & made[1]


def _initialized(var, session):
    return session.run(tf.is_variable_initialized(var))


# Windows of steps: a leak grows in each of them, and noise does not.
WINDOW, WINDOWS = 48, 16
LONG = [
    case
    for case in CASES
    if case.id
    in (
        "lars",
        "nadam",
        "moving_average",
        "loss_scale_exponential",
    )
]
every_long = pytest.mark.parametrize("case", LONG, ids=lambda case: case.id)


def resident_bytes():
    with open("/proc/self/statm") as line:
        return int(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_memory_is_constant(run, window=WINDOW):
    """Returns the number of steps that it took."""

    def measured():
        gc.collect()
        return resident_bytes(), len(gc.get_objects())

    flat, seen = [False, False], [measured()]
    for i in range(WINDOWS):
        for _ in range(window // 12):
            run.train(range(12))
        seen.append(measured())
        memory, objects = (after - before for before, after in zip(*seen[-2:]))
        # Less than a page, and less than one object, in each step.
        flat = [flat[0] or memory < 4096 * window, flat[1] or objects < window]
        if all(flat):
            return (i + 1) * window
    raise AssertionError(f"bytes and objects after each window: {seen}")


@every_long
def test_steps_in_a_graph_leave_nothing(case):
    run = GraphRun(SPARSE, lambda: make(case))
    run.graph.finalize()
    assert_memory_is_constant(run, window=240)


@every_long
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_steps_in_eager_mode_leave_nothing(case, compiled):
    run = EagerRun(SPARSE, lambda: make(case), compiled=compiled)
    traced = []
    loss = run._loss

    def counted(inputs):
        traced.append(1)
        return loss(inputs)

    run._loss = counted
    run.train(range(3))
    del traced[:]
    steps = assert_memory_is_constant(run)
    assert len(traced) == (0 if compiled else steps)

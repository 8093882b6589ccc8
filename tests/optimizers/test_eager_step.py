"""Steps of eager mode that are compiled: when they are, and that nobody can tell."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers import eager_step, gradients
from optimizers.cases import OPTIMIZERS, make
from optimizers.problems import PROBLEM_KINDS, EagerRun, seeded

TF1 = tf.__version__.startswith("1.")
# The cases around a class of the tests' own.
NOT_COMPILED = {"multitask"}


def compiled_steps(optimizer):
    """The `CompiledSteps` of an optimizer, or of one of TensorFlow's in a wrapper."""
    own = vars(optimizer)
    if "_step_of_wrapper" in own:
        return own["_step_of_wrapper"].compiled_steps
    return own.get("_compiled_steps")


def compiled(optimizer):
    """How many functions were compiled for `optimizer`."""
    steps = compiled_steps(optimizer)
    return 0 if steps is None else steps.compiled


def variable(value=(1.0, 2.0), **kwargs):
    return tf.Variable(tf.constant(value), use_resource=True, **kwargs)


def ones(var):
    return tf.ones(var.shape, var.dtype)


def rows(var, indices):
    values = tf.ones([len(indices)] + var.shape.as_list()[1:], var.dtype)
    return tf.IndexedSlices(
        values, tf.constant(indices, tf.int32), tf.constant(var.shape.as_list())
    )


@pytest.fixture
def never_compiled(monkeypatch):
    """A function after which steps are not compiled any more."""
    return lambda: monkeypatch.setattr(eager_step, "can_compile", lambda _: False)


# Numbers.


@pytest.mark.parametrize("kind", PROBLEM_KINDS)
@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
def test_compiled_steps_have_the_same_numbers(case, kind, never_compiled):
    """To the last bit. (The suite compares them with those of TensorFlow 1.15.)"""

    def trained():
        # float64 shows where a number has passed through float32.
        run = EagerRun(
            seeded(kind, given_gradients=True), lambda: make(case), "float64"
        )
        run.train(range(4))
        inner = getattr(run.optimizer, "_optimizer", run.optimizer)
        return run.values(), compiled(inner)

    values, functions = trained()
    assert functions == (0 if case.id in NOT_COMPILED else 1)
    never_compiled()
    expected, functions = trained()
    assert functions == 0
    np.testing.assert_array_equal(values, expected)


# What needs another function, and what does not.


@pytest.mark.parametrize("kind", ["number", "tensor", "numpy"])
def test_a_changing_hyperparameter_compiles_once(kind):
    make_rate = {"number": float, "tensor": tf.constant, "numpy": np.float32}[kind]
    rates = [0.5, 0.25, 1.0, 2.0, 0.125]
    left = iter(rates)
    optimizer = contrib_opt.LARSOptimizer(
        lambda: make_rate(next(left)), momentum=0.0, skip_list=["plain"]
    )
    var = variable(name="plain")
    for _ in rates:
        optimizer.apply_gradients([(ones(var), var)])
    # Each rate was used, once.
    np.testing.assert_array_equal(var.numpy(), np.array([1.0, 2.0]) - sum(rates))
    assert next(left, None) is None
    assert compiled(optimizer) == 1


def test_a_hyperparameter_of_another_kind_compiles_again():
    rates = iter([1.0, 1.0, 1, 1, tf.constant(1.0), tf.constant(1.0)])
    optimizer = contrib_opt.AddSignOptimizer(lambda: next(rates), beta=0.0)
    var = variable()
    for _ in range(6):
        optimizer.apply_gradients([(ones(var), var)])
    np.testing.assert_array_equal(var.numpy(), np.array([1.0, 2.0]) - 6 * 2.0)
    assert compiled(optimizer) == 3


def test_an_attribute_that_is_set_later():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.5, skip_list=["plain"])
    var = variable(name="plain")

    def step():
        before = var.numpy()
        optimizer.apply_gradients([(tf.zeros([2]), var)])
        return (before - var.numpy())[0]

    optimizer.apply_gradients([(ones(var), var)])
    assert [step(), step()] == [0.5, 0.25]
    assert compiled(optimizer) == 1
    optimizer._use_nesterov = True
    assert [step(), step()] == [0.0625, 0.03125]
    optimizer._momentum = 0.25
    assert step() == 0.0625 * 0.25 * 0.25


def test_the_number_of_rows_does_not_matter():
    optimizer = contrib_opt.LazyAdamOptimizer(1.0)
    var = variable([[1.0], [2.0], [3.0]])
    for indices in ([0], [1, 1], [0, 2, 0], [2], []):
        optimizer.apply_gradients([(rows(var, indices), var)])
    assert compiled(optimizer) == 1


def test_dense_sparse_and_none_change():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    a, b = [variable([[1.0], [2.0]], name="plain") for _ in range(2)]
    patterns = {"dense": ones, "sparse": lambda v: rows(v, [1]), "none": lambda v: None}
    moved = {"dense": [[1], [1]], "sparse": [[0], [1]], "none": [[0], [0]]}
    expected = np.array([[1.0], [2.0]])
    for _ in range(3):
        for name, gradient in patterns.items():
            optimizer.apply_gradients([(ones(a), a), (gradient(b), b)])
            expected = expected - moved[name]
            np.testing.assert_array_equal(b.numpy(), expected)
    np.testing.assert_array_equal(a.numpy(), [[-8.0], [-7.0]])
    assert compiled(optimizer) == 3


def test_new_variables_and_another_global_step():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    steps = [variable(0), variable(0)]
    variables = [variable(name="plain") for _ in range(2)]
    for var in variables:
        for step in steps:
            for _ in range(3):
                optimizer.apply_gradients([(ones(var), var)], step)
    assert [step.numpy() for step in steps] == [6, 6]
    np.testing.assert_array_equal([v.numpy()[0] for v in variables], [-5.0, -5.0])
    assert compiled(optimizer) == 4


def test_the_order_of_the_variables_and_one_twice():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    a, b = [variable(name="plain") for _ in range(2)]
    for _ in range(3):
        optimizer.apply_gradients([(ones(a), a), (2 * ones(b), b)])
        optimizer.apply_gradients([(ones(b), b), (2 * ones(a), a)])
        optimizer.apply_gradients([(ones(a), a), (ones(a), a), (ones(b), b)])
    np.testing.assert_array_equal(a.numpy(), np.array([1.0, 2.0]) - 15)
    np.testing.assert_array_equal(b.numpy(), np.array([1.0, 2.0]) - 12)


def test_gradients_of_other_types():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    var = variable(name="plain")
    kinds = [ones(var), np.ones(2, np.float32), [1.0, 1.0], variable([1.0, 1.0])]
    for _ in range(2):
        for gradient in kinds:
            optimizer.apply_gradients([(gradient, var)])
    np.testing.assert_array_equal(var.numpy(), [-7.0, -6.0])
    assert compiled(optimizer) == 1


def test_avoid_updating_slots():
    optimizer = contrib_opt.RegAdagradOptimizer(0.1, initial_accumulator_value=1.0)
    var = variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
        with optimizer.avoid_updating_slots():
            optimizer.apply_gradients([(ones(var), var)])
    np.testing.assert_array_equal(
        optimizer.get_slot(var, "accumulator").numpy(), [4.0, 4.0]
    )
    assert compiled(optimizer) == 2


def test_decay_var_list():
    optimizer = contrib_opt.MomentumWOptimizer(0.5, learning_rate=0.1, momentum=0.0)
    a, b = variable([8.0]), variable([8.0])
    zeros = [(tf.zeros([1]), a), (tf.zeros([1]), b)]
    for _ in range(3):
        optimizer.apply_gradients(zeros, decay_var_list=[a])
    optimizer.apply_gradients(zeros, decay_var_list=[b])
    optimizer.apply_gradients(zeros)
    np.testing.assert_array_equal([a.numpy(), b.numpy()], [[0.5], [2.0]])
    assert compiled(optimizer) == 1


def test_multitask_wraps_an_optimizer_that_has_compiled():
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.5, skip_list=["plain"])
    var = variable([8.0], name="plain")
    for gradient in (1.0, 0.0):
        optimizer.apply_gradients([(tf.constant([gradient]), var)])
    assert compiled(optimizer) == 1
    np.testing.assert_array_equal(var.numpy(), [6.5])
    wrapper = contrib_opt.MultitaskOptimizerWrapper(optimizer)
    for gradient in (0.0, 0.0, 0.0, 1.0):
        wrapper.apply_gradients([(tf.constant([gradient]), var)])
    np.testing.assert_array_equal(var.numpy(), [6.5 - 1.25])
    assert compiled(optimizer) == 2


# What is cached.


def test_no_more_than_some_kinds_of_steps_are_kept(monkeypatch):
    monkeypatch.setattr(eager_step.CompiledSteps, "MOST", 3)
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    variables = [variable(name="plain") for _ in range(5)]
    for var in variables:
        for _ in range(2):
            optimizer.apply_gradients([(ones(var), var)])
        # The one that is in use stays.
        optimizer.apply_gradients([(ones(variables[0]), variables[0])])
    assert len(optimizer._compiled_steps) == 3
    assert compiled(optimizer) == 5


@pytest.mark.parametrize("gone", ["variable", "global_step"])
def test_variables_are_not_kept(gone):
    optimizer = contrib_opt.LARSOptimizer(1.0)
    var, step = variable(), variable(0)
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)], step)
    assert compiled(optimizer) == len(optimizer._compiled_steps) == 1
    # The memory is the handle's.
    last = var if gone == "variable" else step
    left = [weakref.ref(last), weakref.ref(last.handle)]
    del last
    if gone == "variable":
        del var
    else:
        del step
    assert left[0]() is None
    assert len(optimizer._compiled_steps) == 0
    gc.collect()
    assert left[1]() is None


def test_an_optimizer_is_not_kept():
    optimizer = contrib_opt.LazyAdamOptimizer(1.0)
    var = variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    left = weakref.ref(optimizer), weakref.ref(optimizer.get_slot(var, "m").handle)
    del optimizer
    gc.collect()
    assert left[0]() is left[1]() is None


def test_a_copy_compiles_its_own():
    optimizer = contrib_opt.LazyAdamOptimizer(1.0, beta1=0.0, beta2=0.0, epsilon=0.0)
    var = variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    copied = copy.deepcopy(optimizer)
    assert compiled(copied) == 0
    for _ in range(3):
        copied.apply_gradients([(ones(var), var)])
    np.testing.assert_array_equal(var.numpy(), [-5.0, -4.0])
    assert compiled(copied) == compiled(optimizer) == 1


def test_a_checkpoint_has_nothing_of_it(tmp_path):
    optimizer, var = contrib_opt.LazyAdamOptimizer(1.0), variable()

    def names(path):
        saved = tf.train.Checkpoint(optimizer=optimizer, var=var).save(str(path))
        return [name for name, _ in tf.train.list_variables(saved)]

    optimizer.apply_gradients([(ones(var), var)])
    before = names(tmp_path / "uncompiled")
    optimizer.apply_gradients([(ones(var), var)])
    assert compiled(optimizer) == 1
    assert names(tmp_path / "compiled") == before


def test_nothing_of_the_graph_stays_in_the_optimizer():
    optimizer, var = contrib_opt.LazyAdamOptimizer(1.0), variable()
    optimizer.apply_gradients([(ones(var), var)])
    before = dict(vars(optimizer))
    optimizer.apply_gradients([(ones(var), var)])
    assert compiled(optimizer) == 1
    after = vars(optimizer)
    assert after.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items())


# Errors.


def bad_gradients(var):
    yield rows(var, [0, 2])
    yield rows(var, [-1])
    yield tf.ones([3, 3])
    yield tf.ones([2, 1], tf.float64)
    yield tf.IndexedSlices(tf.ones([2, 1]), tf.constant([1]))
    yield tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]))


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("compiled_for", [ones, lambda var: rows(var, [1])])
def test_errors_are_those_of_a_step_that_is_not_compiled(
    number, compiled_for, never_compiled
):
    optimizer = contrib_opt.LazyAdamOptimizer(1.0)
    good, var = variable(name="good"), variable([[1.0], [2.0]], name="bad")
    step = variable(0)
    bad = list(bad_gradients(var))[number]

    def error():
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as caught:
            optimizer.apply_gradients([(ones(good), good), (bad, var)], step)
        return type(caught.value), str(caught.value)

    def values():
        return [v.numpy() for v in [good, var, step, *optimizer.variables()]]

    for _ in range(2):
        optimizer.apply_gradients([(ones(good), good), (compiled_for(var), var)], step)
    assert compiled(optimizer) == 1
    before = values()
    found = error()
    never_compiled()
    assert found == error()
    for value, old in zip(values(), before):
        np.testing.assert_array_equal(value, old)


def test_what_cannot_be_compiled_runs_without(monkeypatch):
    tried = []
    update = contrib_opt.LARSOptimizer._update_dense

    def only_eagerly(self, grad, var):
        tried.append(tf.executing_eagerly())
        if not tf.executing_eagerly():
            raise TypeError("No numbers are known in a graph.")
        return update(self, grad, var)

    # A rule of the package that cannot be compiled. (Those of users are not tried.)
    only_eagerly.__module__ = update.__module__
    monkeypatch.setattr(contrib_opt.LARSOptimizer, "_update_dense", only_eagerly)
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    var = variable(name="plain")
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    np.testing.assert_array_equal(var.numpy(), [-2.0, -1.0])
    # It is not tried again.
    assert tried == [True, False, True, True]
    assert compiled(optimizer) == 0


def test_an_error_of_a_callable_changes_nothing():
    def rate():
        if failing:
            raise KeyError("no rate")
        return 1.0

    optimizer = contrib_opt.LARSOptimizer(rate, momentum=0.0, skip_list=["plain"])
    var = variable(name="plain")
    for failing in (False, False, True, False):
        if failing:
            with pytest.raises(KeyError):
                optimizer.apply_gradients([(ones(var), var)])
        else:
            optimizer.apply_gradients([(ones(var), var)])
    np.testing.assert_array_equal(var.numpy(), [-2.0, -1.0])


# What is not compiled.


def counting(method, calls):
    def counted(self, *args, **kwargs):
        calls.append(1)
        return method(self, *args, **kwargs)

    return counted


HOOKS = ["_resource_apply_dense", "_prepare", "_finish", "_create_slots", "get_slot"]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("where", ["class", "instance"])
def test_an_overridden_hook_is_called_in_each_step(hook, where):
    calls = []
    counted = counting(getattr(contrib_opt.LARSOptimizer, hook), calls)
    if where == "class":
        overriding = type("Overriding", (contrib_opt.LARSOptimizer,), {hook: counted})
        optimizer = overriding(1.0)
    else:
        optimizer = contrib_opt.LARSOptimizer(1.0)
        setattr(optimizer, hook, counted.__get__(optimizer))
    var, seen = variable(), []
    for _ in range(4):
        optimizer.apply_gradients([(ones(var), var)])
        seen.append(len(calls))
    # The first step may call it more often: it makes slots.
    assert seen[-1] > seen[-2] > seen[-3] > 0
    assert compiled(optimizer) == 0


def test_an_overridden_hook_of_the_optimizer_that_is_extended():
    calls = []

    class Descent(tf.train.GradientDescentOptimizer):
        def _resource_apply_dense(self, grad, handle):
            calls.append(1)
            return super()._resource_apply_dense(grad, handle)

    extended = contrib_opt.extend_with_decoupled_weight_decay(Descent)
    optimizer, var = extended(0.0, learning_rate=1.0), variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    assert len(calls) == 3
    assert compiled(optimizer) == 0


@pytest.mark.parametrize("method", ["_resource_apply_dense", "_prepare", "get_slot"])
def test_a_function_put_into_the_class_is_called_in_each_step(method, monkeypatch):
    optimizer, var = contrib_opt.AdaMaxOptimizer(0.1), variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    calls, original = [], getattr(contrib_opt.AdaMaxOptimizer, method)

    def patched(self, *args):
        calls.append(args)
        return original(self, *args)

    monkeypatch.setattr(contrib_opt.AdaMaxOptimizer, method, patched)
    for step in range(3):
        optimizer.apply_gradients([(ones(var), var)])
        assert len(calls) > step
    monkeypatch.undo()
    before = len(calls)
    optimizer.apply_gradients([(ones(var), var)])
    assert len(calls) == before and compiled(optimizer) == 1


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("gbar_decay", 0.0, 0.5),
        ("mat_gbar_decay", 1.0, 0.5),
        ("mat_gbar_decay", 0.5, 0.0),
        ("svd_interval", 1, 3),
        ("precond_update_interval", 1, 3),
    ],
)
def test_shampoo_with_another_number(name, before, after, never_compiled):
    def trained():
        counter = tf.Variable(0, dtype=tf.int64, use_resource=True)
        kwargs = {"gbar_weight": 0.9, name: before}
        optimizer = contrib_opt.ShampooOptimizer(counter, **kwargs)
        var = variable([[1.0, 2.0], [0.5, -1.0]])
        for step in range(7):
            if step == 3:
                setattr(optimizer, "_" + name, after)
            gradient = tf.constant([[0.1, 0.3], [0.2, -0.7]]) * (step + 1)
            optimizer.apply_gradients([(gradient, var)], counter)
        return var.numpy(), compiled(optimizer)

    values, functions = trained()
    assert functions == 2
    never_compiled()
    np.testing.assert_array_equal(values, trained()[0])


def test_a_subclass_that_overrides_nothing_is_compiled():
    class Mine(contrib_opt.LARSOptimizer):
        """My defaults."""

        def __init__(self):
            super().__init__(1.0, momentum=0.0)
            self._history = []

        def apply_gradients(self, *args, **kwargs):
            self._history.append(1)
            return super().apply_gradients(*args, **kwargs)

    optimizer, var = Mine(), variable()
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var)])
    assert len(optimizer._history) == 3
    assert compiled(optimizer) == 1


def test_a_constraint_is_called_in_each_step():
    calls = []

    def clipped(value):
        calls.append(value.numpy())
        return tf.minimum(value, 0.5)

    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    var = variable(name="plain", constraint=clipped)
    for _ in range(3):
        optimizer.apply_gradients([(-ones(var), var)])
    np.testing.assert_array_equal(calls, [[2.0, 3.0], [1.5, 1.5], [1.5, 1.5]])


@pytest.mark.parametrize("where", ["function", "strategy"])
def test_functions_and_strategies(where):
    optimizer = contrib_opt.LARSOptimizer(1.0, momentum=0.0, skip_list=["plain"])
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope() if where == "strategy" else tf.name_scope(""):
        var = variable(name="plain")

    def step():
        optimizer.apply_gradients([(tf.constant([1.0, 1.0]), var)])

    run = step
    if where == "function":
        run = tf.function(step)
    elif where == "strategy":
        in_replica = getattr(strategy, "run", None) or strategy.experimental_run_v2

        def run():
            with strategy.scope():
                in_replica(step)

    for _ in range(4):
        run()
    np.testing.assert_array_equal(var.numpy(), [-3.0, -2.0])
    assert compiled(optimizer) == 0
    if where == "function":
        # The same optimizer outside of it.
        for _ in range(3):
            step()
        run()
        np.testing.assert_array_equal(var.numpy(), [-7.0, -6.0])
        assert compiled(optimizer) == 1


@pytest.mark.skipif(TF1, reason="TensorFlow 1.15 cannot run functions eagerly")
def test_functions_that_run_eagerly():
    optimizer, var = contrib_opt.LARSOptimizer(1.0), variable()
    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(3):
            optimizer.apply_gradients([(ones(var), var)])
    finally:
        tf.config.run_functions_eagerly(False)
    assert compiled(optimizer) == 0


# Devices, threads, wrappers.


def test_variables_on_two_devices():
    optimizer = contrib_opt.LazyAdamOptimizer(1.0, beta1=0.0, beta2=0.0, epsilon=0.0)
    variables = []
    for device in tf.config.experimental.list_logical_devices("CPU"):
        with tf.device(device.name):
            variables.append(variable())
    for _ in range(3):
        optimizer.apply_gradients([(ones(var), var) for var in variables])
    for var in variables:
        np.testing.assert_array_equal(var.numpy(), [-2.0, -1.0])
        assert optimizer.get_slot(var, "m").device == var.device
    assert compiled(optimizer) == 1


@pytest.mark.parametrize("shared", [True, False])
def test_threads(shared):
    """With variables of their own they do what one thread does; else they just run."""
    optimizer = contrib_opt.AddSignOptimizer(
        0.5, beta=0.0, sign_decay_fn=lambda step: step.read_value()
    )
    state = [(variable(), variable(float(10 * i))) for i in range(4)]
    if shared:
        state = state[:1] * 4
    start, errors = threading.Barrier(4), []

    def train(var, step):
        try:
            start.wait(timeout=60)
            for _ in range(20):
                optimizer.apply_gradients([(ones(var), var)], step)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=train, args=args) for args in state]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert compiled(optimizer) == len({id(var) for var, _ in state})
    if not shared:
        for i, (var, step) in enumerate(state):
            assert step.numpy() == 10 * i + 20
            moved = 0.5 * sum(1 + 10 * i + k for k in range(20))
            np.testing.assert_array_equal(var.numpy(), [1 - moved, 2 - moved])


def test_a_wrapper_hands_on_that_gradients_were_checked(monkeypatch):
    checked, check = [], gradients._check_indexed_slices

    def counted(grad, var):
        checked.append(var)
        return check(grad, var)

    monkeypatch.setattr(gradients, "_check_indexed_slices", counted)
    inner = contrib_opt.LARSOptimizer(1.0)
    optimizer = contrib_opt.MovingAverageOptimizer(inner)
    var = variable([[1.0], [2.0]])
    for _ in range(3):
        optimizer.apply_gradients([(rows(var, [1]), var)])
    assert len(checked) == 3
    assert compiled(inner) == 1

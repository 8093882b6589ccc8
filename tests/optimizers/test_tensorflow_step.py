"""Wrappers compile the eager steps of TensorFlow's optimizers, and nobody can tell."""

import copy
import gc
import weakref

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt import MultitaskOptimizerWrapper, VariableClippingOptimizer
from contrib_opt.optimizers import eager_step
from optimizers.problems import PROBLEM_KINDS, EagerRun, seeded
from optimizers.test_eager_step import compiled, compiled_steps

train = tf.train
OPTIMIZERS = {
    "adadelta": lambda: train.AdadeltaOptimizer(1.0),
    "adagrad": lambda: train.AdagradOptimizer(0.1),
    "adam": lambda: train.AdamOptimizer(0.1),
    "ftrl": lambda: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "gradient_descent": lambda: train.GradientDescentOptimizer(0.1),
    "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(0.1),
    "proximal_descent": lambda: train.ProximalGradientDescentOptimizer(0.1),
    "rms_prop": lambda: train.RMSPropOptimizer(0.1, momentum=0.9),
    "rms_prop_centered": lambda: train.RMSPropOptimizer(0.1, centered=True),
}


def wrapped(optimizer):
    """In a wrapper that changes nothing."""
    return VariableClippingOptimizer(optimizer, [], 1.0)


def variable():
    return tf.Variable([8.0, 8.0], use_resource=True)


def take_steps(wrapper, var, count=1):
    for _ in range(count):
        wrapper.apply_gradients([(tf.ones([2]), var)])


@pytest.mark.parametrize("kind", PROBLEM_KINDS)
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_compiled_steps_have_the_same_numbers(name, kind, monkeypatch):
    """To the last bit."""

    def trained():
        inner = OPTIMIZERS[name]()
        problem = seeded(kind, given_gradients=True)
        # TensorFlow trains no float64 with these.
        dtype = "float32" if name.startswith("proximal") else "float64"
        run = EagerRun(problem, lambda: wrapped(inner), dtype)
        run.train(range(4))
        return run.values(), compiled(inner)

    values, functions = trained()
    assert functions == 1
    monkeypatch.setattr(eager_step, "can_compile", lambda _: False)
    expected, functions = trained()
    assert functions == 0
    np.testing.assert_array_equal(values, expected)


def test_a_callable_is_called_once_a_step_and_compiles_once():
    rates = [0.5, 0.25, 1.0, 2.0]
    left = iter(rates)
    inner = train.GradientDescentOptimizer(lambda: next(left))
    var = variable()
    take_steps(wrapped(inner), var, len(rates))
    np.testing.assert_array_equal(var.numpy(), np.full(2, 8.0 - sum(rates)))
    assert next(left, None) is None
    assert compiled(inner) == 1


def test_a_rate_that_is_a_variable_and_one_that_is_set_later():
    rate = tf.Variable(1.0, use_resource=True)
    inner, var = train.GradientDescentOptimizer(rate), variable()
    wrapper = wrapped(inner)
    take_steps(wrapper, var, 3)
    rate.assign(0.5)
    take_steps(wrapper, var, 2)
    assert var.numpy()[0] == 4.0
    assert compiled(inner) == 1
    inner._learning_rate = 0.25
    take_steps(wrapper, var, 4)
    assert var.numpy()[0] == 3.0


def test_it_may_be_used_without_the_wrapper_between():
    inner, var = train.MomentumOptimizer(1.0, 0.5), variable()
    wrapper = wrapped(inner)
    take_steps(wrapper, var, 2)
    assert compiled(inner) == 1
    before = dict(vars(inner))
    inner.apply_gradients([(tf.zeros([2]), var)])
    take_steps(wrapper, var)
    # Velocities of 1, 1.5, 0.75 and 1.375.
    assert var.numpy()[0] == 8.0 - 4.625
    assert vars(inner).keys() == before.keys()
    assert not any(tf.is_tensor(v) and not hasattr(v, "numpy") for v in before.values())


def test_multitask_leaves_zeros_alone():
    inner, var = train.MomentumOptimizer(1.0, 0.5), variable()
    wrapper = MultitaskOptimizerWrapper(inner)
    for gradient in (1.0, 1.0, 0.0, 1.0):
        wrapper.apply_gradients([(gradient * tf.ones([2]), var)])
    # Velocities of 1, 1.5 and 1.75.
    assert var.numpy()[0] == 8.0 - 4.25
    assert compiled(inner) == 1


def test_users_classes_are_not_compiled():
    class Doubled(train.GradientDescentOptimizer):
        def _prepare(self):
            super()._prepare()
            self._learning_rate_tensor *= 2.0

    class Plain(train.GradientDescentOptimizer):
        pass

    for cls, rate in ((Doubled, 2.0), (Plain, 1.0)):
        inner, var = cls(1.0), variable()
        take_steps(wrapped(inner), var, 3)
        assert var.numpy()[0] == 8.0 - 3 * rate
        assert compiled(inner) == 0


def test_a_copy_compiles_its_own():
    inner, var = train.GradientDescentOptimizer(1.0), variable()
    take_steps(wrapped(inner), var, 2)
    copied = copy.deepcopy(inner)
    assert compiled(copied) == 0
    take_steps(wrapped(copied), var, 2)
    assert var.numpy()[0] == 4.0
    assert compiled(copied) == compiled(inner) == 1


def test_nothing_is_kept():
    inner, var = train.AdamOptimizer(1.0), variable()
    take_steps(wrapped(inner), var, 3)
    assert compiled(inner) == 1
    left = weakref.ref(inner), weakref.ref(inner.get_slot(var, "m").handle)
    del inner
    gc.collect()
    assert left[0]() is left[1]() is None

    inner = train.AdamOptimizer(1.0)
    take_steps(wrapped(inner), var, 3)
    assert len(compiled_steps(inner)) == 1
    del var
    assert len(compiled_steps(inner)) == 0


def test_a_failed_step_changes_nothing():
    inner, var = train.MomentumOptimizer(1.0, 0.5), variable()
    table = tf.Variable([[1.0], [2.0]], use_resource=True)
    wrapper = wrapped(inner)

    def step(index):
        rows = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([index]))
        wrapper.apply_gradients([(tf.ones([2]), var), (rows, table)])

    step(0)
    step(1)
    assert compiled(inner) == 1
    before = [v.numpy() for v in [var, table, *inner.variables()]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index outside its rows"):
        step(2)
    for now, old in zip([var, table, *inner.variables()], before):
        np.testing.assert_array_equal(now.numpy(), old)

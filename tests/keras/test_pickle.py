"""Pickles and copies, which only optimizers of Keras 3 have."""

import copy
import pickle
import subprocess
import sys

import pytest
import tensorflow as tf
from installed import only_keras3
from models import assert_weights

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental


def pickled(optimizer):
    return pickle.loads(pickle.dumps(optimizer))


again = pytest.mark.parametrize(
    "again",
    [pickled, copy.deepcopy, lambda optimizer: pickled(pickled(optimizer))],
    ids=["pickle", "deepcopy", "twice"],
)


class Noted(LossScaleOptimizer):
    """Takes other arguments, and has attributes from before and after them."""

    def __init__(self, inner, note):
        self.before = note
        super().__init__(inner, initial_scale=8.0, dynamic_growth_steps=3)
        self.after = [note]
        self.around = self


def make(kind, which):
    schedule = kind.keras.optimizers.schedules.ExponentialDecay(0.125, 3, 0.5)
    inner = kind.optimizers.Adam(schedule, clipvalue=4.0)
    if which == "fixed":
        return experimental.LossScaleOptimizer(inner, 16)
    if which == "subclass":
        return Noted(inner, "mine")
    return LossScaleOptimizer(inner, initial_scale=8.0, dynamic_growth_steps=3)


def train(optimizer, var, steps):
    for _ in range(steps):
        optimizer.minimize(lambda: tf.reduce_sum(var**2 * [1.0, 3.0]), [var])


@only_keras3
@again
@pytest.mark.parametrize("which", ["dynamic", "fixed", "subclass"])
def test_training_goes_on(kind, again, which):
    first, var = make(kind, which), tf.Variable([1.0, 2.0])
    train(first, var, 4)
    second, other = again(first), tf.Variable(var)
    assert type(second) is type(first)
    assert second.get_config() == first.get_config()
    assert int(second.iterations) == 4
    assert float(second.loss_scale) == float(first.loss_scale)
    if which != "fixed":
        assert float(second.loss_scale) == 16.0
        assert int(second.dynamic_counter) == 1
    if which == "subclass":
        assert (second.before, second.after) == ("mine", ["mine"])
        assert second.around is second
    # With the slots: without them Adam would be elsewhere after the first step.
    train(first, var, 3)
    train(second, other, 3)
    assert_weights([other.numpy()], [var.numpy()])
    assert second.get_config() == first.get_config()
    assert int(second.iterations) == int(first.iterations) == 7


@only_keras3
@again
def test_before_the_first_step(kind, again):
    first = LossScaleOptimizer(kind.optimizers.SGD(0.5, momentum=0.5))
    first.learning_rate = 0.25
    second, var = again(first), tf.Variable([1.0, 2.0])
    assert float(second.learning_rate) == 0.25
    train(second, var, 2)
    assert int(second.dynamic_counter) == 2


@only_keras3
def test_for_other_variables(kind):
    first = make(kind, "dynamic")
    train(first, tf.Variable([1.0, 2.0]), 1)
    second, var = pickled(first), tf.Variable([1.0])
    with pytest.raises(ValueError, match="other variables"):
        second.apply_gradients([(tf.constant([1.0]), var)])


@only_keras3
def test_another_program_unpickles_it(kind, tmp_path):
    optimizer, path = make(kind, "fixed"), tmp_path / "optimizer"
    train(optimizer, tf.Variable([1.0, 2.0]), 2)
    path.write_bytes(pickle.dumps(optimizer))
    program = (
        "import pickle, sys\n"
        "optimizer = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(float(optimizer.loss_scale), int(optimizer.iterations))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["16.0", "2"]

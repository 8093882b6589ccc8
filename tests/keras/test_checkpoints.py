"""tf.train.Checkpoint: a LossScaleOptimizer is saved as the optimizer it wraps."""

import os

import numpy as np
import pytest
import tensorflow as tf
from installed import every_kind
from loss_scaling import GOLDEN, SCENARIOS, STEPS, Run, assert_same, golden

SCENARIO, EXPECTED = SCENARIOS["grows"], golden("trajectories")["grows"]
MIDDLE = 6


def checkpoint(run, optimizer=None):
    return tf.train.Checkpoint(optimizer=optimizer or run.optimizer, kernel=run.kernel)


def train(run, start, stop):
    for step in range(start, stop):
        run.step("tape", step)


@every_kind
@pytest.mark.parametrize("first_steps", [0, 2], ids=["before_slots", "after_slots"])
def test_training_goes_on(kind, first_steps, tmp_path):
    saved = Run(SCENARIO, kind.optimizers)
    train(saved, 0, MIDDLE)
    path = checkpoint(saved).save(str(tmp_path / "ckpt"))
    run = Run(SCENARIO, kind.optimizers)
    if kind.id == "keras3":
        # Keras 3 restores slots only into an optimizer that has them.
        run.optimizer.build([run.kernel])
    train(run, 0, first_steps)
    checkpoint(run).restore(path).assert_existing_objects_matched()
    assert float(run.optimizer.loss_scale) == EXPECTED[MIDDLE - 1]["scale"]
    assert int(run.optimizer.dynamic_counter) == EXPECTED[MIDDLE - 1]["counter"]
    train(run, MIDDLE, STEPS)
    assert_same(run.state(), EXPECTED[-1])


@every_kind
def test_one_without_loss_scaling_restores_into_the_wrapped_optimizer(kind, tmp_path):
    var = tf.Variable([0.0, 0.0])
    inner = kind.optimizers.SGD(1.0, momentum=0.5)
    inner.apply_gradients([(tf.constant([2.0, 4.0]), var)])
    path = tf.train.Checkpoint(optimizer=inner, var=var).save(str(tmp_path / "ckpt"))

    run = Run(SCENARIO, kind.optimizers)
    optimizer, var = run.optimizer, tf.Variable([0.0, 0.0])
    optimizer.get_scaled_loss(tf.constant(1.0))
    optimizer.get_unscaled_gradients([])
    optimizer.apply_gradients([(tf.constant([7.0, 7.0]), var)])
    tf.train.Checkpoint(optimizer=optimizer, var=var).restore(path)
    np.testing.assert_array_equal(var.numpy(), [-2.0, -4.0])
    momentum = optimizer.get_slot(var, "momentum").numpy()
    optimizer.apply_gradients([(tf.constant([0.0, 0.0]), var)])
    # Momentum is half of what it was, and the rate may have been restored.
    np.testing.assert_array_equal(np.abs(momentum), np.array([2.0, 4.0]))
    assert int(optimizer.iterations) == 2
    # A scale and counter that the checkpoint does not have stay as they were.
    assert (float(optimizer.loss_scale), int(optimizer.dynamic_counter)) == (16.0, 0)


@every_kind
def test_one_with_loss_scaling_restores_into_the_optimizer_alone(kind, tmp_path):
    saved = Run(SCENARIO, kind.optimizers)
    train(saved, 0, MIDDLE)
    path = checkpoint(saved).save(str(tmp_path / "ckpt"))
    inner = kind.optimizers.SGD(0.25, momentum=0.5)
    kernel = tf.Variable(tf.ones([2, 3]), name="kernel")
    inner.apply_gradients([(tf.ones([2, 3]), kernel)])
    tf.train.Checkpoint(optimizer=inner, kernel=kernel).restore(path)
    np.testing.assert_array_equal(kernel.numpy(), saved.kernel.numpy())
    assert int(inner.iterations) == MIDDLE


@every_kind
@pytest.mark.parametrize("name", ["scaled", "plain"])
def test_a_checkpoint_of_tensorflow_2_8(kind, name):
    """Restored as far as the Keras allows: see the docstring of the class."""
    run = Run(SCENARIO, kind.optimizers)
    path = os.path.join(GOLDEN, "checkpoints", f"{name}-{MIDDLE}")
    if kind.id.endswith("-new"):
        run.optimizer.build([run.kernel])
        with pytest.raises(ValueError, match="legacy"):
            checkpoint(run).restore(path)
        return
    checkpoint(run).restore(path)
    if name == "plain":
        assert float(run.optimizer.loss_scale) == 8.0
        assert int(run.optimizer.dynamic_counter) == 0
        return
    np.testing.assert_array_equal(
        run.kernel.numpy(), EXPECTED[MIDDLE - 1]["variables"][0]
    )
    assert float(run.optimizer.loss_scale) == EXPECTED[MIDDLE - 1]["scale"]
    assert int(run.optimizer.dynamic_counter) == EXPECTED[MIDDLE - 1]["counter"]
    if kind.id == "keras3":
        assert int(run.optimizer.iterations) == 0
        return
    train(run, MIDDLE, STEPS)
    assert_same(run.state(), EXPECTED[-1])

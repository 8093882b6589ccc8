"""The loss scale managers, against what TensorFlow 1.15.5 recorded."""

import json
import os

import pytest
import tensorflow.compat.v1 as tf

from contrib_opt.mixed_precision import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
)
from mixed_precision.managers import ROWS, states

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(TESTS, "golden/loss_scale_managers/states.json")) as lines:
    GOLDEN = json.load(lines)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_states_are_the_references(name):
    assert states(ExponentialUpdateLossScaleManager, ROWS[name]) == GOLDEN[name]


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_states_in_eager_mode(name, compiled):
    kwargs, finite_steps = ROWS[name]
    manager = ExponentialUpdateLossScaleManager(**kwargs)

    def update(finite):
        manager.update_loss_scale(finite)

    update = tf.function(update) if compiled else update
    for finite, (loss_scale, _, _) in zip(finite_steps, GOLDEN[name]):
        update(tf.constant(finite))
        assert float(manager.get_loss_scale().numpy()) == loss_scale


def test_a_fixed_one_serves_several_graphs():
    manager = FixedLossScaleManager(128)
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as session:
            scale = manager.get_loss_scale()
            assert scale.dtype == tf.float32
            session.run(manager.update_loss_scale(tf.constant(False)))
            assert session.run(scale) == 128.0


@pytest.mark.parametrize(
    "name, value",
    [
        ("init_loss_scale", "big"),
        ("incr_every_n_steps", 0),
        ("incr_every_n_steps", None),
        ("decr_every_n_nan_or_inf", -1),
        ("incr_ratio", 0.5),
        ("decr_ratio", 1.5),
        ("decr_ratio", -0.1),
    ],
)
def test_bad_arguments_are_named(name, value):
    kwargs = dict({"init_loss_scale": 1.0, "incr_every_n_steps": 2}, **{name: value})
    with pytest.raises(ValueError, match=f"{name} must be"):
        ExponentialUpdateLossScaleManager(**kwargs)


@pytest.mark.parametrize("value", [0.5, -1, "2", None, float("nan")])
def test_a_fixed_loss_scale_is_a_number_from_one_on(value):
    with pytest.raises(ValueError, match="loss_scale must be"):
        FixedLossScaleManager(value)


def test_the_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        LossScaleManager()

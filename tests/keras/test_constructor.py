"""Constructors, the classes of what they make, configs, and errors."""

import copy
import inspect

import pytest
import tensorflow as tf
from loss_scaling import KINDS, REFERENCE, golden, is_new

from contrib_opt.keras import mixed_precision
from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

CLASSES = tf.compat.v1.mixed_precision.experimental
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)


def conversions():
    """Pairs that TensorFlow's documentation calls identical, and the golden one."""
    yield "dynamic", "dynamic", {}
    yield "number", 123, {"dynamic": False, "initial_scale": 123}
    yield "fixed", 7.0, {"dynamic": False, "initial_scale": 7.0}
    scale = {"initial_scale": 2048, "dynamic_growth_steps": 500}
    yield "object", lambda: CLASSES.DynamicLossScale(2048, 500), scale
    yield (
        "fixed",
        lambda: CLASSES.FixedLossScale(7.0),
        {
            "dynamic": False,
            "initial_scale": 7.0,
        },
    )


@every_kind
@pytest.mark.parametrize("name, loss_scale, kwargs", list(conversions()))
def test_conversions_of_the_documentation(kind, name, loss_scale, kwargs):
    if callable(loss_scale):
        loss_scale = loss_scale()
    opt1 = experimental.LossScaleOptimizer(kind.optimizers.SGD(), loss_scale)
    opt2 = LossScaleOptimizer(kind.optimizers.SGD(), **kwargs)
    assert opt1.get_config() == opt2.get_config()
    config, recorded = opt1.get_config(), golden("configs")[name]
    assert set(config) == set(recorded)
    inner, expected = config.pop("inner_optimizer"), recorded.pop("inner_optimizer")
    assert config == recorded
    assert inner["class_name"] == expected["class_name"]
    rate = expected["config"]["learning_rate"]
    assert inner["config"]["learning_rate"] == pytest.approx(rate)


@every_kind
def test_subclasses(kind):
    opt1 = experimental.LossScaleOptimizer(kind.optimizers.SGD(), "dynamic")
    opt2 = LossScaleOptimizer(kind.optimizers.SGD())
    assert isinstance(opt1, experimental.LossScaleOptimizer)
    assert not isinstance(opt2, experimental.LossScaleOptimizer)
    for optimizer in (opt1, opt2):
        assert isinstance(optimizer, LossScaleOptimizer)
        assert isinstance(optimizer, kind.keras.mixed_precision.LossScaleOptimizer)
        assert isinstance(optimizer, kind.optimizers.Optimizer)
    assert issubclass(experimental.LossScaleOptimizer, LossScaleOptimizer)


@every_kind
def test_the_wrapped_optimizer_decides_which_keras(kind):
    for other in KINDS:
        optimizer = LossScaleOptimizer(kind.optimizers.SGD())
        theirs = isinstance(optimizer, other.optimizers.Optimizer)
        assert theirs == (other is kind)


@every_kind
def test_programs_may_subclass(kind):
    class Halved(LossScaleOptimizer):
        def __init__(self, inner, note="none"):
            super().__init__(inner, initial_scale=64.0)
            self.note = note

        def get_scaled_loss(self, loss):
            return super().get_scaled_loss(loss) / 2

    optimizer = Halved(kind.optimizers.SGD(), note="mine")
    assert isinstance(optimizer, Halved)
    assert optimizer.note == "mine"
    assert float(optimizer.get_scaled_loss(tf.constant(1.0))) == 32.0
    assert LossScaleOptimizer(inner_optimizer=kind.optimizers.SGD()).dynamic


@pytest.mark.skipif(REFERENCE, reason="only Keras 2's own")
def test_signatures():
    assert str(inspect.signature(LossScaleOptimizer)) == (
        "(inner_optimizer, dynamic=True, initial_scale=None, dynamic_growth_steps=None)"
    )
    signature = inspect.signature(experimental.LossScaleOptimizer)
    assert str(signature) == "(optimizer, loss_scale)"


OLD_CONFIGS = {
    "fixed": (
        {"class_name": "FixedLossScale", "config": {"loss_scale_value": 16.0}},
        {"dynamic": False, "initial_scale": 16.0, "dynamic_growth_steps": None},
    ),
    "dynamic": (
        {
            "class_name": "DynamicLossScale",
            "config": {
                "initial_loss_scale": 64.0,
                "increment_period": 7,
                "multiplier": 2.0,
            },
        },
        {"dynamic": True, "initial_scale": 64.0, "dynamic_growth_steps": 7},
    ),
}
both_classes = pytest.mark.parametrize(
    "cls",
    [LossScaleOptimizer, experimental.LossScaleOptimizer],
    ids=["class", "experimental"],
)


@every_kind
@both_classes
@pytest.mark.parametrize("name", sorted(OLD_CONFIGS))
def test_config_of_tensorflow_2_3(kind, cls, name):
    loss_scale, expected = OLD_CONFIGS[name]
    inner = kind.keras.optimizers.serialize(kind.optimizers.SGD(0.5))
    config = {"optimizer": inner, "loss_scale": loss_scale}
    kept = copy.deepcopy(config)
    optimizer = cls.from_config(config)
    assert config == kept or REFERENCE
    assert isinstance(optimizer, cls)
    assert isinstance(optimizer.inner_optimizer, kind.optimizers.SGD)
    assert float(optimizer.learning_rate) == 0.5
    found = optimizer.get_config()
    found.pop("inner_optimizer")
    assert found == expected


@every_kind
@both_classes
@pytest.mark.parametrize("loss_scale", ["dynamic", 123, "object"])
def test_config_goes_round(kind, cls, loss_scale):
    if loss_scale == "object":
        loss_scale = CLASSES.DynamicLossScale(2048, 500)
    first = experimental.LossScaleOptimizer(kind.optimizers.Adam(0.5), loss_scale)
    config = first.get_config()
    # TensorFlow 2.8 changes the inner dict.
    again = cls.from_config(copy.deepcopy(config))
    assert type(again.inner_optimizer) is type(first.inner_optimizer)
    assert again.get_config() == config == first.get_config()


@both_classes
def test_config_of_tensorflow_2_8(cls):
    for config in golden("configs").values():
        optimizer = cls.from_config(config)
        assert isinstance(optimizer, cls)
        again = optimizer.get_config()
        assert again["inner_optimizer"]["class_name"].lower() == "sgd"
        again.pop("inner_optimizer"), config.pop("inner_optimizer")
        assert again == config


class CustomLossScale(CLASSES.LossScale):
    def __call__(self):
        return tf.constant(1.0)

    def update(self, grads):
        return tf.no_op(), True

    def get_config(self):
        return {}


@every_kind
def test_errors_of_the_experimental_constructor(kind):
    SGD = kind.optimizers.SGD
    with pytest.raises(ValueError, match="multiplier"):
        scale = CLASSES.DynamicLossScale(2048, 500, multiplier=4)
        experimental.LossScaleOptimizer(SGD(), scale)
    with pytest.raises(TypeError, match="FixedLossScale"):
        experimental.LossScaleOptimizer(SGD(), CustomLossScale())
    for wrong in ("static", None, [1]):
        with pytest.raises(ValueError, match="dynamic"):
            experimental.LossScaleOptimizer(SGD(), wrong)
    with pytest.raises(ValueError, match="multiplier"):
        LossScaleOptimizer.from_config(
            {
                "optimizer": kind.keras.optimizers.serialize(SGD()),
                "loss_scale": {
                    "class_name": "DynamicLossScale",
                    "config": {
                        "initial_loss_scale": 2.0,
                        "increment_period": 2,
                        "multiplier": 3.0,
                    },
                },
            }
        )


@every_kind
def test_errors_of_the_constructor(kind):
    SGD = kind.optimizers.SGD
    with pytest.raises(TypeError, match="bool"):
        LossScaleOptimizer(SGD(), "dynamic")
    with pytest.raises(TypeError, match="bool"):
        LossScaleOptimizer(SGD(), 128.0)
    with pytest.raises(ValueError, match="initial_scale"):
        LossScaleOptimizer(SGD(), dynamic=False)
    with pytest.raises(ValueError, match="dynamic_growth_steps"):
        LossScaleOptimizer(
            SGD(), dynamic=False, initial_scale=2, dynamic_growth_steps=3
        )
    for wrong in ("sgd", None, SGD, tf.Variable(1.0)):
        with pytest.raises(TypeError):
            LossScaleOptimizer(wrong)
        with pytest.raises(TypeError):
            experimental.LossScaleOptimizer(wrong, "dynamic")


@every_kind
def test_what_is_wrapped_already(kind):
    inner = kind.optimizers.SGD()
    wrapped = LossScaleOptimizer(inner)
    with pytest.raises(TypeError, match="another LossScaleOptimizer"):
        LossScaleOptimizer(wrapped)
    with pytest.raises(TypeError, match="another LossScaleOptimizer"):
        LossScaleOptimizer(experimental.LossScaleOptimizer(kind.optimizers.SGD(), 2))
    with pytest.raises(ValueError, match="already"):
        LossScaleOptimizer(inner)


def test_an_optimizer_of_tensorflow_1():
    match = None if REFERENCE else "MixedPrecisionLossScaleOptimizer"
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
    with pytest.raises(TypeError, match=match) as raised:
        LossScaleOptimizer(optimizer)
    if not REFERENCE:
        assert "contrib_opt.mixed_precision.LossScaleOptimizer" in str(raised.value)
    with pytest.raises(TypeError, match=match):
        experimental.LossScaleOptimizer(optimizer, "dynamic")


@every_kind
def test_keras_itself_serializes_it(kind):
    adam, optimizers = kind.optimizers.Adam, kind.keras.optimizers
    for optimizer in (
        LossScaleOptimizer(adam(0.5)),
        experimental.LossScaleOptimizer(adam(0.5), 128.0),
    ):
        again = optimizers.deserialize(optimizers.serialize(optimizer))
        assert isinstance(again, LossScaleOptimizer)
        # TensorFlow 2.8 brings back the class that is not experimental.
        assert type(again) is type(optimizer) or REFERENCE
        assert again.get_config() == optimizer.get_config()
        assert isinstance(again.inner_optimizer, kind.optimizers.Adam)


def test_all_kinds_are_here():
    assert KINDS
    assert REFERENCE or any(is_new(kind) for kind in KINDS)
    assert mixed_precision.LossScaleOptimizer is LossScaleOptimizer

"""Constructors, the classes of what they make, configs, and errors."""

import copy
import inspect

import pytest
import tensorflow as tf
from installed import (
    KINDS,
    OF_TENSORFLOW,
    REFERENCE,
    TWO_KERAS_2,
    every_kind,
    is_new,
    is_second_keras_2,
)
from loss_scaling import golden

from contrib_opt.keras import mixed_precision
from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

CLASSES = tf.compat.v1.mixed_precision.experimental
ANY = {"__init__": lambda self, *args, **kwargs: None}


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


def class_for_configs(cls, kind):
    """`cls`, or its class for `kind` where `cls` takes the config for another's."""
    if not is_second_keras_2(kind):
        return cls
    return type(make(cls, kind.optimizers.SGD()))


def make(cls, inner):
    if issubclass(cls, experimental.LossScaleOptimizer):
        return cls(inner, "dynamic")
    return cls(inner)


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
    optimizer = class_for_configs(cls, kind).from_config(config)
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
    again = class_for_configs(cls, kind).from_config(copy.deepcopy(config))
    assert isinstance(again, cls)
    assert type(again.inner_optimizer) is type(first.inner_optimizer)
    assert again.get_config() == config == first.get_config()


@every_kind
@both_classes
def test_config_goes_round_by_the_class_of_an_object(kind, cls):
    """That class knows its Keras, but not the generation of the wrapped optimizer."""
    first = make(cls, kind.optimizers.Adam(0.5))
    for other in KINDS:
        if other.keras is kind.keras:
            by = type(make(cls, other.optimizers.SGD()))
            again = by.from_config(copy.deepcopy(first.get_config()))
            assert type(again) is type(first)
            assert type(again.inner_optimizer) is type(first.inner_optimizer)


@every_kind
def test_a_schedule_goes_round(kind):
    schedules = kind.keras.optimizers.schedules
    schedule = schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25])
    first = LossScaleOptimizer(kind.optimizers.SGD(schedule))
    cls = class_for_configs(LossScaleOptimizer, kind)
    again = cls.from_config(copy.deepcopy(first.get_config()))
    assert again.get_config() == first.get_config()
    var = tf.Variable(0.0)
    for expected in (-1.0, -2.0, -2.5, -2.75):
        again.minimize(lambda: var, [var])
        assert var.numpy() == expected


@every_kind
@pytest.mark.parametrize("by", ["registration", "custom_objects"])
def test_an_optimizer_of_the_program_goes_round(kind, by):
    class Mine(kind.optimizers.SGD):
        pass

    custom_objects = {"Mine": Mine}
    if by == "registration":
        register = kind.keras.utils.register_keras_serializable
        register("test_constructor", f"Mine_{kind.id}")(Mine)
        custom_objects = None
    first = LossScaleOptimizer(Mine(0.5))
    cls = class_for_configs(LossScaleOptimizer, kind)
    again = cls.from_config(copy.deepcopy(first.get_config()), custom_objects)
    assert type(again.inner_optimizer) is Mine
    assert again.get_config() == first.get_config()


@pytest.mark.skipif(not TWO_KERAS_2, reason="needs keras and tf_keras of Keras 2")
@every_kind
@both_classes
def test_of_two_keras_2_a_config_is_read_as_that_of_tf_keras(kind, cls):
    config = make(cls, kind.optimizers.Adam(0.5)).get_config()
    again = cls.from_config(config)
    assert isinstance(again, cls)
    assert type(again.inner_optimizer).__name__ == "Adam"
    assert type(again.inner_optimizer).__module__.split(".")[0] == OF_TENSORFLOW
    assert again.get_config() == config


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


@pytest.mark.skipif(REFERENCE, reason="it fails later, or trains to NaN")
@every_kind
@pytest.mark.parametrize(
    "name, wrong",
    [
        ("initial_scale", "many"),
        ("initial_scale", 0),
        ("initial_scale", -8.0),
        ("initial_scale", float("nan")),
        ("initial_scale", float("inf")),
        ("dynamic_growth_steps", "many"),
        ("dynamic_growth_steps", 0),
        ("dynamic_growth_steps", 1.5),
        ("dynamic_growth_steps", float("inf")),
    ],
)
def test_numbers_that_cannot_scale(kind, name, wrong):
    with pytest.raises((ValueError, OverflowError), match=name) as raised:
        LossScaleOptimizer(kind.optimizers.SGD(), **{name: wrong})
    assert repr(wrong) in str(raised.value)


@pytest.mark.skipif(REFERENCE, reason="Keras's own")
@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: LossScaleOptimizer(), ["inner_optimizer"]),
        (lambda: LossScaleOptimizer(dynamic=True), ["inner_optimizer"]),
        (lambda: experimental.LossScaleOptimizer(), ["'optimizer'"]),
        (lambda: type("Any", (LossScaleOptimizer,), ANY)(), ["inner_optimizer"]),
        (
            lambda: LossScaleOptimizer("sgd"),
            ["inner_optimizer", "tf.keras.optimizers.get('sgd')"],
        ),
        (
            lambda: experimental.LossScaleOptimizer("sgd", 8),
            ["optimizer", "tf.keras.optimizers.get('sgd')"],
        ),
    ],
)
def test_an_argument_that_is_wrong_is_named(call, words):
    with pytest.raises(TypeError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


@every_kind
def test_messages_have_the_names_that_users_know(kind):
    if not is_new(kind):
        pytest.skip("Keras's own")
    optimizer = LossScaleOptimizer(kind.optimizers.SGD())
    for wrong_call in (
        lambda: optimizer.minimize(),
        lambda: optimizer.apply_gradients(),
        lambda: optimizer.get_slot(),
        lambda: experimental.LossScaleOptimizer(kind.optimizers.SGD()),
    ):
        with pytest.raises(TypeError, match="^LossScaleOptimizer[.]"):
            wrong_call()


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

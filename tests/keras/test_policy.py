"""The experimental policies, as legacy programs call them."""

import subprocess
import sys

import pytest
import tensorflow as tf
from installed import KINDS, REFERENCE, every_kind

from contrib_opt.keras.mixed_precision import experimental
from test_readme import DIFFS, side

CLASSES = tf.compat.v1.mixed_precision.experimental


def test_policy():
    policy = experimental.Policy("mixed_float16")
    assert isinstance(policy, tf.keras.mixed_precision.Policy)
    assert policy.name == "mixed_float16"
    assert (policy.compute_dtype, policy.variable_dtype) == ("float16", "float32")
    assert isinstance(policy.loss_scale, CLASSES.DynamicLossScale)
    assert policy.get_config() == {"name": "mixed_float16"}


@pytest.mark.parametrize(
    "loss_scale, cls",
    [(128, CLASSES.FixedLossScale), ("dynamic", CLASSES.DynamicLossScale)],
)
def test_loss_scale_of_a_policy(loss_scale, cls):
    policy = experimental.Policy("mixed_float16", loss_scale=loss_scale)
    assert type(policy.loss_scale) is cls
    config = policy.get_config()
    assert config["loss_scale"]["class_name"] == cls.__name__
    again = experimental.Policy.from_config(config)
    assert type(again.loss_scale) is cls
    assert again.get_config() == config
    for kind in KINDS:
        optimizer = experimental.LossScaleOptimizer(
            kind.optimizers.SGD(), loss_scale=policy.loss_scale
        )
        expected = 128.0 if loss_scale == 128 else 2.0**15
        assert float(optimizer.loss_scale) == expected


def test_no_loss_scale():
    assert experimental.Policy("float32").loss_scale is None
    assert experimental.Policy("mixed_float16", loss_scale=None).loss_scale is None
    with pytest.raises(ValueError):
        experimental.Policy("mixed_float16", loss_scale="static")


@every_kind
@pytest.mark.parametrize("by_name", [True, False], ids=["name", "policy"])
def test_set_policy(kind, by_name):
    assert experimental.global_policy().name == "float32"
    policy = experimental.Policy("mixed_float16", loss_scale=8.0)
    experimental.set_policy("mixed_float16" if by_name else policy)
    assert experimental.global_policy().name == "mixed_float16"
    layer = kind.keras.layers.Dense(2)
    layer.build((None, 3))
    assert layer.compute_dtype == "float16"
    assert tf.as_dtype(layer.kernel.dtype) == tf.float32
    found = experimental.get_layer_policy(layer)
    assert found.name == "mixed_float16"
    if not by_name:
        assert experimental.global_policy() is policy
        assert float(found.loss_scale()) == 8.0
    other = kind.keras.layers.Dense(2, dtype="float32")
    assert experimental.get_layer_policy(other).name == "float32"
    experimental.set_policy(None)
    assert experimental.global_policy().name == "float32"
    assert kind.keras.layers.Dense(2).compute_dtype == "float32"


@pytest.mark.parametrize("wrong", [5, tf.float16, ["mixed_float16"]])
def test_what_names_no_policy(wrong):
    for function in (experimental.set_policy, experimental.Policy):
        with pytest.raises(TypeError, match="'name' must be a string"):
            function(wrong)
    assert experimental.global_policy().name == "float32"


@pytest.mark.skipif(REFERENCE, reason="there, the experimental names are deprecated")
def test_nothing_is_deprecated():
    """No warning sends users to the class that their TensorFlow lacks."""
    (program,) = [side(diff, "+") for diff in DIFFS if "contrib_opt.keras" in diff]
    program += "mixed_precision.set_policy(mixed_precision.Policy('mixed_float16', 8))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "loss_scale of the policy" in done.stderr
    assert "deprecated" not in done.stderr


@pytest.mark.skipif(REFERENCE, reason="there, they are deprecated")
def test_deprecations_of_others_are_still_told():
    """Also after an error in the context that silences them."""
    from tensorflow.python.util import deprecation

    from contrib_opt import _tf

    with pytest.raises(ZeroDivisionError), _tf.deprecation_silenced():
        assert not deprecation._PRINT_DEPRECATION_WARNINGS
        raise ZeroDivisionError
    assert deprecation._PRINT_DEPRECATION_WARNINGS


def test_get_layer_policy_wants_a_layer():
    with pytest.raises(ValueError, match="layer"):
        experimental.get_layer_policy("dense")


@pytest.mark.skipif(REFERENCE, reason="there, compile() uses it")
def test_a_loss_scale_that_compile_ignores_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(tf.get_logger(), "warning", lambda *args: told.append(args[0]))
    experimental.set_policy("mixed_float16")
    experimental.set_policy("float32")
    experimental.set_policy(experimental.Policy("mixed_float16", "dynamic"))
    assert not [text for text in told if "compile()" in text]
    experimental.set_policy(experimental.Policy("mixed_float16", 128))
    assert [text for text in told if "compile()" in text]


def test_a_layer_takes_a_policy(tmp_path):
    keras = tf.keras
    policy = experimental.Policy("mixed_float16")
    model = keras.Sequential([keras.layers.Dense(2, dtype=policy)])
    model.build((None, 3))
    assert model.layers[0].compute_dtype == "float16"
    path = str(tmp_path / ("model" if REFERENCE else "model.keras"))
    model.save(path)
    loaded = keras.models.load_model(path)
    assert loaded.layers[0].compute_dtype == "float16"

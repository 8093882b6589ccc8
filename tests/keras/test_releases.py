"""Which class is handed out on which TensorFlow, and what importing it costs."""

import subprocess
import sys

import pytest
import tensorflow as tf

import contrib_opt

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
NAMES = ["LossScaleOptimizer", "experimental.LossScaleOptimizer"]
NAMES += ["Policy", "set_global_policy", "global_policy"]
NAMES += ["experimental." + n for n in ("Policy", "set_policy", "get_layer_policy")]


def ours(name):
    found = contrib_opt.keras.mixed_precision
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.skipif(not (2, 4) <= VERSION < (2, 9), reason="there is no real class")
@pytest.mark.parametrize("name", NAMES)
def test_the_real_one_is_handed_out(name):
    real = tf.keras.mixed_precision
    for part in name.split("."):
        real = getattr(real, part)
    assert ours(name) is real


@pytest.mark.skipif(VERSION >= (2, 4), reason="TensorFlow has it")
@pytest.mark.parametrize("name", NAMES)
def test_too_old_a_tensorflow_is_told(name):
    with pytest.raises(ImportError, match=r"needs TensorFlow 2\.4 .*1\.15"):
        ours(name)


@pytest.mark.skipif(VERSION < (2, 4), reason="there are none")
@pytest.mark.parametrize("name", ["Policy", "set_global_policy", "global_policy"])
def test_what_keras_still_has_is_its_own(name):
    assert ours(name) is getattr(tf.keras.mixed_precision, name)


@pytest.mark.skipif(VERSION < (2, 4), reason="there are none")
def test_all_names_are_listed():
    """For completion, and for `import *`."""
    for prefix in ("", "experimental."):
        names = [name[len(prefix) :] for name in NAMES if name.startswith(prefix)]
        names = {name for name in names if "." not in name}
        module = ours("experimental") if prefix else contrib_opt.keras.mixed_precision
        assert names <= set(dir(module))
        assert names <= set(module.__all__)
        for name in module.__all__:
            getattr(module, name)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="Loss"):
        contrib_opt.keras.mixed_precision.LossScale  # noqa: B018
    with pytest.raises(AttributeError, match="applications"):
        contrib_opt.keras.applications  # noqa: B018


def test_importing_it_loads_no_keras_that_is_not_loaded():
    program = (
        "import sys, tensorflow\n"
        "loaded = {m for m in ('keras', 'tf_keras') if m in sys.modules}\n"
        "import contrib_opt.keras.mixed_precision.experimental\n"
        "print({m for m in ('keras', 'tf_keras') if m in sys.modules} - loaded)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert output.stdout.strip() == "set()"

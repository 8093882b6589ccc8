"""model.save and load_model bring back the class, its scale and its counter."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from loss_scaling import KINDS, NAN, REFERENCE
from models import X, Y, assert_weights, make_model

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

# SavedModel's name in Keras 2 is that of a folder.
FORMATS = {"keras": "model.keras", "h5": "model.h5", "saved_model": "model"}


def combinations():
    for kind in KINDS:
        for name in FORMATS:
            if name == "saved_model" and kind.id == "keras3":
                continue  # Keras 3 only exports it.
            if name == "keras" and REFERENCE:
                continue
            yield pytest.param(kind, name, id=f"{kind.id}-{name}")


def compiled(kind, make):
    model = make_model(kind)
    # By its name, Keras 3 cannot read it from an .h5 file.
    model.compile(optimizer=make(kind), loss=kind.keras.losses.MeanSquaredError())
    return model


def trained(kind, make):
    model = compiled(kind, make)
    fit(model, 3)
    fit(model, 1, np.full_like(X, NAN))
    fit(model, 2)
    return model


def fit(model, epochs, x=X):
    model.fit(x, Y, batch_size=len(x), epochs=epochs, verbose=0, shuffle=False)


def dynamic(kind):
    inner = kind.optimizers.SGD(0.125, momentum=0.5)
    return LossScaleOptimizer(inner, initial_scale=64.0, dynamic_growth_steps=7)


def fixed(kind):
    return experimental.LossScaleOptimizer(kind.optimizers.Adam(0.125), 16)


def restores_optimizers(kind, file, folder):
    """Whether this Keras restores the state of an optimizer alone from that format.

    Keras 2 restores no optimizer from a SavedModel, and from .keras only new ones.
    """
    path = os.path.join(folder, "alone" + os.path.splitext(file)[1])
    model = compiled(kind, lambda kind: kind.optimizers.SGD(0.125))
    fit(model, 2)
    model.save(path)
    return int(kind.keras.models.load_model(path).optimizer.iterations) == 2


@pytest.mark.parametrize("kind, name", list(combinations()))
@pytest.mark.parametrize("make", [dynamic, fixed], ids=["dynamic", "experimental"])
def test_save_and_load(kind, name, make, tmp_path):
    model = trained(kind, make)
    path = str(tmp_path / FORMATS[name])
    model.save(path)
    loaded = kind.keras.models.load_model(path)
    before, after = model.optimizer, loaded.optimizer
    assert isinstance(after, LossScaleOptimizer)
    assert type(after) is type(before) or REFERENCE
    assert after.get_config() == before.get_config()
    assert isinstance(after.inner_optimizer, type(before.inner_optimizer))
    assert_weights(loaded.get_weights(), model.get_weights(), rtol=0)

    restores = restores_optimizers(kind, FORMATS[name], str(tmp_path))
    assert restores or kind.id != "keras3"
    assert int(after.iterations) == (6 if restores else 0)
    if restores:
        for one, other in zip(after.get_weights(), before.get_weights()):
            np.testing.assert_array_equal(one, other)
    if make is dynamic:
        # The weights in an .h5 file are those of the wrapped optimizer alone.
        kept = restores and name != "h5"
        expected = (32.0, 2) if kept else (64.0, 0)
        assert (float(after.loss_scale), int(after.dynamic_counter)) == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_another_program_loads_it(kind, tmp_path):
    paths = []
    for of_kind, name in (combination.values for combination in combinations()):
        if of_kind is kind:
            paths.append(str(tmp_path / FORMATS[name]))
            compiled(kind, fixed).save(paths[-1])
    keras = "tensorflow.keras" if REFERENCE else kind.keras.__name__
    program = (
        f"import {keras} as keras\n"
        "from contrib_opt.keras import mixed_precision\n"
        f"for path in {paths!r}:\n"
        "    optimizer = keras.models.load_model(path).optimizer\n"
        "    assert isinstance(optimizer, mixed_precision.LossScaleOptimizer)\n"
        "    experimental = mixed_precision.experimental.LossScaleOptimizer\n"
        f"    assert {REFERENCE} or isinstance(optimizer, experimental), optimizer\n"
        "    print(float(optimizer.loss_scale))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-len(paths) :] == ["16.0"] * len(paths)


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.id == "keras3"], ids=lambda kind: kind.id
)
def test_state_is_that_of_keras_3_own_class(kind):
    """Each reads what the other wrote."""
    theirs = kind.keras.mixed_precision.LossScaleOptimizer
    for source, target in (
        (theirs, LossScaleOptimizer),
        (LossScaleOptimizer, theirs),
    ):
        before, after = (
            trained(
                kind,
                lambda kind, cls=cls: cls(
                    kind.optimizers.SGD(0.125, momentum=0.5), initial_scale=64.0
                ),
            ).optimizer
            for cls in (source, target)
        )
        before.dynamic_scale.assign(4.0)
        before.step_counter.assign(3)
        before.inner_optimizer.iterations.assign(9)
        store = {}
        before.save_own_variables(store)
        after.load_own_variables(store)
        assert float(after.dynamic_scale) == 4.0
        assert int(after.step_counter) == 3
        assert int(after.iterations) == 9


def test_the_policy_of_a_saved_layer_is_a_plain_one():
    experimental.set_policy(experimental.Policy("mixed_float16"))
    layer = tf.keras.layers.Dense(2)
    assert "contrib_opt" not in str(layer.get_config()) or REFERENCE

"""Training in mixed_float16 that fails without loss scaling, and works with it."""

import numpy as np
import pytest
import tensorflow as tf
from installed import every_generation

from contrib_opt.keras.mixed_precision import LossScaleOptimizer, experimental

RANDOM = np.random.RandomState(0)
X = RANDOM.choice([-1.0, 1.0], size=(16384, 8)).astype(np.float32)
# The gradients of the outputs are below 2e-4 / 16384; in float16, 3e-8 is zero.
TARGET = (RANDOM.randn(8, 1) * 2e-5).astype(np.float32)
Y = X @ TARGET


def make_model(kind):
    layers = kind.keras.layers
    experimental.set_policy("mixed_float16")
    layer = layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = kind.keras.Sequential([layer])
    model.build((None, 8))
    assert model.layers[0].compute_dtype == "float16"
    return model


def error(model):
    return np.abs(model.get_weights()[0] - TARGET).max() / np.abs(TARGET).max()


def train(model, optimizer, scaled):
    kernel = model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            outputs = tf.cast(model(X, training=True), tf.float32)
            loss = tf.reduce_mean(tf.square(outputs - Y))
            if scaled:
                loss = optimizer.get_scaled_loss(loss)
        grads = tape.gradient(loss, kernel)
        if scaled:
            grads = optimizer.get_unscaled_gradients(grads)
        optimizer.apply_gradients(zip(grads, kernel))

    for _ in range(30):
        step()


@every_generation
def test_without_loss_scaling_nothing_is_learned(kind):
    model = make_model(kind)
    train(model, kind.optimizers.SGD(0.2), scaled=False)
    assert np.all(model.get_weights()[0] == 0.0)
    assert error(model) == 1.0


@every_generation
@pytest.mark.parametrize("loss_scale", ["dynamic", 2.0**16], ids=["dynamic", "fixed"])
def test_a_loop_learns(kind, loss_scale):
    model = make_model(kind)
    inner = kind.optimizers.SGD(0.2)
    optimizer = experimental.LossScaleOptimizer(inner, loss_scale)
    train(model, optimizer, scaled=True)
    assert error(model) < 0.02
    assert int(optimizer.iterations) == 30


@every_generation
def test_fit_learns(kind):
    model = make_model(kind)
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(0.2))
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(X, Y, batch_size=len(X), epochs=30, verbose=0)
    assert error(model) < 0.02


@every_generation
def test_a_scale_that_is_too_high_comes_down(kind):
    model = make_model(kind)
    inner = kind.optimizers.SGD(0.2)
    optimizer = LossScaleOptimizer(inner, initial_scale=2.0**36)
    train(model, optimizer, scaled=True)
    assert 2.0**20 < float(optimizer.loss_scale) < 2.0**36
    assert int(optimizer.iterations) == 30
    assert error(model) < 0.5

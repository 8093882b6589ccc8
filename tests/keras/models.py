"""A small model of any Keras, and training without loss scaling to compare with."""

import numpy as np
import tensorflow as tf

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(16, 4).astype(np.float32)
Y = (X @ RANDOM.randn(4, 2) + 0.5).astype(np.float32)


def make_model(kind):
    """Two layers with the same weights each time."""
    layers = kind.keras.layers
    # So that a SavedModel knows the shape; Keras 3 warns of the argument.
    shape = {} if kind.id == "keras3" else {"input_shape": (4,)}
    first = layers.Dense(3, activation="tanh", **shape)
    model = kind.keras.Sequential([first, layers.Dense(2)])
    model.build((None, 4))
    random = np.random.RandomState(1)
    model.set_weights(
        [random.randn(*w.shape).astype(np.float32) / 2 for w in model.get_weights()]
    )
    return model


def loss_of(model, x=X, y=Y):
    return tf.reduce_mean(tf.square(tf.cast(model(x), tf.float32) - y))


def plain(kind, steps, inner=None):
    """The weights after `steps` of full batches, without loss scaling."""
    model = make_model(kind)
    optimizer = inner or kind.optimizers.SGD(0.125, momentum=0.5)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(model)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return model.get_weights()


def loop_step(model, optimizer, x=X, y=Y):
    """A step as the documentation of Keras 2 has it."""
    with tf.GradientTape() as tape:
        loss = loss_of(model, x, y)
        scaled_loss = optimizer.get_scaled_loss(loss)
    scaled_grads = tape.gradient(scaled_loss, model.trainable_variables)
    grads = optimizer.get_unscaled_gradients(scaled_grads)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


def assert_weights(actual, expected, rtol=1e-5):
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)

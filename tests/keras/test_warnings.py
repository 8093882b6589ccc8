"""The warning that a training loop forgot to scale or to unscale."""

import pytest
import tensorflow as tf
from installed import REFERENCE, every_kind, only_keras3
from models import X, Y, make_model

from contrib_opt.keras.mixed_precision import LossScaleOptimizer

pytestmark = pytest.mark.skipif(REFERENCE, reason="it came with TensorFlow 2.9")


@pytest.fixture
def warned(monkeypatch):
    """The warnings of TensorFlow, as text."""
    found = []
    logger = tf.get_logger()

    def warning(message, *args, **kwargs):
        found.append(message % args if args else message)

    monkeypatch.setattr(logger, "warning", warning)
    return found


def about_scaling(warned):
    return [text for text in warned if "get_scaled_loss" in text]


@every_kind
@pytest.mark.parametrize(
    "called, missing",
    [
        ((), ("get_scaled_loss()", "get_unscaled_gradients()")),
        (("get_scaled_loss",), ("get_unscaled_gradients()",)),
        (("get_unscaled_gradients",), ("get_scaled_loss()",)),
        (("get_scaled_loss", "get_unscaled_gradients"), ()),
    ],
)
def test_what_was_forgotten(kind, called, missing, warned):
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD(0.5)), tf.Variable([1.0])
    grads = [tf.constant([1.0])]
    if "get_scaled_loss" in called:
        optimizer.get_scaled_loss(tf.constant(1.0))
    if "get_unscaled_gradients" in called:
        optimizer.get_unscaled_gradients(grads)
    optimizer.apply_gradients(zip(grads, [var]))
    # Nothing is scaled or unscaled behind the back of the program.
    assert var.numpy() == [0.5]
    texts = about_scaling(warned)
    assert len(texts) == bool(missing)
    for name in missing:
        assert name in texts[0]


@every_kind
def test_neither_fit_nor_minimize_warn(kind, warned):
    model = make_model(kind)
    optimizer = LossScaleOptimizer(kind.optimizers.SGD(0.5))
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
    model.fit(X, Y, epochs=1, verbose=0)
    other, var = LossScaleOptimizer(kind.optimizers.SGD(0.5)), tf.Variable([1.0])
    other.minimize(lambda: tf.reduce_sum(var), [var])
    assert not about_scaling(warned)


@only_keras3
def test_scaled_in_one_function_and_applied_in_another(kind):
    """What would be unscaled the first time only is an error."""
    optimizer, var = LossScaleOptimizer(kind.optimizers.SGD(0.5)), tf.Variable([1.0])

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(var))
        return tape.gradient(loss, [var])

    grads = gradients()
    with pytest.raises(RuntimeError, match="scale_loss"):
        optimizer.apply_gradients(zip(grads, [var]))
    assert var.numpy() == [1.0]
    # By the names of Keras 2 it works.
    grads = optimizer.get_unscaled_gradients(gradients())
    optimizer.apply_gradients(zip(grads, [var]))
    assert var.numpy() == [0.5]

"""A training loop with tf.GradientTape in mixed_float16, as programs of TF 2.3 had it.

    python legacy_examples/loss_scale_gradient_tape.py --keras=tf_keras

It learns scikit-learn's handwritten digits. Of the program for TensorFlow 2.3 only the
import of mixed_precision has changed, and --keras, which says whose layers and
optimizers to take: `keras` or `tf_keras`; by default those of `tf.keras`.
"""

import importlib

import numpy as np
import tensorflow as tf
from absl import app, flags, logging

import digits_data
from contrib_opt.keras.mixed_precision import experimental as mixed_precision

FLAGS = flags.FLAGS

# Keeps TensorFlow's news out of the report; --verbosity=0 brings it back.
FLAGS.verbosity = logging.ERROR

flags.DEFINE_enum(
    "keras", None, ["keras", "tf_keras"], "Which Keras; tf.keras if none."
)
flags.DEFINE_string("loss_scale", "dynamic", "'dynamic', or a number.")
flags.DEFINE_float("learning_rate", 0.002, "Of Adam.", lower_bound=0.0)
flags.DEFINE_integer("batch_size", 256, "Images in a step.", lower_bound=1)
flags.DEFINE_integer("steps", 300, "Steps to train.", lower_bound=1)
flags.DEFINE_integer("log_every", 10, "Steps from report to report.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of the weights and of the batches.")


def main(_):
    """Trains, and says how good the network is at the end."""
    keras = importlib.import_module(FLAGS.keras) if FLAGS.keras else tf.keras
    keras.utils.set_random_seed(FLAGS.seed)
    loss_scale = FLAGS.loss_scale
    if loss_scale != "dynamic":
        loss_scale = float(loss_scale)

    policy = mixed_precision.Policy("mixed_float16", loss_scale=loss_scale)
    mixed_precision.set_policy(policy)
    train, test = digits_data.load(digits_data.from_minus_one_to_one)
    batches = tf.data.Dataset.from_tensor_slices((train.images, train.labels))
    batches = batches.shuffle(len(train.labels), seed=FLAGS.seed).repeat()
    batches = iter(batches.batch(FLAGS.batch_size).take(FLAGS.steps))

    model = keras.Sequential(
        [
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10),
            keras.layers.Activation("linear", dtype="float32"),
        ]
    )
    model.build((None, 8, 8, 1))
    print(f"A model of {type(model).__module__.split('.')[0]}, in {policy.name}")

    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(FLAGS.learning_rate)
    optimizer = mixed_precision.LossScaleOptimizer(optimizer, policy.loss_scale)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = loss_object(labels, logits)
            scaled_loss = optimizer.get_scaled_loss(loss)
        scaled_gradients = tape.gradient(scaled_loss, model.trainable_variables)
        gradients = optimizer.get_unscaled_gradients(scaled_gradients)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    def test_accuracy():
        predicted = np.argmax(model(test.images, training=False), axis=1)
        return 100.0 * np.mean(predicted == test.labels)

    skipped = 0
    for step, (images, labels) in enumerate(batches):
        before = float(optimizer.loss_scale)
        loss = train_step(images, labels)
        skipped += float(optimizer.loss_scale) < before
        if step % FLAGS.log_every == 0:
            print(
                f"step {step:4d}/{FLAGS.steps}  loss {float(loss):.4f}  "
                f"loss scale {float(optimizer.loss_scale):g}  "
                f"test accuracy {test_accuracy():.2f}"
            )
    print(f"Steps: {int(optimizer.iterations)}, of which skipped: {skipped}")
    print(f"Test accuracy: {test_accuracy():.2f} %")


if __name__ == "__main__":
    app.run(main)

"""AdamW inside a moving average: train, save the averages, evaluate with them.

    python legacy_examples/adamw_moving_average.py --model_dir=/tmp/digits_adamw

Steps with a high learning rate end at noisy weights; their moving average is better.
The saver of the training graph writes it under the names of the weights, so that the
evaluation, which knows of no optimizer, restores it with an ordinary Saver. Started
again with the same --model_dir, the training goes on from the last checkpoint.
"""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags

import contrib_opt
import digits
import digits_data

FLAGS = flags.FLAGS

flags.DEFINE_float("learning_rate", 0.03, "Learning rate of Adam.", lower_bound=0.0)
flags.DEFINE_float(
    "weight_decay",
    0.0005,
    "Part of the weights that a step takes off.",
    lower_bound=0.0,
)
flags.DEFINE_float(
    "average_decay",
    0.99,
    "Part of the average that a step keeps.",
    lower_bound=0.0,
    upper_bound=1.0,
)
for name in ("batch_size", "steps", "log_every", "seed", "model_dir"):
    flags.declare_key_flag(name)  # so that --help lists them
FLAGS.set_default("batch_size", 16)
FLAGS.set_default("steps", 500)
FLAGS.set_default("warmup_steps", 0)
FLAGS.set_default("log_every", 50)

HIDDEN = 64


def network(images):
    """Logits [n, 10] of images [n, 8, 8, 1]: two dense layers."""
    x = tf.reshape(images, [-1, 64])
    x = tf.nn.relu(_dense("hidden", x, HIDDEN))
    return _dense("logits", x, digits.CLASSES)


def _dense(name, x, size):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [x.shape[1], size])
        bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
    return tf.matmul(x, kernel) + bias


def _placeholders():
    return (
        tf.placeholder(tf.float32, [None, 8, 8, 1], name="images"),
        tf.placeholder(tf.int32, [None], name="labels"),
    )


def batches(split, first_step):
    """The batches from `first_step` on, the same whether resumed or not."""
    rng = np.random.RandomState(FLAGS.seed)
    for step in range(FLAGS.steps):
        chosen = rng.randint(len(split.labels), size=FLAGS.batch_size)
        if step >= first_step:
            yield step, split.images[chosen], split.labels[chosen]


def train(split, test, model_dir):
    """Trains, and saves in model_dir.

    Returns:
      The checkpoint, and the accuracy of the weights as they are after the last step.
    """
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(FLAGS.seed)
        images, labels = _placeholders()
        logits = network(images)
        loss = digits.cross_entropy(logits, labels)
        accuracy = digits.accuracy(logits, labels)

        global_step = tf.train.get_or_create_global_step()
        optimizer = contrib_opt.AdamWOptimizer(
            weight_decay=FLAGS.weight_decay, learning_rate=FLAGS.learning_rate
        )
        optimizer = contrib_opt.MovingAverageOptimizer(
            optimizer, average_decay=FLAGS.average_decay, num_updates=global_step
        )
        train_op = optimizer.minimize(loss, global_step)
        saver = optimizer.swapping_saver()

        sess.run(tf.global_variables_initializer())
        checkpoint = tf.train.latest_checkpoint(model_dir)
        if checkpoint:
            saver.restore(sess, checkpoint)
            print(f"Resuming at step {sess.run(global_step)} from {checkpoint}")
        for step, batch_images, batch_labels in batches(split, sess.run(global_step)):
            feed = {images: batch_images, labels: batch_labels}
            value, _ = sess.run([loss, train_op], feed)
            if step % FLAGS.log_every == 0:
                print(f"step {step:4d}/{FLAGS.steps}  loss {value:.4f}", flush=True)
        path = os.path.join(model_dir, "model.ckpt")
        checkpoint = saver.save(sess, path, global_step)
        return checkpoint, sess.run(
            accuracy, {images: test.images, labels: test.labels}
        )


def evaluate(test, checkpoint):
    """The accuracy of the weights in the checkpoint."""
    with tf.Graph().as_default(), tf.Session() as sess:
        images, labels = _placeholders()
        accuracy = digits.accuracy(network(images), labels)
        tf.train.Saver().restore(sess, checkpoint)
        return sess.run(accuracy, {images: test.images, labels: test.labels})


def main(_):
    """Trains, then evaluates from the checkpoint."""
    split, test = digits_data.load(digits_data.standardized)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, raw = train(split, test, FLAGS.model_dir or folder)
        averaged = evaluate(test, checkpoint)
    print(f"Test accuracy of the raw weights: {100.0 * raw:.2f} %")
    print(f"Test accuracy of the averaged weights: {100.0 * averaged:.2f} %")


if __name__ == "__main__":
    app.run(main)

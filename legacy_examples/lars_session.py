"""LARS in a graph: placeholders, `sess.run(train_op)`, a Saver, and resuming.

    python legacy_examples/lars_session.py --model_dir=/tmp/digits --plot=curves.png

Started again with the same --model_dir, it goes on from the last checkpoint.
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags

import digits
import digits_data

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(digits)  # so that --help lists them
SAVE_EVERY = 100  # steps


def batches(split, first_step):
    """The batches from `first_step` on, the same whether resumed or not."""
    rng = np.random.RandomState(FLAGS.seed)
    order = np.array([], np.int64)
    for step in range(FLAGS.steps):
        while len(order) < FLAGS.batch_size:
            order = np.append(order, rng.permutation(len(split.labels)))
        chosen, order = np.split(order, [FLAGS.batch_size])
        if step >= first_step:
            yield step, split.images[chosen], split.labels[chosen]


def main(_):
    train, test = digits_data.load(digits_data.standardized)
    report = digits.Report()

    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(FLAGS.seed)
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int32, [None], name="labels")
        network = digits.Network()
        loss = digits.cross_entropy(network(images, training=True), labels)
        accuracy = digits.accuracy(network(images, training=False), labels)

        global_step = tf.train.get_or_create_global_step()
        optimizer, learning_rate = digits.make_optimizer(global_step)
        grads_and_vars = optimizer.compute_gradients(loss)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.apply_gradients(grads_and_vars, global_step)
        measures = digits.measures(loss, learning_rate, optimizer, grads_and_vars)

        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        first_step, writer = 0, None
        if FLAGS.model_dir:
            writer = tf.summary.FileWriter(FLAGS.model_dir, sess.graph)
            checkpoint = tf.train.latest_checkpoint(FLAGS.model_dir)
            if checkpoint:
                saver.restore(sess, checkpoint)
                first_step = sess.run(global_step)
                print(f"Resuming at step {first_step} from {checkpoint}")

        def test_accuracy():
            return sess.run(accuracy, {images: test.images, labels: test.labels})

        for step, batch_images, batch_labels in batches(train, first_step):
            feed = {images: batch_images, labels: batch_labels}
            if step % FLAGS.log_every == 0:
                scalars = sess.run(measures, feed)
                scalars["test_accuracy"] = test_accuracy()
                report.add(step, scalars)
                if writer:
                    values = [
                        tf.Summary.Value(tag=tag, simple_value=value)
                        for tag, value in scalars.items()
                    ]
                    writer.add_summary(tf.Summary(value=values), step)
            sess.run(train_op, feed)
            done = step + 1
            if FLAGS.model_dir and (done % SAVE_EVERY == 0 or done == FLAGS.steps):
                saver.save(sess, os.path.join(FLAGS.model_dir, "model.ckpt"), done)

        if writer:
            writer.close()
        report.finish(test_accuracy())


if __name__ == "__main__":
    app.run(main)

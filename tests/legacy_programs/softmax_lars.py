"""Softmax regression with LARS: flags, a feed_dict loop, summaries, checkpoints."""

from __future__ import absolute_import, division, print_function

import os

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_float("learning_rate", 10.0, "Initial learning rate.")
flags.DEFINE_integer("max_steps", 12, "Number of steps to run trainer.")
flags.DEFINE_string("train_dir", "/tmp/softmax", "Directory for logs and checkpoints.")


def main(_):
    rng = np.random.RandomState(0)
    images = rng.rand(96, 20).astype(np.float32)
    labels = np.argmax(images[:, :5], 1)

    x = tf.placeholder(tf.float32, [None, 20], name="x-input")
    y_ = tf.placeholder(tf.int64, [None], name="y-input")
    with tf.name_scope("softmax"):
        W = tf.Variable(rng.randn(20, 5).astype(np.float32) * 0.1, name="weights")
        b = tf.Variable(tf.zeros([5]), name="biases")
        y = tf.nn.xw_plus_b(x, W, b)
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(y, 1), y_)))
    tf.summary.scalar("cross_entropy", cross_entropy)
    tf.summary.histogram("weights", W)
    merged = tf.summary.merge_all()

    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.exponential_decay(
        FLAGS.learning_rate, global_step, 4, 0.9, staircase=True
    )
    train_step = tf.contrib.opt.LARSOptimizer(
        learning_rate, skip_list=["biases"]
    ).minimize(cross_entropy, global_step=global_step)

    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
        checkpoint = tf.train.latest_checkpoint(FLAGS.train_dir)
        if checkpoint:
            saver.restore(sess, checkpoint)
        else:
            tf.global_variables_initializer().run()
        for _ in range(FLAGS.max_steps):
            step = sess.run(global_step)
            batch = slice(step % 3 * 32, step % 3 * 32 + 32)
            feed_dict = {x: images[batch], y_: labels[batch]}
            summary, loss, _ = sess.run([merged, cross_entropy, train_step], feed_dict)
            writer.add_summary(summary, step)
            print("step %d loss %.6f" % (step, loss))
        saver.save(sess, os.path.join(FLAGS.train_dir, "model.ckpt"), global_step)
        writer.close()
        print("accuracy %.4f" % accuracy.eval({x: images, y_: labels}))


if __name__ == "__main__":
    tf.app.run()

"""One regression a scope, each with another optimizer, saved by a single Saver."""

from __future__ import print_function

import os

import numpy as np
import tensorflow as tf
from tensorflow.contrib import opt

flags = tf.app.flags
flags.DEFINE_string("train_dir", "/tmp/saver", "Where checkpoints go.")
flags.DEFINE_integer("last_step", 5, "Stop there.")
FLAGS = flags.FLAGS

AdagradW = opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)


def sgd(rate=0.1):
    return tf.train.GradientDescentOptimizer(rate)


# Each gets the variables and the global step.
OPTIMIZERS = [
    ("adagradw", lambda v, step: AdagradW(weight_decay=0.01, learning_rate=0.1)),
    ("adam_gs", lambda v, step: opt.AdamGSOptimizer(step, 0.05)),
    ("adamax", lambda v, step: opt.AdaMaxOptimizer(0.05)),
    ("adamw", lambda v, step: opt.AdamWOptimizer(0.01, 0.05)),
    ("add_sign", lambda v, step: opt.AddSignOptimizer(0.05)),
    (
        "clipping",
        lambda v, step: opt.VariableClippingOptimizer(
            tf.train.MomentumOptimizer(0.05, 0.9), {v[0]: [0]}, 0.6
        ),
    ),
    ("ggt", lambda v, step: opt.GGTOptimizer(0.02, window=4)),
    ("lars", lambda v, step: opt.LARSOptimizer(1.0, weight_decay=0.001)),
    ("lazy_adam", lambda v, step: opt.LazyAdamOptimizer(0.05)),
    ("lazy_adam_gs", lambda v, step: opt.LazyAdamGSOptimizer(step, 0.05)),
    ("momentumw", lambda v, step: opt.MomentumWOptimizer(0.01, 0.05, 0.9)),
    (
        "moving",
        lambda v, step: opt.MovingAverageOptimizer(opt.NadamOptimizer(0.05), 0.8),
    ),
    (
        "multitask",
        lambda v, step: opt.MultitaskOptimizerWrapper(
            tf.train.MomentumOptimizer(0.05, 0.9)
        ),
    ),
    ("nadam", lambda v, step: opt.NadamOptimizer(0.05)),
    ("power_sign", lambda v, step: opt.PowerSignOptimizer(0.05)),
    ("reg_adagrad", lambda v, step: opt.RegAdagradOptimizer(0.1)),
    ("shampoo", lambda v, step: opt.ShampooOptimizer(step, learning_rate=0.3)),
    # This one counts the global step, so it comes last.
    ("stale", lambda v, step: opt.DropStaleGradientOptimizer(sgd(), 5)),
]


def train_op_of(name, make, x, y, initial, global_step):
    """A loss, the operation that trains on it, and what else the optimizer made."""
    with tf.variable_scope(name):
        w = tf.get_variable("w", [6, 3], initializer=tf.constant_initializer(initial))
        b = tf.get_variable("b", [3], initializer=tf.constant_initializer(0.1))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        optimizer = make([w, b], global_step)
        grads_and_vars = optimizer.compute_gradients(loss, [w, b])
        counter = global_step if name == "stale" else None
        # The decay, where there is one, comes after the gradients.
        with tf.control_dependencies([g for g, _ in grads_and_vars]):
            train_op = optimizer.apply_gradients(grads_and_vars, counter)
    made = [v for v in tf.global_variables() if v.name.startswith(name + "/")]
    return loss, train_op, [v for v in made if v is not w and v is not b]


def main(_):
    rng = np.random.RandomState(11)
    x_data = rng.rand(40, 6)
    y_data = np.dot(x_data, rng.randn(6, 3)) + 2
    initial = rng.randn(6, 3) * 0.5

    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.placeholder(tf.float32, [None, 3])
    global_step = tf.train.get_or_create_global_step()
    trained = [
        (name, train_op_of(name, make, x, y, initial, global_step))
        for name, make in OPTIMIZERS
    ]
    saver = tf.train.Saver(max_to_keep=1)
    sess = tf.Session()
    checkpoint = tf.train.latest_checkpoint(FLAGS.train_dir)
    if checkpoint:
        saver.restore(sess, checkpoint)
    else:
        sess.run(tf.global_variables_initializer())

    def show_slots():
        for name, (_, _, slots) in trained:
            values = sess.run(slots)
            print(name, len(slots), "%.8e" % sum(np.abs(v).sum() for v in values))

    show_slots()
    for step in range(sess.run(global_step), FLAGS.last_step):
        batch = slice(step % 4 * 10, step % 4 * 10 + 10)
        feed_dict = {x: x_data[batch], y: y_data[batch]}
        for name, (loss, train_op, _) in trained:
            value = sess.run(loss, feed_dict)
            sess.run(train_op, feed_dict)
            print(name, "step %d loss %.8e" % (step, value))
    show_slots()
    saver.save(sess, os.path.join(FLAGS.train_dir, "model.ckpt"), global_step)


if __name__ == "__main__":
    tf.app.run()

"""An LSTM over sequences, trained by PowerSign or AddSign with a cosine decay."""

import sys

import numpy as np
import tensorflow as tf
import tensorflow.contrib as contrib
from tensorflow.contrib.opt.python.training import sign_decay
from tensorflow.python.ops import rnn

BATCH, TIME, UNITS = 4, 5, 3


def build(optimizer_name):
    rng = np.random.RandomState(7)
    x = tf.constant(rng.randn(BATCH, TIME, 2), tf.float32)
    lengths = tf.constant([5, 4, 3, 5])
    target = tf.constant(rng.randn(BATCH, UNITS), tf.float32)
    kernel = rng.randn(2 + UNITS, 4 * UNITS) * 0.4
    with tf.variable_scope("rnn", initializer=tf.constant_initializer(kernel)):
        cell = contrib.rnn.BasicLSTMCell(UNITS, forget_bias=1.0)
        outputs, state = rnn.dynamic_rnn(
            cell, x, sequence_length=lengths, dtype=tf.float32
        )
    scale = tf.constant_initializer(np.eye(UNITS) * 1.5)
    output = tf.layers.dense(state.h, UNITS, kernel_initializer=scale, name="output")
    loss = tf.reduce_mean(tf.squared_difference(output, target))
    global_step = tf.Variable(0, trainable=False, name="global_step")
    decay = sign_decay.get_cosine_decay_fn(decay_steps=10)
    cls = getattr(contrib.opt, optimizer_name)
    optimizer = cls(learning_rate=0.05, sign_decay_fn=decay)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    return loss, optimizer.apply_gradients(zip(gradients, variables), global_step)


for name in sys.argv[1:] or ["PowerSignOptimizer", "AddSignOptimizer"]:
    tf.reset_default_graph()
    loss, train_op = build(name)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in xrange(6) if sys.version_info[0] == 2 else range(6):  # noqa: F821
            print(
                "%s step %d loss %.6f" % ((name, step, sess.run([loss, train_op])[0]))
            )

"""Word vectors with LazyAdam or Nadam in a MonitoredTrainingSession, from tf.data."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.opt import LazyAdamOptimizer, NadamOptimizer
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, math_ops

tf.flags.DEFINE_string("optimizer", "lazy_adam", "lazy_adam or nadam")
tf.flags.DEFINE_string("checkpoint_dir", None, "where checkpoints go")
tf.flags.DEFINE_integer("last_step", 8, "stop there")
FLAGS = tf.flags.FLAGS

OPTIMIZERS = {"lazy_adam": LazyAdamOptimizer, "nadam": NadamOptimizer}


def inputs():
    rng = np.random.RandomState(3)
    words, targets = rng.randint(0, 30, [64, 3]), rng.rand(64, 1).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((words, targets)).repeat().batch(16)
    return dataset.make_one_shot_iterator().get_next()


def model(words):
    with tf.variable_scope("embedding", reuse=tf.AUTO_REUSE):
        table = tf.get_variable(
            "table",
            [30, 6],
            initializer=tf.constant_initializer(np.sin(np.arange(90)).reshape(15, 6)),
            partitioner=tf.fixed_size_partitioner(2),
        )
        vectors = tf.nn.embedding_lookup(table, words, partition_strategy="div")
    mean = tf.reduce_mean(vectors, axis=1, keep_dims=True)
    with ops.name_scope("output"):
        return array_ops.squeeze(math_ops.reduce_sum(mean, axis=2, keepdims=True), [2])


def main(unused_argv):
    words, targets = inputs()
    loss = tf.losses.mean_squared_error(targets, model(words))
    step = tf.train.create_global_step()
    before = tf.add(step, 0)
    optimizer = OPTIMIZERS[FLAGS.optimizer](learning_rate=0.05)
    with tf.control_dependencies([before]):
        train_op = optimizer.minimize(loss, global_step=step)
    hooks = [
        tf.train.StopAtStepHook(last_step=FLAGS.last_step),
        tf.train.NanTensorHook(loss),
    ]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=FLAGS.checkpoint_dir, hooks=hooks, save_summaries_steps=None
    ) as sess:
        while not sess.should_stop():
            print("step %d loss %.6f" % tuple(sess.run([before, loss, train_op])[:2]))


if __name__ == "__main__":
    tf.app.run()

"""Elastic averaging and AGN, which keep a center for all workers, with one worker."""

import os

import numpy as np
import tensorflow as tf
from tensorflow.contrib.opt.python.training import (
    agn_optimizer,
    elastic_average_optimizer,
)

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("train_dir", "/tmp/workers", "where checkpoints go")
tf.app.flags.DEFINE_integer("last_step", 5, "stop there")

WORKER = "/job:worker/task:0"


def elastic(opt):
    getter = elastic_average_optimizer.ElasticAverageCustomGetter(WORKER)
    return getter, lambda: elastic_average_optimizer.ElasticAverageOptimizer(
        opt, 1, getter, communication_period=2
    )


def agn(opt):
    getter = agn_optimizer.AGNCustomGetter(WORKER)
    return getter, lambda: agn_optimizer.AGNOptimizer(
        opt, 1, getter, communication_period=2
    )


def train(kind, target):
    rng = np.random.RandomState(2)
    x, y = rng.rand(10, 3).astype("f"), rng.rand(10, 1).astype("f") + 1
    getter, make = kind(tf.train.MomentumOptimizer(0.05, 0.9))
    with tf.device(WORKER + "/cpu:0"):
        with tf.variable_scope("", custom_getter=getter):
            w = tf.get_variable(
                "w", [3, 1], initializer=tf.constant_initializer([0.3, -0.2, 0.8])
            )
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        global_step = tf.train.get_or_create_global_step()
    optimizer = make()
    train_op = optimizer.minimize(loss, global_step)
    saved = tf.global_variables()
    with tf.train.MonitoredTrainingSession(
        target,
        checkpoint_dir=os.path.join(FLAGS.train_dir, kind.__name__),
        hooks=[
            optimizer.make_session_run_hook(True, 0),
            tf.train.StopAtStepHook(last_step=FLAGS.last_step),
        ],
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as sess:
        for variable, value in zip(saved, sess.run(saved)):
            print(kind.__name__, variable.op.name, "%.8e" % np.abs(value).sum())
        while not sess.should_stop():
            step, value = sess.run([global_step, loss])
            print(kind.__name__, "step %d loss %.8e" % (step, value))
            sess.run(train_op)


def main(_):
    target = tf.train.Server({"worker": ["localhost:0"]}, "worker", 0).target
    for kind in (elastic, agn):
        with tf.Graph().as_default():
            train(kind, target)


if __name__ == "__main__":
    tf.app.run()

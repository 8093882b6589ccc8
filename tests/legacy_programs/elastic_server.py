"""Elastic averaging, with one worker that is the parameter server too."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.opt.python.training import elastic_average_optimizer

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer("communication_period", 2, "steps between exchanges")


def main(_):
    server = tf.train.Server({"worker": ["localhost:0"]}, "worker", 0)
    rng = np.random.RandomState(2)
    x, y = rng.rand(10, 3).astype("f"), rng.rand(10, 1).astype("f")
    worker = "/job:worker/task:0"
    getter = elastic_average_optimizer.ElasticAverageCustomGetter(worker_device=worker)
    with tf.device(worker + "/cpu:0"), tf.variable_scope("", custom_getter=getter):
        w = tf.get_variable(
            "w", [3, 1], initializer=tf.constant_initializer([0.3, -0.2, 0.8])
        )
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        global_step = tf.train.get_or_create_global_step()
    optimizer = elastic_average_optimizer.ElasticAverageOptimizer(
        tf.train.GradientDescentOptimizer(0.1),
        num_worker=1,
        ea_custom_getter=getter,
        communication_period=FLAGS.communication_period,
    )
    train_op = optimizer.minimize(loss, global_step)
    hook = optimizer.make_session_run_hook(is_chief=True, task_index=0)
    with tf.train.MonitoredTrainingSession(server.target, hooks=[hook]) as sess:
        for step in range(6):
            print("step %d loss %.6f" % (step, sess.run([loss, train_op])[0]))


if __name__ == "__main__":
    tf.app.run()

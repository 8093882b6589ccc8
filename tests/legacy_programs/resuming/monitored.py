"""Word vectors with LazyAdam and averaged weights, in a MonitoredTrainingSession."""

import numpy as np
import tensorflow as tf

tf.flags.DEFINE_string("train_dir", "/tmp/monitored", "where checkpoints go")
tf.flags.DEFINE_integer("last_step", 5, "stop there")
FLAGS = tf.flags.FLAGS


class PrintHook(tf.train.SessionRunHook):
    """Prints the step and the loss, and sums over the slots."""

    def __init__(self, step, loss, slots):
        self._step, self._loss, self._slots = step, loss, slots

    def after_create_session(self, session, coord):
        step, slots = session.run([self._step, self._slots])
        print("restored step %d" % step)
        for slot, value in zip(self._slots, slots):
            print("%s %.8e" % (slot.op.name, np.abs(value).sum()))

    def before_run(self, run_context):
        return tf.train.SessionRunArgs({"loss": self._loss, "step": self._step})

    def after_run(self, run_context, run_values):
        print("step %(step)d loss %(loss).8e" % run_values.results)


def main(unused_argv):
    rng = np.random.RandomState(3)
    words = rng.randint(0, 12, [8, 3])
    targets = rng.rand(8, 1).astype("float32") + 1
    with tf.variable_scope("embedding"):
        table = tf.get_variable(
            "table", initializer=np.sin(np.arange(48)).reshape(12, 4).astype("f")
        )
    with tf.variable_scope("output"):
        kernel = tf.get_variable("kernel", initializer=rng.rand(4, 1).astype("f"))
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    global_step = tf.train.create_global_step()
    before = tf.add(global_step, 0)
    row = before % 4 * 2
    vectors = tf.nn.embedding_lookup(table, tf.constant(words)[row : row + 2])
    logits = tf.matmul(tf.reduce_mean(vectors, axis=1), kernel) + bias
    loss = tf.losses.mean_squared_error(tf.constant(targets)[row : row + 2], logits)
    optimizer = tf.contrib.opt.MovingAverageOptimizer(
        tf.contrib.opt.LazyAdamOptimizer(0.05), average_decay=0.8
    )
    grads_and_vars = optimizer.compute_gradients(loss)
    with tf.control_dependencies([before]):
        train_op = optimizer.apply_gradients(grads_and_vars, global_step)
    known = tf.trainable_variables() + [global_step]
    slots = [v for v in tf.global_variables() if v not in known]
    slots.sort(key=lambda v: v.op.name)
    # The checkpoints have the averages under the names of the variables.
    scaffold = tf.train.Scaffold(saver=optimizer.swapping_saver())
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=FLAGS.train_dir,
        scaffold=scaffold,
        hooks=[
            tf.train.StopAtStepHook(last_step=FLAGS.last_step),
            PrintHook(before, loss, slots),
        ],
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as sess:
        while not sess.should_stop():
            sess.run(train_op)


if __name__ == "__main__":
    tf.app.run()

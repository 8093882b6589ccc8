"""LARS on a cluster: parameter servers, and workers that train one model together.

One process for each task, on its host, as programs of 2017 were started:

    cd legacy_examples/cluster
    HOSTS="--ps_hosts=a:2222 --worker_hosts=b:2222,c:2222"
    python lars_cluster.py $HOSTS --job_name=ps --task_index=0      # on host a
    python lars_cluster.py $HOSTS --job_name=worker --task_index=0  # on host b
    python lars_cluster.py $HOSTS --job_name=worker --task_index=1  # on host c

launch.py does it on this machine. Each worker computes its share of --batch_size;
SyncReplicasOptimizer takes the mean of their gradients, and LARS its trust ratios from
that. Worker 0, the chief, saves checkpoints to --model_dir, reports and tests. A task
that was lost is started again with the same flags. The parameter servers end when all
workers have ended.
"""

import os
import sys
import threading
import time

import tensorflow.compat.v1 as tf
from absl import app, flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import digits
import digits_data

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(digits)  # so that --help lists them
flags.DEFINE_enum("job_name", None, ["ps", "worker"], "What this process is.")
flags.DEFINE_integer("task_index", 0, "Which one of its job it is.", lower_bound=0)
flags.DEFINE_list("ps_hosts", None, "The parameter servers, as HOST:PORT,...")
flags.DEFINE_list("worker_hosts", None, "The workers, as HOST:PORT,...")
flags.DEFINE_boolean(
    "sync_replicas", True, "Whether the workers wait for each other in each step."
)
flags.DEFINE_integer("save_every", 100, "Steps between checkpoints.", lower_bound=1)
flags.mark_flags_as_required(["job_name", "ps_hosts", "worker_hosts"])


class ReportHook(tf.train.SessionRunHook):
    """Reports the measures of every --log_every-th step, and the accuracy at last."""

    def __init__(self, report, global_step, measures, accuracy):
        self._report, self._global_step = report, global_step
        self._measures, self._accuracy = measures, accuracy
        self._next = None

    def after_create_session(self, session, coord):
        step = session.run(self._global_step)
        if step > 0:
            print(f"Resuming at step {step}", flush=True)
        self._next = step

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self._global_step, self._measures])

    def after_run(self, run_context, run_values):
        step, scalars = run_values.results
        if step >= self._next:
            self._report.add(step, scalars)
            self._next = step + FLAGS.log_every

    def end(self, session):
        self._report.finish(session.run(self._accuracy))


def finished_queue(ps_index):
    """The queue on a parameter server that each worker puts an item in at its end."""
    with tf.device(f"/job:ps/task:{ps_index}"):
        return tf.FIFOQueue(
            len(FLAGS.worker_hosts), tf.int32, shared_name=f"finished_{ps_index}"
        )


def serve(server):
    """Serves variables until all workers have finished."""
    item = finished_queue(FLAGS.task_index).dequeue()
    own = tf.ConfigProto(device_filters=[f"/job:ps/task:{FLAGS.task_index}"])
    with tf.Session(server.target, config=own) as sess:
        for _ in FLAGS.worker_hosts:
            sess.run(item)


def wait_for_chief(server, config):
    """Returns when the chief has initialized the variables.

    MonitoredTrainingSession waits for that too, but looks every 30 seconds only.
    """
    missing = tf.report_uninitialized_variables(tf.global_variables())
    with tf.Session(server.target, config=config) as sess:
        while len(sess.run(missing)):
            time.sleep(0.5)


def quiet_when_cancelled(args):
    """Reports what ended a thread, unless the session did."""
    if not issubclass(args.exc_type, tf.errors.CancelledError):
        threading.__excepthook__(args)


def build(train, test):
    """The train op, a hook that it needs or None, and what the chief reports."""
    chief = FLAGS.task_index == 0
    tf.set_random_seed(FLAGS.seed)
    examples = tf.data.Dataset.from_tensor_slices((train.images, train.labels))
    # Each worker sees the digits in an order of its own.
    examples = examples.shuffle(len(train.labels), FLAGS.seed + FLAGS.task_index)
    share = max(1, FLAGS.batch_size // len(FLAGS.worker_hosts))
    examples = examples.repeat().batch(share, drop_remainder=True)
    images, labels = tf.data.make_one_shot_iterator(examples).get_next()

    network = digits.Network()
    loss = digits.cross_entropy(network(images, training=True), labels)
    accuracy = digits.accuracy(
        network(tf.constant(test.images), training=False), tf.constant(test.labels)
    )
    global_step = tf.train.get_or_create_global_step()
    optimizer, learning_rate = digits.make_optimizer(global_step)
    measures = {"loss": loss, "learning_rate": learning_rate}
    hook = None
    if FLAGS.sync_replicas:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, len(FLAGS.worker_hosts))
    grads_and_vars = optimizer.compute_gradients(loss)
    # The moving averages of batch normalization follow the chief's batches.
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if chief else []
    with tf.control_dependencies(updates):
        train_op = optimizer.apply_gradients(grads_and_vars, global_step)
    if FLAGS.sync_replicas:
        hook = optimizer.make_session_run_hook(chief, num_tokens=0)
    return train_op, hook, (global_step, measures, accuracy)


def work(server, cluster):
    """Trains until all workers together have taken --steps steps."""
    train, test = digits_data.load(digits_data.standardized)
    chief = FLAGS.task_index == 0
    worker = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(
        tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
    ):
        train_op, hook, reported = build(train, test)
    finished = [
        finished_queue(index).enqueue(FLAGS.task_index)
        for index in range(len(FLAGS.ps_hosts))
    ]
    # Of the tasks, it only needs these: the others may be lost.
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
    hooks += [hook] if hook else []
    if not chief:
        wait_for_chief(server, config)
    elif FLAGS.sync_replicas:
        # Its thread waits for gradients that nobody sends any more at the end.
        threading.excepthook = quiet_when_cancelled
    steps = 0
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=chief,
        checkpoint_dir=FLAGS.model_dir,
        hooks=hooks,
        chief_only_hooks=[ReportHook(digits.Report(), *reported)],
        config=config,
        save_checkpoint_secs=None,
        save_checkpoint_steps=FLAGS.save_every,
        save_summaries_steps=FLAGS.log_every,
        log_step_count_steps=None,
        stop_grace_period_secs=1,
    ) as sess:
        while not sess.should_stop():
            sess.run(train_op)
            steps += 1
    with tf.Session(server.target, config=config) as sess:
        sess.run(finished)
    print(f"Worker {FLAGS.task_index} took {steps} steps", flush=True)


def main(_):
    """Does what the flags say that this process is for."""
    # Deprecated as they are, sessions and SyncReplicasOptimizer warn.
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        serve(server)
    else:
        work(server, cluster)


if __name__ == "__main__":
    app.run(main)

"""A worker that is killed: `python -m cluster.resumable CLUSTER TASK FOLDER [apart]`.

Two workers train together, LARS under loss scaling, and save a checkpoint every 5
steps. Worker 1 stops within the steps of PAUSES, while it computes its gradient, until
the test lets it go on or kills it. Worker 0, the chief, is killed by the system in the
middle of its first write of the checkpoint of step KILLED_IN_SAVING.

Then, or at once if asked to, they train another model apart: neither waits for the
other. Worker 1 stops within its first step.
"""

import json
import os
import resource
import signal
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

import contrib_opt
from cluster.cases import BATCHES, WORKERS, least_squares
from cluster.worker import Worker
from contrib_opt import mixed_precision
from processes import end_with_the_test, write

STEPS = 20
SAVE_EVERY = 5
PAUSES = (3, 8)
KILLED_IN_SAVING = 15
WRITTEN = 2**16  # bytes of that checkpoint
MODEL = "model"  # the folder of the checkpoints


def build(tasks, pause=None):
    """The loss on the batches of `tasks`, the global step and the optimizer."""
    step = tf.train.get_or_create_global_step()
    number = step.read_value()
    if pause:
        [number] = tf.py_func(pause, [number], [tf.int64])
        number = tf.reshape(number, [])
    batches = tf.math.floormod(
        tf.stack([number * WORKERS + task for task in tasks]), BATCHES
    )
    ballast = tf.get_variable("ballast", initializer=np.ones([2**15], np.float32))
    loss = least_squares(batches) + tf.reduce_mean(tf.square(ballast))
    manager = mixed_precision.ExponentialUpdateLossScaleManager(
        init_loss_scale=8.0, incr_every_n_steps=6
    )
    lars = contrib_opt.LARSOptimizer(0.05, eeta=1.0, skip_list=["bias"])
    return loss, step, mixed_precision.LossScaleOptimizer(lars, manager)


def alone(steps, restore=None, save=None):
    """Trains in this process, undisturbed.

    Args:
      steps: how many steps to take.
      restore: the checkpoint to begin with, or None.
      save: the folder to save a checkpoint to at last, or None.

    Returns:
      All variables at last, by name, and the loss of the next step.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        loss, step, train_op = _build_alone()
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        if restore:
            saver.restore(session, restore)
        for _ in range(steps):
            session.run(train_op)
        if save:
            saver.save(session, os.path.join(save, "model.ckpt"), step)
        return session.run([{v.op.name: v for v in tf.global_variables()}, loss])


def monitored(folder):
    """Resumes from the folder of a training, as MonitoredTrainingSession does."""
    with tf.Graph().as_default():
        _build_alone()
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder):
            pass


def _build_alone():
    with tf.variable_scope("", use_resource=True):
        loss, step, optimizer = build(range(WORKERS))
        return loss, step, optimizer.minimize(loss, step)


class OneGradientEach:
    """Lets worker 1 take a step when the chief does, and only one.

    SyncReplicasOptimizer takes any two gradients, also two of one worker. What the
    two know of each other is in files, which outlive them.
    """

    def __init__(self, folder, task):
        self._folder, self._task = folder, task

    def begin(self):
        """Waits until this worker's next step may begin."""
        if self._task == 0:
            self._wait(lambda: self._read("done") == self._read("begun"))
            write(self._folder, "begun", self._read("begun") + 1)
        else:
            self._wait(lambda: self._read("done") < self._read("begun"))

    def end(self):
        """This worker has taken its step."""
        if self._task == 1:
            write(self._folder, "done", self._read("done") + 1)

    def _read(self, file):
        path = os.path.join(self._folder, file)
        if not os.path.exists(path):
            return 0
        with open(path) as lines:
            return json.load(lines)

    def _wait(self, condition):
        while not condition():
            time.sleep(0.002)


class KilledInSaving(tf.train.CheckpointSaverListener):
    """Lets the system kill this process when a file has WRITTEN bytes."""

    def __init__(self, folder):
        self._folder = folder

    def before_save(self, session, global_step_value):
        saving = os.path.join(self._folder, "saving")
        if global_step_value == KILLED_IN_SAVING and not os.path.exists(saving):
            write(self._folder, "saving", int(global_step_value))
            # Python ignores the signal, TensorFlow would report an error of the disk.
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN))


class Restored(tf.train.SessionRunHook):
    """Notes the global steps that the chief's sessions began at."""

    def __init__(self, folder):
        self._folder, self._steps = folder, []

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        step = int(session.run(self._step))
        # While a server comes back, a session may fail at once.
        if step not in self._steps:
            self._steps.append(step)
        write(self._folder, f"sessions.{os.getpid()}", self._steps)


def pause(folder, name):
    """Stops here until the test lets the process go on, or kills it."""
    write(folder, f"paused.{name}", None)
    while not os.path.exists(os.path.join(folder, f"resume.{name}")):
        time.sleep(0.01)


def train_together(worker, folder):
    """The synchronous training, with checkpoints."""
    task = worker.task

    def pause_at(step):
        if step in PAUSES:
            pause(folder, step)
        return step

    with worker.placed():
        loss, step, optimizer = build([task], pause_at if task == 1 else None)
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, WORKERS)
        train_op = optimizer.minimize(loss, step)
        saver = tf.train.Saver()
    hooks = [
        optimizer.make_session_run_hook(task == 0, 0),
        tf.train.StopAtStepHook(last_step=STEPS),
    ]
    model = os.path.join(folder, MODEL)
    save = tf.train.CheckpointSaverHook(
        model, save_steps=SAVE_EVERY, saver=saver, listeners=[KilledInSaving(folder)]
    )
    steps = OneGradientEach(folder, task)
    with worker.session(
        hooks=hooks,
        chief_only_hooks=[save, Restored(folder)],
        checkpoint_dir=model if task == 0 else None,
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        scaffold=tf.train.Scaffold(saver=saver),
    ) as session:
        while not session.should_stop():
            steps.begin()
            session.run(train_op)
            steps.end()


def train_apart(worker, folder):
    """The asynchronous training, of STEPS steps and some."""
    task = worker.task

    def exists(file):
        return os.path.exists(os.path.join(folder, file))

    def pause_at(step):
        pause(folder, "apart")
        return step

    with worker.placed(), tf.variable_scope("", use_resource=True):
        loss, step, optimizer = build([task], pause_at if task == 1 else None)
        train_op = optimizer.minimize(loss, step)
    while task == 1 and not exists("apart.begun"):
        time.sleep(0.01)
    taken = 0
    with worker.session() as session:
        write(folder, "apart.begun", None)
        while not exists("apart.end"):
            session.run(train_op)
            taken += 1
            write(folder, f"apart.{task}", taken)
            while task == 0 and taken == STEPS // 2 and not exists("apart.1"):
                time.sleep(0.01)
            if task == 0 and session.run(step) >= STEPS:
                write(folder, "apart.end", None)
        write(
            folder, f"apart.seen.{task}", [v.item() for v in session.run([step, loss])]
        )


def main():
    end_with_the_test()
    tf.disable_v2_behavior()
    cluster, task, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    worker = Worker(cluster, task)
    trainings = [train_together, train_apart]
    for train in trainings[sys.argv[4:] == ["apart"] :]:
        with tf.Graph().as_default(), tf.container(train.__name__.split("_")[1]):
            train(worker, folder)


if __name__ == "__main__":
    main()

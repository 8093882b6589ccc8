"""A worker that another one interrupts while it computes its gradients.

Runs on `tf.contrib.opt` of TensorFlow 1.15 and on contrib_opt alike:
tests/golden/drop_stale/generate.py records the first, the test compares the second.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from wrappers.cluster import PS, cluster

# How many steps the other worker takes meanwhile, for each step of the first.
INTERRUPTIONS = (0, 1, 2, 3, 0, 4, 2, 1)
STALENESS = (0, 2)
OPTIMIZERS = {"momentum": (0.1, 0.9), "adam": (0.1,)}


def interrupted(base):
    """`base`, an optimizer class, whose gradients wait for `interrupt()`."""

    class Interrupted(base):
        def compute_gradients(self, *args, **kwargs):
            pairs = super().compute_gradients(*args, **kwargs)
            done = tf.py_func(self.interrupt, [], [tf.int32])
            with tf.control_dependencies(done):
                return [(tf.identity(grad), var) for grad, var in pairs]

    return Interrupted


class Worker:
    """The graph and the session of one worker."""

    def __init__(self, make_wrapper, base, task, interrupt, staleness):
        self.graph = tf.Graph()
        classes = {
            "momentum": tf.train.MomentumOptimizer,
            "adam": tf.train.AdamOptimizer,
        }
        device = tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{task}/cpu:0",
            ps_device=PS,
            cluster=cluster().spec,
        )
        with self.graph.as_default(), tf.device(device):
            kernel = tf.get_variable("kernel", initializer=[1.0, -2.0, 3.0])
            global_step = tf.train.get_or_create_global_step()
            opt = interrupted(classes[base])(*OPTIMIZERS[base])
            opt.interrupt = interrupt
            loss = tf.reduce_sum(tf.square(kernel)) * (1.0 + task)
            self.train_op = make_wrapper(opt, staleness).minimize(loss, global_step)
            self.variables = sorted(tf.global_variables(), key=lambda v: v.op.name)
            self.initializer = tf.global_variables_initializer()
        self.session = tf.Session(cluster().targets[task], graph=self.graph)


def run(make_wrapper, base, staleness):
    """The names of the variables, and their values after each step of the first."""
    cluster().reset()
    steps = iter(INTERRUPTIONS)

    def interrupt():
        for _ in range(next(steps)):
            other.session.run(other.train_op)
        return np.int32(0)

    worker = Worker(make_wrapper, base, 0, interrupt, staleness)
    other = Worker(make_wrapper, base, 1, lambda: np.int32(0), staleness)
    worker.session.run(worker.initializer)
    values = []
    for _ in INTERRUPTIONS:
        worker.session.run(worker.train_op)
        found = worker.session.run(worker.variables)
        values.append([np.ravel(value).tolist() for value in found])
    for one in (worker, other):
        one.session.close()
    return {"names": [v.op.name for v in worker.variables], "values": values}

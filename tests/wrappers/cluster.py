"""Workers on a cluster in this process, stepping in a fixed order.

Everything here runs on `tf.contrib.opt` of TensorFlow 1.15 and on contrib_opt alike:
tests/golden/cluster/generate.py records the first, the tests compare the second.
"""

import atexit
import collections
import contextlib
import functools
import json
import os
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from processes import addresses

PS = "/job:ps/cpu:0"
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "cluster")


class Cluster:
    """One parameter server and two workers; it lasts as long as the process."""

    def __init__(self):
        self.spec = tf.train.ClusterSpec(addresses(ps=1, worker=2))
        self._ps = tf.train.Server(self.spec, "ps", 0)
        self.workers = [tf.train.Server(self.spec, "worker", task) for task in (0, 1)]
        self.targets = [server.target for server in self.workers]

    def reset(self):
        """Forgets all variables, queues and accumulators."""
        tf.Session.reset(self._ps.target)


@functools.lru_cache(maxsize=None)
def cluster():
    # A server that outlives its module complains on TensorFlow 1.15.
    atexit.register(cluster.cache_clear)
    return Cluster()


# A case: which wrapper, around which optimizer, on how many workers. `schedule` says
# which worker takes the next step; ModelAverage's workers take theirs at once.
Case = collections.namedtuple(
    "Case", "id kind base schedule kwargs dtype problem distributed golden"
)

ALTERNATING = (0, 1) * 5
UNEVEN = (0, 0, 1, 0, 1, 1, 1, 0, 1, 0)
ALONE = (0,) * 8

OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.25),
    "momentum": lambda: tf.train.MomentumOptimizer(0.125, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.05),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.2),
}


def case(
    kind,
    base,
    schedule,
    name=None,
    dtype="float32",
    problem="dense",
    golden=True,
    **kwargs,
):
    distributed = schedule is not ALONE
    workers = "two" if distributed else "one"
    parts = [kind, base, workers, name]
    return Case(
        "_".join(p for p in parts if p),
        kind,
        base,
        schedule,
        kwargs,
        dtype,
        problem,
        distributed,
        golden,
    )


class Worker:
    """The graph and the session of one worker of a case."""

    def __init__(self, api, case, task=0, use_resource=False, make_base=None):
        self.task, self.case, self.steps = task, case, 0
        self.graph = tf.Graph()
        name = f"/job:worker/task:{task}/cpu:0"
        self.device = name if case.distributed else ""
        scope = contextlib.ExitStack()
        with self.graph.as_default(), scope:
            if case.distributed:
                scope.enter_context(
                    tf.device(
                        tf.train.replica_device_setter(
                            worker_device=self.device,
                            ps_device=PS,
                            cluster=cluster().spec,
                        )
                    )
                )
            getter = getattr(api, case.kind + "CustomGetter")(self.device)
            self.getter = getter
            with tf.variable_scope("", custom_getter=getter, use_resource=use_resource):
                self.global_step = tf.train.get_or_create_global_step()
                self.loss = PROBLEMS[case.problem](self, case.dtype)
            scope.enter_context(tf.device(self.device))
            self.optimizer = self._wrapped(
                api, (make_base or OPTIMIZERS[case.base])(), getter
            )
            self.train_op = self.optimizer.minimize(self.loss, self.global_step)
        self.session = None

    def _wrapped(self, api, base, getter):
        kind = self.case.kind
        cls = getattr(api, kind + "Optimizer")
        workers = 2 if self.case.distributed else 1
        if kind == "ModelAverage":
            return cls(base, workers, self.task == 0, getter, **self.case.kwargs)
        return cls(base, workers, getter, **self.case.kwargs)

    def start(self):
        """Initializes the variables as a MonitoredTrainingSession does."""
        with self.graph.as_default():
            initializers = [tf.local_variables_initializer()]
            if self.task == 0:
                initializers.insert(0, tf.global_variables_initializer())
            init_op = self.init_op()
        self.session = tf.Session(
            cluster().targets[self.task] if self.case.distributed else "",
            graph=self.graph,
        )
        for initializer in initializers:
            self.session.run(initializer)
        return init_op

    def init_op(self):
        """What the wrapper's hook runs, or on TensorFlow 1.15 ought to run."""
        if self.case.kind == "ModelAverage":
            return self.optimizer.get_init_op()
        return self.optimizer.get_init_op(self.task)

    def step(self):
        """Takes a step on this worker's next batch."""
        batch = self.batch(10 * self.task + self.steps)
        self.steps += 1
        return self.session.run(self.train_op, batch)

    def records(self):
        """The variables and their copies, of ours."""
        with self.graph.as_default():
            return self.getter.records()

    def variables(self):
        with self.graph.as_default():
            found = tf.global_variables() + tf.local_variables()
        return sorted(found, key=lambda v: v.op.name)

    def values(self):
        """All variables, in the order of their names, in one flat list."""
        values = self.session.run(self.variables())
        return np.concatenate([np.ravel(v).astype(np.float64) for v in values])

    def names(self):
        """The names of the variables, by collection."""
        with self.graph.as_default():
            return {
                key: sorted(v.op.name for v in tf.get_collection(key))
                for key in (
                    tf.GraphKeys.GLOBAL_VARIABLES,
                    tf.GraphKeys.LOCAL_VARIABLES,
                    tf.GraphKeys.TRAINABLE_VARIABLES,
                )
            }

    def devices(self):
        return {v.op.name: v.device for v in self.variables()}


def initial(shape, dtype, seed):
    return np.random.RandomState(seed).normal(size=shape).astype(dtype)


def dense(worker, dtype):
    """Least squares, with a weight and a bias."""
    features = tf.placeholder(dtype, [4, 3])
    labels = tf.placeholder(dtype, [4, 2])
    kernel = tf.get_variable("layer/kernel", initializer=initial([3, 2], dtype, 1))
    bias = tf.get_variable("layer/bias", initializer=initial([2], dtype, 2))

    def batch(seed):
        random = np.random.RandomState(seed)
        return {
            features: random.normal(size=[4, 3]),
            labels: random.normal(size=[4, 2]),
        }

    worker.batch = batch
    return tf.reduce_mean(tf.square(tf.matmul(features, kernel) + bias - labels))


def sparse(worker, dtype):
    """Rows of a table, some of them twice."""
    rows = tf.placeholder(tf.int32, [3])
    table = tf.get_variable("table", initializer=initial([5, 2], dtype, 3))
    bias = tf.get_variable("bias", initializer=initial([2], dtype, 4))

    def batch(seed):
        return {rows: np.random.RandomState(seed).randint(0, 5, [3])}

    worker.batch = batch
    return tf.reduce_sum(tf.square(tf.gather(table, rows) + bias))


PROBLEMS = {"dense": dense, "sparse": sparse}


def together(*functions):
    """Runs functions at once, in a thread each; returns what they return, in order."""
    results, errors = [None] * len(functions), []

    def run(index, function):
        try:
            results[index] = function()
        except Exception as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=pair, daemon=True)
        for pair in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    assert not any(t.is_alive() for t in threads), "A worker waits for ever"
    return results


def start(workers):
    """Starts the workers: all variables first, then each at the center."""
    init_ops = [worker.start() for worker in workers]
    together(
        *[functools.partial(w.session.run, op) for w, op in zip(workers, init_ops)]
    )


def run_case(api, case, use_resource=False, make_base=None):
    """The names of the variables, and their values after each step of the schedule.

    Returns:
      A dict: 'names', by worker and collection; 'devices', by worker; 'steps', a list
      with the values of all variables of the worker that took the step. For
      ModelAverage, each step is one of both workers at once.
    """
    if case.distributed:
        cluster().reset()
    workers = [
        Worker(api, case, task, use_resource, make_base)
        for task in range(2 if case.distributed else 1)
    ]
    start(workers)
    steps = []
    if case.kind == "ModelAverage" and case.distributed:
        for _ in range(len(case.schedule) // 2):
            together(*[worker.step for worker in workers])
            steps += [worker.values() for worker in workers]
    else:
        for task in case.schedule:
            workers[task].step()
            steps.append(workers[task].values())
    for worker in workers:
        worker.session.close()
    return {
        "names": [worker.names() for worker in workers],
        "devices": [worker.devices() for worker in workers],
        "steps": [values.tolist() for values in steps],
    }


def golden_runs(kind):
    """The cases of a wrapper that have a reference, as pairs (case, use_resource).

    Those on one worker, and AGN's, whose order of reads is delicate, run on both kinds
    of variables, the others by turns.
    """
    rows = [row for row in CASES if row.kind == kind and row.golden]
    return [
        (row, use_resource)
        for index, row in enumerate(rows)
        for use_resource in (False, True)
        if kind == "AGN" or not row.distributed or index % 2 == use_resource
    ]


def id_of(value):
    """What a test's id has for a value of `golden_runs`."""
    return value.id if isinstance(value, Case) else "resource" if value else "ref"


def golden(name):
    with open(os.path.join(GOLDEN, name + ".json")) as lines:
        return json.load(lines)


def check_golden(api, case, use_resource):
    """Asserts that a case gives the recorded names, devices and numbers."""
    ours, recorded = run_case(api, case, use_resource), golden(case.id)
    assert ours["names"] == recorded["names"]
    assert ours["devices"] == recorded["devices"]
    tolerance = 1e-10 if case.dtype == "float64" else 1e-5
    for values, reference in zip(ours["steps"], recorded["steps"]):
        np.testing.assert_allclose(values, reference, rtol=tolerance, atol=tolerance)
    assert len(ours["steps"]) == len(recorded["steps"])


# ------------------------------------------------------------------- checkpoints


def saved(name):
    return os.path.join(GOLDEN, "checkpoints", name)


def save(api, case, folder=None):
    """Takes four steps, and saves as the reference's own savers do."""
    worker = Worker(api, case)
    start([worker])
    for _ in range(4):
        worker.step()
    savers = {}
    with worker.graph.as_default():
        savers[case.kind] = tf.train.Saver()
        if case.kind == "ElasticAverage":
            savers["swapped"] = worker.optimizer.swapping_saver()
        for name, saver in savers.items():
            path = os.path.join(folder, name) if folder else saved(name)
            saver.save(worker.session, path, write_meta_graph=False, write_state=False)
    return worker


def resume(api, case, use_resource=False):
    """All variables after each of four steps in a new session, from the checkpoint."""
    worker = Worker(api, case, use_resource=use_resource)
    init_op = worker.start()
    with worker.graph.as_default():
        tf.train.Saver().restore(worker.session, saved(case.kind))
    worker.session.run(init_op)
    values = [worker.values().tolist()]
    for _ in range(4):
        worker.step()
        values.append(worker.values().tolist())
    return values


def check_resumed(api, kind, use_resource):
    """Asserts that a checkpoint of TensorFlow 1.15 goes on as it did there."""
    [case] = [case for case in RESUMED if case.kind == kind]
    ours = resume(api, case, use_resource)
    np.testing.assert_allclose(ours, golden("resumed")[kind], rtol=1e-5, atol=1e-5)


def check_saved(api, kind, folder):
    """Asserts that we save what TensorFlow 1.15 saved."""
    [case] = [case for case in RESUMED if case.kind == kind]
    save(api, case, str(folder))
    for name in [kind] + ["swapped"] * (kind == "ElasticAverage"):
        ours = tf.train.load_checkpoint(os.path.join(str(folder), name))
        theirs = tf.train.load_checkpoint(saved(name))
        shapes = theirs.get_variable_to_shape_map()
        assert ours.get_variable_to_shape_map() == shapes
        for key in shapes:
            np.testing.assert_allclose(
                ours.get_tensor(key), theirs.get_tensor(key), rtol=1e-5, atol=1e-6
            )


# ------------------------------------------------------------------------- cases


CASES = [
    case("ElasticAverage", "sgd", ALONE, communication_period=3),
    case("ElasticAverage", "sgd", ALTERNATING, communication_period=2),
    case(
        "ElasticAverage",
        "momentum",
        UNEVEN,
        "tuned",
        communication_period=3,
        moving_rate=0.3,
        rho=0.05,
    ),
    case(
        "ElasticAverage",
        "sgd",
        ALTERNATING,
        "synchronous",
        communication_period=1,
        moving_rate=0.5,
        synchronous=True,
    ),
    case("ElasticAverage", "adam", UNEVEN, rho=0.0, communication_period=2),
    case(
        "ElasticAverage",
        "adagrad",
        ALTERNATING,
        "f64",
        "float64",
        "dense",
        golden=False,
        communication_period=2,
    ),
    case(
        "ElasticAverage",
        "momentum",
        ALTERNATING,
        "sparse",
        "float32",
        "sparse",
        communication_period=2,
    ),
    case("ModelAverage", "sgd", ALONE, interval_steps=3),
    case("ModelAverage", "sgd", ALTERNATING, interval_steps=2),
    case("ModelAverage", "momentum", ALONE, interval_steps=3),
    case(
        "ModelAverage", "sgd", ALTERNATING, "f64", "float64", "sparse", interval_steps=3
    ),
    case("AGN", "sgd", ALONE, communication_period=3),
    case("AGN", "sgd", ALTERNATING, communication_period=2),
    case("AGN", "momentum", UNEVEN, communication_period=3),
    case("AGN", "adam", ALTERNATING, communication_period=2),
    case("AGN", "adam", ALONE, "f64", "float64", communication_period=3),
    case(
        "AGN",
        "momentum",
        ALTERNATING,
        "sparse",
        "float32",
        "sparse",
        communication_period=2,
    ),
]

RESUMED = [
    case("ElasticAverage", "momentum", ALONE, communication_period=2),
    case("ModelAverage", "momentum", ALONE, interval_steps=2),
    case("AGN", "momentum", ALONE, communication_period=2),
]

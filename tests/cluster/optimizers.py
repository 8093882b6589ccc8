"""A worker that trains all cases: `python -m cluster.optimizers CLUSTER TASK FOLDER`.

It writes what it found to FOLDER/worker.TASK, in JSON.
"""

import json
import sys
import time

import tensorflow.compat.v1 as tf

import contrib_opt
from cluster.cases import (
    CASES,
    COPIES,
    STEPS,
    WORKERS,
    batches_of,
    global_step_of,
    least_squares,
)
from cluster.worker import Worker
from processes import Barrier, end_with_the_test, write

FREE_STEPS = 20


def session_of(worker, name, hooks):
    """A session of a worker, on variables that the chief has initialized."""
    if worker.task > 0:
        # It would look for them every 30 seconds only.
        worker.barrier.wait(name + "-initialized")
    session = worker.session(hooks=hooks)
    if worker.task == 0:
        worker.barrier.wait(name + "-initialized")
    return session


def train(worker, case):
    """Takes all steps of a case, some more at once, and returns what it saw."""
    with tf.Graph().as_default(), tf.container(case.id):
        with worker.placed(), tf.variable_scope("", use_resource=case.use_resource):
            step = global_step_of(case)
            optimizer, hooks = case.optimizer(), []
            if case.together:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, WORKERS)
            loss = case.problem(batches_of(case, step, [worker.task]))
            train_op = optimizer.minimize(loss, step)
            if case.together:
                # No tokens: otherwise a worker may take both parts of the first step.
                hooks = [optimizer.make_session_run_hook(worker.task == 0, 0)]
        variables = tf.global_variables()
        slots = [
            (v.device, optimizer.get_slot(v, name).device)
            for v in tf.trainable_variables()
            for name in optimizer.get_slot_names()
        ]
        with session_of(worker, case.id, hooks) as session:
            for number in range(STEPS):
                if case.together:
                    worker.barrier.wait(f"{case.id}-{number}")
                    session.run(train_op)
                elif number % WORKERS == worker.task:
                    while session.run(step) < number:
                        time.sleep(0.002)
                    session.run(train_op)
            worker.barrier.wait(case.id + "-trained")
            values = session.run({v.op.name: v for v in variables})
            worker.barrier.wait(case.id + "-read")
            if not case.together:
                for _ in range(FREE_STEPS):
                    session.run(train_op)
                worker.barrier.wait(case.id + "-ran_free")
            after = session.run({v.op.name: v for v in variables})
            worker.barrier.wait(case.id + "-end")
    return {
        "devices": sorted({v.device for v in variables}),
        "slots": slots,
        "values": {name: value.tolist() for name, value in values.items()},
        "after": {name: value.tolist() for name, value in after.items()},
    }


def train_copies(worker, kind):
    """Trains with variables of the worker's own, beside a center on the server."""
    chief = worker.task == 0
    with tf.Graph().as_default(), tf.container(kind):
        getter = getattr(contrib_opt, kind + "CustomGetter")(worker.device)
        with worker.placed(), tf.variable_scope("", custom_getter=getter):
            step = tf.train.get_or_create_global_step()
            loss = least_squares([worker.task, 2 + worker.task])
            momentum = tf.train.MomentumOptimizer(0.05, 0.5)
            cls = getattr(contrib_opt, kind + "Optimizer")
            if kind == "ModelAverage":
                optimizer = cls(momentum, WORKERS, chief, getter, interval_steps=4)
            else:
                optimizer = cls(momentum, WORKERS, getter, communication_period=4)
            train_op = optimizer.minimize(loss, step)
        arguments = () if kind == "ModelAverage" else (chief, worker.task)
        hook = optimizer.make_session_run_hook(*arguments)
        centers = {r.center.op.name: r.center for r in getter.records()}
        with session_of(worker, kind, [hook]) as session:
            before = session.run(loss)
            worker.barrier.wait(kind + "-started")
            for _ in range(2 * FREE_STEPS):
                session.run(train_op)
            worker.barrier.wait(kind + "-trained")
            seen = session.run({"loss": loss, "global_step": step, "centers": centers})
            worker.barrier.wait(kind + "-end")
    return {
        "devices": sorted({v.device for v in centers.values()}),
        "own": sorted({v.device for v in tf.trainable_variables()}),
        "before": float(before),
        "loss": float(seen["loss"]),
        "global_step": int(seen["global_step"]),
        "is_resource": hasattr(step, "handle"),
        "centers": {n: v.tolist() for n, v in seen["centers"].items()},
    }


def main():
    end_with_the_test()
    tf.disable_v2_behavior()
    cluster, task, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    worker = Worker(cluster, task)
    worker.barrier = Barrier(folder, task, WORKERS)
    found = {case.id: train(worker, case) for case in CASES}
    found.update({kind: train_copies(worker, kind) for kind in COPIES})
    write(folder, f"worker.{task}", found)


if __name__ == "__main__":
    main()

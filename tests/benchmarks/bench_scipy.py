"""What ScipyOptimizerInterface costs, beyond the loss and its gradient.

    PYTHONPATH=. python tests/benchmarks/bench_scipy.py

The loss is the sum of squares of some small variables, all fetched in one vector. An
evaluation of it is one run of the session in which the variables already hold the
point; the cost is the time of an evaluation for L-BFGS-B's function, less that. In
TensorFlow 1.15 `tf.contrib.opt` and contrib_opt take turns in one process; on others
contrib_opt is alone. The last rows have the time of an iteration of SLSQP.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # SciPy's own part of SLSQP

import numpy as np
import tensorflow.compat.v1 as tf
from libraries import TF1, library

import contrib_opt.external

ELEMENTS = 20  # of a variable


class Evaluate:
    """Mixed into an interface: it times evaluations, and minimizes nothing."""

    def _minimize(self, initial_val, loss_grad_func, optimizer_kwargs, **_):
        x = np.array(initial_val, np.float64)
        self.times = []
        for _ in range(optimizer_kwargs["repeats"]):
            x += 1e-6
            begin = time.perf_counter()
            loss_grad_func(x)
            self.times.append(time.perf_counter() - begin)
        return initial_val


def interfaces():
    yield "ours", contrib_opt.external.ScipyOptimizerInterface
    if TF1:
        yield "theirs", library("tf.contrib").ScipyOptimizerInterface


def make_loss(count):
    variables = [
        tf.get_variable(f"v{i}", [ELEMENTS], initializer=tf.ones_initializer())
        for i in range(count)
    ]
    scale = tf.placeholder_with_default(1.0, [])
    loss = scale * tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables])
    return variables, scale, loss


def evaluation_times(count, resource, feed, rounds, repeats):
    """{name: seconds of an evaluation}, the medians; 'alone' is the session's part."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", use_resource=resource):
            variables, scale, loss = make_loss(count)
        gradient = tf.concat(tf.gradients(loss, variables), 0)
        feed_dict = {scale: 2.0} if feed else {}
        optimizers = {
            name: type(name, (Evaluate, cls), {})(loss, repeats=repeats)
            for name, cls in interfaces()
        }
        session.run(tf.global_variables_initializer())
        times = {name: [] for name in ["alone", *optimizers]}
        if feed:

            def alone():
                session.run([loss, gradient], feed_dict)
        else:
            alone = session.make_callable([loss, gradient])
        for _ in range(rounds):
            for _ in range(repeats):
                begin = time.perf_counter()
                alone()
                times["alone"].append(time.perf_counter() - begin)
            for name, optimizer in optimizers.items():
                optimizer.minimize(session, feed_dict=feed_dict)
                times[name] += optimizer.times[5:]
        return {name: np.median(values) for name, values in times.items()}


def slsqp_times(constraints, rounds):
    """{name: seconds of an iteration of SLSQP}, with so many constraints."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", use_resource=False):
            variables, _, loss = make_loss(4)
        bounds = [variables[0][i % ELEMENTS] - 0.5 for i in range(constraints)]
        optimizers = {
            name: cls(loss, inequalities=bounds, method="SLSQP")
            for name, cls in interfaces()
        }
        initialize = tf.global_variables_initializer()
        times = {name: [] for name in optimizers}
        for _ in range(rounds):
            for name, optimizer in optimizers.items():
                session.run(initialize)
                steps = []
                begin = time.perf_counter()
                optimizer.minimize(session, step_callback=steps.append)
                times[name].append((time.perf_counter() - begin) / len(steps))
        return {name: np.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=60)
    arguments = parser.parse_args()
    import scipy

    tf.logging.set_verbosity(tf.logging.ERROR)
    print(f"TensorFlow {tf.__version__}, SciPy {scipy.__version__}")
    if not TF1:
        tf.disable_v2_behavior()
    names = [name for name, _ in interfaces()]
    row = ("{:36}" + " {:>11}" * (1 + len(names))).format
    print(row("ms", "alone", *["beyond: " + n for n in names]))
    for feed in (False, True):
        for resource in (False, True):
            for count in (1, 6, 18, 161):
                times = evaluation_times(
                    count, resource, feed, arguments.rounds, arguments.repeats
                )
                what = "{} {} variables{}".format(
                    count, "resource" if resource else "ref", ", a feed" if feed else ""
                )
                alone = times["alone"]
                beyond = [f"{1000 * (times[n] - alone):.3f}" for n in names]
                print(row(what, f"{1000 * alone:.3f}", *beyond), flush=True)
    for count in (1, 10):
        times = slsqp_times(count, arguments.rounds)
        what = f"SLSQP, {count} constraints, an iteration"
        print(row(what, "", *[f"{1000 * times[n]:.3f}" for n in names]), flush=True)


if __name__ == "__main__":
    main()

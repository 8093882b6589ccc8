"""Problems with known solutions, for the external optimizers: built and solved.

The golden numbers in tests/golden/external/ are what TensorFlow 1.15.5 makes of them.
"""

import json
import math
import os

import numpy as np
import tensorflow.compat.v1 as tf

GOLDEN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "golden", "external", "results.json"
)
DTYPES = ("float32", "float64")

# Problem, method and options; each is solved from the same start in each dtype.
CASES = {
    "rosenbrock L-BFGS-B": ("rosenbrock", "L-BFGS-B", {}),
    "rosenbrock SLSQP": ("rosenbrock", "SLSQP", {"ftol": 1e-12}),
    "rosenbrock TNC": ("rosenbrock", "TNC", {}),
    "rosenbrock CG": ("rosenbrock", "CG", {}),
    "rosenbrock BFGS": ("rosenbrock", "BFGS", {}),
    "rosenbrock Newton-CG": ("rosenbrock", "Newton-CG", {}),
    "rosenbrock Nelder-Mead": ("rosenbrock", "Nelder-Mead", {}),
    "rosenbrock Powell": ("rosenbrock", "Powell", {}),
    "bounded L-BFGS-B": ("bounded", "L-BFGS-B", {}),
    "bounded TNC": ("bounded", "TNC", {}),
    "bounded SLSQP": ("bounded", "SLSQP", {}),
    "ellipse SLSQP": ("ellipse", "SLSQP", {}),
    "disk COBYLA": ("disk", "COBYLA", {"rhobeg": 0.5, "tol": 1e-6}),
    "embedding L-BFGS-B": ("embedding", "L-BFGS-B", {}),
    "embedding CG": ("embedding", "CG", {}),
}


def golden():
    with open(GOLDEN) as file:
        return json.load(file)


def variable(name, value, dtype):
    return tf.get_variable(name, initializer=np.array(value, dtype))


def rosenbrock(dtype):
    """https://en.wikipedia.org/wiki/Rosenbrock_function, a narrow curved valley."""
    x = variable("x", -1.2, dtype)
    y = variable("y", [1.0], dtype)
    return {"loss": (1.0 - x) ** 2 + 100.0 * (y[0] - x**2) ** 2}, [1.0, 1.0]


def bounded(dtype):
    """A quadratic whose minimum is outside of the bounds of some elements."""
    m = variable("m", np.zeros([2, 3]), dtype)
    s = variable("s", 3.0, dtype)
    free = variable("free", [5.0, -5.0], dtype)
    target = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    loss = tf.reduce_sum(np.array([[1.0], [2.0]], dtype) * (m - target) ** 2)
    loss += (s - 1.0) ** 2 + tf.reduce_sum((free - 0.5) ** 2) + 0.1 * s * free[0]
    low, high = np.array([-0.5, -np.inf, -10.0]), np.array([[1.5], [-0.25]])
    # The inner minimum of s and free[0], with s at its lower bound.
    solution = [*np.clip(target, low, high).ravel(), 2.0, 0.4, 0.5]
    arguments = {"loss": loss, "var_to_bounds": {m: (low, high), s: (2.0, np.inf)}}
    return arguments, solution


def ellipse(dtype):
    """An equality, and an inequality that is active at the solution."""
    x = variable("x", [2.0, 2.0], dtype)
    arguments = {
        "loss": (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2,
        "equalities": [x[0] - 2.0 * x[1] + 1.0],
        "inequalities": [1.0 - x[0] ** 2 / 4.0 - x[1] ** 2, x[0] + 10.0],
    }
    return arguments, [(math.sqrt(7.0) - 1.0) / 2.0, (math.sqrt(7.0) + 1.0) / 4.0]


def disk(dtype):
    """A plane over a disk."""
    x, y = variable("x", 0.0, dtype), variable("y", 0.5, dtype)
    arguments = {"loss": x + y, "inequalities": [1.0 - x**2 - y**2]}
    return arguments, [-math.sqrt(0.5)] * 2


def embedding(dtype):
    """Rows of a table, of which one is read twice and one is not read."""
    table = variable("table", [[4.0, 4.0], [3.0, 3.0], [2.0, 2.0]], dtype)
    rows = tf.gather(table, [2, 0, 2])
    loss = tf.reduce_sum((rows - np.array([[1.0, 1.0], [0.0, 1.0], [2.0, 3.0]])) ** 2)
    return {"loss": loss}, [0.0, 1.0, 3.0, 3.0, 1.5, 2.0]


def solve(interface, case, dtype, use_resource=False):
    """Solves a case of CASES, in a graph and session of its own.

    Returns:
      A dict: 'solution', the packed variables at the end, and 'losses', the loss at
      each evaluation; and the known solution.
    """
    problem, method, options = CASES[case]
    losses, options = [], dict(options)
    tol = options.pop("tol", None)
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", use_resource=use_resource):
            arguments, known = globals()[problem](dtype)
        loss = arguments["loss"]
        optimizer = interface(method=method, options=options, tol=tol, **arguments)
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, fetches=[loss], loss_callback=losses.append)
        values = session.run(tf.trainable_variables())
    solution = [float(e) for v in values for e in np.ravel(v)]
    return {"solution": solution, "losses": [float(loss) for loss in losses]}, known

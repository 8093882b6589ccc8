"""A physics-informed network for Burgers' equation: Adam, then SciPy's L-BFGS-B.

    python legacy_examples/pinn_scipy.py --plot=burgers.png

A network u(t, x) is trained until it solves

    u_t + u u_x = nu u_xx,   u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0

on 0 <= t <= 1, -1 <= x <= 1, with nu = 0.01 / pi. It sees no solution: the loss is the
mean square of what the equation misses at random points. The initial and boundary
values, and that u is odd in x, are built into u. At the end u is compared with the
exact solution, in which a shock forms at x = 0.

Sources: M. Raissi, P. Perdikaris, G. E. Karniadakis, "Physics Informed Deep Learning",
https://arxiv.org/abs/1711.10561; the edges: I. E. Lagaris, A. Likas, D. I. Fotiadis,
"Artificial Neural Networks for Solving Ordinary and Partial Differential Equations",
https://arxiv.org/abs/physics/9705023.
"""

import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags, logging

from contrib_opt import ScipyOptimizerInterface

FLAGS = flags.FLAGS

# Keeps TensorFlow's news out of the report; --verbosity=0 brings it back.
FLAGS.verbosity = logging.WARNING

flags.DEFINE_integer("adam_steps", 300, "Steps of Adam.", lower_bound=0)
flags.DEFINE_integer("iterations", 1800, "Most iterations of L-BFGS-B.", lower_bound=1)
flags.DEFINE_integer("points", 1000, "Points for the equation.", lower_bound=1)
flags.DEFINE_integer("layers", 4, "Hidden layers.", lower_bound=1)
flags.DEFINE_integer("width", 20, "Units of a hidden layer.", lower_bound=1)
flags.DEFINE_integer("log_every", 200, "Steps from report to report.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of weights and points.", lower_bound=0)
flags.DEFINE_string("plot", None, "PNG file to draw the solution in.")
flags.register_validator(
    "plot",
    lambda path: not (path and os.path.isdir(path)),
    message="--plot must name a file, not a folder.",
)

NU = 0.01 / np.pi


def exact_solution(t, x):
    """u at the times t > 0 and places x, arrays of one shape; by Cole and Hopf.

    With f(y) = exp(-cos(pi y) / (2 pi nu)), and integrals over all z, by Gauss and
    Hermite's quadrature:

        u = - integral of sin(pi y) f(y) exp(-z^2) dz / integral of f(y) exp(-z^2) dz,
        y = x - 2 sqrt(nu t) z
    """
    z, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - 2.0 * np.sqrt(NU * t)[..., None] * z
    exponent = -np.cos(np.pi * y) / (2.0 * np.pi * NU)
    f = weights * np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    return -(np.sin(np.pi * y) * f).sum(axis=-1) / f.sum(axis=-1)


def random_points(rng):
    """Where the network is trained: float32 arrays t and x of shape [n, 1].

    Every other point is drawn towards x = 0, where u is steep.
    """
    n = FLAGS.points
    # A Latin hypercube: each coordinate has one point in each of n intervals.
    strata = np.stack([rng.permutation(n), rng.permutation(n)], 1)
    t, x = np.split((strata + rng.rand(n, 2)) / n, 2, axis=1)
    x = 2.0 * x - 1.0
    x[::2] **= 3
    return t.astype(np.float32), x.astype(np.float32)


class Network:
    """u(t, x) = -sin(pi x) + t (1 - x^2) (f(t, x) - f(t, -x)).

    f has layers of tanh, and a linear one at the end.
    """

    def __init__(self):
        sizes = [2] + [FLAGS.width] * FLAGS.layers + [1]
        xavier, zeros = tf.glorot_normal_initializer(), tf.zeros_initializer()
        self._layers = [
            (
                tf.get_variable(f"layer_{i}/kernel", [n, m], initializer=xavier),
                tf.get_variable(f"layer_{i}/bias", [m], initializer=zeros),
            )
            for i, (n, m) in enumerate(zip(sizes[:-1], sizes[1:]))
        ]

    def __call__(self, t, x):
        """u of shape [n, 1], for t and x of that shape."""
        odd = self._f(t, x) - self._f(t, -x)
        return -tf.sin(np.pi * x) + t * (1.0 - tf.square(x)) * odd

    def _f(self, t, x):
        # u is steeper in x than in t.
        h = tf.concat([2.0 * t - 1.0, 5.0 * x], 1)
        for kernel, bias in self._layers[:-1]:
            h = tf.tanh(tf.matmul(h, kernel) + bias)
        kernel, bias = self._layers[-1]
        return tf.matmul(h, kernel) + bias


def residual(network, t, x):
    """What u misses of the equation: u_t + u u_x - nu u_xx, of shape [n, 1]."""
    u = network(t, x)
    u_t, u_x = tf.gradients(u, [t, x])
    u_xx = tf.gradients(u_x, x)[0]
    return u_t + u * u_x - NU * u_xx


def main(_):
    """Trains, and compares with the exact solution."""
    plt = _import_pyplot() if FLAGS.plot else None
    train_t, train_x = random_points(np.random.RandomState(FLAGS.seed))

    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(FLAGS.seed)
        t = tf.placeholder(tf.float32, [None, 1], name="t")
        x = tf.placeholder(tf.float32, [None, 1], name="x")

        network = Network()
        u = network(t, x)
        loss = tf.reduce_mean(tf.square(residual(network, t, x)))
        adam = tf.train.AdamOptimizer(0.003).minimize(loss)
        lbfgs = ScipyOptimizerInterface(
            loss,
            method="L-BFGS-B",
            options={
                "maxiter": FLAGS.iterations,
                "maxfun": 2 * FLAGS.iterations,
                "maxcor": 100,
                "maxls": 50,
                "ftol": np.finfo(np.float64).eps,
                "gtol": 1e-8,
            },
        )
        session.run(tf.global_variables_initializer())
        feed = {t: train_t, x: train_x}
        begin = time.time()

        for step in range(FLAGS.adam_steps):
            if step % FLAGS.log_every == 0:
                _report("Adam", step, session.run(loss, feed), begin)
            session.run(adam, feed)

        progress = {"iterations": 0, "loss": None}

        def on_loss(value):
            progress["loss"] = value

        def on_step(_):
            if progress["iterations"] % FLAGS.log_every == 0:
                _report("L-BFGS-B", progress["iterations"], progress["loss"], begin)
            progress["iterations"] += 1

        lbfgs.minimize(
            session,
            feed_dict=feed,
            fetches=[loss],
            step_callback=on_step,
            loss_callback=on_loss,
        )
        _report("L-BFGS-B", progress["iterations"], session.run(loss, feed), begin)

        times, places = np.meshgrid(
            np.linspace(0.01, 1.0, 100), np.linspace(-1.0, 1.0, 256), indexing="ij"
        )
        feed = {t: times.reshape([-1, 1]), x: places.reshape([-1, 1])}
        found = session.run(u, feed).reshape(times.shape)

    exact = exact_solution(times, places)
    if plt:
        os.makedirs(os.path.dirname(os.path.abspath(FLAGS.plot)), exist_ok=True)
        _draw(plt, times, places, found, exact).savefig(FLAGS.plot, format="png")
        print("The solution is in " + FLAGS.plot)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    print(f"Relative L2 error: {error:.2e}", flush=True)


def _report(optimizer, step, loss, begin):
    seconds = time.time() - begin
    print(f"{optimizer:8} {step:5d}  loss {loss:.3e}  {seconds:5.1f} s", flush=True)


def _draw(plt, times, places, found, exact):
    figure, axes = plt.subplots(
        1, 4, figsize=(14, 3.5), dpi=120, constrained_layout=True
    )
    image = axes[0].pcolormesh(times, places, found, cmap="RdBu", shading="auto")
    figure.colorbar(image, ax=axes[0])
    axes[0].set(title="u(t, x) of the network", xlabel="t", ylabel="x")
    for axis, time_index in zip(axes[1:], (24, 49, 74)):
        axis.plot(places[time_index], exact[time_index], label="exact")
        axis.plot(places[time_index], found[time_index], "--", label="network")
        axis.set(title=f"t = {times[time_index, 0]:.2f}", xlabel="x", ylim=(-1.1, 1.1))
        axis.grid(alpha=0.3)
    axes[1].set_ylabel("u")
    axes[1].legend()
    return figure


def _import_pyplot():
    try:
        import matplotlib
    except ImportError as error:
        extra = "pip install 'contrib_opt[examples]'"
        sys.exit(f"--plot draws with matplotlib: {extra} brings it ({error}).")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


if __name__ == "__main__":
    app.run(main)

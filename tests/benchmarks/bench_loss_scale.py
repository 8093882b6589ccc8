"""Step times with loss scaling: ours, that Keras's own, and the optimizer alone.

    PYTHONPATH=. python tests/benchmarks/bench_loss_scale.py [--keras=tf_keras]

All three train the same network in one process, by turns, round after round. The
table has the median time of a step, and the medians of the ratios within the rounds.
"""

import argparse
import importlib
import time

import numpy as np
import tensorflow as tf
from turns import in_turns, ratio

from contrib_opt.keras.mixed_precision import LossScaleOptimizer

BATCH, FEATURES = 32, 64


def make_model(keras, layers, width):
    dense = [keras.layers.Dense(width, activation="relu") for _ in range(layers)]
    model = keras.Sequential([*dense, keras.layers.Dense(1)])
    model.build((None, FEATURES))
    return model


def wrappers(keras):
    yield "alone", lambda inner: inner
    yield "theirs", keras.mixed_precision.LossScaleOptimizer
    yield "ours", LossScaleOptimizer


def make_step(name, keras, how, size):
    """A function without arguments that trains `name` for one step."""
    random = np.random.RandomState(0)
    x = random.randn(BATCH, FEATURES).astype(np.float32)
    y = random.randn(BATCH, 1).astype(np.float32)
    model = make_model(keras, **size)
    inner = keras.optimizers.SGD(0.001, momentum=0.9)
    optimizer = dict(wrappers(keras))[name](inner)
    variables = model.trainable_variables
    if how == "fit":
        model.compile(optimizer=optimizer, loss="mse", jit_compile=False)
        return lambda: model.train_on_batch(x, y)

    x, y = tf.constant(x), tf.constant(y)

    def loss():
        return tf.reduce_mean(tf.square(model(x, training=True) - y))

    def alone():
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))

    def keras_2():
        with tf.GradientTape() as tape:
            value = optimizer.get_scaled_loss(loss())
        grads = tape.gradient(value, variables)
        grads = optimizer.get_unscaled_gradients(grads)
        optimizer.apply_gradients(zip(grads, variables))

    def keras_3():
        with tf.GradientTape() as tape:
            value = optimizer.scale_loss(loss())
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))

    if name == "alone":
        step = alone
    elif name == "theirs" and not hasattr(optimizer, "get_scaled_loss"):
        step = keras_3
    else:
        step = keras_2
    return tf.function(step) if how == "function" else step


def measure(steps, rounds, repeats):
    """{name: seconds a step, of each round}; the names take turns in a round."""

    def timed(step):
        def seconds():
            begin = time.perf_counter()
            for _ in range(repeats):
                step()
            return (time.perf_counter() - begin) / repeats

        return seconds

    for step in steps.values():
        for _ in range(5):
            step()
    return in_turns({name: timed(step) for name, step in steps.items()}, rounds)


SIZES = {
    "20 x 64": {"layers": 20, "width": 64},
    "3 x 1024": {"layers": 3, "width": 1024},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keras", default="keras", choices=["keras", "tf_keras"])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    keras = importlib.import_module(arguments.keras)
    print(f"TensorFlow {tf.__version__}, {arguments.keras} {keras.__version__}")
    row = "{:10} {:9} {:>9} {:>9} {:>9} {:>12} {:>12}".format
    print(
        row("layers", "step", "alone ms", "theirs ms", "ours ms", "ours/theirs",
            "ours/alone")
    )  # fmt: skip
    for size, kwargs in SIZES.items():
        for how in ("eager", "function", "fit"):
            steps = {
                name: make_step(name, keras, how, kwargs) for name, _ in wrappers(keras)
            }
            times = measure(steps, arguments.rounds, 5 if how == "eager" else 20)
            medians = [1000 * np.median(times[n]) for n in ("alone", "theirs", "ours")]
            ratios = [ratio(times["ours"], times[n]) for n in ("theirs", "alone")]
            numbers = [f"{m:.2f}" for m in medians] + [f"{r:.2f}" for r in ratios]
            print(row(size, how, *numbers), flush=True)


if __name__ == "__main__":
    main()

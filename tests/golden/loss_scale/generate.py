"""Records what the real LossScaleOptimizer computes: run it in TensorFlow 2.8.4.

    pip install tensorflow==2.8.4 'protobuf<3.21' 'numpy<1.24'
    PYTHONPATH=.:tests/keras python tests/golden/loss_scale/generate.py

- `trajectories.json`: for each scenario of tests/keras/loss_scaling.py the variables,
  loss scale, counter and iterations after each of a dozen steps, by tape and by
  minimize;
- `configs.json`: `get_config()` for the ways to say which loss scale;
- `checkpoints/scaled-6.*` and `plain-6.*`: `tf.train.Checkpoint` from the middle of a
  run, with a LossScaleOptimizer and with the optimizer alone.
"""

import json
import os

import tensorflow as tf
from loss_scaling import GOLDEN, SCENARIOS, STEPS, Run

CHECKPOINT_STEP = 6


def trajectory(scenario, how):
    run, states = Run(scenario, tf.keras.optimizers, real), []
    for step in range(STEPS):
        run.step(how, step)
        states.append(run.state())
    return states


def real(*args, **kwargs):
    return tf.keras.mixed_precision.LossScaleOptimizer(*args, **kwargs)


def configs():
    sgd, classes = tf.keras.optimizers.SGD, tf.compat.v1.mixed_precision
    experimental = tf.keras.mixed_precision.experimental.LossScaleOptimizer
    return {
        "dynamic": experimental(sgd(), "dynamic").get_config(),
        "number": experimental(sgd(), 123).get_config(),
        "fixed": experimental(sgd(), classes.FixedLossScale(7.0)).get_config(),
        "object": experimental(
            sgd(),
            classes.DynamicLossScale(initial_loss_scale=2048, increment_period=500),
        ).get_config(),
    }


def checkpoints():
    run = Run(SCENARIOS["grows"], tf.keras.optimizers, real)
    for step in range(CHECKPOINT_STEP):
        run.step("tape", step)
    inner = run.optimizer.inner_optimizer
    for name, optimizer in (("scaled", run.optimizer), ("plain", inner)):
        if name == "plain":
            run = Run(SCENARIOS["grows"], tf.keras.optimizers, lambda o, **_: o)
            optimizer = run.optimizer
            for step in range(CHECKPOINT_STEP):
                run.step("minimize", step)
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, kernel=run.kernel)
        path = os.path.join(GOLDEN, "checkpoints", f"{name}-{CHECKPOINT_STEP}")
        checkpoint.write(path)


def write(name, values):
    """A JSON file with a line for each item of the lists or dicts in `values`."""
    text = json.dumps(values, sort_keys=True)
    for mark in ('}, {"counter"', '}, "', '}], "'):
        text = text.replace(mark, mark.replace(", ", ",\n"))
    with open(os.path.join(GOLDEN, name + ".json"), "w") as file:
        file.write(text + "\n")


def main():
    assert tf.__version__.startswith("2.8."), tf.__version__
    recorded = {}
    for name, scenario in SCENARIOS.items():
        by_tape = trajectory(scenario, "tape")
        # Compared as text: a NaN does not equal itself.
        assert json.dumps(by_tape) == json.dumps(trajectory(scenario, "minimize"))
        recorded[name] = by_tape
    write("trajectories", recorded)
    write("configs", configs())
    checkpoints()


if __name__ == "__main__":
    main()

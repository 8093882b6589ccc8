"""Records how TensorFlow 1.15.5's loss scale managers react to steps.

    PYTHONPATH=tests:. python tests/golden/loss_scale_managers/generate.py

states.json: for each row of tests/mixed_precision/managers.py the loss scale, the good
steps and the bad steps after each step.
"""

import json
import os

import tensorflow as tf

from mixed_precision.managers import ROWS, states

HERE = os.path.dirname(os.path.abspath(__file__))
manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager
found = {name: states(manager, row) for name, row in sorted(ROWS.items())}
with open(os.path.join(HERE, "states.json"), "w") as lines:
    json.dump(found, lines, indent=1, sort_keys=True)
    lines.write("\n")

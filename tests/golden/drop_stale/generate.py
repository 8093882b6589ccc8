"""Records which gradients TensorFlow 1.15.5's DropStaleGradientOptimizer drops.

    PYTHONPATH=tests:. python tests/golden/drop_stale/generate.py

steps.json: see tests/wrappers/interrupted.py.
"""

import json
import os

import tensorflow as tf

from wrappers.interrupted import OPTIMIZERS, STALENESS, run

HERE = os.path.dirname(os.path.abspath(__file__))
found = {
    f"{base}_{staleness}": run(
        tf.contrib.opt.DropStaleGradientOptimizer, base, staleness
    )
    for base in sorted(OPTIMIZERS)
    for staleness in STALENESS
}
with open(os.path.join(HERE, "steps.json"), "w") as lines:
    json.dump(found, lines, indent=1, sort_keys=True)
    lines.write("\n")

"""Records what the references compute: run it in TensorFlow 1.15.5, then in 1.14.0.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'
    PYTHONPATH=tests python tests/golden/generate.py

(1.14.0 needs 'numpy<1.17'.) Each run records the rows of tests/optimizers/cases.py
that name its release:

- `<row>.npz`: for each dtype and problem the variables and slots after some of a
  dozen steps, flat, as problems.state orders them;
- `checkpoints/<row>-<steps>.*`: a Saver checkpoint from the middle of the float32 run
  on the dense problem;
- `names.json`: the names of the slots and variables that the optimizer made.
"""

import json
import os

import numpy as np
import tensorflow as tf

from optimizers.cases import CASES
from optimizers.problems import DENSE, SPARSE, STEPS, GraphRun

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED_STEPS = (1, 4, STEPS)
CHECKPOINT_STEP = 6
DTYPES = ("float16", "float32", "float64")


def record(case):
    def make():
        return getattr(tf.contrib.opt, case.theirs)(**case.kwargs)

    trajectories = {}
    for dtype in DTYPES:
        for problem in (DENSE, SPARSE):
            key = dtype + "_" + problem.name
            try:
                ref, resource = [
                    trajectory(GraphRun(problem, make, dtype, use_resource))
                    for use_resource in (False, True)
                ]
            except TypeError as error:
                print(f"{case.id}: no {key}, the reference raises {error}")
                continue
            np.testing.assert_array_equal(ref, resource)
            kind = np.float64 if dtype == "float64" else np.float32
            trajectories[key] = ref.astype(kind)
    np.savez_compressed(os.path.join(HERE, case.id + ".npz"), **trajectories)

    run = GraphRun(DENSE, make, use_resource=False)
    run.train(range(CHECKPOINT_STEP))
    path = os.path.join(HERE, "checkpoints", case.id)
    run.saver.save(
        run.session, path, CHECKPOINT_STEP, write_meta_graph=False, write_state=False
    )
    with run.graph.as_default():
        return {
            "slots": run.optimizer.get_slot_names(),
            "variables": [v.name for v in run.optimizer.variables()],
        }


def trajectory(run):
    values, done = [], 0
    for step in RECORDED_STEPS:
        run.train(range(done, step))
        values.append(run.values())
        done = step
    return np.stack(values)


def main():
    path = os.path.join(HERE, "names.json")
    names = {}
    if os.path.exists(path):
        with open(path) as lines:
            names = json.load(lines)
    for case in CASES:
        if tf.__version__.startswith(case.release + "."):
            names[case.id] = record(case)
    with open(path, "w") as lines:
        json.dump(names, lines, indent=1, sort_keys=True)
        lines.write("\n")


if __name__ == "__main__":
    main()

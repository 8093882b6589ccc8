"""Records what the references compute: run it in TensorFlow 1.15.5, then in 1.14.0.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'
    PYTHONPATH=tests:. python tests/golden/generate.py [ROW...]

(1.14.0 needs 'numpy<1.17'.) Each run records the rows of tests/optimizers/cases/
that name its release, or of these only the ones that are given:

- `<row>.npz`: for each dtype and problem the variables and slots after some of a
  dozen steps, flat, as problems.state orders them;
- `checkpoints/<row>-<steps>.*`: a Saver checkpoint from the middle of the float32 run
  on the dense problem;
- `names/<row>.json`: the names of the optimizer, of its train op, of its slots, and of
  the variables that it made.

Where the reference raises or reaches inf or NaN, nothing is recorded, and it says so.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

from optimizers.cases import CASES, make_theirs
from optimizers.problems import (
    PROBLEM_KINDS,
    STEPS,
    GraphRun,
    made_by_optimizer,
    seeded,
    slots,
)

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED_STEPS = (1, 4, STEPS)
CHECKPOINT_STEP = 6
DTYPES = ("float16", "float32", "float64")


def record(case):
    trajectories = {}
    for dtype in DTYPES:
        for kind in PROBLEM_KINDS:
            found = [
                attempt(case, dtype, kind, use_resource)
                for use_resource in (False, True)
            ]
            found = [trajectory for trajectory in found if trajectory is not None]
            if not found:
                continue
            if len(found) == 2:
                np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
            number = np.float64 if dtype == "float64" else np.float32
            trajectories[dtype + "_" + kind] = found[0].astype(number)
    np.savez_compressed(os.path.join(HERE, case.id + ".npz"), **trajectories)

    run = GraphRun(
        seeded("dense", case.given_gradients),
        lambda: make_theirs(case),
        use_resource=False,
    )
    run.train(range(CHECKPOINT_STEP))
    path = os.path.join(HERE, "checkpoints", case.id)
    run.saver.save(
        run.session, path, CHECKPOINT_STEP, write_meta_graph=False, write_state=False
    )
    with open(os.path.join(HERE, "names", case.id + ".json"), "w") as lines:
        json.dump(names(run), lines, indent=1, sort_keys=True)
        lines.write("\n")


def attempt(case, dtype, kind, use_resource):
    problem = seeded(kind, case.given_gradients)
    what = f"{case.id}: no {dtype}, {kind}, {'resource' if use_resource else 'ref'}"
    try:
        run = GraphRun(problem, lambda: make_theirs(case), dtype, use_resource)
        values, done = [], 0
        for step in RECORDED_STEPS:
            run.train(range(done, step))
            values.append(run.values())
            done = step
    except (TypeError, ValueError, NotImplementedError, tf.errors.OpError) as error:
        print(f"{what}: the reference raises {type(error).__name__}: {error}"[:400])
        return None
    if not np.isfinite(values).all():
        print(f"{what}: the reference reaches inf or NaN")
        return None
    return np.stack(values)


def names(run):
    """The names that users see; null where the reference raises or leaves some out."""

    def or_null(call):
        try:
            return call()
        except AttributeError:
            return None

    def complete(variables):
        # Some wrappers leave out those of the optimizer that they wrap.
        made = slots(run.variables, run.optimizer)
        known = all(any(s is v for v in variables) for s in made)
        return [v.name for v in variables] if known else None

    with run.graph.as_default():
        made = [v.name for v in tf.global_variables() if made_by_optimizer(v)]
        optimizer = run.optimizer
        return {
            "optimizer": or_null(optimizer.get_name),
            "train_op": or_null(lambda: run.train_op.node_def.name),
            "slots": or_null(optimizer.get_slot_names),
            "variables": or_null(lambda: complete(optimizer.variables())),
            "all_variables": sorted(made),
        }


def main():
    for case in CASES:
        if sys.argv[1:] and case.id not in sys.argv[1:]:
            continue
        if tf.__version__.startswith(case.release + "."):
            record(case)


if __name__ == "__main__":
    main()

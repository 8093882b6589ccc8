"""`tf.contrib.opt.X` and ours, side by side in one process on random problems.

Runs on TensorFlow 1.15, where both exist; elsewhere the golden numbers stand in.
"""

import numpy as np
import pytest
import tensorflow as tf

from optimizers.cases import CASES, make
from optimizers.problems import STEPS, GraphRun, dense, sparse

if not tf.__version__.startswith("1.15."):
    pytest.skip("tf.contrib is in TensorFlow 1.15 only", allow_module_level=True)


def random_hyperparameters(case, random):
    """Values within the range in which a dozen steps stay finite."""
    drawn = {
        "learning_rate": float(10 ** random.uniform(-2, 0)),
        "momentum": float(random.uniform(0, 0.95)),
        "weight_decay": float(10 ** random.uniform(-5, -1)),
        "eeta": float(10 ** random.uniform(-3, -1)),
        "epsilon": float(random.choice([0.0, 1e-6, 1e-2])),
        "use_nesterov": bool(random.randint(2)),
    }
    return {name: drawn[name] for name in case.random}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("problem", [dense, sparse])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.release == "1.15"], ids=lambda c: c.id
)
def test_side_by_side(case, dtype, tolerance, problem, use_resource, seed):
    kwargs = random_hyperparameters(case, np.random.RandomState(seed))
    theirs = getattr(tf.contrib.opt, case.theirs)
    results = []
    for make_optimizer in (
        lambda: make(case, **kwargs),
        lambda: theirs(**dict(case.kwargs, **kwargs)),
    ):
        run = GraphRun(problem(seed), make_optimizer, dtype, use_resource)
        run.train(range(STEPS))
        results.append(run.values())
    ours, reference = results
    assert np.isfinite(reference).all()
    np.testing.assert_allclose(
        ours, reference, rtol=0, atol=tolerance * np.abs(reference).max()
    )

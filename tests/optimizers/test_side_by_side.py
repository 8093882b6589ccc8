"""`tf.contrib.opt.X` and ours, side by side in one process on random problems.

Runs on TensorFlow 1.15, where both exist; elsewhere the golden numbers stand in.
"""

import numpy as np
import pytest
import tensorflow as tf

from optimizers.cases import CASES, make, make_theirs
from optimizers.problems import PROBLEM_KINDS, STEPS, GraphRun, seeded

if not tf.__version__.startswith("1.15."):
    pytest.skip("tf.contrib is in TensorFlow 1.15 only", allow_module_level=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("kind", PROBLEM_KINDS)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.release == "1.15"], ids=lambda c: c.id
)
def test_side_by_side(case, dtype, tolerance, kind, use_resource, seed):
    kwargs = case.random(np.random.RandomState(seed))
    problem = seeded(kind, case.given_gradients, seed)

    def theirs():
        return make_theirs(case, **kwargs)

    try:
        reference = final(problem, theirs, dtype, use_resource)
    except NotImplementedError:
        # Some have no sparse update of resource variables.
        reference = final(problem, theirs, dtype, use_resource=False)
    except (TypeError, ValueError):
        # Some refuse float64.
        reference = final(problem, theirs, "float32", use_resource)
        tolerance = 1e-5
    ours = final(problem, lambda: make(case, **kwargs), dtype, use_resource)
    assert np.isfinite(reference).all()
    np.testing.assert_allclose(
        ours, reference, rtol=0, atol=tolerance * np.abs(reference).max()
    )


def final(problem, make_optimizer, dtype, use_resource):
    run = GraphRun(problem, make_optimizer, dtype, use_resource)
    run.train(range(STEPS))
    return run.values()

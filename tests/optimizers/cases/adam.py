"""The Adam family."""

import operator

from optimizers import problems
from optimizers.cases.case import Case


def _random(random):
    return {
        "learning_rate": float(10 ** random.uniform(-3, -1)),
        "beta1": float(random.uniform(0, 0.95)),
        "beta2": float(random.uniform(0.8, 0.9999)),
        "epsilon": float(10 ** random.uniform(-8, -1)),
    }


def _adam(id, optimizer, build=None, tolerance=None, **kwargs):
    # Rates with which a dozen steps move the weights visibly.
    defaults = {"learning_rate": 0.05, "beta1": 0.9}
    return Case(
        id=id,
        optimizer=optimizer,
        kwargs=dict(defaults, **kwargs),
        build=build,
        evaluated={"learning_rate": 0.025, "beta1": 0.5},
        random=_random,
        tolerance=tolerance or {},
    )


def _adam_gs(id, optimizer, **kwargs):
    def build(namespace, **kwargs):
        cls = operator.attrgetter(optimizer)(namespace)
        return cls(global_step=problems.global_step(), **kwargs)

    return _adam(id, optimizer, build, **kwargs)


_TUNED = {"beta1": 0.6, "beta2": 0.95, "epsilon": 0.01, "name": "Tuned"}

CASES = [
    _adam("adamax", "AdaMaxOptimizer"),
    _adam("adamax_tuned", "AdaMaxOptimizer", **_TUNED),
    _adam_gs("adam_gs", "AdamGSOptimizer"),
    _adam_gs("adam_gs_tuned", "AdamGSOptimizer", **_TUNED),
    _adam("lazy_adam", "LazyAdamOptimizer"),
    _adam("lazy_adam_tuned", "LazyAdamOptimizer", **_TUNED),
    _adam_gs("lazy_adam_gs", "LazyAdamGSOptimizer"),
    # In float16 the reference's first step, of 0.1, is 14 % too long for a weight.
    _adam("nadam", "NadamOptimizer", tolerance={"float16": 2e-2}),
    _adam("nadam_tuned", "NadamOptimizer", **_TUNED),
]

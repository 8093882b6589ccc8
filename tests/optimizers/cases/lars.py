"""LARS, as TensorFlow 1.15 and as 1.14 computed it."""

from optimizers.cases.case import Case


def _random(random):
    # Values with which a dozen steps stay finite.
    return {
        "learning_rate": float(10 ** random.uniform(-2, 0)),
        "momentum": float(random.uniform(0, 0.95)),
        "weight_decay": float(10 ** random.uniform(-5, -1)),
        "eeta": float(10 ** random.uniform(-3, -1)),
        "epsilon": float(random.choice([0.0, 1e-6, 1e-2])),
        "use_nesterov": bool(random.randint(2)),
    }


def _lars(id, release="1.15", **kwargs):
    # Rates with which a dozen steps move the weights visibly.
    defaults = {"learning_rate": 0.5, "momentum": 0.9, "eeta": 0.1}
    return Case(
        id=id,
        optimizer="LARSOptimizer" if release == "1.15" else "tf114.LARSOptimizer",
        release=release,
        kwargs=dict(defaults, **kwargs),
        evaluated={"learning_rate": 0.25, "momentum": 0.25},
        random=_random,
    )


_TUNED = {"momentum": 0.5, "weight_decay": 0.01, "eeta": 0.3, "epsilon": 0.001}

CASES = [
    _lars("lars"),
    _lars("lars_nesterov", use_nesterov=True),
    _lars("lars_skip_list", skip_list=["bias", "batch_normalization"]),
    _lars("lars_tuned", **_TUNED),
    _lars("lars114", release="1.14"),
    _lars("lars114_nesterov", release="1.14", use_nesterov=True),
    _lars("lars114_skip_list", release="1.14", skip_list=["bias"]),
    _lars("lars114_tuned", release="1.14", **_TUNED),
]

"""The table of optimizers under test: to test another one, add a row.

Every row goes through all of test_suite.py, against numbers that its reference
computed in the TensorFlow release named here (tests/golden/generate.py records them).
"""

import collections
import importlib

Case = collections.namedtuple(
    "Case",
    [
        "id",
        "ours",  # where the optimizer is
        "theirs",  # its name in tf.contrib.opt of the reference release
        "release",  # the reference: '1.15' or '1.14'
        "kwargs",
        "evaluated",  # the hyperparameters that may be Tensors or callables
        "random",  # the arguments that test_side_by_side.py draws
    ],
)


def _lars(id, release="1.15", **kwargs):
    ours = "contrib_opt" if release == "1.15" else "contrib_opt.tf114"
    return Case(
        id=id,
        ours=ours + ".LARSOptimizer",
        theirs="LARSOptimizer",
        release=release,
        # Rates at which a dozen steps move the weights visibly.
        kwargs=dict({"learning_rate": 0.5, "eeta": 0.1}, **kwargs),
        evaluated=("learning_rate", "momentum"),
        random=(
            "learning_rate",
            "momentum",
            "weight_decay",
            "eeta",
            "epsilon",
            "use_nesterov",
        ),
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

# One row for each optimizer, for what does not depend on a row's arguments.
OPTIMIZERS = list({case.ours: case for case in reversed(CASES)}.values())[::-1]


def make(case, **kwargs):
    """Our optimizer of the row `case`; `kwargs` replace the row's own."""
    module, name = case.ours.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)(**dict(case.kwargs, **kwargs))

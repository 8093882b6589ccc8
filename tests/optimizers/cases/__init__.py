"""The table of optimizers under test: to test another one, add a row.

Each row goes through all of test_suite.py, against the numbers that its reference
computed (tests/golden/generate.py records them). A family of optimizers has a file.
"""

from optimizers.cases import (
    adagrad,
    adam,
    clipping,
    drop_stale,
    ggt,
    lars,
    mixed_precision,
    moving_average,
    shampoo,
    sign,
    weight_decay,
)
from optimizers.cases.case import Case, make, make_theirs

CASES = [
    *adagrad.CASES,
    *adam.CASES,
    *clipping.CASES,
    *drop_stale.CASES,
    *ggt.CASES,
    *lars.CASES,
    *mixed_precision.CASES,
    *moving_average.CASES,
    *shampoo.CASES,
    *sign.CASES,
    *weight_decay.CASES,
]

# One row for each optimizer, for what does not depend on a row's arguments.
OPTIMIZERS = list({case.optimizer: case for case in reversed(CASES)}.values())[::-1]

__all__ = ["CASES", "OPTIMIZERS", "Case", "make", "make_theirs"]

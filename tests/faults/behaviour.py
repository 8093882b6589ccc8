"""What each optimizer does with bad numbers, as README.md states it.

A new row of optimizers/cases needs a line in `BEHAVIOUR`.
"""

import typing

# How far one NaN or Inf in a gradient reaches.
ELEMENT = "only its own weight and slots"
NORM = "its own weight; the others of the variable are finite and get another rate"
VARIABLE = "all weights of its variable, or of the rows of its gradient"
ALL = "all weights of all variables"
SKIPPED = "nothing, not even the global step: the step is skipped"

# What changes in a table, after steps with rows, in a step without any.
WEIGHTS, SLOTS, AVERAGE = "weights", "slots", "moving average"


class Behaviour(typing.NamedTuple):
    """With bad numbers."""

    dense: str = ELEMENT
    # The same of a sparse gradient.
    sparse: str = ELEMENT
    # Which weights a first step of zeros changes: none, all that are not zero, those
    # of them whose gradient is dense, or those that are clipped.
    zero_gradient: str = "none"
    no_rows: frozenset = frozenset()
    # Does a sparse gradient take memory only for the rows that it has?
    rows_only: bool = True


def _decays(**kwargs):
    return Behaviour(zero_gradient="all", **kwargs)


BEHAVIOUR = {
    "RegAdagradOptimizer": Behaviour(),
    "AdaMaxOptimizer": Behaviour(),
    "AdamGSOptimizer": Behaviour(no_rows=frozenset([WEIGHTS, SLOTS]), rows_only=False),
    "LazyAdamOptimizer": Behaviour(),
    "LazyAdamGSOptimizer": Behaviour(),
    "NadamOptimizer": Behaviour(no_rows=frozenset([SLOTS]), rows_only=False),
    # Where a norm is not finite, weights are not clipped. Its norms are over the rows
    # here.
    "VariableClippingOptimizer": Behaviour(
        dense=NORM, sparse=NORM, zero_gradient="clipped", rows_only=False
    ),
    "MultitaskOptimizerWrapper": Behaviour(),
    "DropStaleGradientOptimizer": Behaviour(),
    "GGTOptimizer": Behaviour(ALL, ALL, no_rows=frozenset([WEIGHTS]), rows_only=False),
    # A norm that is NaN makes the trust ratio 1, one that is Inf makes it 0.
    "LARSOptimizer": Behaviour(dense=NORM, zero_gradient="dense"),
    "tf114.LARSOptimizer": Behaviour(dense=NORM),
    # Its gradients are dense: a step without rows is one of zeros.
    "mixed_precision.LossScaleOptimizer": Behaviour(
        SKIPPED, SKIPPED, no_rows=frozenset([WEIGHTS, SLOTS]), rows_only=False
    ),
    "MovingAverageOptimizer": Behaviour(no_rows=frozenset([AVERAGE]), rows_only=False),
    "ShampooOptimizer": Behaviour(VARIABLE, VARIABLE),
    "AddSignOptimizer": Behaviour(no_rows=frozenset([SLOTS]), rows_only=False),
    "PowerSignOptimizer": Behaviour(no_rows=frozenset([SLOTS]), rows_only=False),
    "AdamWOptimizer": _decays(no_rows=frozenset([WEIGHTS, SLOTS]), rows_only=False),
    "MomentumWOptimizer": _decays(),
    "extend_with_decoupled_weight_decay": _decays(),
}

"""MovingAverageOptimizer, over other optimizers.

What `sequential_update=False` does in the reference changes from run to run;
tests/wrappers/test_moving_average.py has its numbers.
"""

import tensorflow.compat.v1 as tf

from optimizers import problems
from optimizers.cases.case import Case


def _over_momentum(namespace, **kwargs):
    return namespace.MovingAverageOptimizer(
        tf.train.MomentumOptimizer(0.05, 0.9), **kwargs
    )


def _over_lars(namespace, **kwargs):
    return namespace.MovingAverageOptimizer(
        namespace.LARSOptimizer(0.5, eeta=0.1),
        num_updates=problems.global_step(),
        **kwargs,
    )


CASES = [
    Case(
        id="moving_average",
        optimizer="MovingAverageOptimizer",
        build=_over_momentum,
        kwargs={"average_decay": 0.8, "num_updates": 30},
        evaluated={"average_decay": 0.5, "num_updates": 0},
        random=lambda random: {
            "average_decay": float(random.uniform(0.5, 1.0)),
            "num_updates": int(random.randint(100)),
        },
    ),
    Case(
        id="moving_average_over_lars",
        optimizer="MovingAverageOptimizer",
        build=_over_lars,
    ),
]

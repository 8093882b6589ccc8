"""DropStaleGradientOptimizer, alone: its gradients are never stale."""

import tensorflow.compat.v1 as tf

from optimizers.cases.case import Case


def _build(namespace, staleness, **kwargs):
    opt = tf.train.MomentumOptimizer(**kwargs)
    return namespace.DropStaleGradientOptimizer(opt, staleness)


CASES = [
    Case(
        id="drop_stale",
        optimizer="DropStaleGradientOptimizer",
        build=_build,
        kwargs={"learning_rate": 0.3, "momentum": 0.9, "staleness": 0},
        evaluated={"learning_rate": 0.1},
        unsupported={"mirrored": "workers that do not wait"},
    ),
]

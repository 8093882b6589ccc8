"""Wrappers: clipping of variables, and gradients of zeros that are left out."""

import tensorflow.compat.v1 as tf

import contrib_opt
from optimizers import problems
from optimizers.cases.case import Case

_DIMS = {
    "embedding/table": [0],
    "layer/kernel": [1],
    "layer/bias": [0],
    "head/kernel": [0, 1],
}


def _variable_clipping(namespace, max_norm, **kwargs):
    variables = problems.variables()
    dims = [(variables[name], _DIMS[name]) for name in _DIMS if name in variables]
    if namespace is not contrib_opt:
        dims = dict(dims)
    opt = tf.train.MomentumOptimizer(**kwargs)
    return namespace.VariableClippingOptimizer(opt, dims, max_norm)


def _multitask(namespace, **kwargs):
    step = problems.global_step()

    class Masked(tf.train.MomentumOptimizer):
        """Its gradients are zeros in every third step."""

        def compute_gradients(self, *args, **kwargs):
            pairs = super().compute_gradients(*args, **kwargs)
            return [(self._mask(grad), var) for grad, var in pairs]

        def _mask(self, grad):
            if grad is None:
                return None
            there = tf.cast(tf.not_equal(step % 3, 1), grad.dtype)
            if isinstance(grad, tf.IndexedSlices):
                values = there * grad.values
                return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
            return there * grad

    return namespace.MultitaskOptimizerWrapper(Masked(**kwargs))


CASES = [
    Case(
        id="variable_clipping",
        optimizer="VariableClippingOptimizer",
        build=_variable_clipping,
        kwargs={"learning_rate": 0.1, "momentum": 0.9, "max_norm": 0.7},
        evaluated={"max_norm": 0.3},
        random=lambda random: {"max_norm": float(random.uniform(0.1, 1))},
    ),
    Case(
        id="multitask",
        optimizer="MultitaskOptimizerWrapper",
        build=_multitask,
        kwargs={"learning_rate": 0.1, "momentum": 0.9},
        evaluated={"learning_rate": 0.02},
        random=lambda random: {"momentum": float(random.uniform(0, 0.95))},
    ),
]

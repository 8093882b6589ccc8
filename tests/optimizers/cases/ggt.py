"""GGT."""

import tensorflow.compat.v1 as tf

import contrib_opt
from optimizers.cases.case import Case


def _build(namespace, **kwargs):
    optimizer = namespace.GGTOptimizer(**kwargs)
    if namespace is not contrib_opt:
        # The reference refuses IndexedSlices: it gets what they stand for.
        apply = optimizer.apply_gradients
        optimizer.apply_gradients = lambda pairs, *args, **kwargs: apply(
            [(tf.convert_to_tensor(grad), var) for grad, var in pairs], *args, **kwargs
        )
    return optimizer


def _random(random):
    return {
        "learning_rate": float(10 ** random.uniform(-2, -1)),
        # Where it is 0.5, TF 1.15 reads the gradients while it writes them.
        "beta1": float(random.uniform(0.55, 0.95)),
        "window": int(random.randint(1, 13)),
        "eps": float(10 ** random.uniform(-4, 0)),
        # Above the rounding of the reference's float32 eigenvalues.
        "svd_eps": float(10 ** random.uniform(-4, -2)),
        "sigma_eps": float(10 ** random.uniform(-3, -1)),
    }


def _ggt(id, evaluated=None, **kwargs):
    return Case(
        id=id,
        optimizer="GGTOptimizer",
        build=_build,
        kwargs=kwargs,
        evaluated=evaluated or {},
        random=_random,
    )


CASES = [
    _ggt(
        "ggt",
        learning_rate=0.1,
        beta1=0.9,
        svd_eps=1e-3,
        evaluated={"learning_rate": 0.05, "beta1": 0.6, "svd_eps": 0.1},
    ),
    # The window is full after four steps; then no eigenvalue is below eps.
    _ggt(
        "ggt_window",
        learning_rate=0.1,
        beta1=0.6,
        window=4,
        eps=0.105,
        svd_eps=0.01,
        sigma_eps=0.1,
    ),
]

"""Shampoo, with matrices and vectors, from eigenvalues and from iterated roots."""

from optimizers.cases.case import Case
from optimizers.problems import global_step


def _build(namespace, **kwargs):
    return namespace.ShampooOptimizer(global_step(), **kwargs)


def _random(random):
    # Steps and roots with which the rounding of float32 stays small.
    return {
        "learning_rate": float(10 ** random.uniform(-2, -1)),
        # With gbar_decay 0 and vectors for rows, TF 1.15 reads resource variables
        # while it writes them.
        **[
            {"max_matrix_size": 768, "gbar_decay": 0.0},
            {"max_matrix_size": 768, "gbar_decay": 0.9},
            {"max_matrix_size": 3, "gbar_decay": 0.5},
            {"max_matrix_size": 2, "gbar_decay": 0.9},
        ][random.randint(4)],
        "gbar_weight": float(random.uniform(0.1, 0.5)),
        "mat_gbar_weight": float(random.uniform(0.1, 1)),
        "svd_interval": int(random.randint(1, 4)),
        "precond_update_interval": int(random.randint(1, 3)),
        "epsilon": float(10 ** random.uniform(-2, -1)),
        "alpha": float(random.uniform(0.3, 1)),
    }


def _iterative_random(random):
    # Roots that iterations find well, and alpha with which there are some.
    return dict(_random(random), epsilon=float(10 ** random.uniform(-2, -1)), alpha=0.5)


def _shampoo(id, evaluated=None, random=_random, **kwargs):
    return Case(
        id=id,
        optimizer="ShampooOptimizer",
        build=_build,
        kwargs=kwargs,
        evaluated=evaluated or {},
        random=random,
    )


CASES = [
    _shampoo(
        "shampoo",
        learning_rate=0.1,
        mat_gbar_decay=1.0,
        alpha=0.5,
        evaluated={"learning_rate": 0.05, "mat_gbar_decay": 0.5, "alpha": 0.8},
    ),
    _shampoo(
        "shampoo_delayed",
        random=lambda random: {},
        learning_rate=lambda step: 0.5 / (step + 4.0),
        gbar_decay=0.9,
        gbar_weight=lambda step: 0.1 * step / (step + 1.0),
        mat_gbar_decay=0.8,
        mat_gbar_weight=0.2,
        svd_interval=3,
        precond_update_interval=2,
        epsilon=0.01,
    ),
    _shampoo(
        "shampoo_iterative",
        random=_iterative_random,
        learning_rate=0.1,
        max_matrix_size=3,
        gbar_decay=0.5,
        use_iterative_root=True,
    ),
]

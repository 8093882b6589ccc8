"""Every update rule, as plain NumPy, with the hyperparameters to try it with."""

import typing

import tensorflow.compat.v1 as tf
from hypothesis import strategies as st

import contrib_opt
from optimizers.numpy_rules import adam, gradient, weight_decay, whole


class Row(typing.NamedTuple):
    """An optimizer, its rule, and a strategy for each hyperparameter."""

    # Its name below `contrib_opt`; `make(global_step, **hyper)` makes it.
    optimizer: str
    make: typing.Callable
    rule: type
    hyper: dict
    # TensorFlow's own kernel refuses rows without elements.
    refuses_empty_rows: bool = False


def _fractions(least, most, of):
    """Numbers that float32 holds, and so do their first few powers."""
    return st.integers(least, most).map(lambda n: n / of)


_RATE = _fractions(0, 64, 64)
_BETA = _fractions(0, 15, 16)
_ADAM = {
    "learning_rate": _RATE,
    "beta1": _BETA,
    # With less, TensorFlow's kernel takes v - v from what v was.
    "beta2": _fractions(4, 15, 16),
    "epsilon": _fractions(1, 64, 1024),
}
_MOMENTUM = {
    "learning_rate": _RATE,
    "momentum": _BETA,
    "use_nesterov": st.booleans(),
}
_LARS = dict(
    _MOMENTUM,
    weight_decay=_fractions(0, 8, 64),
    eeta=_fractions(0, 16, 64),
    epsilon=_fractions(0, 4, 64),
)
_DECAY = {"weight_decay": _fractions(0, 16, 64)}


def _with_step(name):
    return lambda step, **hyper: getattr(contrib_opt, name)(step, **hyper)


def _without(name):
    return lambda step, **hyper: getattr(contrib_opt, name)(**hyper)


def _lars114(step, **hyper):
    return contrib_opt.tf114.LARSOptimizer(**hyper)


def _adagradw(step, **hyper):
    extend = contrib_opt.extend_with_decoupled_weight_decay
    return extend(tf.train.AdagradOptimizer)(**hyper)


def _row(name, rule, hyper, make=_without):
    return Row(name, make(name), rule, hyper)


ROWS = [
    _row("LARSOptimizer", whole.Lars, _LARS),
    Row("tf114.LARSOptimizer", _lars114, whole.Lars114, _LARS),
    _row("AdaMaxOptimizer", adam.AdaMax, _ADAM),
    _row("NadamOptimizer", adam.Nadam, _ADAM),
    _row("LazyAdamOptimizer", adam.Adam, _ADAM),
    _row("AdamGSOptimizer", adam.AdamGS, _ADAM, _with_step),
    _row("LazyAdamGSOptimizer", adam.Adam, _ADAM, _with_step),
    _row("AdamWOptimizer", weight_decay.AdamW, dict(_ADAM, **_DECAY)),
    _row("MomentumWOptimizer", weight_decay.MomentumW, dict(_MOMENTUM, **_DECAY)),
    Row(
        "extend_with_decoupled_weight_decay",
        _adagradw,
        weight_decay.AdagradW,
        dict(_DECAY, learning_rate=_RATE),
        refuses_empty_rows=True,
    ),
    _row(
        "AddSignOptimizer",
        gradient.AddSign,
        {"learning_rate": _RATE, "alpha": _fractions(0, 16, 8), "beta": _BETA},
    ),
    _row(
        "PowerSignOptimizer",
        gradient.PowerSign,
        {"learning_rate": _RATE, "base": _fractions(1, 32, 8), "beta": _BETA},
    ),
    _row(
        "RegAdagradOptimizer",
        gradient.Adagrad,
        {"learning_rate": _RATE, "initial_accumulator_value": _fractions(1, 16, 16)},
    ),
    _row(
        "ShampooOptimizer",
        whole.Shampoo,
        {
            "learning_rate": _RATE,
            "max_matrix_size": st.sampled_from([0, 2, 768]),
            "gbar_decay": _BETA,
            "gbar_weight": _fractions(0, 16, 16),
            "mat_gbar_decay": _fractions(0, 16, 16),
            "mat_gbar_weight": _fractions(0, 16, 16),
            "svd_interval": st.integers(1, 3),
            "precond_update_interval": st.integers(1, 3),
            "epsilon": _fractions(1, 16, 64),
            "alpha": _fractions(0, 16, 16),
        },
        _with_step,
    ),
    _row(
        "GGTOptimizer",
        whole.Ggt,
        {
            "learning_rate": _RATE,
            "beta1": _BETA,
            "window": st.integers(1, 3),
            "eps": _fractions(0, 16, 16),
            "svd_eps": _fractions(1, 16, 64),
            "sigma_eps": _fractions(1, 16, 64),
        },
    ),
]

# What updates nothing by a rule of its own: each has tests in wrappers/ or
# mixed_precision/.
WRAPPERS = [
    "DropStaleGradientOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "VariableClippingOptimizer",
    "mixed_precision.LossScaleOptimizer",
]

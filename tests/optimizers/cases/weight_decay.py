"""Decoupled weight decay: AdamW, MomentumW, and over another optimizer.

The gradients are given: the reference decays the weights while it reads them for the
gradients, and its numbers change from run to run.
"""

import tensorflow.compat.v1 as tf

from optimizers.cases.case import Case


def _random_adamw(random):
    return {
        "weight_decay": float(10 ** random.uniform(-4, -1)),
        "learning_rate": float(10 ** random.uniform(-3, -1)),
        "beta1": float(random.uniform(0, 0.95)),
        "beta2": float(random.uniform(0.5, 0.999)),
        "epsilon": float(10 ** random.uniform(-8, -1)),
    }


def _random_momentumw(random):
    return {
        "weight_decay": float(10 ** random.uniform(-4, -1)),
        "learning_rate": float(10 ** random.uniform(-3, -1)),
        "momentum": float(random.uniform(0, 0.95)),
        "use_nesterov": bool(random.randint(2)),
    }


def _random_adagradw(random):
    return {
        "weight_decay": float(10 ** random.uniform(-4, -1)),
        "learning_rate": float(10 ** random.uniform(-2, 0)),
    }


def _adagradw(namespace, **kwargs):
    extend = namespace.extend_with_decoupled_weight_decay
    return extend(tf.train.AdagradOptimizer)(**kwargs)


CASES = [
    Case(
        id="adamw",
        optimizer="AdamWOptimizer",
        kwargs={
            "weight_decay": 0.05,
            "learning_rate": 0.05,
            "beta1": 0.9,
            "beta2": 0.99,
            "epsilon": 0.01,
        },
        evaluated={
            "weight_decay": 0.2,
            "learning_rate": 0.02,
            "beta1": 0.5,
            "beta2": 0.9,
            "epsilon": 0.5,
        },
        random=_random_adamw,
        given_gradients=True,
    ),
    Case(
        id="adamw_defaults",
        optimizer="AdamWOptimizer",
        kwargs={"weight_decay": 0.01},
        given_gradients=True,
    ),
    Case(
        id="momentumw",
        optimizer="MomentumWOptimizer",
        kwargs={"weight_decay": 0.05, "learning_rate": 0.02, "momentum": 0.9},
        evaluated={"weight_decay": 0.2, "learning_rate": 0.01, "momentum": 0.5},
        random=_random_momentumw,
        given_gradients=True,
    ),
    Case(
        id="momentumw_nesterov",
        optimizer="MomentumWOptimizer",
        kwargs={
            "weight_decay": 0.1,
            "learning_rate": 0.02,
            "momentum": 0.5,
            "use_nesterov": True,
        },
        given_gradients=True,
    ),
    Case(
        id="adagradw",
        optimizer="extend_with_decoupled_weight_decay",
        build=_adagradw,
        kwargs={"weight_decay": 0.05, "learning_rate": 0.1},
        evaluated={"weight_decay": 0.2},
        random=_random_adagradw,
        given_gradients=True,
    ),
]

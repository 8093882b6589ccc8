"""AddSign and PowerSign, with the functions that let the sign decay."""

import importlib

import contrib_opt
from optimizers.cases.case import Case
from optimizers.problems import STEPS


def _decaying(optimizer, decay, **arguments):
    """Builds `optimizer` with `get_<decay>_decay_fn(**arguments)`."""

    def build(namespace, **kwargs):
        module = "contrib_opt.optimizers.sign_decay"
        if namespace is not contrib_opt:
            module = "tensorflow.contrib.opt.python.training.sign_decay"
        make = getattr(importlib.import_module(module), f"get_{decay}_decay_fn")
        make_optimizer = getattr(namespace, optimizer)
        return make_optimizer(sign_decay_fn=make(**arguments), **kwargs)

    return build


def _random(own):
    def random(random):
        return {
            "learning_rate": float(10 ** random.uniform(-2, -1)),
            "beta": float(random.uniform(0, 0.95)),
            own: float(random.uniform(0.5, 2)),
        }

    return random


def _add_sign(id, **kwargs):
    return Case(id=id, optimizer="AddSignOptimizer", random=_random("alpha"), **kwargs)


def _power_sign(id, **kwargs):
    return Case(id=id, optimizer="PowerSignOptimizer", random=_random("base"), **kwargs)


CASES = [
    _add_sign(
        "add_sign",
        kwargs={"learning_rate": 0.1, "alpha": 1.0, "beta": 0.9},
        evaluated={"learning_rate": 0.05, "alpha": 0.5, "beta": 0.1},
    ),
    _add_sign(
        "add_sign_linear",
        build=_decaying("AddSignOptimizer", "linear", decay_steps=STEPS - 3),
        kwargs={"learning_rate": 0.05, "alpha": 0.7, "beta": 0.5},
    ),
    _power_sign(
        "power_sign",
        kwargs={"learning_rate": 0.1, "base": 2.5, "beta": 0.9},
        evaluated={"learning_rate": 0.05, "base": 1.5, "beta": 0.1},
    ),
    _power_sign(
        "power_sign_restart",
        build=_decaying(
            "PowerSignOptimizer",
            "restart",
            decay_steps=STEPS,
            num_periods=3,
            zero_after=2,
        ),
        kwargs={"learning_rate": 0.05, "beta": 0.5},
    ),
]

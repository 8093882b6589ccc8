"""Every name and signature that `tf.contrib.opt` and `.mixed_precision` had.

tests/golden/api.json lists them, as `inspect` found them in TensorFlow 1.15.5: 28 names
in `tf.contrib.opt`, 4 in `tf.contrib.mixed_precision`, and five functions of modules
beside them.
"""

import importlib
import inspect
import json
import os

import pytest
import tensorflow as tf

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "api.json")
with open(GOLDEN) as lines:
    API = json.load(lines)
CLASSES = sorted(name for name in API if "init" in API[name])
FUNCTIONS = sorted(name for name in API if "call" in API[name])
# Where contrib_opt has what TensorFlow had there; the longest first.
PLACES = {
    "tf.contrib.opt.python.training": "contrib_opt.optimizers",
    "tf.contrib.opt": "contrib_opt",
    "tf.contrib.mixed_precision": "contrib_opt.mixed_precision",
}


def ours(name):
    for theirs, place in PLACES.items():
        if name.startswith(theirs + "."):
            path = place + name[len(theirs) :]
            module, attribute = path.rsplit(".", 1)
            return getattr(importlib.import_module(module), attribute)
    raise ValueError(name)


def signature(function):
    """As it is called: without self."""
    text = str(inspect.signature(function))
    for first in ("(self, /, ", "(self, ", "(self"):
        if text.startswith(first):
            return "(" + text[len(first) :]
    return text


def parameters(text):
    """The names of the arguments in the signature `text`, in order."""
    # Read as Python reads a function of that signature.
    scope = {}
    exec(f"def function{text}: pass", scope)
    return list(inspect.signature(scope["function"]).parameters.values())


def test_there_are_32_names_and_five_functions_beside_them():
    counts = [sum(n.startswith(place) for n in API) for place in PLACES]
    assert counts == [5, 28 + 5, 4]


# Takes the arguments of the optimizer that it extends by position, too.
LONGER = {
    "tf.contrib.opt.DecoupledWeightDecayExtension": "(weight_decay, *args, **kwargs)"
}


@pytest.mark.parametrize("name", CLASSES)
def test_constructor(name):
    wanted = LONGER.get(name, API[name]["init"])
    assert signature(ours(name).__init__) == wanted


@pytest.mark.parametrize("name", CLASSES)
def test_classes_it_derives_from(name):
    found = [base.__name__ for base in ours(name).__mro__]
    # OptimizerV2 has no public name, and is gone.
    wanted = [base for base in API[name]["bases"] if base != "OptimizerV2"]
    assert set(wanted) <= set(found)


# GGTOptimizer was an OptimizerV2, which is gone; what it has of that class's methods
# are `tf.compat.v1.train.Optimizer`'s, with that one's arguments.
OF_OPTIMIZER_V2 = {("tf.contrib.opt.GGTOptimizer", "minimize")}


@pytest.mark.parametrize(
    "name, method",
    [(name, method) for name in CLASSES for method in sorted(API[name]["methods"])],
)
def test_methods_take_what_they_took(name, method):
    recorded, found = API[name]["methods"][method], getattr(ours(name), method)
    if not recorded.startswith("("):
        assert repr(found) == recorded
        return
    wanted = [p for p in parameters(recorded) if p.kind == p.POSITIONAL_OR_KEYWORD]
    takes = list(inspect.signature(found).parameters.values())[1:]
    any_more = {p.kind for p in takes} >= {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    }
    named = [p for p in takes if p.kind == p.POSITIONAL_OR_KEYWORD]
    if (name, method) in OF_OPTIMIZER_V2:
        assert found is tf.compat.v1.train.Optimizer.minimize
        return
    for theirs, mine in zip(wanted, named):
        assert (theirs.name, theirs.default) == (mine.name, mine.default)
    assert len(named) >= len(wanted) or any_more


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    assert signature(ours(name)) == API[name]["call"]


def test_modules_are_found_as_attributes():
    import contrib_opt

    assert contrib_opt.optimizers.sign_decay.get_linear_decay_fn(10)
    assert callable(contrib_opt.optimizers.matrix_functions.matrix_square_root)

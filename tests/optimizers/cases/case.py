"""What a row of the table of optimizers under test says."""

import operator
import types
import typing

import contrib_opt


class Case(typing.NamedTuple):
    """One optimizer with one set of arguments."""

    # Also the name of the files that hold the reference's numbers.
    id: str
    # Its name below `contrib_opt` and below `theirs()`.
    optimizer: str
    kwargs: dict = {}
    # `build(namespace, **kwargs)` makes it, if it takes more than keyword arguments;
    # namespace is `contrib_opt`, or `theirs()`.
    build: typing.Callable = None
    # The release of TensorFlow whose numbers it must reproduce.
    release: str = "1.15"
    # The hyperparameters among `kwargs` that may also be Tensors, Variables or
    # callables, each with another value that changes the trajectory.
    evaluated: dict = {}
    # `random(numpy.random.RandomState)`: arguments for test_side_by_side.py.
    random: typing.Callable = lambda random: {}
    # True: gradients that do not depend on the weights, since the reference reads
    # the weights for them while its update changes them.
    given_gradients: bool = False
    # Where it must differ from test_suite.TOLERANCE: {dtype: tolerance}.
    tolerance: dict = {}
    # What cannot be supported, with the error's text: 'mirrored', a runtime and a dtype
    # ('eager float16'), or one of these in TensorFlow 1 only ('mirrored in 1.15').
    unsupported: dict = {}


def make(case, **kwargs):
    """Our optimizer of the row `case`; `kwargs` replace the row's own."""
    return _make(case, contrib_opt, kwargs)


def make_theirs(case, **kwargs):
    """The reference's optimizer, in the release of TensorFlow that has it."""
    return _make(case, theirs(), kwargs)


def _make(case, namespace, kwargs):
    kwargs = dict(case.kwargs, **kwargs)
    if case.build is not None:
        return case.build(namespace, **kwargs)
    return operator.attrgetter(case.optimizer)(namespace)(**kwargs)


def theirs():
    """What TensorFlow 1 has under the names that contrib_opt has them under."""
    import tensorflow as tf

    return types.SimpleNamespace(
        tf114=tf.contrib.opt,
        mixed_precision=tf.contrib.mixed_precision,
        **{name: getattr(tf.contrib.opt, name) for name in dir(tf.contrib.opt)},
    )

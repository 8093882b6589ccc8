"""The functions that an external optimizer calls, and its step callback."""

import contextlib
import inspect

import numpy as np


class Evaluations:
    """The functions that an external optimizer calls.

    What one evaluation brings is kept for those that ask for the same x.
    """

    def __init__(self, run, constraints, loss_callback):
        self._run = run
        self._constraints = constraints  # how many
        self._loss_callback = loss_callback
        self._x = None
        self._with_gradients = True  # what the next evaluation brings

    def loss_and_gradient(self, x):
        outputs = self._loss(x, True)
        first = 1 + self._constraints
        return [outputs[0], outputs[first : first + len(self._x)]]

    def loss(self, x):
        return self._loss(x, False)[0]

    def constraint(self, i):
        def value(x):
            if not self._knows(x):
                self._evaluate(x)
            return [self._outputs[1 + i]]

        return value

    def constraint_gradient(self, i):
        def gradient(x):
            if not (self._knows(x) and self._has_gradients):
                self._with_gradients = True
                self._evaluate(x)
            n = len(self._x)
            first = 1 + self._constraints + (1 + i) * n
            return [self._outputs[first : first + n].copy()]

        return gradient

    def _loss(self, x, with_gradients):
        # The loss itself is computed whenever it is asked for: it may draw the next
        # batch.
        self._with_gradients = with_gradients
        kept = self._x is not None and self._loss_is_new and self._knows(x)
        if not kept or self._has_gradients < with_gradients:
            self._evaluate(x)
        self._loss_is_new = False
        if self._loss_callback:
            self._run.before_callback(self._x)
            self._loss_callback(*self._fetched)
        return self._outputs

    def _knows(self, x):
        return self._x is not None and np.array_equal(x, self._x)

    def _evaluate(self, x):
        self._x = np.array(x, np.float64).reshape([-1])  # the optimizer may reuse x
        self._has_gradients = self._with_gradients
        self._outputs, self._fetched = self._run.evaluate(self._x, self._has_gradients)
        self._loss_is_new = True


def ignore(xk, *_):
    """The step callback of a user who gave none."""


def prepared_callback(run, step_callback):
    """`step_callback`, called when the variables are what it expects."""

    def callback(*args, **kwargs):
        # SciPy 1.11 and later may pass an OptimizeResult, by keyword.
        run.before_callback(args[0] if args else kwargs["intermediate_result"].x)
        return step_callback(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # some builtins have none
        callback.__signature__ = inspect.signature(step_callback)
    return callback

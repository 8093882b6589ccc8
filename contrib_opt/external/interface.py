"""ExternalOptimizerInterface: connects an optimizer that is no part of TensorFlow."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.external.evaluations import Evaluations, ignore, prepared_callback
from contrib_opt.external.packing import checked_list, packed_bounds
from contrib_opt.external.problem import make_problem


class ExternalOptimizerInterface:
    """Connects an optimizer that is no part of TensorFlow to a loss.

    To connect one, subclass this and write `_minimize`. `ScipyOptimizerInterface` is
    such a subclass.

        class GradientDescent(ExternalOptimizerInterface):
            def _minimize(self, initial_val, loss_grad_func, optimizer_kwargs, **_):
                x = initial_val
                for _ in range(optimizer_kwargs["steps"]):
                    loss, gradient = loss_grad_func(x)
                    x = x - 0.1 * gradient
                return x

        GradientDescent(loss, steps=100).minimize(session)

    The problem, and what differs from TensorFlow 1.15, is at the top of this file,
    contrib_opt/external/__init__.py.
    """

    def __init__(
        self,
        loss,
        var_list=None,
        equalities=None,
        inequalities=None,
        var_to_bounds=None,
        **optimizer_kwargs,
    ):
        """Makes an interface; in a graph, adds its operations.

        Args:
          loss: floating point scalar Tensor to minimize. In eager mode a callable
            without arguments that returns one; it is compiled as a `tf.function`
            without AutoGraph, so Python code in it runs once.
          var_list: list of variables to optimize, of known shapes. Default: the
            trainable variables of the graph; in eager mode the trainable ones that
            loss and constraints read. Those of integer or bool type are left alone.
          equalities: list of scalars of the kind of `loss`, to be held equal to zero.
          inequalities: list of scalars of the kind of `loss`, to be held at or above
            zero.
          var_to_bounds: dict from variables to pairs (low, high). Each of the two is
            a number or an array that broadcasts to the variable's shape; None,
            -inf and inf mean no bound. Variables that are not optimized are ignored.
            Where variables cannot be keys, as in TensorFlow 2, `v.ref()` can;
            a list of (variable, (low, high)) pairs does as well.
          **optimizer_kwargs: what the subclass takes; kept as `optimizer_kwargs`.

        Raises:
          TypeError: an argument is of another type than said above.
          ValueError: `loss` or a constraint is no scalar; there is no variable to
            optimize, one is there twice, is of unknown shape or of another graph;
            a bound does not broadcast, or a lower one is above the upper one.
          RuntimeError: in eager mode, `loss` or a constraint is no function; or
            this is called in a `tf.function`.
        """
        self._equalities = checked_list("equalities", equalities)
        self._inequalities = checked_list("inequalities", inequalities)
        constraints = [
            (f"{kind}[{i}]", function)
            for kind, functions in (
                ("equalities", self._equalities),
                ("inequalities", self._inequalities),
            )
            for i, function in enumerate(functions)
        ]
        if var_list is not None:
            var_list = tf.nest.flatten(var_list)
        self._loss = loss
        self._problem = make_problem(loss, constraints, var_list)
        self._vars = self._problem.variables
        self._packed_bounds = None
        if var_to_bounds is not None:
            self._packed_bounds = packed_bounds(var_to_bounds, self._vars)
        self.optimizer_kwargs = optimizer_kwargs

    def minimize(
        self,
        session=None,
        feed_dict=None,
        fetches=None,
        step_callback=None,
        loss_callback=None,
        **run_kwargs,
    ):
        """Runs the optimizer until it ends, and sets the variables to its result.

        In a graph the session holds the variables' initial values until the end:
        that is what `session.run` sees in a callback, while `fetches` are computed
        at the point that the optimizer is at. In eager mode the variables are at
        that point themselves.

        If anything raises an error, in the optimizer or in a callback, the variables
        have their initial values again.

        Args:
          session: a session of the loss's graph, in which the variables have values.
            Default: the default session. None in eager mode.
          feed_dict: dict of values to feed, as for `session.run`, at each evaluation.
          fetches: list of what `loss_callback` gets, each as `session.run` takes it;
            in eager mode each a callable without arguments that returns Tensors.
          step_callback: callable that is called after each step of the optimizer
            with the packed variables, float64 of shape [n].
          loss_callback: callable that is called with the values of `fetches` as
            arguments after each computation of the loss.
          **run_kwargs: further arguments (`options`, `run_metadata`) of the
            `session.run` that sets the variables at the end.

        Returns:
          None.

        Raises:
          ValueError: there is no session, or it has another graph; in eager mode, an
            argument was given that belongs to sessions; `_minimize` of a subclass
            did not return a vector of n elements.
          TypeError: `fetches` is no list, or `session.run` does not take
            `run_kwargs`.
          RuntimeError: made in eager mode, and called outside of it.
          FailedPreconditionError: a variable is not initialized.
        """
        fetches = checked_list("fetches", fetches)
        run = self._problem.open(session, feed_dict, fetches, run_kwargs)
        equalities = range(len(self._equalities))
        constraints = range(len(self._equalities) + len(self._inequalities))
        inequalities = constraints[len(equalities) :]
        evaluations = Evaluations(run, len(constraints), loss_callback)
        if step_callback is None:
            step_callback = ignore
        else:
            step_callback = prepared_callback(run, step_callback)

        def functions(make, indices):
            return [make(i) for i in indices]

        try:
            result = self._minimize(
                initial_val=run.initial.copy(),
                loss_grad_func=evaluations.loss_and_gradient,
                equality_funcs=functions(evaluations.constraint, equalities),
                equality_grad_funcs=functions(
                    evaluations.constraint_gradient, equalities
                ),
                inequality_funcs=functions(evaluations.constraint, inequalities),
                inequality_grad_funcs=functions(
                    evaluations.constraint_gradient, inequalities
                ),
                packed_bounds=self._packed_bounds,
                step_callback=step_callback,
                optimizer_kwargs=self.optimizer_kwargs,
            )
            run.assign(self._checked_result(result, run.initial), **run_kwargs)
        except BaseException:
            with contextlib.suppress(Exception):  # such as: the session is closed
                run.restore()
            raise

    def _checked_result(self, result, initial):
        result = np.asarray(result)
        if result.dtype == object or result.size != initial.size:
            raise ValueError(
                f"{type(self).__name__}._minimize must return a vector of "
                f"{initial.size} numbers, got {result!r}."
            )
        return result.astype(np.float64).reshape([-1])

    def _minimize(
        self,
        initial_val,
        loss_grad_func,
        equality_funcs,
        equality_grad_funcs,
        inequality_funcs,
        inequality_grad_funcs,
        packed_bounds,
        step_callback,
        optimizer_kwargs,
    ):
        """The optimizer, for a subclass to write; called with keywords only.

        One that cannot take bounds or constraints should say so if there are any.

        Args:
          initial_val: float64 vector [n], where to start.
          loss_grad_func: function of a vector [n] that returns [loss, gradient]:
            a number, and float64 [n].
          equality_funcs: list of functions of a vector [n]; each returns a list of
            one number, which should be zero.
          equality_grad_funcs: list of functions of a vector [n]; each returns a list
            of one gradient, float64 [n].
          inequality_funcs: as `equality_funcs`; the number should not be negative.
          inequality_grad_funcs: as `equality_grad_funcs`.
          packed_bounds: list of n pairs (low, high) of floats, or None.
          step_callback: function to call with a vector [n] after each step.
          optimizer_kwargs: dict of what the user gave to the constructor.

        Returns:
          The best vector found, of n elements.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must override _minimize(), which is the optimizer."
        )

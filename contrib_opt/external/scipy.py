"""ScipyOptimizerInterface: the methods of `scipy.optimize.minimize`."""

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.external.evaluations import Evaluations, ignore
from contrib_opt.external.interface import ExternalOptimizerInterface

_SCIPY_EXTRA = "pip install 'contrib_opt[scipy]'"


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes a loss with a method of `scipy.optimize.minimize`.

        position = tf.get_variable("position", initializer=[7.0, 7.0])
        loss = tf.reduce_sum(tf.square(position))
        optimizer = ScipyOptimizerInterface(loss, options={"maxiter": 100})
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            optimizer.minimize(session)  # position is now [0, 0]

    Use it where the loss is exact, not drawn from a batch, and its minimum wanted to
    many digits: physics-informed networks, fits, variational problems. Methods of
    TensorFlow 1.15's day, as `method`:

        L-BFGS-B (default), TNC     bounds
        SLSQP                       bounds, equalities, inequalities
        COBYLA                      inequalities; no gradient
        CG, BFGS, Newton-CG         neither
        Nelder-Mead, Powell         no gradient

    Others that the installed SciPy has may be named too; a method that needs second
    derivatives takes `hess` or `hessp`, functions of the packed vector. In eager mode,
    with a function for a loss:

        position = tf.Variable([7.0, 7.0])
        ScipyOptimizerInterface(
            lambda: tf.reduce_sum(tf.square(position)),
            inequalities=[lambda: position[0] - 1.0],
            method="SLSQP",
        ).minimize()  # position is now [1, 0]

    One program gives the same numbers in each run wherever its loss does.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    _GRADIENT_FREE = ("nelder-mead", "powell", "cobyla", "cobyqa")

    # What SciPy gets from this class.
    _RESERVED = ("fun", "x0", "jac", "callback", "constraints", "bounds")

    def __init__(
        self,
        loss,
        var_list=None,
        equalities=None,
        inequalities=None,
        var_to_bounds=None,
        **optimizer_kwargs,
    ):
        """Makes an interface to SciPy.

        Args:
          loss: as in `ExternalOptimizerInterface`, and so are the next four.
          var_list: list of variables to optimize, or None.
          equalities: list of scalars to be held equal to zero.
          inequalities: list of scalars to be held at or above zero.
          var_to_bounds: dict from variables to pairs (low, high).
          **optimizer_kwargs: arguments of `scipy.optimize.minimize`, such as
            `method`, `options`, `tol`.

        Raises:
          ImportError: SciPy is not installed.
          ValueError: `optimizer_kwargs` has an argument that is not the user's to
            give: `fun`, `x0`, `jac`, `callback`, `constraints` or `bounds`.
          Others: as in `ExternalOptimizerInterface`.
        """
        _import_scipy_optimize()
        self._refuse_reserved(optimizer_kwargs)
        super().__init__(
            loss,
            var_list=var_list,
            equalities=equalities,
            inequalities=inequalities,
            var_to_bounds=var_to_bounds,
            **optimizer_kwargs,
        )

    def _refuse_reserved(self, optimizer_kwargs):
        instead = {
            "bounds": "give var_to_bounds",
            "constraints": "give equalities and inequalities",
            "callback": "give step_callback to minimize()",
            "x0": "initialize the variables",
        }
        for name in self._RESERVED:
            if name in optimizer_kwargs:
                raise ValueError(
                    f"{type(self).__name__} got {name}={optimizer_kwargs[name]!r}, "
                    f"which it sets itself; {instead.get(name, 'leave it out')}."
                )

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
        optimize = _import_scipy_optimize()
        self._refuse_reserved(optimizer_kwargs)
        kwargs = {"method": self._DEFAULT_METHOD, **optimizer_kwargs}
        method = kwargs["method"]
        kind = method.lower() if isinstance(method, str) else None

        function, jac = loss_grad_func, True
        if kind in self._GRADIENT_FREE:
            function, jac = _loss_alone(loss_grad_func), None
        if kind == "cobyla" and step_callback is ignore:
            step_callback = None  # SciPy before 1.15 warns that it does not call one
        if kind == "tnc":
            kwargs["options"] = _tnc_options(kwargs.get("options"))
        constraints = [
            {"type": sign, "fun": value, "jac": gradient}
            for sign, values, gradients in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for value, gradient in zip(values, gradients)
        ]
        result = optimize.minimize(
            function,
            initial_val,
            jac=jac,
            # Always one, as in TensorFlow 1.15: TNC rounds otherwise without it.
            callback=step_callback,
            constraints=constraints,
            bounds=packed_bounds,
            **kwargs,
        )
        _log(method, result)
        return result.x


def _import_scipy_optimize():
    try:
        import scipy.optimize
    except ImportError as error:
        raise ImportError(
            f"ScipyOptimizerInterface needs SciPy: {_SCIPY_EXTRA} brings it ({error})"
        ) from error
    return scipy.optimize


def _loss_alone(loss_grad_func):
    """A function of x that returns the loss, without its gradient if possible.

    Asked for the same x again at once, as by Powell, it computes nothing; so it is
    with the gradient, in SciPy.
    """
    evaluations = getattr(loss_grad_func, "__self__", None)
    if isinstance(evaluations, Evaluations):
        compute = evaluations.loss
    else:  # a subclass put a function of its own around it
        compute = lambda x: loss_grad_func(x)[0]  # noqa: E731
    last = [None, None]

    def loss(x):
        if last[0] is None or not np.array_equal(x, last[0]):
            last[:] = np.copy(x), compute(x)
        return last[1]

    return loss


def _tnc_options(options):
    """`options` for the TNC of today, where `maxiter` has become `maxfun`."""
    options = dict(options or {})
    if "maxiter" in options:
        options.setdefault("maxfun", options.pop("maxiter"))
    return options


def _log(method, result):
    message = result.message
    if isinstance(message, bytes):  # of SciPy before 1.9
        message = message.decode()
    lines = [
        f"SciPy's {method} has ended:",
        f"  Message: {message}",
        f"  Objective function value: {float(result.fun):f}",
    ]
    for key, text in (
        ("nit", "Number of iterations"),
        ("nfev", "Number of function evaluations"),
    ):
        if key in result:
            lines.append(f"  {text}: {result[key]}")
    tf.logging.info("%s", "\n".join(lines))

"""Optimizers from outside TensorFlow: SciPy's, and those that users connect.

The problem, with f the loss, x all optimized variables in one vector, and lists of
constraints h and g:

    minimize f(x)   so that   h_i(x) = 0,   g_j(x) >= 0,   low <= x <= high

The optimizer runs in Python and asks for values and gradients; it never sees
TensorFlow. x is float64 whatever the variables are, since SciPy's methods compute in
float64; a value is rounded to its variable's type where the variable takes it. The
order in x is that of `var_list`, each variable flattened row by row.

An evaluation brings the loss, all constraints and all of their gradients in one vector,
and what was computed at x is kept until the optimizer moves on: a constraint at the
same x costs nothing. It takes two runs of the session however many variables there are,
one of which takes x as a whole and assigns its parts; one run if there are a few ref
variables, whose values it feeds; in eager mode one call of one `tf.function`.

Source: `tf.contrib.opt.ExternalOptimizerInterface` and `ScipyOptimizerInterface` of
TensorFlow 1.15; `scipy.optimize.minimize`.

Deviations from TensorFlow 1.15, each a case in which it failed, or an addition:
- Resource variables are optimized; 1.15 fed their value to the loss in vain, and left
  them as they were.
- Variables of several float types may be mixed. Integer and bool variables are left
  alone, and so is a variable that nothing depends on; the former raised TypeError.
- Gradients are float64 vectors. SciPy 1.17 refuses others in SLSQP and TNC.
- The methods that use no gradient (Nelder-Mead, Powell, COBYLA) do not compute it.
- A callable loss is taken, in graphs and in eager mode.
- None, "no bound", may stand within a list of bounds.
- What is wrong with an argument is said by the constructor, before any work is done.
"""

import contextlib
import inspect
from collections.abc import Mapping

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.unwrap import tensorflow_variable

# Up to so many ref variables, feeding each is faster than assigning them all.
_FEW = 4

_SCIPY_EXTRA = "pip install 'contrib_opt[scipy]'"


# ------------------------------------------------------------ tensors and vectors


def pack(tensors):
    """All elements of `tensors`, a list, in one float64 vector."""
    return tf.concat([tf.reshape(tf.cast(t, tf.float64), [-1]) for t in tensors], 0)


def unpack(packed, variables):
    """Assigns the parts of the vector `packed` to `variables`; the operation."""
    parts = tf.split(packed, [v.shape.num_elements() for v in variables])
    return tf.group(
        *[
            v.assign(tf.cast(tf.reshape(part, v.shape), v.dtype.base_dtype))
            for v, part in zip(variables, parts)
        ]
    )


def dense_gradient(grad, var):
    """`grad` as a float64 Tensor of the shape of `var`; zeros if it is None.

    Rows of IndexedSlices with the same index are summed.
    """
    if grad is None:
        return tf.zeros(var.shape, tf.float64)
    if isinstance(grad, tf.IndexedSlices):
        return tf.math.unsorted_segment_sum(
            tf.cast(grad.values, tf.float64), grad.indices, var.shape[0]
        )
    return grad


def scalar(name, value):
    """`value`, one number, as a Tensor; TypeError or ValueError if it is not one."""
    value = tf.convert_to_tensor(value)
    if not value.dtype.is_floating:
        raise TypeError(
            f"{name} must be a floating point Tensor, got {value.dtype.name}: {value}."
        )
    if value.shape.num_elements() not in (1, None):
        raise ValueError(
            f"{name} must be a scalar, got shape {value.shape}: {value}. Reduce a loss "
            "with tf.reduce_sum, split a constraint with tf.unstack."
        )
    return value


# ---------------------------------------------------------------------- arguments


def _checked_list(name, values):
    if values is None:
        return []
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} must be a list, got {values!r}.")
    return list(values)


def _checked_variables(variables):
    """The variables that can be optimized, of those in `variables`."""
    variables = [tensorflow_variable(v) for v in variables]
    seen = set()
    for v in variables:
        if not (hasattr(v, "assign") and hasattr(v, "dtype")):
            raise TypeError(f"var_list must hold variables only, got {v!r}.")
        if v.dtype.is_complex:
            raise TypeError(f"var_list has {v.name}, which is complex; split it.")
        if not v.shape.is_fully_defined():
            raise ValueError(f"var_list has {v.name} of unknown shape: {v.shape}.")
        if id(v) in seen:
            raise ValueError(f"var_list has {v.name} twice.")
        seen.add(id(v))
    variables = [v for v in variables if v.dtype.is_floating]
    if not variables:
        raise ValueError(
            "There is nothing to optimize: var_list (if it is None, the trainable "
            "variables) has no floating point variable."
        )
    return variables


def _packed_bounds(var_to_bounds, variables):
    """A (low, high) pair of floats for each element of the packed vector."""
    pairs = var_to_bounds.items() if isinstance(var_to_bounds, Mapping) else None
    try:
        pairs = [(key, value) for key, value in pairs or var_to_bounds]
    except (TypeError, ValueError):
        raise TypeError(
            "var_to_bounds must be a dict from variables to (low, high), or a list of "
            f"(variable, (low, high)) pairs, got {var_to_bounds!r}."
        ) from None
    bounds = {}
    for key, value in pairs:
        var = tensorflow_variable(key.deref() if hasattr(key, "deref") else key)
        bounds[id(var)] = value
    packed = []
    for var in variables:
        low, high = _bounds_of(var, bounds.get(id(var), (None, None)))
        packed.extend(zip(low.ravel().tolist(), high.ravel().tolist()))
    return packed


def _bounds_of(var, bounds):
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(
            f"The bounds of {var.name} must be a pair (low, high), got {bounds!r}."
        ) from None
    both = []
    for bound, none in ((low, -np.inf), (high, np.inf)):
        try:
            array = np.array(bound, dtype=object)
            array = np.where(np.equal(array, None), none, array).astype(np.float64)
            both.append(np.broadcast_to(array, var.shape.as_list()))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The bound {bound!r} of {var.name} is not a number or array that "
                f"broadcasts to its shape {var.shape}: {error}"
            ) from None
    low, high = both
    if not np.all(low <= high):
        raise ValueError(
            f"The bounds of {var.name} are {bounds!r}: a lower one must not be above "
            "the upper one, and neither may be NaN."
        )
    return low, high


# ------------------------------------------------------------------ where x lives
#
# A problem knows the loss, the constraints and the variables; open() gives a run of
# it, which has
#   initial                the packed variables before the run, float64 [n]
#   evaluate(x, with_gradients)
#                          the vector described at `_outputs`, and the fetched values
#   assign(x)              sets the variables
#   before_callback(x)     makes the variables what a callback expects to see
#   restore()              makes them what they were before the run


def _outputs(functions, gradients):
    """The vector that an evaluation brings: all values, then all gradients.

    With m constraints and n elements: [f, c_1 ... c_m, f' (n), c_1' (n) ... c_m' (n)].
    """
    return pack(functions + [g for grads in gradients for g in grads])


class _GraphProblem:
    def __init__(self, functions, variables, graph):
        for v in variables:
            if v.graph is not graph:
                raise ValueError(f"{v.name} is not in the graph of the loss.")
        self.variables = variables
        self._graph = graph
        self._packed_variables = pack(variables)
        size = sum(v.shape.num_elements() for v in variables)
        packed = tf.placeholder(tf.float64, [size], name="packed")
        # By name: a Tensor is no key of a dict in an eager program.
        self._packed = packed.name
        self._assign = unpack(packed, variables)
        self._feeds = None
        if len(variables) <= _FEW and not any(hasattr(v, "handle") for v in variables):
            self._feeds = [graph.as_graph_element(v).name for v in variables]
        self._values = _outputs(functions, [])
        gradients = []
        for function in functions:
            grads = tf.gradients(function, variables)
            gradients.append([dense_gradient(*pair) for pair in zip(grads, variables)])
        self._values_and_gradients = _outputs(functions, gradients)

    def open(self, session, feed_dict, fetches, run_kwargs):
        session = session or tf.get_default_session()
        if session is None:
            raise ValueError(
                "minimize() needs a session: pass one, or call it within "
                "`with tf.Session():`."
            )
        if getattr(session, "graph", self._graph) is not self._graph:
            raise ValueError(f"session {session!r} is not one of the loss's graph.")
        parameters = inspect.signature(session.run).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            for name in run_kwargs:
                if name not in parameters:
                    raise TypeError(
                        f"minimize() got {name!r}, which session.run() does not take. "
                        "The settings of the method go into the constructor, such as "
                        "options={'maxiter': 100}."
                    )
        return _GraphRun(self, session, feed_dict, fetches)

    def parts(self, x):
        """The feeds that make the variables, a few ref ones, the parts of x."""
        feeds, first = {}, 0
        for name, var in zip(self._feeds, self.variables):
            size = var.shape.num_elements()
            feeds[name] = x[first : first + size].reshape(var.shape.as_list())
            first += size
        return feeds

    def runner(self, session, fetches, feed_dict):
        """A function without arguments that runs `fetches`, a list of Tensors."""
        # A callable is three times as fast as session.run, where it may replace it.
        if not feed_dict and type(session) in (tf.Session, tf.InteractiveSession):
            return session.make_callable(fetches)
        return lambda: session.run(fetches, feed_dict)


class _GraphRun:
    def __init__(self, problem, session, feed_dict, fetches):
        self._problem = problem
        self._session = session
        self._feed_dict = feed_dict or {}
        outputs = (problem._values, problem._values_and_gradients)
        self._fetches = [[o] + fetches for o in outputs]
        self._run = [problem.runner(session, f, feed_dict) for f in self._fetches]
        self.initial = session.run(problem._packed_variables)
        self._moved = False

    def assign(self, x, **run_kwargs):
        self._moved = True
        problem = self._problem
        self._session.run(problem._assign, {problem._packed: x}, **run_kwargs)

    def evaluate(self, x, with_gradients):
        if self._problem._feeds:
            feed_dict = self._problem.parts(x)
            feed_dict.update(self._feed_dict)
            results = self._session.run(self._fetches[with_gradients], feed_dict)
        else:
            self.assign(x)
            results = self._run[with_gradients]()
        return results[0], results[1:]

    def before_callback(self, x):
        # In 1.15 the session holds the initial values until minimize() is over.
        self.restore()

    def restore(self):
        # What a callback itself assigned stays, as in 1.15.
        if self._moved:
            self.assign(self.initial)
            self._moved = False


class _EagerProblem:
    def __init__(self, functions, variables):
        self.variables = variables
        size = sum(v.shape.num_elements() for v in variables)

        def compiled(function):
            signature = [tf.TensorSpec([size], tf.float64)]
            return tf.function(function, signature, autograph=False)

        def values(x):
            unpack(x, variables)
            return _outputs([scalar(name, f()) for name, f in functions], [])

        def values_and_gradients(x):
            unpack(x, variables)
            results, gradients = [], []
            for name, function in functions:
                with tf.GradientTape() as tape:
                    # The variables might be untrainable, which the tape ignores.
                    tape.watch(variables)
                    results.append(scalar(name, function()))
                grads = tape.gradient(results[-1], variables)
                gradients.append([dense_gradient(*p) for p in zip(grads, variables)])
            return _outputs(results, gradients)

        def assign(x):
            unpack(x, variables)

        self._evaluate = [compiled(values), compiled(values_and_gradients)]
        self._assign = compiled(assign)
        self._evaluate[False].get_concrete_function()  # finds what is no scalar

    def open(self, session, feed_dict, fetches, run_kwargs):
        given = {"session": session, "feed_dict": feed_dict, **run_kwargs}
        for name, value in given.items():
            if value:
                raise ValueError(
                    f"minimize() got {name}={value!r}, but the loss is a function: "
                    "in eager mode there is no session."
                )
        if not tf.executing_eagerly():
            raise RuntimeError(
                "minimize() of a loss from eager mode must be called in eager mode."
            )
        return _EagerRun(self, fetches)


class _EagerRun:
    def __init__(self, problem, fetches):
        self._problem = problem
        self._fetches = fetches
        self.initial = pack(problem.variables).numpy()

    def assign(self, x):
        self._problem._assign(x)

    def evaluate(self, x, with_gradients):
        outputs = self._problem._evaluate[with_gradients](x).numpy()
        fetched = [f() if callable(f) else f for f in self._fetches]
        return outputs, [tf.nest.map_structure(_numpy, f) for f in fetched]

    def before_callback(self, x):
        self.assign(x)

    def restore(self):
        self.assign(self.initial)


def _numpy(value):
    return tf.convert_to_tensor(value).numpy()


def _in_function():
    """Whether a `tf.function` is being traced."""
    if tf.executing_eagerly():
        return False
    with tf.init_scope():
        return tf.executing_eagerly()


def _make_problem(loss, constraints, var_list):
    """The problem whose functions are `loss` and `constraints`.

    Args:
      loss: scalar Tensor, or a callable that returns one.
      constraints: list of pairs of a name and a function, of the kind of `loss`.
      var_list: list of variables, or None.
    """
    functions = [("loss", loss), *constraints]
    if _in_function():
        raise RuntimeError(
            "An external optimizer cannot run in a tf.function: make it, and call "
            "minimize(), outside."
        )
    if tf.executing_eagerly() and getattr(loss, "graph", None) is None:
        for name, function in functions:
            if not callable(function):
                raise RuntimeError(
                    f"In eager mode {name} must be a function without arguments that "
                    f"returns a scalar Tensor, got {function!r}."
                )
        if var_list is None:
            with tf.GradientTape() as tape:
                for _, function in functions:
                    function()
            var_list = tape.watched_variables()
        return _EagerProblem(functions, _checked_variables(var_list))

    graph = getattr(loss, "graph", None) or tf.get_default_graph()
    with graph.as_default(), tf.control_dependencies(None):
        with tf.name_scope("external_optimizer"):
            tensors = [scalar(name, f() if callable(f) else f) for name, f in functions]
            if var_list is None:
                var_list = tf.trainable_variables()
            return _GraphProblem(tensors, _checked_variables(var_list), graph)


# --------------------------------------------------------------------- evaluations


class _Evaluations:
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


def _ignore(xk, *_):
    """The step callback of a user who gave none."""


def _prepared_callback(run, step_callback):
    """`step_callback`, called when the variables are what it expects."""

    def callback(*args, **kwargs):
        # SciPy 1.11 and later may pass an OptimizeResult, by keyword.
        run.before_callback(args[0] if args else kwargs["intermediate_result"].x)
        return step_callback(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # some builtins have none
        callback.__signature__ = inspect.signature(step_callback)
    return callback


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
    contrib_opt/external.py.
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
        self._equalities = _checked_list("equalities", equalities)
        self._inequalities = _checked_list("inequalities", inequalities)
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
        self._problem = _make_problem(loss, constraints, var_list)
        self._vars = self._problem.variables
        self._packed_bounds = None
        if var_to_bounds is not None:
            self._packed_bounds = _packed_bounds(var_to_bounds, self._vars)
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
        fetches = _checked_list("fetches", fetches)
        run = self._problem.open(session, feed_dict, fetches, run_kwargs)
        equalities = range(len(self._equalities))
        constraints = range(len(self._equalities) + len(self._inequalities))
        inequalities = constraints[len(equalities) :]
        evaluations = _Evaluations(run, len(constraints), loss_callback)
        if step_callback is None:
            step_callback = _ignore
        else:
            step_callback = _prepared_callback(run, step_callback)

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
        if kind == "cobyla" and step_callback is _ignore:
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
    if isinstance(evaluations, _Evaluations):
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

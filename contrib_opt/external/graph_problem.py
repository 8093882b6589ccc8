"""A problem in a graph, and a run of it in a session."""

import inspect

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.external.packing import dense_gradient, outputs, pack, unpack

# Up to so many ref variables, feeding each is faster than assigning them all.
_FEW = 4


class GraphProblem:
    """Scalar Tensors of a graph, and the variables that they depend on."""

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
        self._values = outputs(functions, [])
        gradients = []
        for function in functions:
            grads = tf.gradients(function, variables)
            gradients.append([dense_gradient(*pair) for pair in zip(grads, variables)])
        self._values_and_gradients = outputs(functions, gradients)

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
        """The values that make the variables, a few ref ones, the parts of x."""
        parts, first = [], 0
        for var in self.variables:
            size, dtype = var.shape.num_elements(), var.dtype.as_numpy_dtype
            part = x[first : first + size].reshape(var.shape.as_list())
            parts.append(part.astype(dtype, copy=False))
            first += size
        return parts


def runner(session, fetches, feeds, feed_dict):
    """A function that runs `fetches` in a session.

    Args:
      session: what has the `run` of a session.
      fetches: list of what to fetch; the first is a Tensor or an operation.
      feeds: list of the names of Tensors, whose values are the function's arguments.
      feed_dict: what is fed besides.

    Returns:
      A function that returns the list of what was fetched.
    """
    # Others, such as monitored ones, do more in `run`.
    plain = type(session) in (tf.Session, tf.InteractiveSession)
    if plain and not feeds and not feed_dict:
        return session.make_callable(fetches)
    fixed = plain_feeds(feed_dict, session.graph) if plain else None
    # Only in this process: what else sessions connect to may know no callables.
    if fixed is None or len(fetches) > 1 or session.sess_str:

        def run(*values):
            fed = dict(zip(feeds, values))
            fed.update(feed_dict)
            return session.run(fetches, fed)

        return run

    first = fetches[0]
    kind = "fetch" if tf.is_tensor(first) else "target"
    names = feeds + [name for name, _, _ in fixed]
    call = _tf.session_callable(session, names, **{kind: first.name})

    def run_callable(*values):
        # The user may change the arrays in between.
        more = [np.asarray(value, dtype) for _, dtype, value in fixed]
        return [call(*values, *more)]

    return run_callable


def plain_feeds(feed_dict, graph):
    """[(name, dtype, value)] of a feed_dict from Tensors to arrays that fit them.

    None of any other, which `session.run` knows to convert, or to refuse.
    """
    feeds = []
    for key, value in feed_dict.items():
        if not isinstance(key, tf.Tensor):
            return None
        if not isinstance(value, (np.ndarray, np.generic, float)):
            return None
        dtype, given = key.dtype.as_numpy_dtype, np.asarray(value)
        if not (
            key.graph is graph
            and graph.is_feedable(key)
            and key.shape.is_compatible_with(given.shape)
            and np.can_cast(given.dtype, dtype, "same_kind")
        ):
            return None
        feeds.append((key.name, dtype, value))
    return feeds


class _GraphRun:
    def __init__(self, problem, session, feed_dict, fetches):
        self._problem = problem
        self._session = session
        outputs = (problem._values, problem._values_and_gradients)
        feeds, feed_dict = problem._feeds or [], feed_dict or {}
        self._run = [runner(session, [o] + fetches, feeds, feed_dict) for o in outputs]
        self._assign = runner(session, [problem._assign], [problem._packed], {})
        self.initial = session.run(problem._packed_variables)
        self._moved = False

    def assign(self, x, **run_kwargs):
        self._moved = True
        problem = self._problem
        if run_kwargs:
            self._session.run(problem._assign, {problem._packed: x}, **run_kwargs)
        else:
            self._assign(np.asarray(x, np.float64))

    def evaluate(self, x, with_gradients):
        if self._problem._feeds:
            parts = self._problem.parts(x)
        else:
            parts = []
            self.assign(x)
        results = self._run[with_gradients](*parts)
        return results[0], results[1:]

    def before_callback(self, x):
        # In 1.15 the session holds the initial values until minimize() is over.
        self.restore()

    def restore(self):
        # What a callback itself assigned stays, as in 1.15.
        if self._moved:
            self.assign(self.initial)
            self._moved = False

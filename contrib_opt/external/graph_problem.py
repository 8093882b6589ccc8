"""A problem in a graph, and a run of it in a session."""

import inspect

import tensorflow.compat.v1 as tf

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

"""A problem of functions, in eager mode, and a run of it."""

import tensorflow.compat.v1 as tf

from contrib_opt.external.packing import (
    dense_gradient,
    outputs,
    pack,
    scalar,
    unpack,
)


class EagerProblem:
    """Functions of variables, each a pair of a name and a function."""

    def __init__(self, functions, variables):
        self.variables = variables
        size = sum(v.shape.num_elements() for v in variables)

        def compiled(function):
            signature = [tf.TensorSpec([size], tf.float64)]
            return tf.function(function, signature, autograph=False)

        def values(x):
            unpack(x, variables)
            return outputs([scalar(name, f()) for name, f in functions], [])

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
            return outputs(results, gradients)

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

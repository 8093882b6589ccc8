"""The problem that is minimized: in a graph and its session, or in eager mode.

A problem knows the loss, the constraints and the variables; open() gives a run of
it, which has

    initial                      the packed variables before the run, float64 [n]
    evaluate(x, with_gradients)  the vector of `packing.outputs`, and what was fetched
    assign(x)                    sets the variables
    before_callback(x)           makes the variables what a callback expects to see
    restore()                    makes them what they were before the run
"""

import tensorflow.compat.v1 as tf

from contrib_opt.external.eager_problem import EagerProblem
from contrib_opt.external.graph_problem import GraphProblem
from contrib_opt.external.packing import checked_variables, scalar


def in_function():
    """Whether a `tf.function` is being traced."""
    if tf.executing_eagerly():
        return False
    with tf.init_scope():
        return tf.executing_eagerly()


def make_problem(loss, constraints, var_list):
    """The problem whose functions are `loss` and `constraints`.

    Args:
      loss: scalar Tensor, or a callable that returns one.
      constraints: list of pairs of a name and a function, of the kind of `loss`.
      var_list: list of variables, or None.
    """
    functions = [("loss", loss), *constraints]
    if in_function():
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
        return EagerProblem(functions, checked_variables(var_list))

    graph = getattr(loss, "graph", None) or tf.get_default_graph()
    with graph.as_default(), tf.control_dependencies(None):
        with tf.name_scope("external_optimizer"):
            tensors = [scalar(name, f() if callable(f) else f) for name, f in functions]
            if var_list is None:
                var_list = tf.trainable_variables()
            return GraphProblem(tensors, checked_variables(var_list), graph)

"""An update that happens or not, in graphs, eager mode and under strategies."""

import contextlib
import threading

import tensorflow.compat.v1 as tf

from contrib_opt import _tf


def update_if(condition, update, grads):
    """Runs `update(grads)` if `condition` holds.

    Args:
      condition: bool scalar Tensor. Under a strategy it must hold on every replica,
        or no replica updates.
      update: a function that returns the operation that updates, or None in eager
        mode.
      grads: list of gradients: what each replica has of its own for `update`.

    Returns:
      A bool scalar Tensor, `condition` (for all replicas), that is there once the
      update has happened or was skipped.
    """
    strategy = tf.distribute.get_strategy()
    if strategy.num_replicas_in_sync > 1 and _tf.in_replica_context():
        # One replica's refusal must stop them all.
        refused = tf.cast(tf.logical_not(condition), tf.float32)
        total = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, refused
        )
        condition = tf.equal(total, 0.0)
    if not _tf.can_merge_replicas():
        return run_if(condition, lambda: update(grads))

    def joined(strategy, condition, grads):
        # All replicas have the same.
        condition = strategy.experimental_local_results(condition)[0]
        run = strategy.extended.call_for_each_replica
        return run_if(condition, lambda: run(update, args=(grads,)))

    context = tf.distribute.get_replica_context()
    return context.merge_call(joined, args=(condition, grads))


def run_if(condition, update):
    """Runs `update()` if `condition` holds, in the code of one replica.

    Args:
      condition: bool scalar Tensor.
      update: a function without arguments that returns an operation, or None in eager
        mode.

    Returns:
      A bool scalar Tensor, `condition`, that is there once the update has happened or
      was skipped.
    """

    if tf.executing_eagerly():
        if condition:
            update()
        return condition

    def then():
        # With a global step, optimizers return an operation for each replica.
        strategy = tf.distribute.get_strategy()
        done = tf.nest.flatten(strategy.experimental_local_results(update()))
        with tf.control_dependencies([op for op in done if op is not None]):
            return tf.constant(True)

    with branches_see_ref_variables():
        return tf.cond(condition, then, lambda: tf.constant(False))


@contextlib.contextmanager
def branches_see_ref_variables():
    """A context in which `tf.cond` does for ref and for resource variables.

    The branches of TensorFlow 2's are functions, which get the values of ref variables
    instead of the variables. In a graph that is no function's, TensorFlow 1's does.
    """
    graph = tf.get_default_graph()
    in_function = tf.executing_eagerly() or hasattr(graph, "outer_graph")
    if in_function or not tf.control_flow_v2_enabled():
        yield
        return
    with _switch_lock:
        tf.disable_control_flow_v2()
        try:
            yield
        finally:
            tf.enable_control_flow_v2()


# The switch is one for all threads, and each may build a graph.
_switch_lock = threading.RLock()


def first_value(var):
    """What a variable that starts as a copy of the variable `var` starts with.

    In a graph: the value of `var` where it has one when the copy is initialized,
    otherwise the one that it is initialized with.
    """
    if tf.executing_eagerly():
        return var.read_value()
    if tf.distribute.has_strategy():
        return var.initial_value
    return tf.cond(
        tf.is_variable_initialized(var), var.read_value, lambda: var.initial_value
    )

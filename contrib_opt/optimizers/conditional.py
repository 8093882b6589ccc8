"""An update that happens or not, in graphs, eager mode and under strategies."""

import contextlib

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
        return _cond(condition, lambda: update(grads))

    def joined(strategy, condition, grads):
        # All replicas have the same.
        condition = strategy.experimental_local_results(condition)[0]
        run = strategy.extended.call_for_each_replica
        return _cond(condition, lambda: run(update, args=(grads,)))

    context = tf.distribute.get_replica_context()
    return context.merge_call(joined, args=(condition, grads))


def _cond(condition, update):
    def then():
        done = tf.nest.flatten(update())
        with tf.control_dependencies([op for op in done if op is not None]):
            return tf.constant(True)

    with _branches_see_ref_variables():
        return tf.cond(condition, then, lambda: tf.constant(False))


@contextlib.contextmanager
def _branches_see_ref_variables():
    # The tf.cond of TensorFlow 2 makes functions of its branches, which get the values
    # of ref variables instead of the variables. In a graph that is no function's the
    # one of TensorFlow 1 does for both kinds.
    graph = tf.get_default_graph()
    switch = (
        not tf.executing_eagerly()
        and not hasattr(graph, "outer_graph")
        and tf.control_flow_v2_enabled()
    )
    if switch:
        tf.disable_control_flow_v2()
    try:
        yield
    finally:
        if switch:
            tf.enable_control_flow_v2()

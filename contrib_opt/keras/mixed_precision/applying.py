"""What `apply_gradients` refuses on Keras 3, and for new optimizers of Keras 2."""

import tensorflow as tf


def pairs(grads_and_vars):
    """The list of the pairs of a gradient and a variable.

    Raises:
      TypeError: something in it is no such pair.
    """
    grads_and_vars = list(grads_and_vars)
    for pair in grads_and_vars:
        is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not is_pair or not hasattr(pair[1], "assign"):
            raise TypeError(
                "grads_and_vars must be a list of pairs (gradient, variable), such as "
                f"zip(gradients, variables) gives; this is none: {pair!r}"
            )
    return grads_and_vars


def check_not_in_graph():
    """Raises RuntimeError in a graph of TensorFlow 1.

    The update would be in the graph, and no operation would be there to run it by.
    """
    graph = tf.compat.v1.get_default_graph
    if tf.executing_eagerly() or graph().building_function:
        return
    raise RuntimeError(
        "In a graph of TensorFlow 1 this optimizer cannot apply gradients. Wrap an "
        "optimizer of tf.keras.optimizers.legacy (Keras 2), take contrib_opt."
        "mixed_precision.LossScaleOptimizer with an optimizer of tf.compat.v1.train, "
        "or train eagerly or in a tf.function."
    )

"""Takes off what other libraries put around variables and gradients."""

import tensorflow.compat.v1 as tf


def tensorflow_variable(var):
    """The `tf.Variable` inside a Keras 3 variable; anything else as it is."""
    inner = getattr(var, "value", None)
    return inner if hasattr(inner, "assign_sub") else var


def without_tpu_sum(grad):
    """The gradient before the sum over TPU shards, if it is not on a TPU.

    `tf.compat.v1.tpu.CrossShardOptimizer` sums gradients with an operation that
    only TPUs have, and inserts it on every device. Outside a TPU there is one
    shard, and the sum over it is the gradient itself.
    """
    op = None if tf.executing_eagerly() else getattr(grad, "op", None)
    if op is None or op.type != "CrossReplicaSum":
        return grad
    on_tpu = any(a in op.node_def.attr for a in ("_tpu_replicate", "_replication_info"))
    return grad if on_tpu else op.inputs[0]


def parts_of(variable):
    """The parts of a partitioned variable; a list of one for any other."""
    return list(variable) if is_partitioned(variable) else [variable]


def is_partitioned(variable):
    """Whether `variable` has parts: a partitioned variable, or a list of its parts."""
    return isinstance(variable, (list, tuple)) or hasattr(variable, "as_tensor")

"""The one place where ref and resource variables differ.

TensorFlow has its fused update kernels twice: `ApplyMomentum` updates a ref
variable, `ResourceApplyMomentum` the variable behind a resource handle.
"""

import tensorflow.compat.v1 as tf


def run_kernel(kernel, variables, **inputs):
    """Runs TensorFlow's update kernel `kernel` on ref or on resource variables.

    Args:
      kernel: name of the kernel for ref variables, such as 'ApplyMomentum' or
        'SparseApplyMomentum'.
      variables: dict from the kernel's names for them to the variables that it
        updates. All are ref, or all are resource variables.
      **inputs: the kernel's other inputs and attributes.

    Returns:
      The operation (for ref variables: the Tensor) that does the update.
    """
    if all(hasattr(v, "handle") for v in variables.values()):
        kernel = "Resource" + kernel
        variables = {name: v.handle for name, v in variables.items()}
    inputs.update(variables)
    return getattr(tf.raw_ops, kernel)(**inputs)


def store(var, value, use_locking):
    """var <- value, rounded to the type of `var`."""
    value = tf.cast(value, var.dtype.base_dtype)
    return var.assign(value, use_locking=use_locking, read_value=False)


def colocated(var, ignore_existing=False):
    """A context whose operations run on the device of `var`.

    Args:
      var: a variable.
      ignore_existing: whether it replaces other colocations, and not adds to them.
    """
    # `tf.colocate_with` does the same, and prints that it is deprecated.
    graph = None if tf.executing_eagerly() else tf.get_default_graph()
    if graph is not None and getattr(var, "graph", None) is graph:
        return graph.colocate_with(var.op, ignore_existing=ignore_existing)
    return tf.device(var.device)

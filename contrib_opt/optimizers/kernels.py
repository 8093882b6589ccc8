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

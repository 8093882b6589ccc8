"""Reads and writes the rows of a variable, ref or resource, and no others."""

import tensorflow.compat.v1 as tf


def read_rows(var, indices, dtype):
    """The rows `indices` of `var` as a Tensor of type `dtype`."""
    return tf.cast(tf.gather(var, indices), dtype)


def write_rows(var, indices, rows, use_locking=False):
    """var[indices] <- rows, rounded to the type of `var`.

    Args:
      var: a variable.
      indices: integers, [n], unique.
      rows: Tensor, the n rows.
      use_locking: whether to lock a ref variable meanwhile.

    Returns:
      The operation (for a ref variable: the Tensor) that does it.
    """
    rows = tf.cast(rows, var.dtype.base_dtype)
    if hasattr(var, "handle"):
        return tf.raw_ops.ResourceScatterUpdate(
            resource=var.handle, indices=indices, updates=rows
        )
    return tf.raw_ops.ScatterUpdate(
        ref=var, indices=indices, updates=rows, use_locking=use_locking
    )

"""Nadam: Adam with Nesterov momentum.

For a variable w with gradient g in step t:

    m <- beta1 * m + (1 - beta1) * g
    v <- beta2 * v + (1 - beta2) * g^2
    n  = beta1 * m + (1 - beta1) * g                          with the new m
    w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * n / (sqrt(v) + epsilon)

For a sparse gradient (IndexedSlices), with rows of the same index summed first, m and
v of all rows are updated (g is 0 in the others), but w only in the rows of the
gradient.

Symbols: m, v moments (the slots 'm' and 'v'), n the momentum that looks a step ahead,
t step, counted by the variables 'beta1_power' and 'beta2_power'.

Source: T. Dozat, "Incorporating Nesterov Momentum into Adam",
http://cs229.stanford.edu/proj2015/054_report.pdf, as `tf.contrib.opt.NadamOptimizer`
of TensorFlow 1.15 computes it: beta1 is the same in all steps, and the bias of n is
corrected as that of m.

Deviations from TensorFlow 1.15, each a case in which it failed:
- float16 and bfloat16 variables are updated in float32 before the result is rounded
  (contrib_opt/optimizers/adam.py says how); in 1.15 epsilon was 0 in float16, and a
  gradient of 0 made the weight NaN.
- A gradient of the wrong shape, and an index out of range, are refused before
  anything has changed.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.adam import (
    AdamBase,
    bias_corrected_rate,
    moving_average,
    rounded_up,
    unrounded,
)
from contrib_opt.optimizers.hyperparameters import compute_dtype
from contrib_opt.optimizers.kernels import store
from contrib_opt.optimizers.rows import read_rows, write_rows


def decayed_table(table, indices, rows, beta):
    """beta * table, plus (1 - beta) * rows in the rows `indices`."""
    return tf.tensor_scatter_nd_add(
        beta * table, tf.expand_dims(indices, 1), (1.0 - beta) * rows
    )


class NadamOptimizer(AdamBase):
    """Adam that looks a step of momentum ahead.

    Use it where Adam is used; it often needs fewer steps, most of all in models of
    sequences.

        m <- beta1 * m + (1 - beta1) * g
        v <- beta2 * v + (1 - beta2) * g^2
        w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                 * (beta1 * m + (1 - beta1) * g) / (sqrt(v) + epsilon)

    for a variable w with gradient g. The rule for sparse gradients, the source and the
    deviations are at the top of this file, contrib_opt/optimizers/nadam.py.

    It is a `tf.compat.v1.train.AdamOptimizer`, with the same slots and variables, and
    goes on from its checkpoints.
    """

    _use_nesterov = True

    def _update_sparse(self, grad, var, indices):
        stored, dtype = var.dtype.base_dtype, compute_dtype(var.dtype)
        s = self._scalars(dtype)
        g, w = tf.cast(grad, dtype), read_rows(var, indices, dtype)
        _, *slots = self._state(var)
        m, v = [tf.cast(slot, dtype) for slot in slots]
        v = decayed_table(unrounded(v, m, stored), indices, tf.square(g), s["beta2"])
        m = decayed_table(m, indices, g, s["beta1"])
        ahead = moving_average(tf.gather(m, indices), g, s["beta1"])
        rate = bias_corrected_rate(s["lr"], s["beta1_power"], s["beta2_power"])
        step = rate * ahead / (tf.sqrt(tf.gather(v, indices)) + s["epsilon"])
        return tf.group(
            write_rows(var, indices, w - step, self._use_locking),
            store(slots[0], m, self._use_locking),
            store(slots[1], rounded_up(v, stored), self._use_locking),
        )

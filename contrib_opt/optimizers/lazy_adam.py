"""Adam that updates, of an embedding table, only the rows with a gradient.

For a dense gradient g of a variable w in step t, Adam:

    m <- beta1 * m + (1 - beta1) * g
    v <- beta2 * v + (1 - beta2) * g^2
    w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)

For a sparse gradient (IndexedSlices), with rows of the same index summed first, the
same on w[i], m[i] and v[i] for each index i of the gradient. All other rows of the
variable and of its moments stay as they are, and are not read; Adam itself decays the
moments of all rows and moves all weights in every step.

Symbols: m, v moments (the slots 'm' and 'v'), t step, counted by the variables
'beta1_power' and 'beta2_power'.

Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
https://arxiv.org/abs/1412.6980, as `tf.contrib.opt.LazyAdamOptimizer` of TensorFlow
1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- float16 and bfloat16 variables are updated in float32 before the result is rounded
  (contrib_opt/optimizers/adam.py says how); in 1.15 epsilon was 0 in float16, and a
  gradient of 0 made the weight NaN.
- A gradient of the wrong shape, and an index out of range, are refused before
  anything has changed.
"""

from contrib_opt.optimizers.adam import AdamBase


class LazyAdamOptimizer(AdamBase):
    """Adam for models with large embedding tables.

    Use it when most steps see few rows of a table: a step costs as much as the rows
    that it sees. Moments of rows that are not seen do not decay, so the trajectory
    is not quite Adam's, and mostly as good.

        m[i] <- beta1 * m[i] + (1 - beta1) * g[i]
        v[i] <- beta2 * v[i] + (1 - beta2) * g[i]^2
        w[i] <- w[i] - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                       * m[i] / (sqrt(v[i]) + epsilon)

    for each row i that the gradient g names. A dense gradient gets Adam's update. The
    source and the deviations are at the top of this file,
    contrib_opt/optimizers/lazy_adam.py.

    It is a `tf.compat.v1.train.AdamOptimizer`, with the same slots and variables, and
    goes on from its checkpoints.
    """

    def _update_sparse(self, grad, var, indices):
        return self._update_rows(grad, var, indices)

"""LazyAdam that takes its step number from a global step (GS).

For a variable w with a sparse gradient g (IndexedSlices), rows of the same index
summed first, and t = global_step + 1, for each index i of the gradient:

    m[i] <- beta1 * m[i] + (1 - beta1) * g[i]
    v[i] <- beta2 * v[i] + (1 - beta2) * g[i]^2
    w[i] <- w[i] - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                   * m[i] / (sqrt(v[i]) + epsilon)

All other rows of the variable and of its moments stay as they are, and are not read.
A dense gradient gets Adam's update, as in contrib_opt/optimizers/adam_gs.py.

Symbols: m, v moments (the slots 'm' and 'v').

Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
https://arxiv.org/abs/1412.6980, as `tf.contrib.opt.LazyAdamGSOptimizer` of TensorFlow
1.15 computes it: the powers in float32, also for float64 variables.

Deviations from TensorFlow 1.15: those of contrib_opt/optimizers/adam_gs.py.
"""

from contrib_opt.optimizers.adam_gs import AdamGSOptimizer


class LazyAdamGSOptimizer(AdamGSOptimizer):
    """`AdamGSOptimizer` that updates, of an embedding table, only the rows it sees.

    Use it when most steps see few rows of a table and the program keeps a global step:
    pass the same variable here and to `minimize`, which increments it.

        m[i] <- beta1 * m[i] + (1 - beta1) * g[i]
        v[i] <- beta2 * v[i] + (1 - beta2) * g[i]^2
        w[i] <- w[i] - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                       * m[i] / (sqrt(v[i]) + epsilon)      with t = global_step + 1

    for each row i that the gradient g names. The source and the deviations are at the
    top of this file, contrib_opt/optimizers/lazy_adam_gs.py.
    """

    def _update_sparse(self, grad, var, indices):
        return self._update_rows(grad, var, indices)

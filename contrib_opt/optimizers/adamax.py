"""AdaMax: Adam with the infinity norm of past gradients for its second moment.

For a variable w with gradient g in step t:

    m <- beta1 * m + (1 - beta1) * g
    u <- max(beta2 * u, |g|)
    w <- w - learning_rate / (1 - beta1^t) * m / (u + epsilon)

For a sparse gradient (IndexedSlices), with rows of the same index summed first, the
same on w[i], m[i] and u[i] for each index i of the gradient; all other rows stay as
they are, and are not read.

Symbols: m first moment (the slot 'm'), u exponentially weighted infinity norm (the
slot 'v'), t step, counted by the variable 'beta1_power'.

Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
https://arxiv.org/abs/1412.6980, section 7.1, as `tf.contrib.opt.AdaMaxOptimizer` of
TensorFlow 1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- float16 and bfloat16 variables are updated in float32 before the result is rounded;
  in 1.15 epsilon was 0 in float16, and a gradient of 0 made the weight NaN.
- A gradient of the wrong shape, and an index out of range, are refused before
  anything has changed.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.adam import AdamRule, check_decay_rate, moving_average
from contrib_opt.optimizers.hyperparameters import as_dtype, check_hyperparameter
from contrib_opt.optimizers.kernels import colocated, run_kernel


def adamax_step(w, m, u, g, rate, beta1, beta2, epsilon):
    """One step of AdaMax.

    Args:
      w, m, u, g: variable, first moment, infinity norm and gradient, Tensors of one
        shape and type.
      rate: the bias-corrected learning rate, a scalar.
      beta1, beta2, epsilon: scalars.

    Returns:
      The new w, m and u.
    """
    m = moving_average(m, g, beta1)
    u = tf.maximum(beta2 * u, tf.abs(g))
    return w - rate * m / (u + epsilon), m, u


class AdaMaxOptimizer(AdamRule, tf.train.AdamOptimizer):
    """Adam whose step is bounded by the largest of the recent gradients.

    Use it where Adam is used; it is at times better for embeddings, since no step is
    larger than about the learning rate.

        m <- beta1 * m + (1 - beta1) * g
        u <- max(beta2 * u, |g|)
        w <- w - learning_rate / (1 - beta1^t) * m / (u + epsilon)

    for a variable w with gradient g in step t; u is the slot 'v'. For a sparse
    gradient, only the rows that it names are updated. The source and the deviations
    are at the top of this file, contrib_opt/optimizers/adamax.py.

    It is a `tf.compat.v1.train.AdamOptimizer`.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        use_locking=False,
        name="AdaMax",
    ):
        """Makes the optimizer.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          learning_rate: the learning rate, before bias correction.
          beta1: the part of the first moment that a step keeps, in [0, 1).
          beta2: the part of the infinity norm that a step keeps, in [0, 1].
          epsilon: added to the denominator, at least 0.
          use_locking: whether updates of ref variables take a lock.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter is no scalar, out of its range, or callable
            only with arguments.
        """
        check_hyperparameter("learning_rate", learning_rate)
        check_decay_rate("beta1", beta1)
        check_decay_rate("beta2", beta2, may_be_one=True)
        check_hyperparameter("epsilon", epsilon, minimum=0)
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _get_beta_accumulators(self):
        with tf.init_scope():
            graph = None if tf.executing_eagerly() else tf.get_default_graph()
            return self._get_non_slot_variable("beta1_power", graph)

    def _beta_powers(self):
        return {"beta1_power": self._get_beta_accumulators()}

    def _run_kernel(self, var, m, v, grad):
        return run_kernel(
            "ApplyAdaMax",
            {"var": var, "m": m, "v": v},
            grad=grad,
            use_locking=self._use_locking,
            **self._scalars(var.dtype.base_dtype),
        )

    def _step(self, w, m, v, g, stored):
        s = self._scalars(w.dtype)
        rate = s["lr"] / (1.0 - s["beta1_power"])
        return adamax_step(w, m, v, g, rate, s["beta1"], s["beta2"], s["epsilon"])

    def _update_sparse(self, grad, var, indices):
        return self._update_rows(grad, var, indices)

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            with colocated(power):
                beta1 = as_dtype(self._beta1_t, power.dtype.base_dtype)
                update = power.assign(power * beta1, use_locking=self._use_locking)
        return tf.group(*update_ops, update, name=name_scope)

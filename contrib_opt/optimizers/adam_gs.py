"""Adam that takes its step number from a global step (GS) that the program keeps.

For a variable w with gradient g, with t = global_step + 1:

    m <- beta1 * m + (1 - beta1) * g
    v <- beta2 * v + (1 - beta2) * g^2
    w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)

A sparse gradient (IndexedSlices), with rows of the same index summed first, stands for
the dense one that is 0 elsewhere: the moments of all rows decay, and all weights move.

Symbols: m, v moments (the slots 'm' and 'v'). Where `tf.train.AdamOptimizer` keeps
beta1^t and beta2^t in variables of its own, here they follow from the global step:
several workers, or several optimizers, then agree on t.

Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
https://arxiv.org/abs/1412.6980, as `tf.contrib.opt.AdamGSOptimizer` of TensorFlow 1.15
computes it: the powers in float32, also for float64 variables.

Deviations from TensorFlow 1.15, each a case in which it failed:
- beta1 and beta2 may be Tensors of any float type; the powers are float64 for float64
  ones. 1.15 raised TypeError.
- global_step may be a callable.
- float16 and bfloat16 variables are updated in float32 before the result is rounded
  (contrib_opt/optimizers/adam.py says how); in 1.15 epsilon was 0 in float16, and a
  gradient of 0 made the weight NaN.
- A gradient of the wrong shape, and an index out of range, are refused before
  anything has changed.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.adam import AdamRule, check_decay_rate
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    check_step,
)
from contrib_opt.optimizers.unwrap import tensorflow_variable


def power(beta, step):
    """beta^step, a float64 scalar for a float64 beta and float32 for all others."""
    dtype = tf.float64 if beta.dtype.base_dtype == tf.float64 else tf.float32
    # pow of float32 differs by processor and release in its last digits, which
    # 1 - beta2^t makes the fifth ones.
    exact = tf.pow(as_dtype(beta, tf.float64), as_dtype(step, tf.float64))
    return tf.cast(exact, dtype)


class AdamGSOptimizer(AdamRule):
    """Adam whose bias correction follows a global step.

    Use it when the program keeps a global step anyway, and each step of it is one
    update: pass the same variable here and to `minimize`, which increments it.

        m <- beta1 * m + (1 - beta1) * g
        v <- beta2 * v + (1 - beta2) * g^2
        w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                 * m / (sqrt(v) + epsilon)                  with t = global_step + 1

    for a variable w with gradient g. The source and the deviations are at the top of
    this file, contrib_opt/optimizers/adam_gs.py.
    """

    _hyperparameters = (*AdamRule._hyperparameters, "global_step")

    def __init__(
        self,
        global_step=0,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        use_locking=False,
        name="Adam",
    ):
        """Makes the optimizer.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          global_step: the number of steps done before this one, usually a Variable
            that is also passed to `minimize`. Left at 0, each step is a first one.
          learning_rate: the learning rate, before bias correction.
          beta1: the part of the first moment that a step keeps, in [0, 1).
          beta2: the part of the second moment that a step keeps, in [0, 1).
          epsilon: added to the denominator, at least 0. 1e-8 is small: 1e-4 to 1 are
            better for some networks.
          use_locking: whether updates of ref variables take a lock.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter or global_step is no scalar, out of its range,
            or callable only with arguments.
        """
        global_step = tensorflow_variable(global_step)
        check_step(global_step)
        check_hyperparameter("learning_rate", learning_rate)
        check_decay_rate("beta1", beta1)
        check_decay_rate("beta2", beta2)
        check_hyperparameter("epsilon", epsilon, minimum=0)
        super().__init__(use_locking, name)
        self._global_step = global_step
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self):
        super()._prepare()
        step = tf.convert_to_tensor(self._hyper("global_step")) + 1
        self._beta_powers_t = {
            "beta1_power": power(self._beta1_t, step),
            "beta2_power": power(self._beta2_t, step),
        }

    def _beta_powers(self):
        return self._beta_powers_t

    def _update_sparse(self, grad, var, indices):
        rows = tf.expand_dims(indices, 1)
        shape = tf.shape(var, out_type=indices.dtype)
        return self._update_dense(tf.scatter_nd(rows, grad, shape), var)

"""What the optimizers of the Adam family share.

For a variable w with gradient g in step t = 1, 2, ...:

    m <- beta1 * m + (1 - beta1) * g
    v <- beta2 * v + (1 - beta2) * g^2
    rate = learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
    w <- w - rate * m / (sqrt(v) + epsilon)

with Nesterov momentum (Nadam): w <- w - rate * n / (sqrt(v) + epsilon), where
n = beta1 * m + (1 - beta1) * g with the new m.

Symbols: m and v are the first and the second moment (the slots 'm' and 'v', which
start at 0), beta1^t and beta2^t the powers that correct their bias. Two ways to know
these: variables, multiplied after each step (`AdamBase`), or a global step
(`contrib_opt.optimizers.adam_gs`).

Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
https://arxiv.org/abs/1412.6980, with the epsilon of the end of its section 2
("epsilon hat"), as TensorFlow 1.15 computes it.

Hyperparameters pass through TensorFlow's default float type, as in 1.15: given as a
Python number, 0.001 has float32's precision for float64 variables too.

Half precision: float16 and bfloat16 variables and their slots are updated in float32
and rounded when they are stored, v to the next number above. To the nearest one, v
would become 0 in float16 for gradients below 0.008 while m does not, and
m / (sqrt(v) + epsilon) would be of any size; so, rounding v makes no step longer. A v
above the largest finite number is stored as that, and then counts as m^2 if that is
more. In TensorFlow 1.15 epsilon itself is 0 in float16, and a gradient of 0 makes the
weight NaN.
"""

import numbers

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    compute_dtype,
)
from contrib_opt.optimizers.kernels import run_kernel, store
from contrib_opt.optimizers.rows import read_rows, write_rows


def bias_corrected_rate(learning_rate, beta1_power, beta2_power):
    """The learning rate that makes up for moments that started at 0."""
    return learning_rate * tf.sqrt(1.0 - beta2_power) / (1.0 - beta1_power)


def moving_average(average, x, beta):
    """beta * average + (1 - beta) * x."""
    return beta * average + (1.0 - beta) * x


def adam_step(w, m, v, g, rate, beta1, beta2, epsilon, use_nesterov=False):
    """One step of Adam (of Nadam with `use_nesterov`).

    Args:
      w, m, v, g: variable, moments and gradient, Tensors of one shape and type.
      rate: the bias-corrected learning rate, a scalar.
      beta1, beta2, epsilon: scalars.
      use_nesterov: whether the step looks ahead.

    Returns:
      The new w, m and v.
    """
    m = moving_average(m, g, beta1)
    v = moving_average(v, tf.square(g), beta2)
    direction = moving_average(m, g, beta1) if use_nesterov else m
    return w - rate * direction / (tf.sqrt(v) + epsilon), m, v


def rounded_up(x, dtype):
    """The least numbers of float type `dtype` that are not below `x`, 0 or more.

    At most the largest finite one. Returned in the type of x, which holds them all.
    """
    if dtype == x.dtype:
        return x

    def nearest(y):
        return tf.cast(tf.cast(tf.minimum(y, float(dtype.max)), dtype), x.dtype)

    bits, smallest = (10, 2.0**-24) if dtype == tf.float16 else (7, 2.0**-126)
    found = nearest(x)
    # Three quarters of a unit in the last place if the significand is 1, and one and
    # a half if it is nearly 2: either way the next number is the nearest.
    gap = tf.maximum(found * (0.75 * 2.0**-bits), smallest)
    return tf.where_v2(found < x, nearest(found + gap), found)


def unrounded(v, m, dtype):
    """v as it was stored by `rounded_up`: the largest number stands for any above."""
    if dtype == v.dtype:
        return v
    return tf.where_v2(v < float(dtype.max), v, tf.maximum(v, tf.square(m)))


def check_decay_rate(name, value, may_be_one=False):
    """Raises ValueError unless `value` can be a hyperparameter from 0 to 1."""
    check_hyperparameter(name, value, minimum=0)
    if callable(value):
        return
    if not isinstance(value, numbers.Real):
        if not tf.executing_eagerly():
            return
        value = np.max(tf.convert_to_tensor(value).numpy())
    if value > 1 or (value == 1 and not may_be_one):
        limit = "at most 1" if may_be_one else "less than 1"
        raise ValueError(f"{name} must be {limit}, got {value!r}.")


class AdamRule(ContribOptimizer):
    """What does not depend on where the powers of beta1 and beta2 come from.

    `__init__` stores the hyperparameters where `tf.train.AdamOptimizer` does. For a
    subclass to write: `_beta_powers()`, `_update_sparse`, and whatever of
    `_run_kernel` and `_step` is not Adam's.
    """

    _hyperparameters = ("lr", "beta1", "beta2", "epsilon")
    _use_nesterov = False

    def _beta_powers(self):
        """dict from 'beta1_power' and 'beta2_power' to scalar Tensors or variables."""
        raise NotImplementedError

    def _prepare(self):
        super()._prepare()
        # The names are those of 1.15: 'Adam/learning_rate:0' and so on.
        self._lr_t = tf.convert_to_tensor(self._hyper("lr"), name="learning_rate")
        self._beta1_t = tf.convert_to_tensor(self._hyper("beta1"), name="beta1")
        self._beta2_t = tf.convert_to_tensor(self._hyper("beta2"), name="beta2")
        self._epsilon_t = tf.convert_to_tensor(self._hyper("epsilon"), name="epsilon")

    def _scalars(self, dtype):
        """The kernels' names for the scalars of this step, and their values."""
        scalars = dict(
            self._beta_powers(),
            lr=self._lr_t,
            beta1=self._beta1_t,
            beta2=self._beta2_t,
            epsilon=self._epsilon_t,
        )
        return {name: as_dtype(value, dtype) for name, value in scalars.items()}

    def _state(self, var):
        return var, self.get_slot(var, "m"), self.get_slot(var, "v")

    def _update_dense(self, grad, var):
        state, stored = self._state(var), var.dtype.base_dtype
        dtype = compute_dtype(stored)
        if dtype == stored:
            return self._run_kernel(*state, grad)
        w, m, v = [tf.cast(x, dtype) for x in state]
        new = self._step(w, m, v, tf.cast(grad, dtype), stored)
        return tf.group(
            *(store(x, value, self._use_locking) for x, value in zip(state, new))
        )

    def _update_rows(self, grad, var, indices):
        """The step, on the rows `indices` of the variable and of its slots alone."""
        state, dtype = self._state(var), compute_dtype(var.dtype)
        # w too is read and written: that takes a third of the time that TensorFlow 2
        # takes to add a change to rows.
        w, m, v = [read_rows(x, indices, dtype) for x in state]
        new = self._step(w, m, v, tf.cast(grad, dtype), var.dtype.base_dtype)
        return tf.group(
            *(
                write_rows(x, indices, rows, self._use_locking)
                for x, rows in zip(state, new)
            )
        )

    def _run_kernel(self, var, m, v, grad):
        """The step by TensorFlow's fused kernel, in the type of the variable."""
        return run_kernel(
            "ApplyAdam",
            {"var": var, "m": m, "v": v},
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=self._use_nesterov,
            **self._scalars(var.dtype.base_dtype),
        )

    def _step(self, w, m, v, g, stored):
        """The step on Tensors; `stored` is the type that the slots have."""
        s = self._scalars(w.dtype)
        rate = bias_corrected_rate(s["lr"], s["beta1_power"], s["beta2_power"])
        v = unrounded(v, m, stored)
        w, m, v = adam_step(
            w, m, v, g, rate, s["beta1"], s["beta2"], s["epsilon"], self._use_nesterov
        )
        return w, m, rounded_up(v, stored)


class AdamBase(AdamRule, tf.train.AdamOptimizer):
    """Adam whose powers of beta1 and beta2 are variables, as in TensorFlow's own.

    These variables, 'beta1_power' and 'beta2_power', are on the device of the first
    variable by name, and mirrored under a MirroredStrategy. (TensorFlow 1.15 leaves
    mirrored ones out of a `tf.train.Checkpoint`, its own Adam's too; 2.x does not.)
    """

    def __init__(
        self,
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
          learning_rate: the learning rate, before bias correction.
          beta1: the part of the first moment that a step keeps, in [0, 1).
          beta2: the part of the second moment that a step keeps, in [0, 1).
          epsilon: added to the denominator, at least 0. 1e-8 is small: 1e-4 to 1 are
            better for some networks.
          use_locking: whether updates of ref variables take a lock.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter is no scalar, out of its range, or callable
            only with arguments.
        """
        check_hyperparameter("learning_rate", learning_rate)
        check_decay_rate("beta1", beta1)
        check_decay_rate("beta2", beta2)
        check_hyperparameter("epsilon", epsilon, minimum=0)
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _beta_powers(self):
        return dict(zip(("beta1_power", "beta2_power"), self._get_beta_accumulators()))

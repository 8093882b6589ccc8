"""PowerSign: larger steps while the gradient agrees with its moving average.

For a variable w with gradient g:

    m <- beta * m + (1 - beta) * g
    w <- w - learning_rate * base ^ (sign_decay * sign(g) * sign(m)) * g

with the new m. A sparse gradient (IndexedSlices) is 0 in the rows that it does not
have: there m decays, and w stays as it is.

Symbols: m the slot 'm', which starts at 0; sign_decay 1, or sign_decay_fn of the
global step (contrib_opt/optimizers/sign_decay.py).

Source: I. Bello, B. Zoph, V. Vasudevan, Q. V. Le, "Neural Optimizer Search with
Reinforcement Learning", https://arxiv.org/abs/1709.07417, as
`tf.contrib.opt.PowerSignOptimizer` of TensorFlow 1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- Sparse gradients update resource variables too, and so eager mode.
- learning_rate, base and beta may be callables, and base a Tensor or Variable.
- float16 and bfloat16 variables are updated in float32, and rounded when they are
  stored; in 1.15 a beta of 0.999 was 1 in bfloat16, and m stayed 0.
- A gradient of the wrong shape is refused before anything is written.
"""

import math
import numbers

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.hyperparameters import check_hyperparameter
from contrib_opt.optimizers.sign_optimizer import SignOptimizer


def power_sign_factor(sign_gm, sign_decay, logbase):
    """The factor of the gradient, where `sign_gm` is sign(g) * sign(m)."""
    # e as float32 has it, for float64 too: 1.15 computes sparse updates with that.
    e = tf.cast(tf.constant(math.e, tf.float32), sign_gm.dtype)
    return tf.pow(e, logbase * sign_decay * sign_gm)


class PowerSignOptimizer(SignOptimizer):
    """Gradient descent that multiplies its rate by the agreement with past gradients.

        m <- beta * m + (1 - beta) * g
        w <- w - learning_rate * base ^ (sign_decay * sign(g) * sign(m)) * g

    for a variable w with gradient g; m is the slot 'm'. A coordinate whose gradient
    keeps its sign moves `base` times as fast as in gradient descent, and one whose
    gradient has just changed it `base` times as slowly. The source and the deviations
    are at the top of this file, contrib_opt/optimizers/power_sign.py.

    To let that fall over 1,000 steps (PowerSign-cd):

        from contrib_opt.optimizers import sign_decay

        decay = sign_decay.get_cosine_decay_fn(1000)
        opt = contrib_opt.PowerSignOptimizer(0.1, sign_decay_fn=decay)
        train_op = opt.minimize(loss, global_step=step)

    Works in `tf.compat.v1.Session` graphs, in eager mode, in `tf.function` and under
    distribution strategies. A sparse gradient takes a pass over all of the slot.
    """

    _hyperparameters = ("learning_rate", "base", "beta")
    _kernel = "ApplyPowerSign"

    def __init__(
        self,
        learning_rate=0.1,
        base=math.e,
        beta=0.9,
        sign_decay_fn=None,
        use_locking=False,
        name="PowerSignOptimizer",
    ):
        """Makes a PowerSign optimizer.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          learning_rate: the learning rate.
          base: the base of the power, more than 0.
          beta: the part of the moving average that the next step keeps, at least 0.
          sign_decay_fn: function of the global step (of what `minimize` or
            `apply_gradients` got for it, as it is before the update) that returns the
            factor of the signs, a scalar; None is 1.
          use_locking: whether to lock variables while they are updated.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter is no scalar, or callable only with arguments;
            base is not positive, or beta negative.
          TypeError: sign_decay_fn is neither callable nor None.
        """
        check_hyperparameter("base", base, minimum=0)
        if isinstance(base, numbers.Real) and base == 0:
            raise ValueError(f"base must be more than 0, got {base!r}.")
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._base = base

    def _values_of_step(self, global_step):
        values = super()._values_of_step(global_step)
        base = values.pop("base")
        if isinstance(base, numbers.Real):
            values["logbase"] = math.log(base)
        else:
            values["logbase"] = tf.math.log(tf.convert_to_tensor(base))
        return values

    def _coefficient(self, dtype):
        return {"logbase": self._scalar("logbase", dtype)}

    def _factor(self, sign_gm, sign_decay, logbase):
        return power_sign_factor(sign_gm, sign_decay, logbase)

"""How AddSign and PowerSign let the weight of the sign fall with the step.

With t the global step, but decay_steps at most:

    linear   (decay_steps - t) / decay_steps
    cosine   (1 + cos(2 * pi * num_periods * t / decay_steps)) / 2
    restart  (1 + cos(pi * (num_periods * t mod decay_steps) / decay_steps)) / 2

`zero_after` counts periods: from global_step = decay_steps * zero_after / num_periods
on, cosine and restart are 0.

Each function returns a function of the global step, for the argument `sign_decay_fn`
of `AddSignOptimizer` and `PowerSignOptimizer`. Results are scalar float32 Tensors.

Sources: I. Bello, B. Zoph, V. Vasudevan, Q. V. Le, "Neural Optimizer Search with
Reinforcement Learning", https://arxiv.org/abs/1709.07417; for restart I. Loshchilov,
F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts",
https://arxiv.org/abs/1608.03983; as `sign_decay` of TensorFlow 1.15's contrib.opt
computes them.

Deviations from TensorFlow 1.15, each a case in which it failed:
- decay_steps may be of another type than the global step (1000.0, or a Tensor), and
  num_periods may be a fraction where zero_after is given too.
- decay_steps below 1 is refused; 1.15 divided by 0.
"""

import math

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.hyperparameters import as_dtype, check_scalar


def linear_decay(step, decay_steps):
    """The linear decay of float32 scalars, `step` at most `decay_steps`."""
    return (decay_steps - step) / decay_steps


def cosine_decay(step, decay_steps, num_periods):
    """The cosine decay of float32 scalars, `step` at most `decay_steps`."""
    return _half_cosine(2.0 * num_periods * (step / decay_steps))


def restart_decay(step, decay_steps, num_periods):
    """The restart decay of float32 scalars, `step` at most `decay_steps`."""
    done = tf.math.floormod(num_periods * step, decay_steps)
    return _half_cosine(done / decay_steps)


def get_linear_decay_fn(decay_steps):
    """Lets the sign fall along a line, to 0 at `decay_steps`.

        (decay_steps - min(global_step, decay_steps)) / decay_steps

    Args:
      decay_steps: how many steps the decay takes, a number or scalar Tensor, at
        least 1.

    Returns:
      A function of the global step, an integer scalar (number, Tensor or Variable).
      It returns a scalar float32 Tensor, and raises ValueError if the step is None.

    Raises:
      ValueError: decay_steps is no number, or less than 1.
    """
    check_scalar("decay_steps", decay_steps, minimum=1)

    def linear_decay_fn(global_step):
        return linear_decay(*_steps("linear_decay", global_step, decay_steps))

    return linear_decay_fn


def get_cosine_decay_fn(decay_steps, num_periods=0.5, zero_after=None):
    """Lets the sign swing between 1 and 0 along a cosine.

        (1 + cos(2 * pi * num_periods * t / decay_steps)) / 2
        where t = min(global_step, decay_steps)

    Args:
      decay_steps: how many steps the decay takes, a number or scalar Tensor, at
        least 1.
      num_periods: how many periods of the cosine these are, a number or scalar
        Tensor; 0.5 ends at 0.
      zero_after: number of periods after which the result is 0; None is never.

    Returns:
      A function of the global step, as `get_linear_decay_fn` returns it.

    Raises:
      ValueError: an argument is no number, or decay_steps is less than 1.
    """
    check_scalar("decay_steps", decay_steps, minimum=1)
    check_scalar("num_periods", num_periods)
    if zero_after is not None:
        check_scalar("zero_after", zero_after)

    def cosine_decay_fn(global_step):
        step, steps = _steps("cosine_decay", global_step, decay_steps)
        periods = as_dtype(num_periods, tf.float32)
        decayed = cosine_decay(step, steps, periods)
        return _zeroed(decayed, periods * (step / steps), zero_after)

    return cosine_decay_fn


def get_restart_decay_fn(decay_steps, num_periods=1, zero_after=None):
    """Lets the sign fall along half a cosine, from 1 again in each period.

        (1 + cos(pi * (num_periods * t mod decay_steps) / decay_steps)) / 2
        where t = min(global_step, decay_steps)

    At `decay_steps` the last period is over and the result 1, as in TensorFlow 1.15.

    Args:
      decay_steps: how many steps the decay takes, a number or scalar Tensor, at
        least 1.
      num_periods: how many periods these are, a number or scalar Tensor.
      zero_after: number of periods after which the result is 0; None is never.

    Returns:
      A function of the global step, as `get_linear_decay_fn` returns it.

    Raises:
      ValueError: an argument is no number, or decay_steps is less than 1.
    """
    check_scalar("decay_steps", decay_steps, minimum=1)
    check_scalar("num_periods", num_periods)
    if zero_after is not None:
        check_scalar("zero_after", zero_after)

    def restart_decay_fn(global_step):
        step, steps = _steps("restart_decay", global_step, decay_steps)
        periods = as_dtype(num_periods, tf.float32)
        decayed = restart_decay(step, steps, periods)
        return _zeroed(decayed, periods * step / steps, zero_after)

    return restart_decay_fn


def _half_cosine(fraction):
    return 0.5 * (1.0 + tf.cos(as_dtype(math.pi, tf.float32) * fraction))


def _zeroed(decayed, done_periods, zero_after):
    if zero_after is None:
        return decayed
    over = done_periods >= as_dtype(zero_after, tf.float32)
    return tf.where_v2(over, tf.zeros_like(decayed), decayed)


def _steps(name, global_step, decay_steps):
    """The step, `decay_steps` at most, and decay_steps, as float32 scalars."""
    if global_step is None:
        raise ValueError(
            f"global_step is required for {name}: pass it to minimize() or "
            "apply_gradients()."
        )
    # Compared before they are rounded: float32 holds no odd number above 2^24.
    step, steps = [as_dtype(s, tf.float64) for s in (global_step, decay_steps)]
    return tf.cast(tf.minimum(step, steps), tf.float32), tf.cast(steps, tf.float32)

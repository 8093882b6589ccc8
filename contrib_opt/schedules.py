"""The learning-rate schedules that LARS is used with.

    linear scaling    rate = learning_rate * batch_size / base_batch_size
    gradual warm-up   rate = learning_rate * step / warmup_steps       for
                             step < warmup_steps, then learning_rate
    poly decay        rate = learning_rate * (1 - step / decay_steps) ^ power

Each works alone, and takes what another one returned as its `learning_rate`. Large
batches are trained with all three, the decay beginning where the warm-up ends:

    step = tf.compat.v1.train.get_or_create_global_step()
    rate = schedules.linear_scaling(0.1, batch_size=4096)
    rate = schedules.poly_decay(rate, step, total - warmup, start_step=warmup)
    rate = schedules.gradual_warmup(rate, step, warmup)
    optimizer = contrib_opt.LARSOptimizer(rate)
    train_op = optimizer.minimize(loss, global_step=step)

In a graph, schedules are scalar float32 Tensors. In eager mode they are callables
without arguments, which read the step at each call and may be called inside a
`tf.function`. Optimizers take either. `global_step` counts the steps already taken, so
that the first step has the rate of global_step 0.

Sources: P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour",
https://arxiv.org/abs/1706.02677 (linear scaling, gradual warm-up); Y. You, I. Gitman,
B. Ginsburg, "Large Batch Training of Convolutional Networks",
https://arxiv.org/abs/1708.03888 (poly decay, power 2, after a warm-up).
"""

import numbers

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    check_scalar,
    evaluate,
)


def linear_scaling(learning_rate, batch_size, base_batch_size=256):
    """The rate for a batch size, from one that was tuned for another.

        learning_rate * batch_size / base_batch_size

    Args:
      learning_rate: the rate that is right for `base_batch_size`: a number, a scalar
        Tensor or Variable, or a callable without arguments that returns one of these.
      batch_size: examples in a step, over all replicas: a number, or a scalar Tensor.
      base_batch_size: examples in a step, where `learning_rate` is right: the same.

    Returns:
      A number for numbers; otherwise, in a graph, a scalar float32 Tensor and, in
      eager mode, a callable that returns one.

    Raises:
      ValueError: learning_rate is negative, or a batch size is less than 1.
    """
    check_hyperparameter("learning_rate", learning_rate, minimum=0)
    check_scalar("batch_size", batch_size, minimum=1)
    check_scalar("base_batch_size", base_batch_size, minimum=1)
    arguments = (learning_rate, batch_size, base_batch_size)
    if all(isinstance(argument, numbers.Number) for argument in arguments):
        return learning_rate * batch_size / base_batch_size

    def rate():
        tuned, size, base = [as_dtype(evaluate(a), tf.float32) for a in arguments]
        return tuned * (size / base)

    return rate if tf.executing_eagerly() else rate()


def poly_decay(
    learning_rate,
    global_step,
    decay_steps,
    end_learning_rate=0.0,
    power=2.0,
    start_step=0,
):
    """Lets the rate fall along a polynomial, as `tf.train.polynomial_decay` does.

        end_learning_rate + (learning_rate - end_learning_rate) * (1 - t) ^ power
        where t = (global_step - start_step) / decay_steps, clipped to [0, 1]

    The rate is `learning_rate` up to `start_step` and `end_learning_rate` from
    `start_step + decay_steps` on.

    Args:
      learning_rate: the rate at first: a number, a scalar Tensor or Variable, or a
        callable without arguments that returns one of these.
      global_step: the number of steps taken so far: a scalar Variable or Tensor of a
        real type, or a number.
      decay_steps: how many steps the decay takes, at least 1.
      end_learning_rate: the rate at last, at least 0.
      power: of the polynomial, at least 0; 1 is linear.
      start_step: the step at which the decay begins, at least 0.

    Returns:
      In a graph a scalar float32 Tensor; in eager mode a callable that returns one.

    Raises:
      ValueError: an argument is out of its range or of the wrong type.
    """
    check_hyperparameter("learning_rate", learning_rate, minimum=0)
    _check_global_step(global_step)
    check_scalar("decay_steps", decay_steps, minimum=1)
    check_scalar("end_learning_rate", end_learning_rate, minimum=0)
    check_scalar("power", power, minimum=0)
    check_scalar("start_step", start_step, minimum=0)

    def rate():
        start = as_dtype(start_step, tf.float32)
        step = tf.maximum(tf.cast(global_step, tf.float32) - start, 0.0)
        return evaluate(
            tf.train.polynomial_decay(
                as_dtype(evaluate(learning_rate), tf.float32),
                step,
                as_dtype(decay_steps, tf.float32),
                as_dtype(end_learning_rate, tf.float32),
                as_dtype(power, tf.float32),
            )
        )

    return rate if tf.executing_eagerly() else rate()


def gradual_warmup(learning_rate, global_step, warmup_steps, initial_learning_rate=0.0):
    """Lets the rate rise along a line, and then be `learning_rate`.

        initial + (learning_rate - initial) * global_step / warmup_steps
        for global_step < warmup_steps, then learning_rate

    A `learning_rate` that changes with the step counts with its value at this step,
    not at the end of the warm-up. So the rise is a straight line if it is constant
    until then (`poly_decay` with start_step=warmup_steps); otherwise it is the
    product of the two schedules, and in both cases continuous at the end.

    Args:
      learning_rate: the rate after the warm-up: a number, a scalar Tensor or
        Variable, or a callable without arguments that returns one of these, such
        as `poly_decay` makes.
      global_step: the number of steps taken so far: a scalar Variable or Tensor of a
        real type, or a number.
      warmup_steps: how many steps the warm-up takes, at least 0; 0 is none.
      initial_learning_rate: the rate at global_step 0, at least 0. With 0 the first
        step leaves the weights as they are; Goyal et al. begin with the rate before
        linear scaling.

    Returns:
      In a graph a scalar float32 Tensor; in eager mode a callable that returns one.

    Raises:
      ValueError: an argument is out of its range or of the wrong type.
    """
    check_hyperparameter("learning_rate", learning_rate, minimum=0)
    _check_global_step(global_step)
    check_scalar("warmup_steps", warmup_steps, minimum=0)
    check_scalar("initial_learning_rate", initial_learning_rate, minimum=0)

    def rate():
        target = as_dtype(evaluate(learning_rate), tf.float32)
        initial = as_dtype(initial_learning_rate, tf.float32)
        step = tf.cast(global_step, tf.float32)
        steps = as_dtype(warmup_steps, tf.float32)
        rising = initial + (target - initial) * (step / tf.maximum(steps, 1.0))
        return tf.where_v2(step < steps, rising, target)

    return rate if tf.executing_eagerly() else rate()


def _check_global_step(step):
    """Raises ValueError unless `step` is a real scalar."""
    if isinstance(step, numbers.Real):
        return
    try:
        dtype, shape = tf.as_dtype(step.dtype), tf.TensorShape(step.shape)
    except (AttributeError, TypeError):
        dtype = shape = None
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        problem = "a Variable, Tensor or number that counts steps"
    elif not shape.is_compatible_with([]):
        problem = "a scalar"
    else:
        return
    raise ValueError(
        f"global_step must be {problem}, for example what "
        f"tf.compat.v1.train.get_or_create_global_step() returns, got {step!r}."
    )

"""How the loss scale is chosen, and how it changes from step to step.

ExponentialUpdateLossScaleManager keeps the loss scale s, the finite steps n in a row
and the other steps k since s changed. After each step:

    all gradients finite:  n <- n + 1; when it reaches incr_every_n_steps,
                           s <- incr_ratio * s if float32 holds that, n <- 0, k <- 0
    else:                  n <- 0, k <- k + 1; when it reaches decr_every_n_nan_or_inf,
                           s <- max(decr_ratio * s, 1), n <- 0, k <- 0

Source: `tf.contrib.mixed_precision` of TensorFlow 1.15.5; Micikevicius et al. 2018,
"Mixed Precision Training" (https://arxiv.org/abs/1710.03740). Deviations: a
FixedLossScaleManager may serve several graphs; arguments are checked.
"""

import abc
import functools
import numbers

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.hyperparameters import check_scalar


class LossScaleManager(abc.ABC):
    """Decides by how much LossScaleOptimizer scales the loss; for programs to derive.

    Variables that are attributes of a manager are in the object-based checkpoints of
    the LossScaleOptimizer that has it.
    """

    @abc.abstractmethod
    def get_loss_scale(self):
        """Returns the loss scale, a float32 scalar: a Tensor or a Variable."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads):
        """Takes notice of a step.

        Args:
          finite_grads: bool scalar Tensor, whether all gradients of it were finite.

        Returns:
          The operation that updates the loss scale; in eager mode it is ignored.
        """


class FixedLossScaleManager(LossScaleManager):
    """A loss scale that never changes."""

    def __init__(self, loss_scale):
        """Makes a manager.

        Args:
          loss_scale: number, at least 1.

        Raises:
          ValueError: loss_scale is no number, or less than 1.
        """
        _check_number("loss_scale", loss_scale, minimum=1)
        self._loss_scale = loss_scale

    def get_loss_scale(self):
        """Returns the loss scale, a float32 scalar Tensor."""
        return tf.constant(self._loss_scale, tf.float32)

    def update_loss_scale(self, finite_grads):
        """Returns an operation that does nothing."""
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A loss scale that grows while gradients are finite and shrinks otherwise.

    The equations are at the top of this file,
    contrib_opt/mixed_precision/loss_scale_manager.py.
    """

    def __init__(
        self,
        init_loss_scale,
        incr_every_n_steps,
        decr_every_n_nan_or_inf=2,
        incr_ratio=2,
        decr_ratio=0.8,
    ):
        """Makes a manager, and its variables loss_scale, good_steps and bad_steps.

        Args:
          init_loss_scale: number or scalar Tensor, the loss scale at the start.
          incr_every_n_steps: int, the finite steps in a row before it grows.
          decr_every_n_nan_or_inf: int, the steps with an inf or a NaN, in a row or
            not, before it shrinks.
          incr_ratio: number above 1 by which it is multiplied to grow.
          decr_ratio: number below 1 by which it is multiplied to shrink.

        Raises:
          ValueError: an argument is no number or not in its range.
        """
        check_scalar("init_loss_scale", init_loss_scale, kinds="a number or Tensor")
        _check_number("incr_every_n_steps", incr_every_n_steps, minimum=1)
        _check_number("decr_every_n_nan_or_inf", decr_every_n_nan_or_inf, minimum=1)
        _check_number("incr_ratio", incr_ratio, minimum=1)
        _check_number("decr_ratio", decr_ratio, minimum=0)
        if decr_ratio > 1:
            raise ValueError(f"decr_ratio must be 1 or less, got {decr_ratio!r}.")
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio

        def variable(name, value, dtype):
            return tf.Variable(
                tf.cast(value, dtype),
                name=name,
                dtype=dtype,
                trainable=False,
                # All replicas have the same.
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )

        self._loss_scale = variable("loss_scale", init_loss_scale, tf.float32)
        self._good_steps = variable("good_steps", 0, tf.int32)
        self._bad_steps = variable("bad_steps", 0, tf.int32)

    def get_loss_scale(self):
        """Returns the loss scale, a float32 scalar Variable."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads):
        """Returns the operation that updates the loss scale."""
        variables = (self._loss_scale, self._good_steps, self._bad_steps)
        before = [tf.identity(var.read_value()) for var in variables]
        finite = tf.convert_to_tensor(finite_grads)
        settings = (
            self._incr_every_n_steps,
            self._decr_every_n_nan_or_inf,
            self._incr_ratio,
            self._decr_ratio,
        )
        if tf.executing_eagerly() and not tf.distribute.has_strategy():
            state = _compiled_next_state(settings)([*before, finite])
        else:
            state = next_state(*before, finite, *settings)
        # All is read before anything is written.
        with tf.control_dependencies(state):
            updates = [
                var.assign(new, read_value=False) for var, new in zip(variables, state)
            ]
            return tf.group(*updates, name="update_loss_scale")


def next_state(
    loss_scale,
    good_steps,
    bad_steps,
    finite,
    incr_every_n_steps,
    decr_every_n_nan_or_inf,
    incr_ratio,
    decr_ratio,
):
    """The triple (loss_scale, good_steps, bad_steps) after a step."""
    grows = finite & (good_steps + 1 >= incr_every_n_steps)
    shrinks = ~finite & (bad_steps + 1 >= decr_every_n_nan_or_inf)
    larger = loss_scale * incr_ratio
    larger = tf.where(tf.math.is_finite(larger), larger, loss_scale)
    smaller = tf.maximum(loss_scale * decr_ratio, 1.0)
    next_scale = tf.where(grows, larger, tf.where(shrinks, smaller, loss_scale))
    changed, zero = grows | shrinks, tf.zeros_like(good_steps)
    next_good = tf.where(finite & ~changed, good_steps + 1, zero)
    next_bad = tf.where(finite, bad_steps, bad_steps + 1)
    return next_scale, next_good, tf.where(changed, zero, next_bad)


@functools.lru_cache(maxsize=16)
def _compiled_next_state(settings):
    """`next_state` as one call in eager mode: of the list of its first arguments."""
    specs = [tf.TensorSpec([], d) for d in (tf.float32, tf.int32, tf.int32, tf.bool)]
    function = tf.function(
        lambda *state: next_state(*state, *settings), autograph=False
    )
    return _tf.eager_caller(function.get_concrete_function(*specs))


def _check_number(name, value, minimum):
    if not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    check_scalar(name, value, minimum=minimum)

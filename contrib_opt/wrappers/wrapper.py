"""What every optimizer shares that wraps another one: it hands on what it leaves alone.

A wrapper subclasses `WrapperOptimizer` and overrides `_apply_checked`, and
`compute_gradients` if it changes that too. Everything else is the wrapped optimizer's:
slots, variables, hyperparameters, and its part of checkpoints.
"""

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.gradients import (
    checked_global_step,
    checked_gradients,
    pairs_of,
)
from contrib_opt.optimizers.tensorflow_step import apply_gradients
from contrib_opt.optimizers.threads import one_at_a_time
from contrib_opt.optimizers.unwrap import tensorflow_variable


class WrapperOptimizer(_tf.delegating_to_optimizer(), tf.train.Optimizer):
    """A `tf.compat.v1.train.Optimizer` around another one, `self._optimizer`.

    In the object-based checkpoints of `tf.train.Checkpoint` it is taken for the wrapped
    optimizer, so that each restores from those of the other. Variables of the wrapper's
    own get there by `_tf.track(self, variable, name)`.
    """

    def __init__(self, opt, name, use_locking=False):
        """Wraps `opt`.

        Raises:
          TypeError: `opt` is no `tf.compat.v1.train.Optimizer`.
        """
        check_optimizer("opt", opt)
        self._optimizer = opt
        super().__init__(use_locking, name)

    def compute_gradients(self, loss, var_list=None, *args, **kwargs):
        """The wrapped optimizer's `compute_gradients`; also takes Keras 3 variables."""
        if var_list is not None:
            var_list = [tensorflow_variable(v) for v in tf.nest.flatten(var_list)]
        return self._optimizer.compute_gradients(loss, var_list, *args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Applies gradients through the wrapped optimizer, all or nothing.

        Args:
          grads_and_vars: list of (gradient, variable) pairs. A gradient is a Tensor
            of its variable's shape and dtype, IndexedSlices, or None.
          global_step: variable to increment by one after the update, or None.
          name: name of the operation that is returned.

        Returns:
          The operation that applies the gradients; None in eager mode.

        Raises:
          ValueError: no variable has a gradient, or a gradient has another shape
            or dtype than its variable.
          TypeError: grads_and_vars are no pairs, global_step is no variable, or a
            gradient cannot be made a Tensor.
          InvalidArgumentError: IndexedSlices have an index out of range, or a shape
            that was unknown before does not fit (when the step runs).
            No variable and no slot has changed then.
        """
        pairs = pairs_of(grads_and_vars)
        if all(grad is None for grad, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable: "
                f"{[var.name for _, var in pairs]}."
            )
        global_step = checked_global_step(global_step)
        checks = []
        if not tf.distribute.in_cross_replica_context():
            pairs, checks = checked_gradients(pairs)
        with one_at_a_time(self), tf.control_dependencies(checks):
            return self._apply_checked(pairs, global_step, name)

    def _apply_checked(self, grads_and_vars, global_step, name):
        """`apply_gradients`, for a subclass to change.

        The gradients fit. grads_and_vars itself, and not a copy, is best handed on:
        another optimizer of this package then does not check them again.
        """
        return apply_gradients(self._optimizer, grads_and_vars, global_step, name)

    def get_slot(self, var, name):
        """The wrapped optimizer's slot `name` of `var`, or None."""
        return self._optimizer.get_slot(tensorflow_variable(var), name)

    def get_slot_names(self):
        """The names of the wrapped optimizer's slots."""
        return self._optimizer.get_slot_names()

    def variables(self):
        """The variables of the wrapped optimizer, and the wrapper's own after them."""
        return self._optimizer.variables() + super().variables()


def check_optimizer(name, value):
    """Raises TypeError if `value` cannot be the optimizer that argument `name` is."""
    if not isinstance(value, tf.train.Optimizer):
        raise TypeError(
            f"{name} must be a tf.compat.v1.train.Optimizer, got {value!r}."
        )

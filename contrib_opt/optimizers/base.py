"""What every update rule shares: hyperparameters, checks, one update for two kinds.

A rule subclasses `ContribOptimizer`, lists its hyperparameters and writes
`_create_slots`, `_update_dense` and `_update_sparse`. The rest (`minimize`,
`GATE_*`, slots, distribution, checkpoints) is `tf.compat.v1.train.Optimizer`'s.
"""

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers import eager_step
from contrib_opt.optimizers.conditional import first_value
from contrib_opt.optimizers.gradients import (
    checked_global_step,
    checked_gradients,
    pairs_of,
)
from contrib_opt.optimizers.hyperparameters import evaluate
from contrib_opt.optimizers.threads import one_at_a_time
from contrib_opt.optimizers.unwrap import tensorflow_variable


class ContribOptimizer(tf.train.Optimizer):
    """A `tf.compat.v1.train.Optimizer` whose rule is written once.

    For a subclass to write:
      `_hyperparameters`: their names; `__init__` stores each one, as the user gave
        it, in the attribute of that name with an underscore in front.
      `_create_slots(var_list)`: as in the base class.
      `_update_dense(grad, var)`: the update of a variable, ref or resource.
      `_update_sparse(grad, var, indices)`: the update of the rows `indices`, which
        are unique; `grad` has a row for each of them.

    In eager mode a step becomes one compiled function, whose inputs are the gradients
    and the hyperparameters (contrib_opt/optimizers/eager_step.py). What else a rule
    takes from outside of a step belongs into `_values_of_step`, if it is a value, or
    into `_step_settings`, if Python decides by it.
    """

    _hyperparameters = ()

    def compute_gradients(self, loss, var_list=None, *args, **kwargs):
        """As in `tf.compat.v1.train.Optimizer`; also takes Keras 3 variables."""
        if var_list is not None:
            var_list = [tensorflow_variable(v) for v in tf.nest.flatten(var_list)]
        return super().compute_gradients(loss, var_list, *args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, **kwargs):
        """As in `tf.compat.v1.train.Optimizer`, but all or nothing.

        Args:
          grads_and_vars: list of (gradient, variable) pairs. A gradient is a Tensor
            of its variable's shape and dtype, IndexedSlices, or None.
          global_step: variable to increment by one after the update, or None.
          name: name of the operation that is returned.
          **kwargs: what else the base class of the installed TensorFlow takes.

        Returns:
          The operation that applies the gradients; None in eager mode.

        Raises:
          ValueError: no variable has a gradient, or a gradient has another shape
            or dtype than its variable.
          TypeError: grads_and_vars are no pairs, global_step is no variable, or a
            gradient cannot be made a Tensor.
          RuntimeError: called in the cross-replica context of a strategy.
          InvalidArgumentError: IndexedSlices have an index out of range, or a shape
            that was unknown before does not fit (when the step runs).
            No variable and no slot has changed then.
        """
        pairs = pairs_of(grads_and_vars)
        global_step = checked_global_step(global_step)
        if kwargs or not eager_step.can_compile(self):
            return self._take_step(pairs, global_step, name, **kwargs)
        steps = vars(self).get("_compiled_steps")
        if steps is None:
            new = eager_step.CompiledSteps()
            steps = vars(self).setdefault("_compiled_steps", new)
        return steps.take(self, pairs, global_step, name)

    def _take_step(self, pairs, global_step, name=None, values=None, **kwargs):
        """`apply_gradients`, operation by operation.

        Args:
          pairs, global_step, name, **kwargs: as there, as `pairs_of` and
            `checked_global_step` return them.
          values: what `_values_of_step` returned in this step, or None.
        """
        checks = []
        if not tf.distribute.in_cross_replica_context():
            pairs, checks = checked_gradients(pairs)
        with one_at_a_time(self):
            self._step_pairs = pairs
            self._step_given = values
            self._step_values = values or {}
            self._step_counter = global_step
            try:
                with tf.control_dependencies(checks):
                    return super().apply_gradients(pairs, global_step, name, **kwargs)
            finally:
                self._step_given = self._step_counter = None
                self._step_values = {}
                self._step_pairs, self._step_updates = (), {}

    def get_slot(self, var, name):
        """As in `tf.compat.v1.train.Optimizer`; also takes Keras 3 variables."""
        return super().get_slot(tensorflow_variable(var), name)

    def variables(self):
        """The slots and the optimizer's other variables, sorted by name.

        As in `tf.compat.v1.train.Optimizer`, which in eager mode leaves out what was
        made in a replica of a MirroredStrategy.
        """
        if not tf.executing_eagerly():
            return super().variables()
        made = [v for slots in self._slots.values() for v in slots.values()]
        made += self._non_slot_variables()
        return sorted(filter(_tf.is_eager, made), key=lambda var: var.name)

    def _create_or_restore_slot_variable(self, variable, **kwargs):
        variable = tensorflow_variable(variable)
        # A checkpoint is restored outside of any strategy. The base class would make
        # missing slots at once, on one device; inside the strategy it waits for
        # `_create_slots`.
        restore = super()._create_or_restore_slot_variable
        strategy = getattr(variable, "distribute_strategy", None)
        if strategy is None or tf.distribute.has_strategy():
            return restore(variable=variable, **kwargs)
        with strategy.scope():
            return restore(variable=variable, **kwargs)

    def _create_non_slot_variable(self, initial_value, name, colocate_with):
        # A hyperparameter may be a variable that is initialized in the same run. The
        # base class reads it too soon; of ref variables TensorFlow takes care.
        if hasattr(initial_value, "handle"):
            initial_value = first_value(initial_value)
        return super()._create_non_slot_variable(initial_value, name, colocate_with)

    # The values of the hyperparameters while a step is built or run, so that each
    # callable is called once a step and not once a variable.
    _step_values = {}
    _step_given = None
    # The global step of the running `apply_gradients`.
    _step_counter = None
    # The checked pairs of that step. A rule that computes for several variables at once
    # does so in `_prepare`, and keeps here what `_update_dense` then returns.
    _step_pairs = ()
    _step_updates = {}

    def _values_of_step(self, global_step):
        """What the operations of a step start from, beside variables and gradients.

        Args:
          global_step: what `apply_gradients` got for it.

        Returns:
          dict from names to numbers, Tensors or Variables; `_hyper` gives them.
        """
        del global_step
        return {
            name: evaluate(getattr(self, "_" + name)) for name in self._hyperparameters
        }

    def _prepare(self):
        values = self._step_given
        if values is None:
            values = self._values_of_step(self._step_counter)
        self._step_values = values

    def _step_settings(self, variables):
        """What Python decides by while it builds a step on `variables`, hashable."""
        del variables
        return eager_step.settings(self)

    def _hyper(self, name):
        """The value of hyperparameter `name` in this step, or now if outside one."""
        if name in self._step_values:
            return self._step_values[name]
        return evaluate(getattr(self, "_" + name))

    def _update_dense(self, grad, var):
        raise NotImplementedError

    def _update_sparse(self, grad, var, indices):
        raise NotImplementedError

    # The base class's four entry points become two.

    def _apply_dense(self, grad, var):
        return self._update_dense(grad, var)

    def _resource_apply_dense(self, grad, var):
        return self._update_dense(grad, var)

    def _apply_sparse(self, grad, var):
        return self._update_slices(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._update_slices(grad, var, indices)

    def _update_slices(self, grad, var, indices):
        if var.shape.is_fully_defined() and var.shape.num_elements() == 0:
            # TensorFlow refuses to scatter rows that have no elements.
            return self._update_dense(tf.zeros(var.shape, grad.dtype), var)
        return self._update_sparse(grad, var, indices)

"""The kind for Keras 3, on its TensorFlow backend.

Keras 3 has a LossScaleOptimizer with another contract: its trainer calls `scale_loss`,
then `apply` with scaled gradients, and so must a training loop. Loops of Keras 2 call
`get_scaled_loss` and `get_unscaled_gradients`, then `apply_gradients` with unscaled
gradients. Here both work, by turns if need be: `scale_loss` notes that the gradients
come scaled, and the next `apply` of the same thread unscales them.
"""

import tensorflow as tf

import keras
from contrib_opt import _tf
from contrib_opt.keras.mixed_precision import (
    applying,
    gradients,
    keras3_checks,
    keras3_pickling,
    keras3_state,
    names,
    rule,
    strategies,
)
from contrib_opt.keras.mixed_precision.scaled_here import ScaledHere
from contrib_opt.optimizers.unwrap import tensorflow_variable

_DelegatingTrackable = _tf.delegating_trackable()


@names.shown("LossScaleOptimizer")
class Keras3LossScaleOptimizer(
    keras3_state.State,
    keras3_pickling.Pickled,
    _DelegatingTrackable,
    keras.mixed_precision.LossScaleOptimizer,
):
    """A LossScaleOptimizer of Keras 3 that also keeps the contract of Keras 2."""

    def __init__(
        self,
        inner_optimizer,
        dynamic=True,
        initial_scale=None,
        dynamic_growth_steps=None,
    ):
        of_a_subclass = set(vars(self))
        keras3_checks.check_optimizer(inner_optimizer)
        initial_scale, dynamic_growth_steps = keras3_checks.with_defaults(
            dynamic, initial_scale, dynamic_growth_steps
        )
        strategies.check_supported()

        _DelegatingTrackable.__init__(self, inner_optimizer)
        keras.mixed_precision.LossScaleOptimizer.__init__(
            self, inner_optimizer, initial_scale, dynamic_growth_steps
        )
        self._wrapped = inner_optimizer
        keras3_checks.note_wrapped(inner_optimizer)
        self._dynamic = dynamic
        self._was_scaled = self._was_unscaled = False
        self._scaled_here = ScaledHere()
        if dynamic:
            self._create_scale_and_counter()
        made = {*vars(self), "_own_names", "_waiting", "_built_for", "built"}
        self._own_names = frozenset(made - of_a_subclass)

    def build(self, var_list):
        """Makes the slots of the wrapped optimizer."""
        var_list = list(var_list)
        self._built_for = var_list
        if not self._wrapped.built:
            self._wrapped.build(var_list)
            self._take_waiting()
        self.built = True

    # ------------------------------------------------------------------ the contract

    @property
    def dynamic(self):
        """Whether the loss scale changes."""
        return self._dynamic

    @property
    def loss_scale(self):
        """The loss scale now, a float32 scalar tensor."""
        value = self.dynamic_scale if self._dynamic else self.initial_scale
        return tf.convert_to_tensor(tensorflow_variable(value), tf.float32)

    @property
    def dynamic_counter(self):
        """The finite steps since the loss scale changed, a variable; None if fixed."""
        return tensorflow_variable(self.step_counter) if self._dynamic else None

    def get_scaled_loss(self, loss):
        """`loss`, a tensor or a callable that returns one, times the loss scale."""
        self._was_scaled = True
        self._scaled_here.forget()
        return rule.scaled_loss(loss, lambda: self.loss_scale)

    def get_unscaled_gradients(self, grads):
        """The list `grads` over the loss scale; None and IndexedSlices are kept."""
        self._was_unscaled = True
        self._scaled_here.forget()
        return rule.unscaled_gradients(grads, self.loss_scale)

    def scale_loss(self, loss):
        """As Keras 3's trainer calls it: the next `apply` gets scaled gradients."""
        if loss.dtype.size < 4:
            # Here nothing would stop a loss times 2 ** 15 from overflowing.
            loss = tf.cast(loss, tf.float32)
        # By the name that subclasses override, as Keras 2's `fit` does.
        scaled = self.get_scaled_loss(loss)
        self._scaled_here.note()
        return scaled

    def minimize(self, loss, var_list, grad_loss=None, name=None, tape=None):
        """Computes, unscales and applies the gradients of `loss`.

        Args:
          loss: a callable, or a tensor that `tape` recorded.
          var_list: variables, one variable, or a callable that returns them.
          grad_loss: the gradient of `loss` itself, a tensor of its shape; default ones.
          name: ignored.
          tape: the `tf.GradientTape`, if `loss` is a tensor.

        Returns:
          `iterations`.
        """
        applying.check_not_in_graph()
        grads, variables = gradients.by_tape(self, loss, var_list, grad_loss, tape)
        return self.apply_gradients(zip(grads, variables))

    def get_gradients(self, loss, params):
        """The unscaled gradients of the tensor `loss` in a graph of TensorFlow 1."""
        return gradients.in_graph(self, loss, params)

    def apply_gradients(
        self, grads_and_vars, name=None, experimental_aggregate_gradients=True
    ):
        """Applies gradients, unless one of them is inf or NaN; updates the loss scale.

        Args:
          grads_and_vars: list of (gradient, variable): unscaled gradients, or
            scaled ones if `scale_loss` scaled the loss.
          name: ignored.
          experimental_aggregate_gradients: must be True where there are replicas.

        Returns:
          `iterations`.

        Raises:
          ValueError: called in the cross-replica context of a strategy, or under a
            strategy that is not supported, or no variable has a gradient.
          RuntimeError: called in a graph of TensorFlow 1.
        """
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if not experimental_aggregate_gradients and replicas > 1:
            raise ValueError(
                "experimental_aggregate_gradients=False is not supported: optimizers "
                "of Keras 3 always sum the gradients of the replicas"
            )
        grads_and_vars = applying.pairs(grads_and_vars)
        if grads_and_vars:
            self.apply(*zip(*grads_and_vars))
        return self.iterations

    def apply(self, grads, trainable_variables=None):
        """`apply_gradients`, with gradients and variables in lists of their own."""
        if tf.distribute.in_cross_replica_context():
            raise ValueError(
                "apply_gradients() must be called in a replica context, such as in a "
                "function that strategy.run() runs"
            )
        applying.check_not_in_graph()
        strategies.check_supported()
        grads = list(grads)
        if not grads:
            return
        if all(grad is None for grad in grads):
            raise ValueError("No gradients provided for any variable.")
        variables = self._built_for if self.built else None
        if trainable_variables is not None:
            variables = list(trainable_variables)
            if not self.built:
                # Outside of the function that is being traced: slots made inside would
                # be initialized in a branch of it, and replicas cannot join in one.
                with tf.init_scope():
                    self.build(variables)
        if self._scaled_here.take():
            grads = self._unscaled(grads, variables)
        else:
            self._warn_if_forgotten()
        if self._dynamic:
            self._apply_if_finite(grads, variables)
        else:
            self._wrapped.apply(grads, variables)

    # --------------------------------------------------------------------- the steps

    def _unscaled(self, grads, variables):
        # Variables of float8 layers are given their values as gradients.
        values = [getattr(var, "overwrite_with_gradient", False) for var in variables]
        unscaled = self.get_unscaled_gradients(
            [None if is_value else grad for grad, is_value in zip(grads, values)]
        )
        return [
            grad if is_value else small
            for grad, small, is_value in zip(grads, unscaled, values)
        ]

    def _apply_if_finite(self, grads, variables):
        finite = rule.all_finite(grads)
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            # One replica's NaN must stop them all.
            context = tf.distribute.get_replica_context()
            bad = tf.cast(tf.logical_not(finite), tf.float32)
            finite = tf.equal(context.all_reduce(tf.distribute.ReduceOp.SUM, bad), 0.0)

        def update(grads):
            self._wrapped.apply(grads, variables)

        if not _tf.can_merge_replicas():
            self._step(finite, lambda: update(grads))
            return

        def joined(strategy, finite, grads):
            # All replicas have the same.
            finite = strategy.experimental_local_results(finite)[0]
            run = strategy.extended.call_for_each_replica
            self._step(finite, lambda: run(update, args=(grads,)))

        tf.distribute.get_replica_context().merge_call(joined, args=(finite, grads))

    def _step(self, finite, update):
        tf.cond(finite, update, self._count_skipped)
        scale, counter = self.dynamic_scale, self.step_counter
        scale, counter = tensorflow_variable(scale), tensorflow_variable(counter)
        next_scale, next_counter = rule.next_state(
            tf.convert_to_tensor(scale),
            tf.convert_to_tensor(counter),
            finite,
            self.dynamic_growth_steps,
        )
        scale.assign(next_scale)
        counter.assign(next_counter)

    def _count_skipped(self):
        # Gradients that are being accumulated wait for a certain number of steps.
        if not self.gradient_accumulation_steps:
            self.iterations.assign_add(1)

    def _warn_if_forgotten(self):
        forgotten = []
        if not self._was_scaled:
            forgotten.append("get_scaled_loss()")
        if not self._was_unscaled:
            forgotten.append("get_unscaled_gradients()")
        if forgotten:
            tf.get_logger().warning(
                "apply_gradients() of a LossScaleOptimizer was called, but %s never "
                "was. Gradients may underflow, or have the wrong size: a training loop "
                "must call get_scaled_loss(), then get_unscaled_gradients().",
                " and ".join(forgotten),
            )

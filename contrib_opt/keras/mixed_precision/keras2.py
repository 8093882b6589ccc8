"""The kinds for Keras 2: `tf_keras`, and `tf.keras` until TensorFlow 2.15.

Keras 2 still has the LossScaleOptimizer, so that little is left to do: a legacy
optimizer gets all of the contract, a new one lacks the names that this file adds.
"""

import functools

import tensorflow as tf

from contrib_opt.keras import _keras
from contrib_opt.keras.mixed_precision import (
    applying,
    gradients,
    hyperparameters,
    names,
)


@functools.lru_cache(maxsize=None)
def base(keras, legacy):
    """The LossScaleOptimizer of `keras` for optimizers of one of its generations."""
    optimizers = keras.optimizers
    wanted = optimizers.legacy.Optimizer if legacy else optimizers.Optimizer
    for cls in keras.mixed_precision.LossScaleOptimizer.__subclasses__():
        if issubclass(cls, wanted):
            if legacy:
                return cls
            return type(cls)("Keras2LossScaleOptimizer", (_New, cls), {})
    raise NotImplementedError(
        f"Keras {keras.__version__} has no LossScaleOptimizer that wraps its "
        f"{'legacy' if legacy else 'new'} optimizers"
    )


@names.shown("LossScaleOptimizer")
class _New(hyperparameters.Delegating):
    """What the LossScaleOptimizer for new optimizers lacks of the one for legacy ones.

    `inner_optimizer`, the scale and the state of loss scaling are the base class's.
    """

    name = hyperparameters.delegated("name")
    clipnorm = hyperparameters.delegated("clipnorm")
    global_clipnorm = hyperparameters.delegated("global_clipnorm")
    clipvalue = hyperparameters.delegated("clipvalue")
    lr = hyperparameters.Delegating.lr

    def __init__(self, inner_optimizer, *args, **kwargs):
        super().__init__(inner_optimizer, *args, **kwargs)
        # Past the attribute tracking: it is in checkpoints as this object itself.
        self.__dict__["_wrapped"] = inner_optimizer

    def build(self, var_list):
        """Makes the slots of the wrapped optimizer."""
        self.__dict__["_built_for"] = list(var_list)
        return super().build(var_list)

    def minimize(self, loss, var_list, grad_loss=None, name=None, tape=None):
        """Computes, unscales and applies the gradients of `loss`.

        Args:
          loss: a callable, or a tensor that `tape` recorded.
          var_list: variables, one variable, or a callable that returns them.
          grad_loss: the gradient of `loss` itself, a tensor of its shape; default ones.
          name: ignored.
          tape: the `tf.GradientTape`, if `loss` is a tensor.
        """
        applying.check_not_in_graph()
        if grad_loss is not None:
            grads, variables = gradients.by_tape(self, loss, var_list, grad_loss, tape)
            return self.apply_gradients(zip(grads, variables))
        if not callable(var_list):
            var_list = tf.nest.flatten(var_list)
        return super().minimize(loss, var_list, tape)

    def apply_gradients(
        self,
        grads_and_vars,
        name=None,
        experimental_aggregate_gradients=True,
        **kwargs,
    ):
        """Applies unscaled gradients, unless one is inf or NaN; updates the loss scale.

        Args:
          grads_and_vars: list of (gradient, variable).
          name: ignored.
          experimental_aggregate_gradients: whether to sum those of the replicas.
          **kwargs: what this Keras takes besides, by name.
        """
        applying.check_not_in_graph()
        grads_and_vars = applying.pairs(grads_and_vars)
        if not grads_and_vars:
            return self.iterations
        return super().apply_gradients(
            grads_and_vars,
            experimental_aggregate_gradients=experimental_aggregate_gradients,
            **kwargs,
        )

    def get_gradients(self, loss, params):
        """The unscaled gradients of the tensor `loss` in a graph of TensorFlow 1."""
        return gradients.in_graph(self, loss, params)

    def save_own_variables(self, store):
        """Writes the state: the wrapped optimizer's, then loss scale and counter."""
        super().save_own_variables(store)
        if self.dynamic:
            count = len(self.weights)
            store[str(count)] = self.loss_scale.numpy()
            store[str(count + 1)] = self.dynamic_counter.numpy()

    def load_own_variables(self, store):
        """Reads what `save_own_variables` wrote, here or in Keras's own class."""
        count = len(self.weights)
        state = {key: store[key] for key in store.keys()}
        if self.dynamic and len(state) == count + 2:
            self.dynamic_counter.assign(state.pop(str(count + 1))[()])
            _keras.loss_scale_variable(self).assign(state.pop(str(count))[()])
        super().load_own_variables(state)

"""Loss scaling for `tf.compat.v1.train` optimizers.

    g = (1 / s) * d(s * L) / dw

for the loss L and the loss scale s, of which a LossScaleManager takes care. If a
gradient has an inf or a NaN, the step changes no weight, no slot and no global step.

Source: `tf.contrib.mixed_precision.LossScaleOptimizer` of TensorFlow 1.15.5;
Micikevicius et al. 2018, "Mixed Precision Training" (https://arxiv.org/abs/1710.03740).

Deviations from TensorFlow 1.15: `get_slot`, `get_slot_names`, `variables` and
`get_name` work (AttributeError there), and so do variables without a gradient
(ValueError there), IndexedSlices that `apply_gradients` is given, ref variables in a
graph of TensorFlow 2, and strategies.

As in TensorFlow 1.15, `compute_gradients` returns dense gradients only: for a table of
which a step sees some rows, the others have a gradient of 0, and the wrapped optimizer
updates them with it (momentum goes on, a lazy rule is not lazy).
"""

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.mixed_precision.loss_scale_manager import LossScaleManager
from contrib_opt.mixed_precision.scaling import (
    all_finite,
    scaled_loss,
    unscaled_gradients,
)
from contrib_opt.optimizers.conditional import update_if
from contrib_opt.optimizers.tensorflow_step import apply_gradients
from contrib_opt.wrappers.wrapper import WrapperOptimizer


class LossScaleOptimizer(WrapperOptimizer):
    """Scales the loss, so that gradients in float16 do not underflow to zero.

        manager = ExponentialUpdateLossScaleManager(2 ** 15, incr_every_n_steps=2000)
        optimizer = LossScaleOptimizer(LARSOptimizer(0.1), manager)
        train_op = optimizer.minimize(loss, global_step)

    `compute_gradients` scales and unscales; what a program does with the gradients
    before `apply_gradients`, such as clipping, sees unscaled ones. Gradients from
    `tf.gradients` are not scaled.
    """

    def __init__(self, opt, loss_scale_manager):
        """Wraps an optimizer.

        Args:
          opt: the `tf.compat.v1.train.Optimizer` that applies the gradients.
          loss_scale_manager: the LossScaleManager.

        Raises:
          TypeError: an argument is of another type.
        """
        super().__init__(opt, name="LossScaleOptimizer")
        if not isinstance(loss_scale_manager, LossScaleManager):
            raise TypeError(
                "loss_scale_manager must be a LossScaleManager, such as "
                f"FixedLossScaleManager(128), got {loss_scale_manager!r}."
            )
        self._loss_scale_manager = loss_scale_manager
        state = tf.Module()
        self._manager_variables = []
        for name, value in vars(loss_scale_manager).items():
            if hasattr(value, "assign"):
                setattr(state, name.lstrip("_"), value)
                self._manager_variables.append(value)
        _tf.track(self, state, "loss_scale_manager")

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=tf.train.Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """As in `tf.compat.v1.train.Optimizer`; the gradients are unscaled."""
        # Read once: the loss and its gradients must be scaled alike.
        scale = tf.identity(self._loss_scale_manager.get_loss_scale())
        grads_and_vars = super().compute_gradients(
            scaled_loss(loss, lambda: scale),
            var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        grads, variables = zip(*grads_and_vars)
        # Rows become a dense gradient, as in TensorFlow 1.15.
        grads = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        return list(zip(unscaled_gradients(grads, scale), variables))

    def _apply_checked(self, grads_and_vars, global_step, name):
        grads, variables = zip(*grads_and_vars)

        def update(grads):
            pairs = zip(grads, variables)
            return apply_gradients(self._optimizer, pairs, global_step, name)

        finite = update_if(all_finite(grads), update, list(grads))
        with tf.control_dependencies([finite]):
            update = self._loss_scale_manager.update_loss_scale(finite)
        return None if tf.executing_eagerly() else tf.group(finite, update)

    def variables(self):
        """The variables of the wrapped optimizer, then the manager's."""
        return super().variables() + self._manager_variables

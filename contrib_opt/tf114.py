"""What TensorFlow 1.14 did differently.

LARS, in TensorFlow 1.12 to 1.14: the weights are not decayed (weight_decay only
dampens the trust ratio), and the rate multiplies the velocity, not the gradient.
With the symbols of contrib_opt/optimizers/lars.py:

    v <- momentum * v + g
    w <- w - learning_rate * trust * v
                      (Nesterov: w <- w - learning_rate * trust * (g + momentum * v))

Source: `tf.contrib.opt.LARSOptimizer` of TensorFlow 1.14.0.
"""

from contrib_opt.optimizers import lars
from contrib_opt.optimizers.hyperparameters import as_dtype


class LARSOptimizer(lars.LARSOptimizer):
    """LARS as TensorFlow 1.12 to 1.14 computed it, to go on with such a training.

    Arguments, errors and slots are those of `contrib_opt.LARSOptimizer`, and so are
    the deviations; the equations are at the top of this file, contrib_opt/tf114.py.
    """

    def compute_lr(self, grad, var):
        """The learning rate of one variable.

        Args:
          grad: Tensor, the gradient of `var`, of the same shape.
          var: the variable.

        Returns:
          A scalar Tensor: the scaled learning rate; for a skipped variable the
          unscaled one. float32 for a half-precision variable, of the variable's
          type for all others.
        """
        ratio = self.trust_ratio(grad, var)
        return as_dtype(self._hyper("learning_rate"), ratio.dtype) * ratio

    def _update_dense(self, grad, var):
        return self._apply_momentum(grad, var, self.compute_lr(grad, var))

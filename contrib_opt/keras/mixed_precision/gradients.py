"""Gradients of a loss that a LossScaleOptimizer scales, and unscaled by it again."""

import tensorflow as tf

from contrib_opt.optimizers.unwrap import tensorflow_variable


def by_tape(optimizer, loss, var_list, grad_loss=None, tape=None):
    """The unscaled gradients that a tape gives, and the variables, in two lists.

    Args:
      optimizer: the LossScaleOptimizer.
      loss: a callable, or a tensor that `tape` recorded.
      var_list: variables, one variable, or a callable that returns them.
      grad_loss: the gradient of `loss` itself, or None for ones.
      tape: the `tf.GradientTape`, if `loss` is a tensor.

    Raises:
      ValueError: `loss` is a tensor, and there is no tape.
    """
    if not callable(loss) and tape is None:
        raise ValueError("`tape` must be given when `loss` is a tensor")
    with tape or tf.GradientTape() as tape:
        if callable(loss):
            if not callable(var_list):
                tape.watch(_without_keras(tf.nest.flatten(var_list)))
            loss = loss()
        scaled = optimizer.get_scaled_loss(loss)
    variables = tf.nest.flatten(var_list() if callable(var_list) else var_list)
    grads = tape.gradient(scaled, _without_keras(variables), grad_loss)
    return optimizer.get_unscaled_gradients(grads), variables


def in_graph(optimizer, loss, params):
    """The unscaled gradients of the tensor `loss` in a graph of TensorFlow 1.

    Raises:
      ValueError: the loss does not depend on one of `params`.
    """
    params = tf.nest.flatten(params)
    grads = tf.gradients(optimizer.get_scaled_loss(loss), _without_keras(params))
    for grad, param in zip(grads, params):
        if grad is None:
            raise ValueError(f"The loss has no gradient with respect to {param}")
    return optimizer.get_unscaled_gradients(grads)


def _without_keras(variables):
    return [tensorflow_variable(variable) for variable in variables]

"""Steps of TensorFlow's own optimizers, for the wrappers around them.

In eager mode they are compiled as ours are (contrib_opt/optimizers/eager_step.py).
TensorFlow's optimizers evaluate their hyperparameters in `_prepare`, and keep the
Tensors as attributes until the step is done: these become inputs.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers import eager_step
from contrib_opt.optimizers.gradients import pairs_of
from contrib_opt.optimizers.threads import one_at_a_time


def apply_gradients(optimizer, grads_and_vars, global_step=None, name=None):
    """`optimizer.apply_gradients`, of any optimizer, with gradients that fit."""
    cls = type(optimizer)
    if (
        getattr(tf.train, cls.__name__, None) is not cls
        or cls.apply_gradients is not tf.train.Optimizer.apply_gradients
        or not eager_step.can_compile(optimizer)
    ):
        return optimizer.apply_gradients(grads_and_vars, global_step, name)
    step = vars(optimizer).get("_step_of_wrapper")
    if step is None:
        step = vars(optimizer).setdefault("_step_of_wrapper", _Step(optimizer))
    return step.compiled_steps.take(step, pairs_of(grads_and_vars), global_step, name)


def tensors_of(optimizer):
    """The attributes that are Tensors, by name: what `_prepare` leaves for a step."""
    return {
        name: value
        for name, value in vars(optimizer).items()
        if tf.is_tensor(value) and not hasattr(value, "assign")
    }


class _Step:
    """What `CompiledSteps` asks of an optimizer, for one of TensorFlow's."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self.compiled_steps = eager_step.CompiledSteps()

    def _values_of_step(self, global_step):
        del global_step
        self._optimizer._prepare()
        return tensors_of(self._optimizer)

    def _step_settings(self, variables):
        del variables
        return eager_step.settings(self._optimizer)

    def _take_step(self, pairs, global_step, name=None, values=None):
        optimizer = self._optimizer
        attributes = vars(optimizer)
        with one_at_a_time(self):
            if values is None:
                return optimizer.apply_gradients(pairs, global_step, name)
            tensors = tensors_of(optimizer)
            attributes["_prepare"] = lambda: attributes.update(values)
            try:
                return optimizer.apply_gradients(pairs, global_step, name)
            finally:
                del attributes["_prepare"]
                # No Tensor of a function's graph stays.
                attributes.update(tensors)

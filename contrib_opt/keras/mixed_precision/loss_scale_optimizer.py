"""The two classes that users name. What they do is in the kinds, one for each Keras.

A call of either makes an object of a class that derives from the class called and from
the LossScaleOptimizer of the Keras to which the wrapped optimizer belongs.
"""

import inspect

from contrib_opt.keras.mixed_precision import arguments, kinds


def _show_signature(cls):
    # Otherwise help() shows the arguments of __new__.
    signature = inspect.signature(cls.__init__)
    parameters = list(signature.parameters.values())[1:]
    cls.__signature__ = signature.replace(parameters=parameters)


class LossScaleOptimizer:
    """Scales the loss, so that gradients in float16 do not underflow to zero.

    The loss is multiplied by the loss scale before the gradients are computed, and
    the gradients are divided by it before the wrapped optimizer applies them. The
    dynamic loss scale starts high; a step with a gradient that is inf or NaN is
    skipped and halves it, `dynamic_growth_steps` other steps in a row double it.

    `model.fit` and `minimize` do all of this. A training loop with a tape does:

        with tf.GradientTape() as tape:
            loss = compute_loss()
            scaled_loss = optimizer.get_scaled_loss(loss)
        scaled_gradients = tape.gradient(scaled_loss, variables)
        gradients = optimizer.get_unscaled_gradients(scaled_gradients)
        optimizer.apply_gradients(zip(gradients, variables))

    Attributes that the wrapped optimizer has and takes as arguments of its constructor
    (`beta_1`, ...) are read and set on it through this object.

    Args:
      inner_optimizer: an optimizer of Keras 3, tf_keras or Keras 2, new or legacy.
      dynamic: bool, whether the loss scale changes.
      initial_scale: the loss scale at the start, 2 ** 15 by default; with
        `dynamic=False` it must be given, and stays.
      dynamic_growth_steps: finite steps before the loss scale doubles, 2000 by default;
        only with `dynamic=True`.

    What the wrapped optimizer's Keras does not allow:
      - Keras 3: `apply_gradients(..., experimental_aggregate_gradients=False)` under
        several replicas raises ValueError, since its optimizers always sum. A fixed
        learning rate cannot be set where a schedule was. Under a strategy the
        optimizer must be made in its scope. `scale_loss`, which is Keras 3's own, must
        be called in the same `tf.function` as `apply`: RuntimeError otherwise.
      - Keras 3 and new optimizers of Keras 2: in a graph of TensorFlow 1,
        `get_gradients` works and `apply_gradients` does not. `get_slot` finds slots
        once there has been a step.
      - A checkpoint that TensorFlow 2.8 wrote: legacy optimizers restore all of it; on
        Keras 3 the model, the loss scale and its counter are restored, but not the
        slots and iterations; new optimizers of Keras 2 raise ValueError.
      - Optimizers of Keras 3 that use another backend than TensorFlow: ValueError.
    """

    # What the class is registered as in Keras, behind 'contrib_opt>'.
    _registered_name = "LossScaleOptimizer"

    def __new__(cls, *args, **kwargs):
        """An object of the kind that the optimizer among the arguments asks for."""
        return object.__new__(kinds.class_for(cls, args, kwargs))

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _show_signature(cls)

    def __init__(
        self,
        inner_optimizer,
        dynamic=True,
        initial_scale=None,
        dynamic_growth_steps=None,
    ):
        super().__init__(
            inner_optimizer,
            dynamic=dynamic,
            initial_scale=initial_scale,
            dynamic_growth_steps=dynamic_growth_steps,
        )

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes one from `get_config()`, also from one of TensorFlow 2.3 and before.

        Called on the class itself, it takes the Keras that wrote the config, or
        `tf.keras` where the config does not tell.
        """
        kwargs, inner = arguments.from_config(config)
        inner = kinds.deserialize_optimizer(cls, inner, custom_objects)
        return kinds.named_class(cls)._from_arguments(inner, **kwargs)

    @classmethod
    def _from_arguments(cls, inner_optimizer, **kwargs):
        return cls(inner_optimizer, **kwargs)


class ExperimentalLossScaleOptimizer(LossScaleOptimizer):
    """The LossScaleOptimizer with the constructor that it had in TensorFlow 2.3.

    Args:
      optimizer: the optimizer to wrap, as in the class that is not experimental.
      loss_scale: 'dynamic', a number for a fixed loss scale, or a FixedLossScale or
        DynamicLossScale of `tf.compat.v1.mixed_precision.experimental`.
    """

    _registered_name = "ExperimentalLossScaleOptimizer"

    def __init__(self, optimizer, loss_scale):
        super().__init__(optimizer, **arguments.from_loss_scale(loss_scale))

    @classmethod
    def _from_arguments(cls, inner_optimizer, **kwargs):
        return cls(inner_optimizer, arguments.to_loss_scale(**kwargs))


_show_signature(LossScaleOptimizer)


def _found_at(cls, module):
    """Says that `cls` is the LossScaleOptimizer that users import from `module`."""
    cls.__name__ = cls.__qualname__ = "LossScaleOptimizer"
    cls.__module__ = module


_found_at(LossScaleOptimizer, "contrib_opt.keras.mixed_precision")
_found_at(
    ExperimentalLossScaleOptimizer, "contrib_opt.keras.mixed_precision.experimental"
)

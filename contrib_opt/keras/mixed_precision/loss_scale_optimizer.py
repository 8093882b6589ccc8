"""The two classes that users name. What they do is in the kinds, one for each Keras.

A call of either makes an object of a class that derives from the class called and from
the LossScaleOptimizer of the Keras to which the wrapped optimizer belongs.
"""

from contrib_opt.keras.mixed_precision import arguments, deserialization, kinds, names


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

    Raises:
      ValueError: `initial_scale` is not above 0 or not finite, `dynamic_growth_steps`
        is not a whole number of 1 or more (TensorFlow 2.8 takes these, and trains to
        NaN or not at all), or the optimizer is wrapped already.
      TypeError: an argument is of the wrong type.

    What the wrapped optimizer's Keras does not allow:
      - Keras 3: `apply_gradients(..., experimental_aggregate_gradients=False)` under
        several replicas raises ValueError, since its optimizers always sum. Under a
        strategy the optimizer must be made in its scope. `scale_loss`, which is Keras
        3's own, must be called in the same `tf.function` as `apply`: RuntimeError
        otherwise. A learning rate cannot be a `tf.Variable`, and is set by
        `optimizer.lr = rate`, not by `K.set_value`.
      - Keras 3 and new optimizers of Keras 2: in a graph of TensorFlow 1,
        `get_gradients` works, and `apply_gradients` raises RuntimeError. `get_slot`
        finds slots once there has been a step. A fixed learning rate cannot be set
        where a schedule was. Variables that join after the first step need
        `optimizer.build(all_variables)` before it.
      - A checkpoint that TensorFlow 2.8 wrote: legacy optimizers restore all of it; new
        optimizers of Keras 2 raise ValueError. Keras 3 restores the loss scale, its
        counter and variables of the program's own, but not slots and iterations. It
        keeps the kernels and embeddings of layers under other names than 2.8, and the
        layers of Sequential and functional models too, so that these are not restored:
        `status.assert_existing_objects_matched()` tells. Weights come back by
        `load_model('model.h5', compile=False)`, from a file of `model.save` on 2.8.
      - An .h5 file that TensorFlow 2.8 wrote of a compiled model: Keras 3 reads it with
        `compile=False` only, whatever the optimizer. A model that it loaded from its
        own .h5 file needs `compile` before it trains on, plain optimizers as well.
      - The numbers of the wrapped optimizer, with loss scaling or without: where an
        Embedding has an id twice in a batch, Adam, RMSprop, Adagrad, Adadelta, Nadam
        and Ftrl of Keras 3 give others than 2.8, as they do not sum its gradients
        first. Nadam, and Ftrl for rows that were not looked up, give others on Keras 3
        and for new optimizers of Keras 2.
      - Optimizers of Keras 3 that use another backend than TensorFlow: ValueError.

    `apply_gradients` warns when `get_scaled_loss` or `get_unscaled_gradients` was never
    called: gradients of a loop that forgets them are too large, or underflow.
    """

    # What the class is registered as in Keras, behind 'contrib_opt>'.
    _registered_name = "LossScaleOptimizer"

    def __new__(cls, *args, **kwargs):
        """An object of the kind that the optimizer among the arguments asks for."""
        return object.__new__(kinds.class_for(cls, args, kwargs))

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        names.show_signature(cls)

    def __init__(
        self,
        inner_optimizer,
        dynamic=True,
        initial_scale=None,
        dynamic_growth_steps=None,
    ):
        arguments.check(initial_scale, dynamic_growth_steps)
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
        keras = getattr(cls, "_keras", None)
        inner = deserialization.optimizer(inner, keras, custom_objects)
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


names.show_signature(LossScaleOptimizer)
names.found_at(LossScaleOptimizer, "contrib_opt.keras.mixed_precision")
names.found_at(
    ExperimentalLossScaleOptimizer, "contrib_opt.keras.mixed_precision.experimental"
)

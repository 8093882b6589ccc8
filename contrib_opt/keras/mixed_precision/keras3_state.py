"""What a LossScaleOptimizer of Keras 3 is seen and saved as: the one that it wraps."""

import warnings

import tensorflow as tf

import keras
from contrib_opt import _tf
from contrib_opt.keras import _keras
from contrib_opt.keras.mixed_precision import hyperparameters, names
from contrib_opt.optimizers.unwrap import tensorflow_variable


@names.shown("LossScaleOptimizer")
class State(hyperparameters.Delegating):
    """Attributes, variables and config; for a LossScaleOptimizer of Keras 3."""

    clipnorm = hyperparameters.delegated("clipnorm")
    global_clipnorm = hyperparameters.delegated("global_clipnorm")
    clipvalue = hyperparameters.delegated("clipvalue")
    weight_decay = hyperparameters.delegated("weight_decay")
    use_ema = hyperparameters.delegated("use_ema")
    ema_momentum = hyperparameters.delegated("ema_momentum")
    ema_overwrite_frequency = hyperparameters.delegated("ema_overwrite_frequency")
    gradient_accumulation_steps = hyperparameters.delegated(
        "gradient_accumulation_steps"
    )

    def _create_scale_and_counter(self):
        # The names of the attributes, and their order among the variables, are those of
        # Keras 3: each reads the .keras files of the other.
        self.step_counter = self.add_variable(
            shape=(), dtype="int64", initializer="zeros", name="step_counter"
        )
        self.dynamic_scale = self.add_variable(
            shape=(),
            dtype="float32",
            initializer=keras.initializers.Constant(self.initial_scale),
            name="dynamic_scale",
        )
        # These names are the checkpoint's, since TensorFlow 2.2.
        state = tf.Module()
        state.current_loss_scale = tensorflow_variable(self.dynamic_scale)
        state.good_steps = tensorflow_variable(self.step_counter)
        _tf.track(self._wrapped, state, "loss_scale")

    @property
    def iterations(self):
        """The steps so far, skipped ones as well."""
        return self._wrapped.iterations

    @iterations.setter
    def iterations(self, value):
        if not hasattr(value, "assign_add"):
            self.iterations.assign(value)
        elif self.built:
            raise RuntimeError(
                "iterations can be set to a variable only before the first step"
            )
        else:
            _keras.replace_iterations(self._wrapped, value)

    @property
    def variables(self):
        """The variables of the wrapped optimizer; may be called, as in Keras 2."""
        return _CallableList(self._wrapped.variables)

    def save_own_variables(self, store):
        """Writes the state, that of the wrapped optimizer with it."""
        for index, variable in enumerate(super().variables):
            store[str(index)] = variable.numpy()

    def load_own_variables(self, store):
        """Reads what `save_own_variables` wrote, here or in Keras 3's own class."""
        variables = super().variables
        if len(store.keys()) != len(variables):
            what_to_do = ""
            if not self.built:
                what_to_do = (
                    ", since it has not trained yet. Before the weights are loaded, "
                    "train a step, or call optimizer.build(model.trainable_variables)"
                )
            # As Keras does it; TensorFlow's logger may say it twice.
            warnings.warn(
                "The state of the optimizer is not restored: the file has "
                f"{len(store.keys())} variables for it, and it has {len(variables)}"
                f"{what_to_do}.",
                stacklevel=2,
            )
            return
        for index, variable in enumerate(variables):
            variable.assign(store[str(index)])

    def get_config(self):
        """As in TensorFlow 2.8: the wrapped optimizer, and how the scale changes."""
        inner = keras.saving.serialize_keras_object(self._wrapped)
        inner["config"]["name"] = _without_number(self._wrapped)
        return {
            "inner_optimizer": inner,
            "dynamic": self.dynamic,
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    def _set_own(self, name, value):
        # Past the tracking of attributes: a checkpoint takes this object for the
        # wrapped optimizer, which tracks its own.
        object.__setattr__(self, name, value)

    def __dir__(self):
        # Keras saves the objects that it finds here, by these names. It finds the
        # wrapped optimizer as `inner_optimizer`; once is enough.
        own = vars(self)
        inner = own.get("inner_optimizer")
        other_names = {n for n in own if own[n] is inner} - {"inner_optimizer"}
        return [n for n in super().__dir__() if n not in other_names]


class _CallableList(list):
    def __call__(self):
        return self


def _without_number(optimizer):
    """The name of `optimizer`: 'sgd' for 'sgd_3', which Keras called the third SGD."""
    stem = optimizer.name.rstrip("0123456789").rstrip("_")
    generated = stem.replace("_", "") == type(optimizer).__name__.lower()
    return stem if generated else optimizer.name

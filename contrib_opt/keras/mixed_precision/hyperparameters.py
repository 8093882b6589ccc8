"""What a LossScaleOptimizer hands through to the optimizer that it wraps."""

import inspect

from contrib_opt.keras.mixed_precision import names

# Both Kerases have changed what their slots are called since TensorFlow 2.8; the name
# there, and what may follow or precede the variable's name in later ones.
_SLOT_NAMES = {
    "momentum": ("momentum", "m"),
    "m": ("m", "momentum"),
    "v": ("v", "velocity", "u", "norm"),
    "vhat": ("vhat", "velocity_hat"),
    "rms": ("velocity",),
    "mg": ("average_gradient",),
    "accum_grad": ("accumulated_grad",),
    "accum_var": ("accumulated_delta_var",),
}


def is_hyperparameter(optimizer, name):
    """Whether `name` is an argument of the constructor, kept as an attribute."""
    if name.startswith("_") or not hasattr(optimizer, name):
        return False
    for cls in type(optimizer).__mro__:
        if "__init__" in vars(cls):
            if name in inspect.signature(cls.__init__).parameters:
                return name != "name"
    return False


def slot(optimizer, variables, var, name):
    """The slot `name` of `var`, one of the `variables` that `optimizer` updates.

    Args:
      optimizer: a new optimizer of Keras 2, or one of Keras 3.
      variables: the list for which it was built; None before.
      var: a variable.
      name: as in TensorFlow 2.8 ('momentum', 'm', 'v', ...) or as in this Keras.

    Raises:
      KeyError: there is no such slot.
    """
    index = [v is var for v in variables or ()].index(True) if variables else None
    for suffix in _SLOT_NAMES.get(name, (name,)):
        slots = [
            v
            for v in optimizer.variables
            if v.name.endswith("_" + suffix) or v.name.startswith(suffix + "/")
        ]
        if index is not None and len(slots) == len(variables):
            return slots[index]
    raise KeyError(name)


@names.shown("LossScaleOptimizer")
class Delegating:
    """Hyperparameters and state of the wrapped optimizer, under their old names.

    For optimizers that have no `_hyper`: those of Keras 3, and the new ones of Keras 2.
    """

    _built_for = None

    @property
    def lr(self):
        """The learning rate, as `learning_rate` gives it."""
        return self.learning_rate

    @lr.setter
    def lr(self, value):
        self.learning_rate = value

    @property
    def weights(self):
        """The variables of the wrapped optimizer, as a list."""
        return list(self.inner_optimizer.variables)

    def get_weights(self):
        """The values of `weights`, as a list of arrays."""
        return [weight.numpy() for weight in self.weights]

    def set_weights(self, weights):
        """Sets `weights` to the arrays of a list that `get_weights` gave."""
        self.inner_optimizer.set_weights(weights)

    def get_slot(self, var, slot_name):
        """The slot variable of `var`; names as in TensorFlow 2.8, or as in this Keras.

        Raises:
          KeyError: the wrapped optimizer has no such slot for `var`.
        """
        return slot(self.inner_optimizer, self._built_for, var, slot_name)

    def __getattr__(self, name):
        # Called for what is not found otherwise.
        inner = self.__dict__.get("_wrapped")
        if inner is not None and is_hyperparameter(inner, name):
            return getattr(inner, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    def __setattr__(self, name, value):
        inner = self.__dict__.get("_wrapped")
        own = hasattr(type(self), name) or name in self.__dict__
        if inner is not None and not own and is_hyperparameter(inner, name):
            setattr(inner, name, value)
        else:
            self._set_own(name, value)

    def _set_own(self, name, value):
        super().__setattr__(name, value)

    def __dir__(self):
        inner = self.__dict__.get("_wrapped")
        hyperparameters = [n for n in dir(inner) if is_hyperparameter(inner, n)]
        return sorted(set(super().__dir__()) | set(hyperparameters))


def delegated(name):
    """A property that is the wrapped optimizer's; set before there is one, it is lost.

    For what a base class sets in its constructor, to values that nobody asked for.
    """

    def get(self):
        return getattr(self._wrapped, name)

    def set(self, value):
        if "_wrapped" in self.__dict__:
            setattr(self._wrapped, name, value)

    return property(get, set, doc=f"As `inner_optimizer.{name}`.")

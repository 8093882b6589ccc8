"""How a LossScaleOptimizer of Keras 3 is pickled and copied.

A plain optimizer of Keras 3 comes out of a pickle without its state. Here it comes
back: the loss scale, counter and iterations at once, the slots when they are made.
"""

from contrib_opt.keras.mixed_precision import kinds, names

_ARGUMENTS = ("dynamic", "initial_scale", "dynamic_growth_steps")


@names.shown("LossScaleOptimizer")
class Pickled:
    """For a LossScaleOptimizer of Keras 3."""

    # Of the state, what has no variable yet.
    _waiting = {}
    # Attributes that are made anew; all others are those of a subclass.
    _own_names = frozenset()

    def __reduce__(self):
        inner = self.inner_optimizer
        state = {}
        self.save_own_variables(state)
        own = self._own_names
        made_of = (
            # The class that users name: that of the object is in no module.
            kinds.named_class(type(self)),
            type(inner),
            inner.get_config(),
            {name: getattr(self, name) for name in _ARGUMENTS},
            {**self._waiting, **state},
        )
        added = {name: value for name, value in vars(self).items() if name not in own}
        return _unpickled, made_of, added

    def _take_waiting(self):
        """Gives the variables that there are now what waits for them."""
        if not self._waiting:
            return
        # Those of loss scaling, then those of the wrapped optimizer.
        for index, variable in enumerate(super().variables):
            value = self._waiting.pop(str(index), None)
            if value is not None and value.shape != tuple(variable.shape):
                raise ValueError(
                    "This optimizer was pickled when it trained other variables: "
                    f"{variable.name} was of shape {value.shape} then, and not "
                    f"{tuple(variable.shape)}"
                )
            if value is not None:
                variable.assign(value)


def _unpickled(cls, inner_class, inner_config, arguments, state):
    from contrib_opt.keras.mixed_precision import loss_scale_optimizer

    inner = inner_class.from_config(inner_config)
    optimizer = cls.__new__(cls, inner)
    # Not that of a subclass, which may take other arguments.
    loss_scale_optimizer.LossScaleOptimizer.__init__(optimizer, inner, **arguments)
    optimizer._waiting = state
    optimizer._take_waiting()
    return optimizer

"""What contrib_opt uses of Keras beyond its public API, each use with its reason."""


def replace_iterations(optimizer, variable):
    """Makes `variable` the one in which an optimizer of Keras 3 counts its steps."""
    # In Keras 2 programs share their step counter with the optimizer so. Keras 3 has
    # no setter, and reads the variable from these two places.
    variables = optimizer._variables
    variables[variables.index(optimizer._iterations)] = variable
    optimizer._iterations = variable


def loss_scale_variable(optimizer):
    """The variable of a dynamic LossScaleOptimizer for new optimizers of Keras 2."""
    # `loss_scale` gives its value, to read. A saved optimizer is restored into it.
    return optimizer._loss_scale.current_loss_scale

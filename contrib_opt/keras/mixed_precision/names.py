"""What the classes are called where users read of them: in help and in messages."""

import inspect


def shown(name):
    """A decorator: messages about the methods of a class name it `name`.

    Otherwise they name a class that users never see.
    """

    def rename(cls):
        for attribute, value in vars(cls).items():
            if inspect.isfunction(value):
                value.__qualname__ = f"{name}.{attribute}"
        return cls

    return rename


def show_signature(cls):
    """Makes help() show the arguments of `__init__`, not those of `__new__`."""
    signature = inspect.signature(cls.__init__)
    parameters = list(signature.parameters.values())[1:]
    cls.__signature__ = signature.replace(parameters=parameters)


def found_at(cls, module):
    """Says that `cls` is the LossScaleOptimizer that users import from `module`."""
    shown("LossScaleOptimizer")(cls)
    cls.__name__ = cls.__qualname__ = "LossScaleOptimizer"
    cls.__module__ = module

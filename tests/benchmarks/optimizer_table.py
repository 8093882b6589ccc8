"""The optimizers that bench_speed.py measures: to measure another one, add a row.

A row makes one, from a library (libraries.py) and the model whose variables it gets
(models.py).
"""

# No TensorFlow here: bench_speed.py itself must not load one, since TensorFlow 2 sets
# environment variables that turn the TensorFlow 1.15 of a worker into another.


def _momentum():
    import tensorflow.compat.v1 as tf

    return tf.train.MomentumOptimizer(1e-3, 0.9)


def _variable_clipping(library, model):
    pairs = [(v, [v.shape.ndims - 1]) for v in model.variables if v.shape.ndims]
    try:
        pairs = dict(pairs)
    except TypeError:  # in eager mode of TensorFlow 2, where contrib_opt takes pairs
        pass
    return library.VariableClippingOptimizer(_momentum(), pairs, 1.0)


def _drop_stale(library, model):
    import tensorflow.compat.v1 as tf

    optimizer = library.DropStaleGradientOptimizer(_momentum(), 10**9)
    # Here it notes the global step; the gradients that it applies are the model's.
    var = model.variables[-1]

    def loss():
        return tf.reduce_sum(var)

    optimizer.compute_gradients(loss if tf.executing_eagerly() else loss(), [var])
    return optimizer


def _loss_scale(library, model):
    managers = library.mixed_precision
    manager = managers.ExponentialUpdateLossScaleManager(128.0, 1000)
    return managers.LossScaleOptimizer(_momentum(), manager)


def _elastic_average(library, model):
    return library.ElasticAverageOptimizer(
        _momentum(), 1, model.getter, communication_period=10
    )


def _model_average(library, model):
    return library.ModelAverageOptimizer(_momentum(), 1, True, model.getter, 10)


def _agn(library, model):
    return library.AGNOptimizer(_momentum(), 1, model.getter, communication_period=10)


OPTIMIZERS = {
    "LARS": lambda lib, model: lib.LARSOptimizer(0.1, 0.9),
    "Momentum": lambda lib, model: _momentum(),
    "AdaMax": lambda lib, model: lib.AdaMaxOptimizer(1e-3),
    "AdamGS": lambda lib, model: lib.AdamGSOptimizer(model.global_step, 1e-3),
    "AdamW": lambda lib, model: lib.AdamWOptimizer(1e-4, 1e-3),
    "AddSign": lambda lib, model: lib.AddSignOptimizer(1e-3),
    "GGT": lambda lib, model: lib.GGTOptimizer(1e-3),
    "LazyAdam": lambda lib, model: lib.LazyAdamOptimizer(1e-3),
    "LazyAdamGS": lambda lib, model: lib.LazyAdamGSOptimizer(model.global_step, 1e-3),
    "MomentumW": lambda lib, model: lib.MomentumWOptimizer(1e-4, 1e-3, 0.9),
    "Nadam": lambda lib, model: lib.NadamOptimizer(1e-3),
    "PowerSign": lambda lib, model: lib.PowerSignOptimizer(1e-3),
    "RegAdagrad": lambda lib, model: lib.RegAdagradOptimizer(1e-3),
    "Shampoo": lambda lib, model: lib.ShampooOptimizer(
        model.global_step, learning_rate=1e-3
    ),
    "AGN": _agn,
    "DropStaleGradient": _drop_stale,
    "ElasticAverage": _elastic_average,
    "LossScale": _loss_scale,
    "ModelAverage": _model_average,
    "MovingAverage": lambda lib, model: lib.MovingAverageOptimizer(_momentum()),
    "Multitask": lambda lib, model: lib.MultitaskOptimizerWrapper(_momentum()),
    "VariableClipping": _variable_clipping,
}

# Those that make variables by a getter.
GETTERS = {
    name: (lambda lib, name=name: getattr(lib, name + "CustomGetter")(""))
    for name in ("AGN", "ElasticAverage", "ModelAverage")
}

# Those that run in graphs only; the last one takes no given gradients in eager mode.
IN_GRAPHS = (*GETTERS, "DropStaleGradient")

# Those whose rule for a sparse gradient touches its rows and no others.
LAZY = (
    "LARS",
    "AdaMax",
    "LazyAdam",
    "LazyAdamGS",
    "MomentumW",
    "RegAdagrad",
    "Shampoo",
    "DropStaleGradient",
    "Multitask",
    "VariableClipping",
)
# And those whose slots decay in all rows.
NOT_LAZY = ("AdamGS", "AdamW", "AddSign", "Nadam", "PowerSign")

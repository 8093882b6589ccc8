"""Loss scaling of `tf.contrib.mixed_precision`."""

import tensorflow.compat.v1 as tf

from optimizers.cases.case import Case


def _fixed(namespace, loss_scale, **kwargs):
    manager = namespace.mixed_precision.FixedLossScaleManager(loss_scale)
    opt = tf.train.MomentumOptimizer(**kwargs)
    return namespace.mixed_precision.LossScaleOptimizer(opt, manager)


def _exponential(namespace, **kwargs):
    # Grows after each third step; in float16 it soon overflows, and shrinks.
    manager = namespace.mixed_precision.ExponentialUpdateLossScaleManager(
        init_loss_scale=2.0**9, incr_every_n_steps=3, incr_ratio=4
    )
    opt = namespace.LARSOptimizer(**kwargs)
    return namespace.mixed_precision.LossScaleOptimizer(opt, manager)


CASES = [
    Case(
        id="loss_scale_fixed",
        optimizer="mixed_precision.LossScaleOptimizer",
        build=_fixed,
        kwargs={"learning_rate": 0.5, "momentum": 0.9, "loss_scale": 128.0},
        evaluated={"learning_rate": 0.1},
        random=lambda random: {"loss_scale": float(2 ** random.randint(0, 12))},
    ),
    Case(
        id="loss_scale_exponential",
        optimizer="mixed_precision.LossScaleOptimizer",
        build=_exponential,
        kwargs={"learning_rate": 0.5, "momentum": 0.9, "eeta": 0.1},
        # Of the loss's own gradient, which TensorFlow 1.15 folds into a constant.
        unsupported={"resource bfloat16 in 1.15": "No registered 'Reciprocal'"},
    ),
]

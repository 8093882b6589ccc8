"""contrib_opt, and the tf.contrib of TensorFlow 1.15, as namespaces of one kind."""

import types

import tensorflow as tf

TF1 = tf.__version__.startswith("1.")


def library(name):
    """What has the optimizers: name is 'contrib_opt', 'tf.contrib' or 'tf.train'."""
    if name == "contrib_opt":
        import contrib_opt

        return contrib_opt
    if name == "tf.train":
        return tf.compat.v1.train
    opt = tf.contrib.opt
    return types.SimpleNamespace(
        mixed_precision=tf.contrib.mixed_precision,
        **{key: getattr(opt, key) for key in dir(opt) if not key.startswith("_")},
    )

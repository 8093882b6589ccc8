"""Programs of TensorFlow 1 that nobody edits: install(), and the commands."""


def install():
    """Makes the names that TensorFlow dropped answer again, all over the process.

        import contrib_opt
        contrib_opt.install()

        import tensorflow.compat.v1 as tf
        from tensorflow.contrib.opt import LARSOptimizer
        tf.contrib.layers.fully_connected  # of tf_slim
        tf.keras.mixed_precision.experimental.LossScaleOptimizer
        tf.estimator.Estimator  # of contrib_opt[estimator]

    These are `tf.contrib`, in TensorFlow, `tf.compat.v1` and `tf.compat.v2`, the
    modules below `tensorflow.contrib`, `tf.keras.mixed_precision.experimental`, and,
    if it is installed, `tf.estimator`. What of `tf.contrib` is in TensorFlow, tf_slim
    or tensorboard today comes from there. A second call does nothing, and on
    TensorFlow 1 so does the first.

    Errors come when a name is used: any other name of `tf.contrib` raises
    AttributeError, or ImportError where it is imported, that says where it lives now.

    Returns:
      None.
    """
    from contrib_opt.legacy import installing

    installing.install()


def uninstall():
    """Undoes install(), and does nothing where install() has done nothing.

    What a program has already taken from `tf.contrib` goes on working.

    Returns:
      None.
    """
    from contrib_opt.legacy import installing

    installing.uninstall()

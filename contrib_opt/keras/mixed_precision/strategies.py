"""Which distribution strategies work with loss scaling."""

import tensorflow as tf

_SUPPORTED = (
    tf.distribute.MirroredStrategy,
    tf.distribute.OneDeviceStrategy,
    tf.distribute.MultiWorkerMirroredStrategy,
    tf.compat.v1.distribute.MirroredStrategy,
    tf.compat.v1.distribute.OneDeviceStrategy,
    tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy,
)


def check_supported():
    """Raises ValueError in the scope of a strategy that has one variable for many.

    Each replica unscales its gradients; that is right where each has its variables.
    """
    if not tf.distribute.has_strategy():
        return
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, _SUPPORTED):
        return
    name = type(strategy).__name__
    if "TPU" in name:
        raise ValueError(
            f"Loss scaling is not supported with {name}, and not needed there: TPUs "
            "compute in bfloat16, which has the range of float32. Use the wrapped "
            "optimizer itself."
        )
    raise ValueError(
        f"Loss scaling is not supported with the tf.distribute.Strategy {name}. "
        "MirroredStrategy, MultiWorkerMirroredStrategy and OneDeviceStrategy are."
    )

"""One process runs the graph tests and the eager tests, on every TensorFlow.

Eager mode is on, as TensorFlow 2 has it; a graph test builds its own `tf.Graph`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

# Two CPUs, for the distribution strategies.
tf.compat.v1.enable_eager_execution(
    config=tf.compat.v1.ConfigProto(device_count={"CPU": 2})
)
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

if not tf.__version__.startswith("1."):
    # TensorFlow 2 wants them as logical devices, before the first operation.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )

"""A parameter server: `python -m cluster.server CLUSTER`, in JSON, until it is killed.

On TensorFlow 1, a program of 2017 did the same with --job_name=ps.
"""

import json
import sys

import tensorflow.compat.v1 as tf

from processes import end_with_the_test

if __name__ == "__main__":
    end_with_the_test()
    cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]))
    tf.train.Server(cluster, "ps", 0).join()

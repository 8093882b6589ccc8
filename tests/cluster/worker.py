"""What the programs of the workers share: a server, devices, sessions."""

import tensorflow.compat.v1 as tf


class Worker:
    """A worker with its server, on a cluster with parameter servers.

    Worker 0 is the chief, who initializes the variables.
    """

    def __init__(self, cluster, task):
        self.task = task
        self.device = f"/job:worker/task:{task}/cpu:0"
        self.cluster = tf.train.ClusterSpec(cluster)
        self.server = tf.train.Server(self.cluster, "worker", task)

    def placed(self):
        return tf.device(
            tf.train.replica_device_setter(
                worker_device=self.device, ps_device="/job:ps", cluster=self.cluster
            )
        )

    def session(self, **kwargs):
        """A MonitoredTrainingSession, which writes no summaries."""
        return tf.train.MonitoredTrainingSession(
            self.server.target,
            is_chief=self.task == 0,
            # So that a worker does not wait for the others to be there.
            config=tf.ConfigProto(
                device_filters=["/job:ps", f"/job:worker/task:{self.task}"]
            ),
            log_step_count_steps=None,
            max_wait_secs=60,
            save_summaries_steps=None,
            save_summaries_secs=None,
            # The chief's queue runner waits for gradients that nobody sends any more.
            stop_grace_period_secs=1,
            **kwargs,
        )

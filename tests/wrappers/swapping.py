"""The program whose swapping saver's checkpoint TensorFlow 1.15 wrote.

tests/golden/moving_average/generate.py runs it there.
"""

import tensorflow.compat.v1 as tf

# What TensorFlow 1.15 has saved after so many steps.
SAVED_STEP = 3
DECAY = 0.6


class Program:
    """A plain variable, a partitioned one and one that does not train, in a graph."""

    def __init__(self, namespace, use_resource=False):
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.variable_scope("model", use_resource=use_resource):
                tf.get_variable("w", initializer=tf.constant([[1.0, -2.0], [3.0, 4.0]]))
                tf.get_variable(
                    "table",
                    [5, 2],
                    initializer=tf.ones_initializer(),
                    partitioner=tf.fixed_size_partitioner(2),
                )
                tf.get_variable("mean", initializer=tf.constant([7.0]), trainable=False)
            self.global_step = tf.train.get_or_create_global_step()
            self.optimizer = namespace.MovingAverageOptimizer(
                tf.train.MomentumOptimizer(0.1, 0.5), DECAY, self.global_step
            )
            self._step = tf.placeholder(tf.float32, [])
            self.train_op = self.optimizer.apply_gradients(
                [
                    (tf.fill(var.shape, 0.5 + self._step), var)
                    for var in tf.trainable_variables()
                ],
                self.global_step,
            )
            self.saver = self.optimizer.swapping_saver()
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())

    def train(self, steps):
        for step in steps:
            self.session.run(self.train_op, {self._step: step})

    def save(self, path, *args, **kwargs):
        with self.graph.as_default():
            return self.saver.save(self.session, path, *args, **kwargs)

    def restore(self, path):
        with self.graph.as_default():
            self.saver.restore(self.session, path)

    def values(self):
        """All variables, by name."""
        with self.graph.as_default():
            return self.session.run({v.op.name: v for v in tf.global_variables()})

"""Models of bench_speed.py: variables with given gradients, in a session or eagerly.

The gradients are values of other variables, so that a step is an optimizer's update and
nothing else.
"""

import time

import numpy as np
import tensorflow.compat.v1 as tf
from libraries import library
from optimizer_table import GETTERS, OPTIMIZERS


def _uniform(shape, scale, seed):
    return tf.random_uniform(shape, -scale, scale, seed=seed)


class _Model:
    """`kind` is 'resource', 'ref' or 'eager'; one of `shapes` and `rows` is given.

    With `rows` there is one variable of so many rows, and its gradient has `touched`
    of them.
    """

    width = 16  # of a row

    def __init__(self, kind, optimizer, lib, shapes=None, rows=None, touched=100):
        self._kind = kind
        self._library = library(lib)
        self._name = optimizer
        self.getter = None
        if optimizer in GETTERS:
            self.getter = GETTERS[optimizer](self._library)
        shapes = [(rows, self.width)] if rows else [tuple(s) for s in shapes]
        self.variables = [
            self._variable(f"v{i}", lambda s=s, i=i: _uniform(s, 0.5, i), self.getter)
            for i, s in enumerate(shapes)
        ]
        gradients = [(touched, self.width)] if rows else shapes
        self._gradients = [
            self._variable(f"g{i}", lambda s=s, i=i: _uniform(s, 0.01, i))
            for i, s in enumerate(gradients)
        ]
        if rows:
            indices = np.random.RandomState(0).permutation(rows)[:touched]
            self._indices = self._variable("i", lambda: tf.constant(indices, tf.int64))
            self._rows = rows
        self.global_step = self._step_variable()
        self.largest = 4 * max(int(np.prod(s)) for s in shapes)

    def _pairs(self):
        gradients = [tf.convert_to_tensor(g) for g in self._gradients]
        if hasattr(self, "_indices"):
            shape = tf.constant([self._rows, self.width], tf.int64)
            indices = tf.convert_to_tensor(self._indices)
            gradients = [tf.IndexedSlices(gradients[0], indices, shape)]
        return list(zip(gradients, self.variables))


class SessionModel(_Model):
    """A step is one run of the operation that applies the gradients."""

    def __init__(self, kind, *args, **kwargs):
        self._graph = tf.Graph()
        with self._graph.as_default():
            super().__init__(kind, *args, **kwargs)
            pairs = self._pairs()
            before = len(self._graph.get_operations())
            begin = time.perf_counter()
            optimizer = OPTIMIZERS[self._name](self._library, self)
            self._update = optimizer.apply_gradients(pairs, self.global_step)
            self.build_ms = 1000 * (time.perf_counter() - begin)
            self.ops = len(self._graph.get_operations()) - before
            self._session = None

    def _variable(self, name, value, getter=None):
        resource = True if name[0] in "gi" else self._kind == "resource"
        with tf.variable_scope("", use_resource=resource, custom_getter=getter):
            value = value()
            # Not the Tensor itself: a getter may initialize two variables with it.
            return tf.get_variable(
                name,
                value.shape,
                value.dtype,
                initializer=lambda *_, **__: value,
                trainable=name[0] == "v",
            )

    def _step_variable(self):
        # A ref variable, which some wrappers of TensorFlow 1.15 need.
        return tf.train.get_or_create_global_step()

    def step(self):
        if self._session is None:
            self._session = tf.Session(graph=self._graph)
            with self._graph.as_default():
                self._session.run(tf.global_variables_initializer())
                self._session.run(tf.local_variables_initializer())
        self._session.run(self._update)

    def close(self):
        if self._session is not None:
            self._session.close()


class EagerModel(_Model):
    """A step is one call of `apply_gradients`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._grads_and_vars = self._pairs()
        self._optimizer = OPTIMIZERS[self._name](self._library, self)

    def _variable(self, name, value, getter=None):
        return tf.Variable(value(), name=name, use_resource=True)

    def _step_variable(self):
        return tf.Variable(0, dtype=tf.int64, name="global_step", use_resource=True)

    def step(self):
        self._optimizer.apply_gradients(self._grads_and_vars, self.global_step)

    def close(self):
        pass


def make_model(kind, *args, **kwargs):
    cls = EagerModel if kind == "eager" else SessionModel
    return cls(kind, *args, **kwargs)

"""Small training problems, for a graph or for eager mode, on any TensorFlow.

`DENSE` is a network with a hidden layer; `SPARSE` looks rows of a table up, some of
them twice, so that the table's gradient is IndexedSlices with repeated indices;
`LINEAR` has its inputs for gradients.
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 12

Problem = collections.namedtuple("Problem", ["name", "initial", "inputs", "loss"])


def _dense_loss(variables, inputs):
    hidden = tf.tanh(
        tf.matmul(inputs["x"], variables["layer/kernel"]) + variables["layer/bias"]
    )
    outputs = tf.matmul(hidden, variables["head/kernel"])
    return tf.reduce_mean(tf.square(outputs - inputs["y"]))


def _sparse_loss(variables, inputs):
    rows = tf.gather(variables["embedding/table"], inputs["ids"])
    outputs = tf.matmul(rows, variables["head/kernel"])
    return tf.reduce_mean(tf.square(outputs - inputs["y"]))


def dense(seed=0):
    random = np.random.RandomState(seed)
    return Problem(
        name="dense",
        initial={
            "layer/kernel": random.randn(4, 3) / 2,
            # Norm 0: the trust ratio of the first step is 1.
            "layer/bias": np.zeros(3),
            "head/kernel": random.randn(3, 2) / 2,
        },
        inputs={
            "x": random.randn(STEPS, 8, 4),
            "y": random.randn(STEPS, 8, 2),
        },
        loss=_dense_loss,
    )


def sparse(seed=0):
    random = np.random.RandomState(seed + 1000)
    return Problem(
        name="sparse",
        initial={
            "embedding/table": random.randn(6, 3),
            "head/kernel": random.randn(3, 2) / 2,
        },
        inputs={
            # Five draws out of four rows: one comes twice at least, two never come.
            "ids": random.randint(0, 4, size=(STEPS, 5)),
            "y": random.randn(STEPS, 5, 2),
        },
        loss=_sparse_loss,
    )


def linear(seed=0):
    random = np.random.RandomState(seed + 2000)
    shapes = {"layer/kernel": (4, 3), "layer/bias": (3,), "head/kernel": (3, 2)}
    return Problem(
        name="linear",
        initial={name: random.randn(*shape) for name, shape in shapes.items()},
        inputs={name: random.randn(STEPS, *shape) for name, shape in shapes.items()},
        loss=lambda variables, inputs: tf.add_n(
            [tf.reduce_sum(variables[name] * inputs[name]) for name in shapes]
        ),
    )


DENSE, SPARSE, LINEAR = dense(), sparse(), linear()


def typed(array, dtype):
    """`array` in `dtype` if it holds reals; integers stay as they are."""
    return array.astype(dtype) if array.dtype.kind == "f" else array


class GraphRun:
    """`problem` in a graph and session of its own, `make_optimizer()` on it.

    Attributes: `variables` by name, `optimizer`, `session`, `graph`, `train_op`.
    """

    def __init__(self, problem, make_optimizer, dtype="float32", use_resource=True):
        self._problem = problem
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._placeholders = {}
            for name, values in problem.inputs.items():
                values = typed(values, np.float32)
                kind = dtype if values.dtype.kind == "f" else values.dtype
                self._placeholders[name] = tf.placeholder(kind, values.shape[1:])
            self.variables = collections.OrderedDict(
                (
                    name,
                    tf.get_variable(
                        name,
                        initializer=tf.constant(problem.initial[name], dtype),
                        use_resource=use_resource,
                    ),
                )
                for name in sorted(problem.initial)
            )
            self.global_step = tf.train.get_or_create_global_step()
            self.optimizer = make_optimizer()
            self.loss = problem.loss(self.variables, self._placeholders)
            self.train_op = self.optimizer.minimize(self.loss, self.global_step)
            self.saver = tf.train.Saver()
            self.session = tf.Session(graph=self.graph)
            self.session.run(tf.global_variables_initializer())

    def train(self, steps):
        """Runs the steps numbered `steps`."""
        for step in steps:
            feed = {
                placeholder: self._problem.inputs[name][step]
                for name, placeholder in self._placeholders.items()
            }
            self.session.run(self.train_op, feed)

    def values(self):
        """The variables, then their slots, as one flat float64 array."""
        return _flat(self.session.run(state(self.variables, self.optimizer)))


class EagerRun:
    """`problem` in eager mode; with `compiled`, each step is one `tf.function`."""

    def __init__(self, problem, make_optimizer, dtype="float32", compiled=False):
        self._problem = problem
        self._dtype = tf.as_dtype(dtype)
        self.variables = collections.OrderedDict(
            (
                name,
                tf.Variable(
                    tf.constant(problem.initial[name], dtype),
                    name=name,
                    use_resource=True,
                ),
            )
            for name in sorted(problem.initial)
        )
        self.optimizer = make_optimizer()
        self._step = tf.function(self._minimize) if compiled else self._minimize

    def _minimize(self, inputs):
        self.optimizer.minimize(
            lambda: self._problem.loss(self.variables, inputs),
            var_list=list(self.variables.values()),
        )

    def train(self, steps):
        """Runs the steps numbered `steps`."""
        for step in steps:
            inputs = {}
            for name, values in self._problem.inputs.items():
                kind = self._dtype if values.dtype.kind == "f" else None
                inputs[name] = tf.constant(values[step], kind)
            self._step(inputs)

    def values(self):
        """The variables, then their slots, as one flat float64 array."""
        tensors = state(self.variables, self.optimizer)
        return _flat([tensor.numpy() for tensor in tensors])


def state(variables, optimizer):
    """The variables, then the slots that exist, each in the order of names."""
    slots = [
        optimizer.get_slot(var, slot)
        for slot in optimizer.get_slot_names()
        for var in variables.values()
    ]
    return list(variables.values()) + [slot for slot in slots if slot is not None]


def _flat(arrays):
    return np.concatenate([np.asarray(a).astype(np.float64).ravel() for a in arrays])

"""Small training problems, for a graph or for eager mode, on any TensorFlow.

`DENSE` is a network with a hidden layer; `SPARSE` looks rows of a table up, some of
them twice, so that the table's gradient is IndexedSlices with repeated indices.
`LINEAR` and `LOOKUP` have their inputs for gradients, dense and sparse.
"""

import collections
import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from mirrored import mirrored_strategy

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


def lookup(seed=0):
    random = np.random.RandomState(seed + 3000)

    def loss(variables, inputs):
        rows = tf.gather(variables["embedding/table"], inputs["ids"])
        return tf.reduce_sum(rows * inputs["rows"]) + tf.reduce_sum(
            variables["head/kernel"] * inputs["head"]
        )

    return Problem(
        name="lookup",
        initial={
            "embedding/table": random.randn(6, 3),
            "head/kernel": random.randn(3, 2),
        },
        inputs={
            "ids": random.randint(0, 4, size=(STEPS, 5)),
            "rows": random.randn(STEPS, 5, 3),
            "head": random.randn(STEPS, 3, 2),
        },
        loss=loss,
    )


DENSE, SPARSE, LINEAR, LOOKUP = dense(), sparse(), linear(), lookup()


# What `seeded` makes: problems whose gradients are Tensors, or IndexedSlices too.
PROBLEM_KINDS = ("dense", "sparse")


def seeded(kind, given_gradients, seed=0):
    """The 'dense' or 'sparse' problem, with gradients that do not depend on weights?"""
    if given_gradients:
        return {"dense": linear, "sparse": lookup}[kind](seed)
    return {"dense": dense, "sparse": sparse}[kind](seed)


_runs = []


def global_step():
    """The global step of the run that makes its optimizer now."""
    return _runs[-1].global_step


def variables():
    """The variables, by name, of the run that makes its optimizer now."""
    return _runs[-1].variables


@contextlib.contextmanager
def _current(run):
    _runs.append(run)
    try:
        yield
    finally:
        _runs.pop()


def typed(array, dtype):
    """`array` in `dtype` if it holds reals; integers stay as they are."""
    return array.astype(dtype) if array.dtype.kind == "f" else array


class GraphRun:
    """`problem` in a graph and session of its own, `make_optimizer()` on it.

    Attributes: `variables` by name, `optimizer`, `session`, `graph`, `train_op`.
    """

    def __init__(
        self, problem, make_optimizer, dtype="float32", use_resource=True, config=None
    ):
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
            with _current(self):
                self.optimizer = make_optimizer()
            self.loss = problem.loss(self.variables, self._placeholders)
            self.train_op = self.optimizer.minimize(self.loss, self.global_step)
            self.saver = tf.train.Saver()
            self.session = tf.Session(graph=self.graph, config=config)
            self.session.run(tf.global_variables_initializer())

    def train(self, steps):
        """Runs the steps numbered `steps`."""
        for step in steps:
            self.session.run(self.train_op, self.feed(step))

    def feed(self, step):
        """What to feed to run the step numbered `step`."""
        return {
            placeholder: self._problem.inputs[name][step]
            for name, placeholder in self._placeholders.items()
        }

    def values(self):
        """The state of the training, as one flat float64 array."""
        with self.graph.as_default():
            return _flat(self.session.run(self._state()))

    def _state(self):
        # Not what `variables()` says: the references' wrappers raise there.
        made = [v for v in tf.global_variables() if made_by_optimizer(v)]
        return state(self.variables, self.optimizer, made)


def made_by_optimizer(var):
    """Whether `var`, of a run, is not its global step or a hyperparameter."""
    return var.op.name != "global_step" and not var.op.name.startswith("hyper")


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
        self.global_step = tf.Variable(
            0, dtype=tf.int64, name="global_step", use_resource=True, trainable=False
        )
        with _current(self):
            self.optimizer = make_optimizer()
        self._step = tf.function(self._minimize) if compiled else self._minimize

    def _minimize(self, inputs):
        self.optimizer.minimize(
            lambda: self._loss(inputs),
            global_step=self.global_step,
            var_list=list(self.variables.values()),
        )

    def _loss(self, inputs):
        return self._problem.loss(self.variables, inputs)

    def train(self, steps):
        """Runs the steps numbered `steps`."""
        for step in steps:
            inputs = {}
            for name, values in self._problem.inputs.items():
                kind = self._dtype if values.dtype.kind == "f" else None
                inputs[name] = tf.constant(values[step], kind)
            self._step(inputs)

    def values(self):
        """The state of the training, as one flat float64 array."""
        tensors = state(self.variables, self.optimizer, self.optimizer.variables())
        return _flat([tensor.numpy() for tensor in tensors])


class MirroredRun(EagerRun):
    """`problem` on two replicas, each with half of the loss."""

    def __init__(self, problem, make_optimizer, dtype="float32"):
        self.strategy = mirrored_strategy()
        with self.strategy.scope():
            super().__init__(problem, make_optimizer, dtype)
        # TensorFlow 1.15 calls it experimental_run_v2.
        run = getattr(self.strategy, "run", None) or self.strategy.experimental_run_v2
        self._step = tf.function(lambda inputs: run(self._minimize, args=(inputs,)))

    def _loss(self, inputs):
        # The gradients of the replicas are added.
        return super()._loss(inputs) / self.strategy.num_replicas_in_sync

    def values(self):
        """The state of the training; fails if the replicas differ."""
        made = self.optimizer.variables()
        # Outside of a replica `get_slot` has the first one's slots, whatever it is
        # asked for: through them, the second's.
        first = state(
            {name: _copy(var, 0) for name, var in self.variables.items()},
            self.optimizer,
            [_copy(var, 0) for var in made],
        )
        mirrored = [*self.variables.values(), *made]
        second = {id(_copy(var, 0)): _copy(var, 1) for var in mirrored}
        second = [second.get(id(var), var) for var in first]
        first, second = [_flat([v.numpy() for v in vs]) for vs in (first, second)]
        np.testing.assert_array_equal(first, second)
        return first


def _copy(var, replica):
    return var.values[replica] if hasattr(var, "values") else var


def slots(variables, optimizer):
    """The slots that exist, in the order of the names of slots, then of variables."""
    try:
        names = optimizer.get_slot_names()
    except AttributeError:
        # Some of the references' wrappers do not hand this on.
        optimizer = getattr(optimizer, "_optimizer", None) or optimizer._opt
        names = optimizer.get_slot_names()
    found = [
        optimizer.get_slot(var, name) for name in names for var in variables.values()
    ]
    return [slot for slot in found if slot is not None]


def state(variables, optimizer, made):
    """The variables, their slots, and whatever else is in `made`, by name."""
    known = list(variables.values()) + slots(variables, optimizer)
    others = [var for var in made if all(var is not other for other in known)]
    return known + sorted(others, key=lambda var: var.name)


def _flat(arrays):
    return np.concatenate([np.asarray(a).astype(np.float64).ravel() for a in arrays])

"""One problem whose steps have good gradients and every kind of bad ones.

Its gradients are its inputs: a step's fault is in the data, so that one graph serves
all faults.
"""

import re

import numpy as np
import tensorflow.compat.v1 as tf

from optimizers.problems import EagerRun, GraphRun, Problem, made_by_optimizer, slots

# The variables, by what is particular about each.
TABLE, KERNEL, BIAS = "embedding/table", "head/kernel", "layer/bias"
ZEROS, SCALAR, EMPTY, EMPTY_TABLE = "zeros", "scalar", "empty", "empty_table"
SPARSE = (TABLE, EMPTY_TABLE)

_SHAPES = {
    TABLE: (1000, 3),
    KERNEL: (3, 2),
    BIAS: (3,),
    ZEROS: (2, 2),
    SCALAR: (),
    EMPTY: (0, 3),
    EMPTY_TABLE: (0, 2),
}

# The numbers of the steps.
GOOD = range(4)
# What the bad steps would be without their bad number.
REPAIRED = 4
NAN, INF, NAN_ROW, ALL_ZERO, NO_ROWS = range(5, 10)
_STEPS = 10
# Where a bad number is: an element of the kernel, or one of a row of the table.
BAD_ELEMENT = (1, 0)
BAD_ROW, BAD_COLUMN = 2, 1


def _problem():
    random = np.random.RandomState(7)
    initial = {name: random.randn(*shape) for name, shape in _SHAPES.items()}
    initial = {name: np.asarray(value) for name, value in initial.items()}
    initial[ZEROS] = np.zeros(_SHAPES[ZEROS])
    inputs = {
        name: random.randn(_STEPS, *shape)
        for name, shape in _SHAPES.items()
        if name not in SPARSE
    }
    # One row twice, three never; the bad row comes once.
    ids = np.array([4, 0, 4, BAD_ROW])
    inputs["ids"] = np.tile(ids, [_STEPS, 1])
    inputs["rows"] = random.randn(_STEPS, len(ids), _SHAPES[TABLE][1])
    for name, values in inputs.items():
        values[REPAIRED:ALL_ZERO] = values[REPAIRED]
        if name != "ids":
            values[ALL_ZERO] = 0.0
    # How many of the ids count.
    inputs["count"] = np.full([_STEPS], len(ids))
    inputs["count"][NO_ROWS] = 0
    for step, number in [(NAN, np.nan), (INF, -np.inf)]:
        inputs[KERNEL][(step, *BAD_ELEMENT)] = number
    inputs["rows"][NAN_ROW, 3, BAD_COLUMN] = np.nan
    return Problem(name="faults", initial=initial, inputs=inputs, loss=_loss)


def _loss(variables, inputs):
    count = inputs["count"]
    rows = tf.gather(variables[TABLE], inputs["ids"][:count])
    none = tf.gather(variables[EMPTY_TABLE], inputs["ids"][:0])
    terms = [tf.reduce_sum(rows * inputs["rows"][:count]), tf.reduce_sum(none)]
    terms += [
        tf.reduce_sum(variables[name] * inputs[name])
        for name in _SHAPES
        if name not in SPARSE
    ]
    return tf.add_n(terms)


PROBLEM = _problem()


class _Restartable:
    """A run that can start again."""

    def state(self):
        """Every variable that training may change: {name: array}."""
        found = dict(self.variables)
        for name, var in self.variables.items():
            slots_of = slots({name: var}, self.optimizer)
            found.update({f"{name}/slot {i}": s for i, s in enumerate(slots_of)})
        known = {id(var) for var in found.values()}
        others = [v for v in self.made() if id(v) not in known]
        # Eager mode may number the names.
        found.update({re.sub(r"_\d+:0$", ":0", v.name): v for v in others})
        found["the global step"] = self.global_step
        return {k: np.array(v) for k, v in self.read(found).items()}

    def after(self, *steps):
        """The state after `steps`, from the start; computed once."""
        known = vars(self).setdefault("_after", {})
        if steps not in known:
            self.restart()
            self.train(steps)
            known[steps] = self.state()
        return known[steps]


class FaultsInGraph(_Restartable, GraphRun):
    def __init__(self, make_optimizer):
        super().__init__(PROBLEM, make_optimizer)
        # Their values, and not their initializers again: a moving average starts with
        # the value that its variable has then.
        with self.graph.as_default():
            variables = tf.global_variables()
            values = self.session.run(variables)
            feeds = [tf.placeholder(v.dtype, v.shape) for v in values]
            self._restart = tf.group(*map(tf.assign, variables, feeds))
        self._initial = dict(zip(feeds, values))

    def restart(self):
        self.session.run(self._restart, self._initial)

    def largest_temporary(self, step):
        """The bytes of the largest Tensor that the step numbered `step` allocates."""
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self.session.run(self.train_op, self.feed(step), options, metadata)
        return max(
            memory.total_bytes
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
            for memory in node.memory
        )

    def made(self):
        with self.graph.as_default():
            return [v for v in tf.global_variables() if made_by_optimizer(v)]

    def read(self, variables):
        return self.session.run(variables)


class FaultsInEagerMode(_Restartable, EagerRun):
    def __init__(self, make_optimizer):
        self._make_optimizer = make_optimizer
        self.restart()

    def restart(self):
        EagerRun.__init__(self, PROBLEM, self._make_optimizer)

    def made(self):
        return self.optimizer.variables()

    def read(self, variables):
        return {name: var.numpy() for name, var in variables.items()}

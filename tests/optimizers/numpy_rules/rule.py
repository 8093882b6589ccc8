"""What the rules in NumPy share: one variable, its slots, and the two gradients."""

import numpy as np


class Rule:
    """An update rule for one variable, in float64.

    For a subclass to write: `initial`, and `update`; or `dense` and `sparse`.

    Attributes: `w`, the variable, and `slots`, {name: array}.
    """

    # {name of a slot: what it starts with}
    initial = {}
    # Does a sparse gradient leave all rows alone that it does not have?
    lazy = True

    def __init__(self, w, store, **hyper):
        """`store` rounds an array as the variable's type does."""
        self.w = w
        self.store = store
        self.slots = {name: np.full(w.shape, x) for name, x in self.initial.items()}
        self.t = 0
        self.__dict__.update(hyper)

    def step(self, gradient):
        """A step with an array, or with {row: gradient}."""
        self.t += 1
        if isinstance(gradient, dict):
            self.sparse(gradient)
        else:
            self.dense(gradient)
        self.w = self.store(self.w)
        self.slots = {name: self.store(x) for name, x in self.slots.items()}

    def update(self, w, g, **slots):
        """The new w and the new slots, of arrays of one shape."""
        raise NotImplementedError

    def dense(self, g):
        self.w, *new = self.update(self.w, g, **self.slots)
        self.slots = dict(zip(self.slots, new))

    def sparse(self, rows):
        if not self.lazy:
            self.dense(self.filled(rows))
            return
        i = list(rows)
        g = np.array([rows[row] for row in i]).reshape((len(i), *self.w.shape[1:]))
        old = {name: x[i] for name, x in self.slots.items()}
        w, *new = self.update(self.w[i], g, **old)
        self.w = self.with_rows(self.w, i, w)
        for name, x in zip(old, new):
            self.slots[name] = self.with_rows(self.slots[name], i, x)

    def filled(self, rows):
        """The dense gradient that {row: gradient} stands for."""
        g = np.zeros(self.w.shape)
        for i, row in rows.items():
            g[i] = row
        return g

    @staticmethod
    def with_rows(x, i, rows):
        x = x.copy()
        x[i] = rows
        return x

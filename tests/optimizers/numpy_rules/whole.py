"""The rules that look at a whole variable: LARS, Shampoo and GGT."""

import numpy as np

from optimizers.numpy_lars import NumpyLars, NumpyLars114
from optimizers.numpy_rules.rule import Rule
from optimizers.numpy_shampoo import NumpyShampoo


class Lars(Rule):
    initial = {"momentum": 0.0}
    rule = NumpyLars

    def __init__(self, w, store, **hyper):
        super().__init__(w, store)
        self._rule = self.rule(**hyper)

    def dense(self, g):
        self._run(self._rule.step, g)

    def sparse(self, rows):
        self._run(self._rule.sparse_step, rows)

    def _run(self, step, gradient):
        self._rule.velocity["w"] = self.slots["momentum"].copy()
        self.w = step("w", self.w, gradient)
        self.slots["momentum"] = self._rule.velocity["w"]


class Lars114(Lars):
    rule = NumpyLars114


class Shampoo(Rule):
    def __init__(self, w, store, **hyper):
        super().__init__(w, store)
        # A scalar is a vector of one element.
        self._shape = w.shape or (1,)
        self._rule = NumpyShampoo(self._shape, **hyper)

    def dense(self, g):
        shape = self._shape
        w = self._rule.step(self.t, self.w.reshape(shape), g.reshape(shape))
        self.w = w.reshape(self.w.shape)

    def sparse(self, rows):
        rule = self._rule
        if self._shape[0] <= rule.max_matrix_size or rule.gbar_decay:
            self.dense(self.filled(rows))
            return
        i = list(rows)
        g = self.filled(rows)[i]
        self.w = rule.sparse_step(self.t, self.w, g, i)


class Ggt(Rule):
    lazy = False

    def __init__(self, w, store, **hyper):
        super().__init__(w, store, **hyper)
        self._m = np.zeros(w.size)
        self._buffer = np.zeros([self.window, w.size])

    def dense(self, g):
        self._m = self.beta1 * self._m + (1 - self.beta1) * g.ravel()
        self._buffer[(self.t - 1) % self.window] = self._m
        matrix = self._buffer.T / np.sqrt(min(self.t, self.window))
        s, u = np.linalg.eigh(matrix.T @ matrix + self.svd_eps * np.eye(self.window))
        s = np.maximum(s, self.svd_eps)
        image, inner = matrix @ u, u.T @ (matrix.T @ self._m)
        step = image @ (inner / (np.sqrt(s) + self.sigma_eps) ** 3)
        least = np.sqrt(s).min()
        if least > self.eps:
            step = step + (self._m - image @ (inner / s)) / least
        self.w = self.w - (self.learning_rate * step).reshape(self.w.shape)

"""The Adam family."""

import numpy as np

from optimizers.numpy_rules.rule import Rule


class Adam(Rule):
    initial = {"m": 0.0, "v": 0.0}

    def update(self, w, g, m, v):
        m = self.beta1 * m + (1 - self.beta1) * g
        v = self.beta2 * v + (1 - self.beta2) * g**2
        rate = self.learning_rate * np.sqrt(1 - self.beta2**self.t)
        rate /= 1 - self.beta1**self.t
        return w - rate * self.direction(m, g) / (np.sqrt(v) + self.epsilon), m, v

    def direction(self, m, g):
        return m


class AdamGS(Adam):
    lazy = False


class Nadam(Adam):
    lazy = False

    def direction(self, m, g):
        return self.beta1 * m + (1 - self.beta1) * g

    def sparse(self, rows):
        # Weights move in the rows of the gradient only.
        before = self.w
        super().sparse(rows)
        self.w = self.with_rows(before, list(rows), self.w[list(rows)])


class AdaMax(Rule):
    initial = {"m": 0.0, "v": 0.0}

    def update(self, w, g, m, v):
        m = self.beta1 * m + (1 - self.beta1) * g
        v = np.maximum(self.beta2 * v, np.abs(g))
        rate = self.learning_rate / (1 - self.beta1**self.t)
        return w - rate * m / (v + self.epsilon), m, v

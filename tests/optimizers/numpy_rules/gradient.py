"""Momentum, Adagrad, and the rules that compare signs."""

import math

import numpy as np

from optimizers.numpy_rules.rule import Rule


class Momentum(Rule):
    initial = {"momentum": 0.0}

    def update(self, w, g, momentum):
        v = self.momentum * momentum + g
        ahead = g + self.momentum * v if self.use_nesterov else v
        return w - self.learning_rate * ahead, v


class Adagrad(Rule):
    initial = {"accumulator": 0.1}

    def __init__(self, w, store, initial_accumulator_value=0.1, **hyper):
        super().__init__(w, store, **hyper)
        self.slots["accumulator"][...] = initial_accumulator_value

    def update(self, w, g, accumulator):
        a = accumulator + g**2
        return w - self.learning_rate * g / np.sqrt(a), a


class Sign(Rule):
    initial = {"m": 0.0}
    lazy = False

    def update(self, w, g, m):
        m = self.beta * m + (1 - self.beta) * g
        return w - self.learning_rate * self.factor(np.sign(g) * np.sign(m)) * g, m


class AddSign(Sign):
    def factor(self, sign):
        return self.alpha + sign


class PowerSign(Sign):
    e = math.e

    def sparse(self, rows):
        # That of float32, for all types, as TensorFlow 1.15 has it.
        self.e = float(np.float32(math.e))
        super().sparse(rows)

    def factor(self, sign):
        return self.e ** (float(np.float32(math.log(self.base))) * sign)

"""Decoupled weight decay, before the step of another rule."""

from optimizers.numpy_rules.adam import Adam
from optimizers.numpy_rules.gradient import Adagrad, Momentum
from optimizers.numpy_rules.rule import Rule


class Decayed(Rule):
    def dense(self, g):
        self.w = self.w - self.weight_decay * self.w
        super().dense(g)

    def sparse(self, rows):
        i = list(rows)
        decayed = self.w[i] - self.weight_decay * self.w[i]
        self.w = self.with_rows(self.w, i, decayed)
        if self.lazy:
            super().sparse(rows)
        else:
            super().dense(self.filled(rows))


class AdamW(Decayed, Adam):
    lazy = False


class MomentumW(Decayed, Momentum):
    pass


class AdagradW(Decayed, Adagrad):
    pass

"""LARS in NumPy, in float64, and a small problem on which to compare with it."""

import numpy as np

import contrib_opt


class NumpyLars:
    """The equations of contrib_opt/optimizers/lars.py for float64 arrays."""

    def __init__(
        self,
        learning_rate,
        momentum=0.9,
        weight_decay=0.0001,
        eeta=0.001,
        epsilon=0.0,
        use_nesterov=False,
    ):
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.eeta = eeta
        self.epsilon = epsilon
        self.use_nesterov = use_nesterov
        self.velocity = {}

    def trust_ratio(self, w, g):
        w_norm, g_norm = np.sqrt(np.sum(w * w)), np.sqrt(np.sum(g * g))
        if w_norm == 0 or g_norm == 0:
            return 1.0
        return self.eeta * w_norm / (g_norm + self.weight_decay * w_norm + self.epsilon)

    def new_velocity(self, name, g):
        self.velocity[name] = self.momentum * self.velocity.get(name, 0.0) + g
        if self.use_nesterov:
            return g + self.momentum * self.velocity[name]
        return self.velocity[name]

    def step(self, name, w, g):
        """The variable `name`, now `w`, after a step with the dense gradient `g`."""
        rate = self.learning_rate * self.trust_ratio(w, g)
        return w - self.new_velocity(name, rate * (g + self.weight_decay * w))

    def sparse_step(self, name, w, rows):
        """The same with a sparse gradient: a dict from row number to gradient."""
        velocity = self.velocity.setdefault(name, np.zeros_like(w))
        w = w.copy()
        for i, g in rows.items():
            velocity[i] = self.momentum * velocity[i] + g
            look_ahead = g + self.momentum * velocity[i]
            w[i] -= self.learning_rate * (
                look_ahead if self.use_nesterov else velocity[i]
            )
        return w


class NumpyLars114(NumpyLars):
    """The equations of contrib_opt/tf114.py."""

    def step(self, name, w, g):
        rate = self.learning_rate * self.trust_ratio(w, g)
        return w - rate * self.new_velocity(name, g)


RULES = {
    "lars": (contrib_opt.LARSOptimizer, NumpyLars),
    "tf114": (contrib_opt.tf114.LARSOptimizer, NumpyLars114),
}

# Large enough that each part of the equations moves the weights.
HYPER = {"learning_rate": 0.5, "momentum": 0.9, "weight_decay": 0.05, "eeta": 0.2}

START = {
    "kernel": np.array([[1.0, -2.0], [3.0, 0.5], [-1.0, 2.0]]),
    "bias": np.array([0.5, -1.5]),
}
TARGET = {
    "kernel": np.array([[0.5, -1.0], [-2.0, 0.25], [4.0, 1.0]]),
    "bias": np.array([-1.0, 1.0]),
}
CURVATURE = {"kernel": 2.0, "bias": 0.5}


def gradient(name, w):
    """The gradient of the loss: CURVATURE / 2 * |w - TARGET|^2, summed over names."""
    return CURVATURE[name] * (w - TARGET[name])


def trajectory(numpy_rule, steps, scale=1.0, learning_rates=None):
    """The weights after `steps` steps on the loss times `scale`, as {name: array}."""
    weights = dict(START)
    for i in range(steps):
        if learning_rates is not None:
            numpy_rule.learning_rate = learning_rates[i]
        for name, w in weights.items():
            weights[name] = numpy_rule.step(name, w, scale * gradient(name, w))
    return weights

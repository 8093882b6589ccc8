"""Shampoo in NumPy, in float64, by Kronecker products on the flattened gradient."""

import numpy as np


class NumpyShampoo:
    """The equations of contrib_opt/optimizers/shampoo.py for one float64 array."""

    def __init__(
        self,
        shape,
        max_matrix_size=768,
        gbar_decay=0.0,
        gbar_weight=1.0,
        mat_gbar_decay=1.0,
        mat_gbar_weight=1.0,
        learning_rate=1.0,
        svd_interval=1,
        precond_update_interval=1,
        epsilon=1e-4,
        alpha=0.5,
    ):
        self.__dict__.update(locals())
        self.gbar = np.zeros(shape)
        self.mats = [np.zeros([d, d]) for d in shape]
        self.roots = [np.eye(d) for d in shape]

    def step(self, t, w, g):
        """The weights after step `t`, from 1, with the dense gradient `g`."""
        self.gbar = self.gbar_decay * self.gbar + self.gbar_weight * g
        self._precondition(t, g, divide=True)
        return w - self.learning_rate * self._preconditioned(self.roots, self.gbar)

    def sparse_step(self, t, w, rows, indices):
        """The same with the gradient `rows` of the rows `indices` of `w` alone."""
        g = np.zeros_like(w)
        g[indices] = rows
        self._precondition(t, g, divide=False)
        # Outside of these rows g is 0.
        return w - self.learning_rate * self._preconditioned(self.roots, g)

    def _precondition(self, t, g, divide):
        n = g.ndim
        for i, size in enumerate(g.shape):
            flat = np.moveaxis(g, i, 0).reshape(size, g.size // max(size, 1))
            new = self.mat_gbar_weight * flat @ flat.T
            if size > self.max_matrix_size:
                new = np.diag(np.diag(new)) / (max(size, 1) if divide and n > 1 else 1)
                self.mats[i] = self.mat_gbar_decay * self.mats[i] + new
                diagonal = np.diag(self.mats[i])
                positive = np.where(diagonal > 0, diagonal, 1.0)
                powers = np.where(diagonal > 0, positive ** (-self.alpha / n), 0.0)
                self.roots[i] = np.diag(powers)
                continue
            if t % self.precond_update_interval < 1:
                new = self.precond_update_interval * new
                self.mats[i] = self.mat_gbar_decay * self.mats[i] + new
            if t % self.svd_interval < 1:
                u, s, v = np.linalg.svd(
                    self.mats[i] / max(size, 1) + self.epsilon * np.eye(size)
                )
                s = np.maximum(s, self.epsilon) ** (-self.alpha / n)
                self.roots[i] = u @ np.diag(s) @ v

    def _preconditioned(self, roots, g):
        if not g.size:
            return g
        product = np.ones([1, 1])
        for root in roots:
            product = np.kron(product, root)
        return (product @ g.ravel()).reshape(g.shape)

"""What AddSign and PowerSign share.

For a variable w with gradient g, where m is a moving average of the gradients:

    m <- beta * m + (1 - beta) * g
    w <- w - learning_rate * factor(sign(g) * sign(m)) * g

with the new m. A sparse gradient (IndexedSlices) is 0 in the rows that it does not
have: there m decays, and w stays as it is.

Symbols: m the slot 'm', which starts at 0; factor is each optimizer's own.

Source: I. Bello, B. Zoph, V. Vasudevan, Q. V. Le, "Neural Optimizer Search with
Reinforcement Learning", https://arxiv.org/abs/1709.07417.

Hyperparameters pass through TensorFlow's default float type, as in 1.15: given as a
Python number, 0.9 has float32's precision for float64 variables too.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.adam import moving_average
from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    compute_dtype,
)
from contrib_opt.optimizers.kernels import run_kernel, store
from contrib_opt.optimizers.rows import read_rows, write_rows
from contrib_opt.optimizers.threads import one_at_a_time
from contrib_opt.optimizers.unwrap import tensorflow_variable


def sign_step(w, m, g, learning_rate, beta, factor):
    """One step.

    Args:
      w, m, g: variable, moving average and gradient, Tensors of one shape and type.
      learning_rate, beta: scalars of that type.
      factor: function of sign(g) * sign(m), a Tensor of -1, 0 and 1.

    Returns:
      The new w and m.
    """
    m = moving_average(m, g, beta)
    return w - learning_rate * factor(tf.sign(g) * tf.sign(m)) * g, m


class SignOptimizer(ContribOptimizer):
    """An optimizer that compares the signs of a gradient and of its moving average.

    For a subclass to write:
      `_kernel`: the name of TensorFlow's kernel for dense gradients.
      `_coefficient(dtype)`: the hyperparameter of its own, {the kernel's name for it:
        a scalar Tensor of `dtype`}.
      `_factor(sign_gm, sign_decay, **coefficient)`: the factor.
    """

    _kernel = None

    def __init__(self, learning_rate, beta, sign_decay_fn, use_locking, name):
        check_hyperparameter("learning_rate", learning_rate)
        check_hyperparameter("beta", beta, minimum=0)
        if not (sign_decay_fn is None or callable(sign_decay_fn)):
            raise TypeError(
                "sign_decay_fn must be a function of the global step, such as "
                "contrib_opt.optimizers.sign_decay makes them, or None, got "
                f"{sign_decay_fn!r}."
            )
        super().__init__(use_locking=use_locking, name=name)
        self._learning_rate = learning_rate
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._global_step = None

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, **kwargs):
        """As in `tf.compat.v1.train.Optimizer`, but all or nothing.

        Args:
          grads_and_vars: list of (gradient, variable) pairs. A gradient is a Tensor
            of its variable's shape and dtype, IndexedSlices, or None.
          global_step: variable to increment by one after the update, or None.
            `sign_decay_fn` gets it as it is before the update.
          name: name of the operation that is returned.
          **kwargs: what else the base class of the installed TensorFlow takes.

        Returns:
          The operation that applies the gradients; None in eager mode.

        Raises:
          ValueError: no variable has a gradient, a gradient has another shape or
            dtype than its variable, or sign_decay_fn needs a global_step.
          TypeError: a gradient cannot be made a Tensor.
          RuntimeError: called in the cross-replica context of a strategy.
          InvalidArgumentError: IndexedSlices have an index out of range, or a shape
            that was unknown before does not fit (when the step runs).
            No variable and no slot has changed then.
        """
        with one_at_a_time(self):
            self._global_step = tensorflow_variable(global_step)
            try:
                return super().apply_gradients(
                    grads_and_vars, global_step, name, **kwargs
                )
            finally:
                self._global_step = None

    def _prepare(self):
        super()._prepare()
        decayed = 1.0
        if self._sign_decay_fn is not None:
            decayed = self._sign_decay_fn(self._global_step)
        self._step_values["sign_decay"] = decayed

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _scalar(self, name, dtype):
        return as_dtype(tf.convert_to_tensor(self._hyper(name)), dtype)

    def _update_dense(self, grad, var):
        m = self.get_slot(var, "m")
        dtype = var.dtype.base_dtype
        if compute_dtype(dtype) != dtype:
            values = [tf.cast(x, compute_dtype(dtype)) for x in (var, m, grad)]
            w_new, m_new = self._step(*values)
            return tf.group(
                store(var, w_new, self._use_locking), store(m, m_new, self._use_locking)
            )
        return run_kernel(
            self._kernel,
            {"var": var, "m": m},
            lr=self._scalar("learning_rate", dtype),
            sign_decay=self._scalar("sign_decay", dtype),
            beta=self._scalar("beta", dtype),
            grad=grad,
            use_locking=self._use_locking,
            **self._coefficient(dtype),
        )

    def _update_sparse(self, grad, var, indices):
        m = self.get_slot(var, "m")
        dtype = compute_dtype(var.dtype)
        rows = [read_rows(x, indices, dtype) for x in (var, m)]
        w_new, m_new = self._step(*rows, tf.cast(grad, dtype))
        # The rows were read before the table is written, the decayed table before its
        # rows are.
        with tf.control_dependencies([w_new, m_new]):
            decayed = store(
                m, tf.cast(m, dtype) * self._scalar("beta", dtype), self._use_locking
            )
        with tf.control_dependencies([] if decayed is None else [decayed]):
            m_rows = write_rows(m, indices, m_new, self._use_locking)
        return tf.group(m_rows, write_rows(var, indices, w_new, self._use_locking))

    def _step(self, w, m, g):
        def factor(sign_gm):
            sign_decay = self._scalar("sign_decay", g.dtype)
            return self._factor(sign_gm, sign_decay, **self._coefficient(g.dtype))

        rate, beta = [self._scalar(n, g.dtype) for n in ("learning_rate", "beta")]
        return sign_step(w, m, g, rate, beta, factor)

    def _coefficient(self, dtype):
        raise NotImplementedError

    def _factor(self, sign_gm, sign_decay, **coefficient):
        raise NotImplementedError

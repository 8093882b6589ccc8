"""Adagrad that can leave its accumulators alone, for regularization losses.

For a variable w with gradient g:

    a <- a + g^2                      (not within `avoid_updating_slots()`)
    w <- w - learning_rate * g / sqrt(a)

A sparse gradient (IndexedSlices) does this to its rows and leaves the others alone.

Symbols: a the slot 'accumulator', which starts at initial_accumulator_value.

Source: J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning
and Stochastic Optimization", JMLR 12 (2011),
https://jmlr.org/papers/v12/duchi11a.html, as `tf.contrib.opt.RegAdagradOptimizer` of
TensorFlow 1.15 computes it.

Learning rates pass through TensorFlow's default float type, as in 1.15: given as a
Python number, 0.1 has float32's precision for float64 variables too.

Deviations from TensorFlow 1.15, each a case in which it failed:
- float16 and bfloat16 variables are updated in float32 and rounded when they are
  stored, and their accumulators stop at the largest finite number. In 1.15 a float16
  gradient of 256 made its accumulator infinite, and its weight never moved again.
- `avoid_updating_slots()` inside of the replicas of a strategy ends where its `with`
  block ends; in 1.15 it could stay on for the rest of the program.
- A gradient of the wrong shape is refused before anything is written.
"""

import collections
import contextlib
import numbers
import threading

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    compute_dtype,
)
from contrib_opt.optimizers.kernels import run_kernel, store
from contrib_opt.optimizers.rows import read_rows, write_rows


def adagrad_step(w, a, g, learning_rate, update_slots):
    """One step.

    Args:
      w, a, g: variable, accumulator and gradient, Tensors of one shape and type.
      learning_rate: a scalar of that type.
      update_slots: whether the accumulator grows.

    Returns:
      The new w and a.
    """
    if update_slots:
        a = a + tf.square(g)
    return w - learning_rate * g / tf.sqrt(a), a


def _thread_or_strategy():
    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    return threading.get_ident()


def bounded(x, dtype):
    """`x`, but the largest finite number of `dtype` at most."""
    return tf.minimum(x, float(dtype.max))


class RegAdagradOptimizer(ContribOptimizer, tf.train.AdagradOptimizer):
    """Adagrad whose accumulators count the gradients of some losses only.

        a <- a + g^2                      (not within `avoid_updating_slots()`)
        w <- w - learning_rate * g / sqrt(a)

    for a variable w with gradient g; a is the slot 'accumulator'. Use it to keep a
    regularization loss from slowing down the learning of the other one:

        opt = contrib_opt.RegAdagradOptimizer(0.1)
        update = opt.minimize(loss)
        with tf.control_dependencies([update]), opt.avoid_updating_slots():
            regularize = opt.minimize(strength * tf.reduce_sum(w * w))
        session.run(regularize)

    Build the regularization loss within the block too: without that and the control
    dependency, both updates run at once, each reading what the other writes, and no
    two runs need be the same.

    Works in `tf.compat.v1.Session` graphs, in eager mode, in `tf.function` and under
    distribution strategies. The source and the deviations are at the top of this
    file, contrib_opt/optimizers/reg_adagrad.py.
    """

    _hyperparameters = ("learning_rate",)

    def __init__(
        self,
        learning_rate,
        initial_accumulator_value=0.1,
        use_locking=False,
        name="RegAdagrad",
    ):
        """Makes a RegAdagrad optimizer.

        Args:
          learning_rate: the learning rate, a scalar: a number, a Tensor, a Variable,
            or a callable without arguments that returns one of these. In eager mode
            it is evaluated at each step.
          initial_accumulator_value: what the accumulators start with, a positive
            number.
          use_locking: whether to lock variables while they are updated.
          name: name of the slot variables and operations.

        Raises:
          ValueError: learning_rate is no scalar, or callable only with arguments;
            initial_accumulator_value is not a positive number.
        """
        check_hyperparameter("learning_rate", learning_rate)
        initial = initial_accumulator_value
        if not (isinstance(initial, numbers.Real) and initial > 0):
            raise ValueError(
                f"initial_accumulator_value must be a positive number, got {initial!r}."
            )
        super().__init__(learning_rate, initial, use_locking=use_locking, name=name)
        # How often each thread, or strategy, is within `avoid_updating_slots`. A count:
        # the replicas of a strategy enter one after the other, and may leave in any
        # order; their variables are updated in another thread.
        self._avoided = collections.Counter()

    @contextlib.contextmanager
    def avoid_updating_slots(self):
        """A context in which updates leave the accumulators alone.

        It counts when an update is built: in a graph where `apply_gradients` or
        `minimize` is called, in a `tf.function` when that is traced.

        Returns:
          A context manager, for `with`.
        """
        key = _thread_or_strategy()
        self._avoided[key] += 1
        try:
            yield
        finally:
            self._avoided[key] -= 1
            if not self._avoided[key]:
                del self._avoided[key]

    @property
    def _avoiding(self):
        return self._avoided[_thread_or_strategy()] > 0

    def _step_settings(self, variables):
        return super()._step_settings(variables), self._avoiding

    def _update_dense(self, grad, var):
        a = self.get_slot(var, "accumulator")
        dtype = var.dtype.base_dtype
        if compute_dtype(dtype) == dtype:
            return self._run_kernel("ApplyAdagrad", grad, var, a)
        values = [tf.cast(x, compute_dtype(dtype)) for x in (var, a, grad)]
        w_new, a_new = self._step(*values)
        updates = [store(var, w_new, self._use_locking)]
        if not self._avoiding:
            updates.append(store(a, bounded(a_new, dtype), self._use_locking))
        return tf.group(*updates)

    def _update_sparse(self, grad, var, indices):
        a = self.get_slot(var, "accumulator")
        dtype = var.dtype.base_dtype
        if compute_dtype(dtype) == dtype:
            return self._run_kernel("SparseApplyAdagrad", grad, var, a, indices=indices)
        rows = [read_rows(x, indices, compute_dtype(dtype)) for x in (var, a)]
        w_new, a_new = self._step(*rows, tf.cast(grad, compute_dtype(dtype)))
        updates = [write_rows(var, indices, w_new, self._use_locking)]
        if not self._avoiding:
            a_new = bounded(a_new, dtype)
            updates.append(write_rows(a, indices, a_new, self._use_locking))
        return tf.group(*updates)

    def _run_kernel(self, kernel, grad, var, accumulator, **rows):
        return run_kernel(
            kernel,
            {"var": var, "accum": accumulator},
            lr=self._rate(var.dtype.base_dtype),
            grad=grad,
            use_locking=self._use_locking,
            update_slots=not self._avoiding,
            **rows,
        )

    def _step(self, w, a, g):
        return adagrad_step(w, a, g, self._rate(g.dtype), not self._avoiding)

    def _rate(self, dtype):
        return as_dtype(tf.convert_to_tensor(self._hyper("learning_rate")), dtype)

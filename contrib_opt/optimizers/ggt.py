"""GGT: full-matrix Adagrad from a window of the last gradients.

All variables, in the order of their names, make one vector w, and their gradients the
vector g. At step t, from 1:

    m <- beta1 * m + (1 - beta1) * g
    B[(t - 1) mod window] <- m                    (row j of the buffer)
    M  = B^T / sqrt(min(t, window))
    K  = M^T M + svd_eps I = U diag(s) U^T
    step = M U diag((sqrt(s) + sigma_eps)^-3) U^T M^T m
           + (m - M U diag(1 / s) U^T M^T m) / min(sqrt(s))
                                                  the latter if min(sqrt(s)) > eps
    w <- w - learning_rate * step

m is row j of B: m = sqrt(min(t, window)) * M e_j, with e_j the j-th unit vector. So
M^T m = sqrt(min(t, window)) * (K - svd_eps I) e_j, and the step, without the
difference of two nearly equal vectors, is

    step = B^T U diag(f(s)) U^T e_j
    f(s) = (s - svd_eps) / (sqrt(s) + sigma_eps)^3
           + svd_eps / (s * min(sqrt(s)))         the latter if min(sqrt(s)) > eps

Symbols: w variables, g gradients, m first moment ('moment1'), B buffer
('grad_buffer'), t the number of steps taken ('global_step'); g is kept in
'flat_grad'.

Source: N. Agarwal, B. Bullins, X. Chen, E. Hazan, K. Singh, C. Zhang, Y. Zhang, "The
Case for Full-Matrix Adaptive Regularization", https://arxiv.org/abs/1806.02958, as
`tf.contrib.opt.GGTOptimizer` of TensorFlow 1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- Sparse gradients (IndexedSlices) are taken as dense ones; 1.15 refused them.
- float16 and bfloat16 variables work, and variables of several types together. The
  optimizer's own variables are float32, or float64 if a variable is.
- K and its eigenvalues are computed in float64: rounded to float32, those that are
  near svd_eps, and with them the step, change with the release of TensorFlow.
- Variables that share a name (in eager mode) have elements of their own in w.
- A step gives the same numbers in every run; 1.15 read flat_grad while it wrote it if
  beta1 was 0.5.
- A variable's constraint holds after the update; 1.15 applied it before.
- Gradients for other variables than in the first step are refused: the buffer has no
  place for them. 1.15 wrote them where others belong.
"""

import collections
import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    evaluate,
)
from contrib_opt.optimizers.kernels import colocated
from contrib_opt.optimizers.rows import write_rows

REGULARIZATION = ("eps", "svd_eps", "sigma_eps")


# Columns of the buffer that are float64 at a time.
_BLOCK = 2**14


def gram_matrix(rows):
    """B B^T in float64, for the rows of B."""
    count, size = rows.shape.as_list()

    def of_block(start):
        block = tf.cast(rows[:, start : start + _BLOCK], tf.float64)
        return tf.matmul(block, block, transpose_b=True)

    if size <= _BLOCK:
        return of_block(0)
    _, total = tf.while_loop(
        lambda start, _: start < size,
        lambda start, total: (start + _BLOCK, total + of_block(start)),
        (0, tf.zeros([count, count], tf.float64)),
        parallel_iterations=1,
        back_prop=False,
    )
    return total


def coefficients(s, eps, svd_eps, sigma_eps):
    """f(s), of the eigenvalues `s` of K; see the top of this file."""
    root = tf.sqrt(s)
    least = tf.reduce_min(root)
    head = (s - svd_eps) / tf.pow(root + sigma_eps, 3.0)
    return tf.where_v2(least > eps, head + svd_eps / (s * least), head)


def combination(k, row, eps, svd_eps, sigma_eps):
    """U diag(f(s)) U^T e_row, the step's coefficients of the rows of the buffer.

    Args:
      k: M^T M, a float64 Tensor of shape [window, window].
      row: the buffer's newest row, an integer Tensor.
      eps, svd_eps, sigma_eps: float64 scalars.

    Returns:
      A float64 Tensor of shape [window]; NaN if an element of `k` is not finite.
    """
    identity = tf.eye(k.shape.as_list()[0], dtype=k.dtype)
    # The decomposition would raise an error for what is not finite.
    finite = tf.reduce_all(tf.is_finite(k))
    damped = tf.where_v2(finite, k, identity) + svd_eps * identity
    s, u = tf.linalg.eigh(damped)
    s = tf.maximum(s, svd_eps)
    weights = tf.linalg.matvec(u, coefficients(s, eps, svd_eps, sigma_eps) * u[row])
    return tf.where_v2(finite, weights, tf.constant(float("nan"), k.dtype))


class GGTOptimizer(ContribOptimizer):
    """Full-matrix Adagrad from the last `window` gradients, smoothed by momentum.

    Use it for small models whose gradients are badly conditioned: it keeps window + 2
    vectors of the size of the whole model.

        m <- beta1 * m + (1 - beta1) * g;  B[(t - 1) mod window] <- m
        M = B^T / sqrt(min(t, window))
        w <- w - learning_rate * (M M^T)^(-1/2) m       (regularized)

    for all variables as one vector w with gradient g. The regularization, the source
    and the deviations are at the top of this file, contrib_opt/optimizers/ggt.py.

    Works in `tf.compat.v1.Session` graphs, in eager mode, in `tf.function` and under
    distribution strategies. One optimizer can minimize one list of variables in a
    graph or in eager mode, each with a gradient in each step, and the shapes of these
    must be known.
    """

    _hyperparameters = ("learning_rate", "beta1") + REGULARIZATION

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        use_locking=False,
        name="GGT",
        window=10,
        eps=1e-4,
        svd_eps=1e-6,
        sigma_eps=1e-2,
    ):
        """Makes a GGT optimizer.

        Each hyperparameter but window is a scalar: a number, a Tensor, a Variable, or
        a callable without arguments that returns one of these. In eager mode it is
        evaluated at each step. Numbers have float32 precision, as in 1.15.

        Args:
          learning_rate: the learning rate.
          beta1: the part of the first moment that the next step keeps, at least 0.
          use_locking: whether updates of ref variables lock them.
          name: name of the operations.
          window: how many first moments to keep; a positive integer, or a Tensor
            or callable with a constant value.
          eps: if no root of an eigenvalue of K is below it, the part of the moment
            outside of the buffer's span counts; at least 0.
          svd_eps: what is added to the diagonal of K, at least 0.
          sigma_eps: what is added to the roots of eigenvalues before they divide, at
            least 0.

        Raises:
          ValueError: a hyperparameter is no scalar, negative, or callable only with
            arguments; window is no positive integer.
        """
        check_hyperparameter("learning_rate", learning_rate)
        check_hyperparameter("beta1", beta1, minimum=0)
        check_hyperparameter("eps", eps, minimum=0)
        check_hyperparameter("svd_eps", svd_eps, minimum=0)
        check_hyperparameter("sigma_eps", sigma_eps, minimum=0)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._beta1 = beta1
        self._window = _positive_integer("window", window)
        self._eps = eps
        self._svd_eps = svd_eps
        self._sigma_eps = sigma_eps
        # A `_Model` for each graph, and one for eager mode, None.
        self._models = {}

    def _create_slots(self, var_list):
        graph = None if tf.executing_eagerly() else tf.get_default_graph()
        if graph not in self._models:
            self._models[graph] = self._new_model(var_list)
        self._model = self._models[graph]
        known = self._model.variables
        if {id(var) for var in known} != {id(var) for var in var_list}:
            raise ValueError(
                "GGTOptimizer updates all of its variables together, and began with "
                f"{[var.name for var in known]}; now {[var.name for var in var_list]} "
                "have gradients. Give it the same variables in each step, with zeros "
                "for a gradient that is None, or use an optimizer for each list."
            )

    def _new_model(self, var_list):
        variables = sorted(var_list, key=lambda var: var.name)
        for var in variables:
            if not var.shape.is_fully_defined():
                raise ValueError(
                    f"GGTOptimizer needs the shape of {var.name}, got {var.shape}."
                )
        dtype = tf.float32
        if any(var.dtype.base_dtype == tf.float64 for var in variables):
            dtype = tf.float64
        sizes = [var.shape.num_elements() for var in variables]
        size = sum(sizes)

        def make(name, shape):
            value = tf.zeros(shape, dtype)
            return self._create_non_slot_variable(value, name, variables[0])

        # Made in the order in which 1.15 made them, which counts for their names.
        return _Model(
            variables=variables,
            starts=np.cumsum([0] + sizes[:-1]).tolist(),
            sizes=sizes,
            global_step=make("global_step", []),
            grad_buffer=make("grad_buffer", [self._window, size]),
            moment1=make("moment1", [size]),
            flat_grad=make("flat_grad", [size]),
        )

    def variables(self):
        """The optimizer's own variables, in the order of their names.

        As in `tf.compat.v1.train.Optimizer`, which in eager mode leaves out what was
        made in a replica of a MirroredStrategy.
        """
        if not tf.executing_eagerly():
            return super().variables()
        model = self._models.get(None)
        return [] if model is None else sorted(model[3:], key=lambda var: var.name)

    def _update_dense(self, grad, var):
        flat_grad = self._model.flat_grad
        start, size = self._place(var)
        with contextlib.ExitStack() as stack:
            # The base class puts what is done here on the device of `var`, where a
            # replica has its copy of flat_grad.
            if not tf.distribute.has_strategy():
                stack.enter_context(colocated(flat_grad, ignore_existing=True))
            return write_rows(
                flat_grad,
                tf.range(start, start + size),
                tf.reshape(grad, [-1]),
                self._use_locking,
            )

    def _update_sparse(self, grad, var, indices):
        shape = tf.constant(var.shape.as_list(), indices.dtype)
        dtype = self._model.flat_grad.dtype.base_dtype
        rows = tf.cast(grad, dtype)
        return self._update_dense(
            tf.scatter_nd(indices[:, tf.newaxis], rows, shape), var
        )

    def _place(self, var):
        """Where `var`, a variable or a replica's copy of one, begins; and its size."""
        model = self._model
        for known, start, size in zip(model.variables, model.starts, model.sizes):
            if any(var is copy for copy in (known, *_copies(known))):
                return start, size
        raise AssertionError(var.name)

    def _finish(self, update_ops, name_scope):
        model = self._model
        # The gradients are in flat_grad now.
        with tf.control_dependencies([op for op in update_ops if op is not None]):
            step, writes = self._step()
        with tf.control_dependencies(writes):
            updates = [
                self._move(var, step[start : start + size])
                for var, start, size in zip(model.variables, model.starts, model.sizes)
            ]
        return tf.group(*updates, name=name_scope)

    def _step(self):
        """The step for all variables, and the operations that wrote the state."""
        model = self._model
        dtype = model.flat_grad.dtype.base_dtype
        hyper = {
            # Through TensorFlow's default float type, as in 1.15.
            name: tf.convert_to_tensor(self._hyper(name))
            for name in self._hyperparameters
        }
        t = _value(model.global_step) + 1.0
        row = tf.math.floormod(tf.cast(t, tf.int32) - 1, self._window)
        beta1 = as_dtype(hyper["beta1"], dtype)
        moment = beta1 * _value(model.moment1) + (1.0 - beta1) * _value(model.flat_grad)
        with tf.control_dependencies([t, moment]):
            writes = [
                tf.assign(model.global_step, t, use_locking=self._use_locking),
                tf.assign(model.moment1, moment, use_locking=self._use_locking),
                write_rows(
                    model.grad_buffer,
                    row[tf.newaxis],
                    moment[tf.newaxis],
                    self._use_locking,
                ),
            ]
        with tf.control_dependencies(writes):
            buffer = _value(model.grad_buffer)
        filled = tf.cast(tf.minimum(t, float(self._window)), tf.float64)
        weights = combination(
            gram_matrix(buffer) / filled,
            row,
            *[as_dtype(hyper[name], tf.float64) for name in REGULARIZATION],
        )
        step = tf.linalg.matvec(buffer, tf.cast(weights, dtype), transpose_a=True)
        return as_dtype(hyper["learning_rate"], dtype) * step, writes

    def _move(self, var, step):
        """var <- var - step, within the variable's constraint."""
        dtype = step.dtype
        value = _value(var)
        moved = tf.cast(
            tf.cast(value, dtype) - tf.reshape(step, var.shape), value.dtype
        )
        # In TensorFlow 1.15 only the copies of a mirrored variable tell.
        constraint = _copies(var)[0].constraint
        if constraint is not None:
            moved = constraint(moved)
        return tf.assign(var, moved, use_locking=self._use_locking)


# The variables of a graph, or of eager mode; where each begins in the flat vectors, how
# many elements it has; and the optimizer's own variables.
_Model = collections.namedtuple(
    "_Model",
    [
        "variables",
        "starts",
        "sizes",
        "global_step",
        "grad_buffer",
        "moment1",
        "flat_grad",
    ],
)


def _copies(var):
    """The copies of a mirrored variable; of another one, itself."""
    return tf.distribute.get_strategy().experimental_local_results(var)


def _value(var):
    # Not `convert_to_tensor`: it reads a ref variable without waiting for anything.
    return var.read_value()


def _positive_integer(name, value):
    """`value` as a Python integer; ValueError if it is none, or below 1."""
    known = evaluate(value)
    if tf.is_tensor(known) or hasattr(known, "assign"):
        known = tf.get_static_value(tf.convert_to_tensor(known))
    try:
        if np.size(known) == 1 and int(known) == known and known >= 1:
            return int(known)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"{name} must be a positive integer, known when it is given; got {value!r}."
    )

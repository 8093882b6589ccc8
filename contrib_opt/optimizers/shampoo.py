"""Shampoo: Adagrad with a preconditioner for each dimension of a variable.

For a variable w of shape d_1 x ... x d_n with gradient g, at step t:

    gbar <- gbar_decay * gbar + gbar_weight * g

    for each dimension i, with g_(i) the gradient as a matrix of d_i rows:
        if d_i <= max_matrix_size:
            G_i <- mat_gbar_decay * G_i
                   + mat_gbar_weight * precond_update_interval * g_(i) g_(i)^T
                   when t is a multiple of precond_update_interval
            H_i <- max(G_i / d_i + epsilon I, epsilon)^(-alpha / n)
                   when t is a multiple of svd_interval
        else, with G_i and H_i vectors:
            G_i <- mat_gbar_decay * G_i + mat_gbar_weight * (row sums of g_(i)^2) / d_i
                   (for a vector, n = 1, not divided by d_1)
            H_i <- G_i^(-alpha / n) where G_i > 0, else 0

    w <- w - learning_rate * (gbar, contracted with each H_i along dimension i)

The power of a matrix is that of its eigenvalues, and max() is taken of these. With
`use_iterative_root` there is no max(), and the power comes from the iterations in
matrix_functions.py: a square root, and the inverse p-th root of that, 1 / p being
2 alpha / n.

An interval need not be an integer: "multiple" is floormod(t, interval) < 1. A
gbar_decay or mat_gbar_decay that is the number 0 leaves its slot as it was: the new
value is used and not kept.

A sparse gradient (IndexedSlices), with rows of the same index summed first, counts as
a dense one if d_1 <= max_matrix_size or gbar_decay is not the number 0. Otherwise only
its rows of w, their elements of G_1 and the G_i of the other dimensions are updated,
with g these rows, gbar_weight 1, and no division by d_i in the vectors G_i.

Symbols: t the global step plus 1, gbar the slot 'gbar', G_i the slots 'Gbar_0',
'Gbar_1', ..., and H_i the slots 'H_0', 'H_1', ... if svd_interval is more than 1.

Source: V. Gupta, T. Koren, Y. Singer, "Shampoo: Preconditioned Stochastic Tensor
Optimization", https://arxiv.org/abs/1802.09568, as `tf.contrib.opt.ShampooOptimizer`
of TensorFlow 1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- float64, float16 and bfloat16 variables work, in eager mode too. Preconditioners of
  half-precision variables are float32, and so is the arithmetic.
- A scalar is preconditioned as a vector of one element; 1.15 divided by its rank, 0.
- In eager mode the global step is read at each step; 1.15 read it once.
- svd_interval may be a Tensor, a Variable or a callable; callables may also have no
  argument.
- mat_gbar_decay may have any value where the first dimension of a variable with a
  sparse gradient is above max_matrix_size; 1.15 asserted 1.
- The powers come from float64 eigenvalues, since those of float32 singular values
  change with the release of TensorFlow; what is not finite becomes NaN.
- The slots of a partitioned variable can be saved by a Saver. Each part counts as a
  variable of its own, with its own preconditioners.
- A sparse gradient of a resource variable updates G_1 before it is read; 1.15 did the
  one or the other first.
- A matrix root that `use_iterative_root` cannot find is refused before any update.
"""

import functools
import inspect
import numbers

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers import matrix_functions
from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    check_scalar,
    check_step,
    compute_dtype,
    evaluate,
)
from contrib_opt.optimizers.rows import read_rows, write_rows
from contrib_opt.optimizers.unwrap import tensorflow_variable


def outer_product(g, axis):
    """g_(axis) g_(axis)^T: `g` times itself, summed over all dimensions but `axis`."""
    shape = g.shape.as_list()
    if axis == 0:
        rows = tf.reshape(g, [shape[0], -1])
        return tf.matmul(rows, rows, transpose_b=True)
    if axis == len(shape) - 1:
        columns = tf.reshape(g, [-1, shape[axis]])
        return tf.matmul(columns, columns, transpose_a=True)
    others = [i for i in range(len(shape)) if i != axis]
    return tf.tensordot(g, g, axes=(others, others))


def sums_of_squares(g, axis):
    """The diagonal of `outer_product`."""
    others = [i for i in range(g.shape.ndims) if i != axis]
    return tf.reduce_sum(tf.square(g), axis=others) if others else tf.square(g)


def matrix_power(matrix, exponent, epsilon):
    """(matrix + epsilon I)^exponent, with no eigenvalue below epsilon.

    Args:
      matrix: a symmetric positive semidefinite matrix, a Tensor.
      exponent: a number or a float64 Tensor.
      epsilon: a float64 Tensor.

    Returns:
      A Tensor of the shape and type of `matrix`; NaN if an element is not finite.
    """
    identity = tf.eye(matrix.shape.as_list()[0], dtype=tf.float64)
    damped = tf.cast(matrix, tf.float64) + epsilon * identity
    # The decomposition would raise an error for what is not finite.
    finite = tf.reduce_all(tf.is_finite(damped))
    eigenvalues, vectors = tf.linalg.eigh(tf.where_v2(finite, damped, identity))
    powers = tf.pow(tf.maximum(eigenvalues, epsilon), exponent)
    power = tf.matmul(vectors * powers, vectors, transpose_b=True)
    nan = tf.constant(float("nan"), tf.float64)
    return tf.cast(tf.where_v2(finite, power, nan), matrix.dtype)


def iterative_matrix_power(matrix, alpha, epsilon):
    """(matrix + epsilon I)^alpha without a decomposition; alpha = -1 / (2 p)."""
    size = matrix.shape.as_list()[0]
    root = matrix_functions.matrix_square_root(matrix, size, ridge_epsilon=epsilon)
    return matrix_functions.matrix_inverse_pth_root(
        root, size, 2 * alpha, ridge_epsilon=0.0
    )


def vector_power(vector, exponent):
    """The elements' powers where they are positive, else 0."""
    powers = tf.pow(vector, exponent)
    return tf.where_v2(vector > 0.0, powers, tf.zeros_like(powers))


def contract(g, h, axis):
    """Contracts dimension `axis` of `g` with `h`.

    Without transposing `g`, which takes longer than the products.

    Args:
      g: Tensor of shape d_1 x ... x d_n.
      h: Tensor, a matrix of d_axis rows, or a vector of d_axis elements for a
        diagonal one.
      axis: the dimension, from 0.
    """
    after = g.shape.as_list()[axis + 1 :]
    if h.shape.ndims == 1:
        return g * tf.reshape(h, [-1] + [1] * len(after))
    size = h.shape.as_list()[0]
    if not after:
        contracted = tf.matmul(tf.reshape(g, [-1, size]), h)
    elif axis == 0:
        contracted = tf.matmul(h, tf.reshape(g, [size, -1]), transpose_a=True)
    else:
        slices = tf.reshape(g, [-1, size, int(np.prod(after))])
        contracted = tf.matmul(h[tf.newaxis], slices, transpose_a=True)
    return tf.reshape(contracted, tf.shape(g))


def is_number(value, number):
    """Is `value` this number, and can be no other in a later step?"""
    return isinstance(value, numbers.Real) and value == number


def takes_step(schedule):
    """Can the callable `schedule` be called with the step?"""
    try:
        inspect.signature(schedule).bind(None)
    except TypeError:
        return False
    except ValueError:
        pass  # Some builtins do not tell.
    return True


def evaluate_at(value, step):
    """The value of a hyperparameter at `step`."""
    if callable(value) and takes_step(value):
        return value(step)
    return evaluate(value)


class ShampooOptimizer(ContribOptimizer):
    """Adagrad with a preconditioner matrix for each dimension of a variable.

    Use it where Adagrad works, and steps are worth more work: a matrix keeps what
    Adagrad's diagonal forgets, that gradients of different weights go together.

        w <- w - learning_rate * (gbar, contracted with each H_i along dimension i)
        H_i = (G_i / d_i + epsilon I)^(-alpha / n),   G_i the sum of g_(i) g_(i)^T

    for a variable w of n dimensions d_i with gradient g; g_(i) is the gradient as a
    matrix of d_i rows, gbar its weighted sum over the steps. All equations, those for
    large dimensions, intervals and sparse gradients, the source and the deviations
    are at the top of this file, contrib_opt/optimizers/shampoo.py.

    Works in `tf.compat.v1.Session` graphs, in eager mode, in `tf.function` and under
    distribution strategies. The shape of a variable must be known.
    """

    _hyperparameters = (
        "gbar_decay",
        "gbar_weight",
        "mat_gbar_decay",
        "mat_gbar_weight",
        "learning_rate",
        "svd_interval",
        "precond_update_interval",
        "epsilon",
        "alpha",
    )

    def __init__(
        self,
        global_step=0,
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
        use_iterative_root=False,
        use_locking=False,
        name="Shampoo",
    ):
        """Makes a Shampoo optimizer.

        Each hyperparameter but max_matrix_size is a scalar: a number, a Tensor, a
        Variable, or a callable that returns one of these. A callable is called with
        the step (the global step plus 1, a float32 Tensor) if it takes an argument,
        and without if not. In eager mode it is evaluated at each step.

        Args:
          global_step: the step that `minimize` increments: a Variable, a Tensor, a
            number, or a callable without arguments. It is needed where an interval is
            more than 1 or a callable takes the step: the number 0 stands still.
          max_matrix_size: the largest dimension, in elements, that gets a matrix;
            larger ones get a vector. A number of at least 0.
          gbar_decay: the part of gbar that the next step keeps, at least 0.
          gbar_weight: factor of the gradient in gbar.
          mat_gbar_decay: the part of G_i that the next step keeps, at least 0.
          mat_gbar_weight: factor of the new part of G_i, at least 0.
          learning_rate: the learning rate.
          svd_interval: steps from one power of G_i to the next, at least 1. 20 is
            usually as good as 1, and much faster.
          precond_update_interval: steps from one update of the matrices G_i to the
            next, at least 1; usually less than svd_interval.
          epsilon: what is added to the diagonal of G_i / d_i, at least 0.
          alpha: the power of all preconditioners together, at least 0. A number with
            use_iterative_root, and n / (2 alpha) an integer for each n.
          use_iterative_root: whether powers are iterated, from matrix products alone
            (for TPUs), rather than found from eigenvalues.
          use_locking: whether updates of ref variables lock them.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter is no scalar, below its minimum, or callable
            only with more than one argument; use_iterative_root is given with an
            alpha that is not a number.
        """
        self._global_step = tensorflow_variable(global_step)
        check_step(self._global_step)
        if not (isinstance(max_matrix_size, numbers.Real) and max_matrix_size >= 0):
            raise ValueError(
                "max_matrix_size must be a number that is 0 or more, got "
                f"{max_matrix_size!r}."
            )
        given = {
            "gbar_decay": gbar_decay,
            "gbar_weight": gbar_weight,
            "mat_gbar_decay": mat_gbar_decay,
            "mat_gbar_weight": mat_gbar_weight,
            "learning_rate": learning_rate,
            "svd_interval": svd_interval,
            "precond_update_interval": precond_update_interval,
            "epsilon": epsilon,
            "alpha": alpha,
        }
        minima = dict.fromkeys(given, 0)
        minima.update(gbar_weight=None, learning_rate=None)
        minima.update(svd_interval=1, precond_update_interval=1)
        for name_, value in given.items():
            _check_schedule(name_, value, minima[name_])
        if use_iterative_root and not isinstance(alpha, numbers.Real):
            raise ValueError(
                f"With use_iterative_root, alpha must be a number, got {alpha!r}."
            )
        super().__init__(use_locking, name)
        for name_, value in given.items():
            setattr(self, "_" + name_, value)
        self._max_matrix_size = max_matrix_size
        self._use_iterative_root = use_iterative_root

    def _values_of_step(self, global_step):
        step = tf.convert_to_tensor(evaluate(self._global_step))
        # float32 as in 1.15, for the user's expressions.
        float_step = tf.cast(step, tf.float32) + 1.0
        values = {
            name: evaluate_at(getattr(self, "_" + name), float_step)
            for name in self._hyperparameters
        }
        return dict(values, global_step=step)

    def _prepare(self):
        super()._prepare()
        self._step = as_dtype(self._hyper("global_step"), tf.float64) + 1.0

    def _step_settings(self, variables):
        # The rule leaves out what 0 and 1 make needless; see is_number.
        decided_by = [
            self._gbar_decay,
            self._mat_gbar_decay,
            self._svd_interval,
            self._precond_update_interval,
        ]
        fixed = tuple(v if isinstance(v, numbers.Number) else None for v in decided_by)
        return super()._step_settings(variables), fixed

    def _create_slots(self, var_list):
        for var in var_list:
            self._check_variable(var)
        for var in var_list:
            dtype = compute_dtype(var.dtype)
            self._zeros_slot(var, "gbar", self._name)
            for i, size in enumerate(_dimensions(var)):
                shape = [size] if size > self._max_matrix_size else [size, size]
                if len(shape) == 2 and not is_number(self._svd_interval, 1):
                    identity = functools.partial(tf.eye, size, dtype=dtype)
                    self._make_slot(var, identity, "H", i)
                zeros = functools.partial(tf.zeros, shape, dtype)
                self._make_slot(var, zeros, "Gbar", i)

    def _create_or_restore_slot_variable(self, variable, slot_name, **kwargs):
        var = tensorflow_variable(variable)
        strategy = getattr(var, "distribute_strategy", None)
        if (
            tf.executing_eagerly()
            and strategy is None
            and not tf.distribute.has_strategy()
        ):
            # The base class would make a slot of the variable's shape.
            self._create_slots([var])
        restore = super()._create_or_restore_slot_variable
        return restore(variable=var, slot_name=slot_name, **kwargs)

    def _make_slot(self, var, initial_value, name, axis):
        name = f"{name}_{axis}"
        if self.get_slot(var, name) is not None:
            return  # In eager mode its initial value would take memory in each step.
        slot = self._get_or_make_slot(var, initial_value(), name, self._name)
        # Or a Saver would take the slots of a partitioned variable's parts for parts
        # of one slot.
        _tf.save_as_a_whole(slot)

    def _check_variable(self, var):
        if not var.shape.is_fully_defined():
            raise ValueError(
                f"ShampooOptimizer needs the shape of {var.name}, got {var.shape}."
            )
        if self._use_iterative_root:
            try:
                matrix_functions.root_of(-2 * self._alpha / len(_dimensions(var)))
            except ValueError:
                raise ValueError(
                    f"use_iterative_root cannot find the root for {var.name} of shape "
                    f"{var.shape}: n / (2 * alpha) must be an integer, n the number of "
                    f"dimensions; alpha is {self._alpha!r}."
                ) from None

    def _update_dense(self, grad, var):
        return self._update(grad, var)

    def _update_sparse(self, grad, var, indices):
        grad = tf.cast(grad, compute_dtype(var.dtype))
        shape = var.shape.as_list()
        if shape[0] > self._max_matrix_size and is_number(self._gbar_decay, 0):
            return self._update(grad, var, indices)
        shape = tf.constant(shape, indices.dtype)
        return self._update(tf.scatter_nd(indices[:, tf.newaxis], grad, shape), var)

    def _update(self, grad, var, indices=None):
        """Updates `var`; with `indices`, only these rows, whose gradient is `grad`."""
        dtype = compute_dtype(var.dtype)
        dimensions = _dimensions(var)
        grad = tf.cast(grad, dtype)
        if indices is None:
            grad = tf.reshape(grad, dimensions)  # A scalar has one dimension here.
        # The slots' updates, as functions: first everything is read and computed.
        writes = []
        step = grad
        if indices is None:
            step = self._new_gbar(grad, var, writes)
        for axis, size in enumerate(dimensions):
            if size <= self._max_matrix_size:
                h = self._new_matrix(grad, var, axis, writes)
            elif axis == 0 and indices is not None:
                h = self._new_rows(grad, var, indices, writes)
            else:
                divisor = size if indices is None and len(dimensions) > 1 else 1
                h = self._new_vector(grad, var, axis, divisor, writes)
            step = contract(step, h, axis)
        step *= as_dtype(self._hyper("learning_rate"), dtype)
        if indices is None:
            w = tf.cast(var.read_value(), dtype) - step
        else:
            w = read_rows(var, indices, dtype) - step
        with tf.control_dependencies([w]):
            if indices is None:
                write = self._assign(var, w)
            else:
                write = write_rows(var, indices, w, self._use_locking)
            return tf.group(write, *[write() for write in writes])

    def _new_gbar(self, grad, var, writes):
        weight = as_dtype(self._hyper("gbar_weight"), grad.dtype)
        if is_number(self._gbar_decay, 0):
            return weight * grad
        slot = self.get_slot(var, "gbar")
        gbar = (
            self._decayed("gbar_decay", tf.cast(slot.read_value(), grad.dtype))
            + weight * grad
        )
        writes.append(lambda: self._assign(slot, gbar))
        return gbar

    def _new_matrix(self, grad, var, axis, writes):
        """G_i and H_i of a dimension that has matrices: returns H_i."""
        slot = self.get_slot(var, f"Gbar_{axis}")
        old = tf.cast(slot.read_value(), grad.dtype)

        def updated():
            weight = self._weight(grad.dtype) * as_dtype(
                self._hyper("precond_update_interval"), grad.dtype
            )
            new = weight * outer_product(grad, axis)
            return self._decayed("mat_gbar_decay", old) + new

        gbar = self._if_due("precond_update_interval", updated, lambda: old)
        if not is_number(self._mat_gbar_decay, 0):
            writes.append(lambda: self._assign(slot, gbar))

        def power():
            mean = gbar / _dimensions(var)[axis]
            if self._use_iterative_root:
                alpha = -self._alpha / len(_dimensions(var))
                return iterative_matrix_power(mean, alpha, self._hyper("epsilon"))
            return matrix_power(
                mean,
                self._exponent(var, tf.float64),
                as_dtype(self._hyper("epsilon"), tf.float64),
            )

        root = self.get_slot(var, f"H_{axis}")
        if root is None:
            return power()
        old_root = tf.cast(root.read_value(), grad.dtype)
        h = self._if_due("svd_interval", power, lambda: old_root)
        writes.append(lambda: self._assign(root, h))
        return h

    def _new_vector(self, grad, var, axis, divisor, writes):
        """G_i and H_i of a dimension that has vectors: returns H_i."""
        slot = self.get_slot(var, f"Gbar_{axis}")
        new = self._weight(grad.dtype) * sums_of_squares(grad, axis) / divisor
        gbar = (
            self._decayed("mat_gbar_decay", tf.cast(slot.read_value(), grad.dtype))
            + new
        )
        if not is_number(self._mat_gbar_decay, 0):
            writes.append(lambda: self._assign(slot, gbar))
        return vector_power(gbar, self._exponent(var, grad.dtype))

    def _new_rows(self, grad, var, indices, writes):
        """As `_new_vector`, of the rows of a sparse gradient."""
        slot = self.get_slot(var, "Gbar_0")
        old = self._decayed("mat_gbar_decay", read_rows(slot, indices, grad.dtype))
        rows = old + self._weight(grad.dtype) * sums_of_squares(grad, 0)

        def write():
            if is_number(self._mat_gbar_decay, 1):
                return write_rows(slot, indices, rows, self._use_locking)
            decayed = self._decayed(
                "mat_gbar_decay", tf.cast(slot.read_value(), grad.dtype)
            )
            all_rows = tf.tensor_scatter_nd_update(
                decayed, indices[:, tf.newaxis], rows
            )
            return self._assign(slot, all_rows)

        writes.append(write)
        return vector_power(rows, self._exponent(var, grad.dtype))

    def _weight(self, dtype):
        return as_dtype(self._hyper("mat_gbar_weight"), dtype)

    def _decayed(self, decay, value):
        if is_number(getattr(self, "_" + decay), 1):
            return value
        return as_dtype(self._hyper(decay), value.dtype) * value

    def _exponent(self, var, dtype):
        return as_dtype(self._hyper("alpha"), dtype) / -len(_dimensions(var))

    def _if_due(self, interval, then, otherwise):
        """`then()` at multiples of the interval, else `otherwise()`."""
        if is_number(getattr(self, "_" + interval), 1):
            return then()
        interval = as_dtype(self._hyper(interval), tf.float64)
        due = tf.math.floormod(self._step, interval) < 1.0
        return tf.cond(due, then, otherwise)

    def _assign(self, var, value):
        value = tf.reshape(tf.cast(value, var.dtype.base_dtype), var.shape)
        return tf.assign(var, value, use_locking=self._use_locking)


def _dimensions(var):
    """The shape of `var`; that of a vector for a scalar."""
    return var.shape.as_list() or [1]


def _check_schedule(name, value, minimum):
    """As `check_hyperparameter`, but callables may take the step."""
    if not callable(value):
        check_scalar(
            name, value, minimum, kinds="a number, Tensor, Variable or callable"
        )
    elif not takes_step(value):
        check_hyperparameter(name, value)

"""Roots of symmetric positive semidefinite matrices by matrix products alone.

For processors on which a product of matrices is fast and a decomposition is not.

Square root (`matrix_square_root`), with A the matrix plus ridge_epsilon * I and |.|
the Frobenius norm:

    Y = A / |A|,  Z = I
    T = (3 I - Z Y) / 2;  Y <- Y T;  Z <- T Z          A^(1/2) = |A|^(1/2) lim Y

    stops once the error | A - |A| Y Y | / |A| has not fallen (at first it counts
    as |A|), and takes the Y from before.

Inverse p-th root (`matrix_inverse_pth_root`), with alpha = -1 / p:

    z = (1 + p) / (2 |A|),  M = z A,  X = z^(1/p) I
    T = ((p + 1) I - M) / p;  M <- T^p M;  X <- X T      A^(-1/p) = lim X

    stops once no element of M is further than `epsilon` from I.

Sources: N. J. Higham, "Stable iterations for the matrix square root", Numerical
Algorithms 15 (1997), equation 2.6; C.-H. Guo and N. J. Higham, "A Schur-Newton method
for the matrix p-th root and its inverse", SIAM J. Matrix Anal. Appl. 28 (2006),
equation 3.2; with the scalings and stops of `matrix_functions` in TensorFlow 1.15's
`tf.contrib.opt`. That includes the first error of the square root: where |A| is
smaller than the error after one step, the iteration stops there, and the result is
A / |A|^(1/2), which is no good root.

Deviations from TensorFlow 1.15, each a case in which it failed:
- Matrices of float64 work; half precision is computed in float32.
- The square root of a float32 matrix with a norm above 1.6e7 is iterated; 1.15 gave
  back the starting value.
- p is the integer nearest to -1 / alpha; 1.15 refused an alpha that misses it by a
  rounding.
"""

import numbers

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.hyperparameters import as_dtype, compute_dtype


def matrix_square_root(mat_a, mat_a_size, iter_count=100, ridge_epsilon=1e-4):
    """The square root of a symmetric positive semidefinite matrix.

    Args:
      mat_a: Tensor of shape [n, n], of a float type.
      mat_a_size: n, a number or an integer Tensor.
      iter_count: the most iterations to make.
      ridge_epsilon: what is added to the diagonal first, so that the matrix is
        positive definite.

    Returns:
      A Tensor of the shape and type of `mat_a`, near
      (mat_a + ridge_epsilon * I)^(1/2). How near, and when it is not: at the top of
      this file.
    """
    mat_a, kind = _computed(mat_a)
    identity = _identity(mat_a_size, mat_a.dtype)
    mat_a += as_dtype(ridge_epsilon, mat_a.dtype) * identity
    norm = _frobenius_norm(mat_a)
    root_of_norm = tf.sqrt(norm)

    def falls(i, y, z, y_before, error, error_before):
        return tf.logical_and(i < iter_count, error < error_before)

    def step(i, y, z, y_before, error, error_before):
        t = 0.5 * (3.0 * identity - tf.matmul(z, y))
        new_y, new_z = tf.matmul(y, t), tf.matmul(t, z)
        root = new_y * root_of_norm
        new_error = _frobenius_norm(mat_a - tf.matmul(root, root)) / norm
        return i + 1, new_y, new_z, y, new_error, error

    y = mat_a / norm
    never = tf.constant(float("inf"), mat_a.dtype)
    state = [tf.constant(0), y, identity, y, norm, never]
    root = _while_loop(falls, step, state)[3] * root_of_norm
    return tf.cast(root, kind)


def matrix_inverse_pth_root(
    mat_g, mat_g_size, alpha, iter_count=100, epsilon=1e-6, ridge_epsilon=1e-6
):
    """The inverse p-th root of a symmetric positive semidefinite matrix.

    Args:
      mat_g: Tensor of shape [n, n], of a float type.
      mat_g_size: n, a number or an integer Tensor.
      alpha: -1 / p for a positive integer p, a number.
      iter_count: the most iterations to make.
      epsilon: how near to the identity, element by element, M must come for an
        early stop.
      ridge_epsilon: what is added to the diagonal first, so that the matrix is
        positive definite.

    Returns:
      A Tensor of the shape and type of `mat_g`, near
      (mat_g + ridge_epsilon * I)^alpha.

    Raises:
      ValueError: alpha is not -1 / p.
    """
    p = root_of(alpha)
    mat_g, kind = _computed(mat_g)
    ridge_epsilon = as_dtype(ridge_epsilon, mat_g.dtype)
    if not tf.is_tensor(mat_g_size) and int(mat_g_size) == 1:
        return tf.cast(tf.pow(mat_g + ridge_epsilon, -1.0 / p), kind)
    identity = _identity(mat_g_size, mat_g.dtype)
    mat_g += ridge_epsilon * identity
    z = (1 + p) / (2.0 * _frobenius_norm(mat_g))

    def is_far(i, m, x):
        distance = tf.reduce_max(tf.abs(m - identity))
        return tf.logical_and(i < iter_count, distance > epsilon)

    def step(i, m, x):
        t = (1 + 1 / p) * identity - m / p
        return i + 1, tf.matmul(_power(t, p), m), tf.matmul(x, t)

    state = [tf.constant(0), mat_g * z, identity * tf.pow(z, 1.0 / p)]
    return tf.cast(_while_loop(is_far, step, state)[2], kind)


def root_of(alpha):
    """The positive integer p of alpha = -1 / p; ValueError if there is none."""
    if isinstance(alpha, numbers.Real) and alpha < 0:
        p = int(round(-1.0 / alpha))
        if p > 0 and abs(p * alpha + 1.0) < 1e-6:
            return p
    raise ValueError(
        f"alpha must be -1 / p, a number, for a positive integer p; got {alpha!r}."
    )


def _computed(matrix):
    """`matrix` in the type that it is computed in, and its own type."""
    matrix = tf.convert_to_tensor(matrix)
    return tf.cast(matrix, compute_dtype(matrix.dtype)), matrix.dtype


def _identity(size, dtype):
    return tf.eye(size if tf.is_tensor(size) else int(size), dtype=dtype)


def _frobenius_norm(matrix):
    return tf.sqrt(tf.reduce_sum(tf.square(matrix)))


def _power(matrix, p):
    """`matrix` to the positive integer power p, by squaring."""
    power = None
    while True:
        if p % 2:
            power = matrix if power is None else tf.matmul(matrix, power)
        p //= 2
        if not p:
            return power
        matrix = tf.matmul(matrix, matrix)


def _while_loop(condition, body, state):
    # The invariants: TensorFlow may not see that an iteration keeps the shapes.
    shapes = [tensor.shape for tensor in state]
    return tf.while_loop(condition, body, state, shape_invariants=shapes)

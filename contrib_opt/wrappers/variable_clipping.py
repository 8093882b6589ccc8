"""An optimizer whose updates are followed by clipping the norms of variables.

After the wrapped optimizer's update of a variable w, for a list of its dimensions:

    norm = sqrt(sum of w^2 over the dimensions)      one for each index of the others
    w <- w * min(1, max_norm / norm)

If the gradient is sparse (IndexedSlices), only the rows that it has are clipped, unless
dimension 0 is one of the dimensions.

Source: `tf.contrib.opt.VariableClippingOptimizer` of TensorFlow 1.15.

Deviations from TensorFlow 1.15, each a case in which it failed:
- A row that a sparse gradient has twice is clipped once. 1.15 took what was too much
  off once for each time, and so turned rows around.
- The norms of float16 and bfloat16 variables are computed in float32; in 1.15 a norm of
  256 made float16 weights 0. A max_norm of 0 makes weights 0, and not NaN.
- Where a weight is not finite, the others of its norm are left as they are; in 1.15
  they became NaN.
- max_norm may be a callable, and a Tensor of any float type.
- Dimensions count from the end if they are negative, for sparse gradients too.
- Eager mode, `tf.function` and distribution strategies work. Since TensorFlow 2 refuses
  variables as the keys of a dict, vars_to_clip_dims takes `var.ref()` too, and pairs.
- `variables()` has those of the wrapped optimizer; in 1.15 it was empty.
"""

import contextlib
import functools
import operator

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    compute_dtype,
    evaluate,
)
from contrib_opt.optimizers.kernels import colocated
from contrib_opt.optimizers.tensorflow_step import apply_gradients
from contrib_opt.optimizers.unwrap import tensorflow_variable
from contrib_opt.wrappers.wrapper import WrapperOptimizer


def excess(w, max_norm, dims):
    """What to take off w so that no norm over its dimensions `dims` is above max_norm.

    Args:
      w: Tensor.
      max_norm: scalar Tensor of the type of w.
      dims: list of integers.

    Returns:
      A Tensor like w, 0 wherever the norm is `max_norm` at most, or not finite.
    """
    norm = tf.sqrt(tf.reduce_sum(tf.square(w), dims, keepdims=True))
    too_large = (norm > max_norm) & tf.is_finite(norm)
    factor = tf.where_v2(too_large, max_norm / norm, tf.ones_like(norm))
    return w - w * factor


def rows_in(counts):
    """The indices at which the vector `counts` is not 0."""
    return tf.reshape(tf.where_v2(counts > 0), [-1])


class VariableClippingOptimizer(WrapperOptimizer):
    """Clips the norms of variables, after each update by another optimizer.

        w <- w * min(1, max_norm / norm)

    where norm is the Euclidean norm of w over some of its dimensions; this is not
    clipping gradients. For the rows of an embedding table, [vocabulary, size]:

        opt = tf.compat.v1.train.AdagradOptimizer(0.1)
        opt = contrib_opt.VariableClippingOptimizer(opt, {table: [1]}, max_norm=1.0)
        train_op = opt.minimize(loss)

    A step clips the variables that it had gradients for; where these were sparse, the
    rows that they had. Wrap it again for other norms of other variables. A variable
    keeps its norm as long as only this optimizer updates it, so that nothing need be
    clipped when it is used.

    The source and the deviations are at the top of this file,
    contrib_opt/wrappers/variable_clipping.py.
    """

    def __init__(
        self,
        opt,
        vars_to_clip_dims,
        max_norm,
        use_locking=False,
        colocate_clip_ops_with_vars=False,
        name="VariableClipping",
    ):
        """Wraps `opt`.

        Args:
          opt: a `tf.compat.v1.train.Optimizer`, which computes and applies gradients.
          vars_to_clip_dims: dict from each variable that is to be clipped, or
            `var.ref()`, to the list of dimensions over which its norm is computed. Or a
            list of such pairs. In eager mode of TensorFlow 2, variables cannot be keys.
          max_norm: the largest norm allowed, at least 0: a number, a scalar Tensor or
            Variable, or a callable without arguments that returns one of these. In
            eager mode it is evaluated at each step.
          use_locking: whether to lock variables while they are clipped.
          colocate_clip_ops_with_vars: whether norms are computed on the device of the
            variable.
          name: name of the operation that updates and clips.

        Raises:
          TypeError: opt is no optimizer, or what is to be clipped no variable.
          ValueError: the dimensions are no list of dimensions that the variable has;
            max_norm is no scalar, or negative.
        """
        check_hyperparameter("max_norm", max_norm, minimum=0)
        super().__init__(opt, name, use_locking)
        # By identity, since variables may be unhashable; the variables are kept, or
        # another one could come to have the same.
        self._clipped = checked_vars_to_clip_dims(vars_to_clip_dims)
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars
        self._warned = set()

    def _apply_checked(self, grads_and_vars, global_step, name):
        with tf.name_scope(name, self._name) as scope:
            update = apply_gradients(self._optimizer, grads_and_vars, global_step)
            with tf.control_dependencies([] if update is None else [update]):
                clipped = [
                    (self._touched(grad, var), var)
                    for grad, var in grads_and_vars
                    if grad is not None and id(var) in self._clipped
                ]
                if _tf.in_replica_context():
                    context = tf.distribute.get_replica_context()
                    clips = context.merge_call(self._clip_copies, args=(clipped,))
                else:
                    max_norm = evaluate(self._max_norm)
                    clips = [
                        self._clip(var, rows, max_norm, self._dims(var))
                        for rows, var in clipped
                    ]
            if tf.executing_eagerly():
                return None
            return tf.group(update, *tf.nest.flatten(clips), name=scope)

    def _dims(self, var):
        _, dims = self._clipped[id(var)]
        return dims

    def _touched(self, grad, var):
        """The rows of `var` to clip; in a replica, how often it has each; None: all."""
        if not isinstance(grad, tf.IndexedSlices):
            return None
        dims = self._dims(var)
        # Without a rank, a negative dimension may be the first.
        if min(dims, default=1) <= 0:
            if id(var) not in self._warned:
                self._warned.add(id(var))
                tf.logging.warning(
                    "Sparse gradients of %s: all of it is read in each step, since it "
                    "is clipped over dimensions %s, and 0 is one of them.",
                    var.name,
                    dims,
                )
            return None
        if _tf.in_replica_context():
            # Replicas have different rows, and numbers of rows; counts can be added.
            ones = tf.ones_like(grad.indices, tf.float32)
            return tf.math.unsorted_segment_sum(ones, grad.indices, tf.shape(var)[0])
        return tf.unique(grad.indices).y

    def _clip_copies(self, strategy, clipped):
        max_norm = evaluate(self._max_norm)
        clips = []
        for counts, var in clipped:
            if counts is not None:
                add = tf.distribute.ReduceOp.SUM
                counts = strategy.extended.reduce_to(add, counts, var)
            clip = functools.partial(self._clip_copy, self._dims(var))
            clips.append(strategy.extended.update(var, clip, (counts, max_norm)))
        return [c for c in clips if c is not None]

    def _clip_copy(self, dims, var, counts, max_norm):
        rows = None if counts is None else rows_in(counts)
        return self._clip(var, rows, max_norm, dims)

    def _clip(self, var, rows, max_norm, dims):
        """Clips `var`: the rows `rows`, or all of it for None."""
        dtype = compute_dtype(var.dtype)
        max_norm = as_dtype(max_norm, dtype)
        at_var = colocated if self._colocate else _anywhere
        if rows is None:
            with at_var(var):
                w = tf.cast(var.read_value(), dtype)
                delta = excess(w, max_norm, dims)
                delta = tf.cast(delta, var.dtype.base_dtype)
            return var.assign_sub(delta, self._use_locking, read_value=False)
        with colocated(var):
            # A ref variable converts to a Tensor that may have been read before.
            table = var if hasattr(var, "handle") else var.read_value()
            w = tf.gather(table, rows)
        with at_var(var):
            delta = excess(tf.cast(w, dtype), max_norm, dims)
            delta = tf.IndexedSlices(tf.cast(delta, var.dtype.base_dtype), rows)
        done = var.scatter_sub(delta, use_locking=self._use_locking)
        return None if tf.executing_eagerly() else done.op


@contextlib.contextmanager
def _anywhere(var):
    yield


def checked_vars_to_clip_dims(vars_to_clip_dims):
    """{id of a variable: (variable, dimensions)}; raises TypeError or ValueError."""
    try:
        pairs = getattr(vars_to_clip_dims, "items", lambda: vars_to_clip_dims)()
        pairs = [(var, dims) for var, dims in pairs]
    except (TypeError, ValueError):
        raise TypeError(
            "vars_to_clip_dims must be a dict from variables to lists of dimensions, "
            f"or a list of such pairs, got {vars_to_clip_dims!r}."
        ) from None
    clipped = {}
    for var, dims in pairs:
        if hasattr(var, "deref"):
            var = var.deref()
        var = tensorflow_variable(var)
        if not (hasattr(var, "assign_sub") and hasattr(var, "read_value")):
            raise TypeError(
                "vars_to_clip_dims must have variables, or their ref(), as keys, got "
                f"{var!r}. Of a partitioned variable, give the parts."
            )
        clipped[id(var)] = (var, checked_dims(var, dims))
    return clipped


def checked_dims(var, dims):
    """`dims` as a list of integers, not negative if `var` has a known rank."""
    rank = var.shape.ndims
    try:
        if isinstance(dims, (str, bytes)):
            raise TypeError
        dims = [operator.index(dim) for dim in dims]
    except TypeError:
        raise ValueError(
            f"The dimensions of {var.name} in vars_to_clip_dims must be a list of "
            f"integers, got {dims!r}."
        ) from None
    if rank is None:
        return dims
    if not all(-rank <= dim < rank for dim in dims):
        raise ValueError(
            f"{var.name} has {rank} dimensions, but in vars_to_clip_dims {dims!r}."
        )
    return sorted({dim % rank for dim in dims})

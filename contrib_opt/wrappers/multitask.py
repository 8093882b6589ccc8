"""Lets an optimizer take a gradient of zeros for no gradient.

If all elements of a variable's gradient g are 0, its update is left out: neither the
variable nor its slots change. Otherwise, and for all else (the global step, Adam's
powers of beta), the optimizer does what it did.

With a loss of several tasks, a task that a batch lacks has a gradient of zeros. Without
this, momentum would go on moving the weights, and moving averages would fall.

Clipping by the global norm of the gradients g_1, ..., g_n:

    norm = sqrt(|g_1|^2 + ... + |g_n|^2)
    g_i <- g_i * min(1, clip_norm / norm)

Source: `MultitaskOptimizerWrapper` and `clip_gradients_by_global_norm` of TensorFlow
1.15's tf.contrib.opt.

Deviations from TensorFlow 1.15, each a case in which it failed:
- The wrapper is an optimizer, which other wrappers and `tf.train.Checkpoint` take.
- Around another wrapper it works on the optimizer inside; in 1.15 it did nothing then.
- Sparse gradients are looked at as they are; 1.15 made them dense, and
  clip_gradients_by_global_norm refused them.
- Norms of float16 and bfloat16 gradients are computed in float32; in 1.15 a norm of
  256 made float16 gradients NaN. Gradients may be of different types.
- A clip_norm of 0 makes gradients 0 where they are all 0, and not NaN.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.conditional import run_if
from contrib_opt.optimizers.gradients import pairs_of
from contrib_opt.optimizers.hyperparameters import as_dtype, check_scalar, compute_dtype
from contrib_opt.optimizers.predicates import any_nonzero
from contrib_opt.wrappers.wrapper import WrapperOptimizer, check_optimizer

_UPDATES = (
    "_apply_dense",
    "_resource_apply_dense",
    "_apply_sparse",
    "_resource_apply_sparse",
)


def global_norm(gradients, dtype):
    """The Euclidean norm over all of `gradients`, a scalar of `dtype`; 0 of none."""
    squares = [2.0 * tf.nn.l2_loss(tf.cast(_values(g), dtype)) for g in gradients]
    return tf.sqrt(tf.add_n(squares)) if squares else tf.zeros([], dtype)


def clip_scale(norm, clip_norm):
    """The factor that brings `norm` down to `clip_norm`; NaN if norm is not finite."""
    scale = tf.where_v2(norm > clip_norm, clip_norm / norm, tf.ones_like(norm))
    # inf * 0 and NaN * 0 are NaN, and so is 0 * inf.
    return scale + 0.0 * norm


class MultitaskOptimizerWrapper(WrapperOptimizer):
    """Makes an optimizer leave variables alone whose gradient is all zeros.

    Use it with the loss of several tasks where some batches lack some of the tasks, and
    an optimizer with momentum or moving averages:

        opt = tf.compat.v1.train.MomentumOptimizer(0.1, momentum=0.9)
        opt = contrib_opt.MultitaskOptimizerWrapper(opt)
        gradients = opt.compute_gradients(loss)
        gradients, norm = contrib_opt.clip_gradients_by_global_norm(gradients, 15.0)
        train_op = opt.apply_gradients(gradients, global_step=step)

    A sparse gradient (IndexedSlices) counts as a whole: its rows of zeros are updated
    if there is another number in it.

    As in TensorFlow 1.15, the optimizer itself is changed: used without the wrapper it
    leaves these variables alone too. What the wrapper does not have, attributes and
    methods, is the optimizer's; so is its name. The deviations are at the top of this
    file, contrib_opt/wrappers/multitask.py.
    """

    def __init__(self, opt):
        """Wraps `opt`.

        Args:
          opt: a `tf.compat.v1.train.Optimizer`.

        Raises:
          TypeError: opt is no optimizer.
        """
        check_optimizer("opt", opt)
        super().__init__(opt, opt.get_name())
        rule = _innermost(opt)
        for name in _UPDATES:
            setattr(rule, name, _unless_all_zeros(getattr(rule, name)))

    def __getattr__(self, name):
        # Not before there is one, as when the wrapper is copied.
        if name == "_optimizer" or name.startswith(("__", "_self_")):
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def minimize(self, *args, **kwargs):
        """The wrapped optimizer's `minimize`, with all arguments that it takes."""
        if type(self._optimizer).minimize is tf.train.Optimizer.minimize:
            return super().minimize(*args, **kwargs)
        return self._optimizer.minimize(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, **kwargs):
        """The wrapped optimizer's `apply_gradients`, all or nothing.

        Args:
          grads_and_vars: list of (gradient, variable) pairs. A gradient is a Tensor
            of its variable's shape and dtype, IndexedSlices, or None. None and zeros
            leave their variable and its slots alone.
          global_step: variable to increment by one after the update, or None.
          name: name of the operation that is returned.
          **kwargs: what else the wrapped optimizer takes.

        Returns:
          The operation that applies the gradients; None in eager mode.

        Raises:
          ValueError: no variable has a gradient, or a gradient has another shape
            or dtype than its variable.
          TypeError: a gradient cannot be made a Tensor.
          InvalidArgumentError: IndexedSlices have an index out of range, or a shape
            that was unknown before does not fit (when the step runs).
            No variable and no slot has changed then.
        """
        if kwargs:
            return self._optimizer.apply_gradients(
                grads_and_vars, global_step, name, **kwargs
            )
        return super().apply_gradients(grads_and_vars, global_step, name)


def clip_gradients_by_global_norm(gradients_variables, clip_norm=20.0):
    """Scales gradients down so that their norm, taken together, is `clip_norm` at most.

        norm = sqrt(|g_1|^2 + ... + |g_n|^2)
        g_i <- g_i * min(1, clip_norm / norm)

    Gradients of zeros stay zeros, so that `MultitaskOptimizerWrapper` finds them.

    Args:
      gradients_variables: list of (gradient, variable) pairs, as `compute_gradients`
        returns them. A gradient is a Tensor, IndexedSlices, or None.
      clip_norm: the largest norm, a number, a scalar Tensor or Variable, at least 0.

    Returns:
      The pair (list of the clipped gradients with their variables, norm before), norm
      being a scalar Tensor of type float64 if there is a float64 gradient and float32
      otherwise. If norm is not finite, all gradients are NaN.

    Raises:
      TypeError: gradients_variables are no pairs.
      ValueError: clip_norm is no scalar, or negative.
    """
    check_scalar("clip_norm", clip_norm, minimum=0)
    pairs = pairs_of(gradients_variables, "gradients_variables")
    pairs = [(_tensor(g), v) for g, v in pairs]
    gradients = [g for g, _ in pairs if g is not None]
    dtypes = [compute_dtype(g.dtype) for g in gradients]
    dtype = tf.float64 if tf.float64 in dtypes else tf.float32
    norm = global_norm(gradients, dtype)
    scale = clip_scale(norm, as_dtype(clip_norm, dtype))
    return [(_scaled(g, scale), v) for g, v in pairs], norm


def _scaled(gradient, scale):
    if gradient is None:
        return None
    values = tf.cast(_values(gradient), scale.dtype) * scale
    values = tf.cast(values, gradient.dtype)
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def _tensor(gradient):
    as_it_is = gradient is None or isinstance(gradient, tf.IndexedSlices)
    return gradient if as_it_is else tf.convert_to_tensor(gradient)


def _values(gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _innermost(opt):
    """The optimizer that updates variables, if `opt` wraps it, or `opt`."""
    for name in ("_optimizer", "_opt"):
        inner = getattr(opt, name, None)
        if isinstance(inner, tf.train.Optimizer):
            return _innermost(inner)
    return opt


def _unless_all_zeros(update):
    """The method `update` of an optimizer, but not called for a grad of zeros."""

    def update_unless_all_zeros(grad, *args, **kwargs):
        some = any_nonzero(_values(grad))
        done = run_if(some, lambda: update(grad, *args, **kwargs))
        return None if tf.executing_eagerly() else done.op

    return update_unless_all_zeros

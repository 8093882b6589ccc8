"""Layer-wise Adaptive Rate Scaling (LARS), for training with large batches.

For a variable w with gradient g, where |.| is the Euclidean norm over the whole
variable:

    trust = eeta * |w| / (|g| + weight_decay * |w| + epsilon)
            if |w| > 0 and |g| > 0, else 1
    d  = learning_rate * trust * (g + weight_decay * w)
    v <- momentum * v + d
    w <- w - v                              (Nesterov: w <- w - (d + momentum * v))

A variable whose name contains a string of `skip_list` gets plain momentum, without
scaling or decay: d = learning_rate * g. So do the rows of a sparse gradient g
(IndexedSlices), with rows of the same index summed first:

    v[i] <- momentum * v[i] + g[i]
    w[i] <- w[i] - learning_rate * v[i]
                    (Nesterov: w[i] <- w[i] - learning_rate * (g[i] + momentum * v[i]))

Symbols: w variable, g gradient, v velocity (the slot 'momentum'), eeta the LARS
coefficient of the paper.

Source: Y. You, I. Gitman, B. Ginsburg, "Large Batch Training of Convolutional
Networks", https://arxiv.org/abs/1708.03888, as `tf.contrib.opt.LARSOptimizer` of
TensorFlow 1.15 computes it. (1.12 to 1.14 computed something else:
`contrib_opt.tf114`.)

Deviations from TensorFlow 1.15, each a case in which it failed:
- learning_rate and momentum may be callables, and Tensors of any float type.
- Norms of float16 and bfloat16 tensors are summed in float32, and the step is
  computed in float32 before it is rounded to the variable's type; in 1.15 a float16
  norm above 65504 made the weights NaN.
- `skip_list` given as one string is refused; 1.15 took its letters one by one.
- A gradient of the wrong shape is refused; 1.15 broadcast it.
"""

import contextlib
import functools

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.batches import Lanes, batches_of, by_device
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    compute_dtype,
)
from contrib_opt.optimizers.kernels import colocated, run_kernel
from contrib_opt.optimizers.unwrap import tensorflow_variable


def l2_norm(x):
    """|x|, a scalar; one pass over x and no temporary of its size."""
    return tf.sqrt(2.0 * tf.nn.l2_loss(x))


def layer_trust_ratio(w_norm, g_norm, weight_decay, eeta, epsilon):
    """The trust ratio from the norms of a variable and of its gradient.

    The norms are scalars, or vectors with the norms of several variables.
    """
    # Not a sum of three terms: TensorFlow's graph optimizer adds those in an order of
    # its own, which need not be the same on two replicas.
    ratio = eeta * w_norm / (g_norm + weight_decay * w_norm - (-epsilon))
    zero = tf.zeros([], w_norm.dtype)
    both_positive = tf.logical_and(w_norm > zero, g_norm > zero)
    return tf.where_v2(both_positive, ratio, tf.ones([], ratio.dtype))


def decayed_gradient(g, w, weight_decay):
    """The gradient of the loss plus weight_decay / 2 * |w|^2."""
    return g + weight_decay * w


def update_scope(var):
    """The name scope in which TensorFlow's optimizers update `var`."""
    if tf.executing_eagerly() or _tf.is_eager(var):
        return contextlib.nullcontext()
    return tf.name_scope("update_" + var.op.name)


def checked_skip_list(skip_list):
    """`skip_list` as a list of strings; ValueError if it is none."""
    if isinstance(skip_list, (str, bytes)):
        raise ValueError(
            f"skip_list must be a list of strings, got the string {skip_list!r}; "
            f"write [{skip_list!r}]."
        )
    try:
        parts = [] if skip_list is None else list(skip_list)
    except TypeError:
        parts = [None]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError(f"skip_list must be a list of strings, got {skip_list!r}.")
    return parts


class LARSOptimizer(ContribOptimizer):
    """Momentum with a learning rate for each layer, scaled by its trust ratio.

    Use it when the batch is so large (1,000 examples and more) that plain momentum
    diverges or generalizes badly, with a gradual warm-up, a learning rate scaled
    linearly with the batch size and polynomial decay (`contrib_opt.schedules`).

        trust = eeta * |w| / (|g| + weight_decay * |w| + epsilon)
        v <- momentum * v + learning_rate * trust * (g + weight_decay * w)
        w <- w - v

    for a variable w with gradient g; v is the slot 'momentum'. The equations for
    Nesterov momentum, `skip_list` and sparse gradients, the source and the
    deviations are at the top of this file, contrib_opt/optimizers/lars.py.

    Works in `tf.compat.v1.Session` graphs, in eager mode, in `tf.function` (also
    with `jit_compile=True`, where gradients must be dense: TensorFlow has no XLA
    kernel for sparse momentum) and under distribution strategies. Each partition of
    a partitioned variable counts as a variable of its own, with its own norm.
    """

    _hyperparameters = (
        "learning_rate",
        "momentum",
        "weight_decay",
        "eeta",
        "epsilon",
    )

    def __init__(
        self,
        learning_rate,
        momentum=0.9,
        weight_decay=0.0001,
        eeta=0.001,
        epsilon=0.0,
        name="LARSOptimizer",
        skip_list=None,
        use_nesterov=False,
    ):
        """Makes a LARS optimizer.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          learning_rate: the global learning rate, before it is scaled.
          momentum: the part of the velocity that the next step keeps, at least 0.
          weight_decay: coefficient of L2 regularization, at least 0.
          eeta: the LARS coefficient, at least 0. eeta / weight_decay bounds the
            trust ratio.
          epsilon: added to the denominator of the trust ratio, at least 0.
          name: name of the slot variables and operations.
          skip_list: list of strings. A variable is neither scaled nor decayed if its
            name contains one of them; for a convolutional network with batch
            normalization, ['batch_normalization', 'bias'].
          use_nesterov: whether to use Nesterov momentum.

        Raises:
          ValueError: a hyperparameter is no scalar, or callable only with arguments;
            momentum, weight_decay, eeta or epsilon is negative; skip_list is not a
            list of strings.
        """
        check_hyperparameter("learning_rate", learning_rate)
        check_hyperparameter("momentum", momentum, minimum=0)
        check_hyperparameter("weight_decay", weight_decay, minimum=0)
        check_hyperparameter("eeta", eeta, minimum=0)
        check_hyperparameter("epsilon", epsilon, minimum=0)
        skip_list = checked_skip_list(skip_list)
        super().__init__(use_locking=False, name=name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list
        self._use_nesterov = use_nesterov

    def trust_ratio(self, grad, var):
        """The factor by which LARS scales the learning rate of a variable.

        Args:
          grad: gradient of `var`, a Tensor or IndexedSlices.
          var: the variable, of any shape.

        Returns:
          A scalar Tensor, float64 for a float64 variable and float32 for all others;
          1 for a skipped variable and for IndexedSlices.

        Raises:
          ValueError: `var` has no gradient: `grad` is None.
        """
        var = tensorflow_variable(var)
        if grad is None:
            raise ValueError(f"{var.name} has no gradient, and so no trust ratio.")
        dtype = compute_dtype(var.dtype)
        if self._skips(var) or isinstance(grad, tf.IndexedSlices):
            return tf.ones([], dtype)
        return self._trust_ratio(tf.cast(grad, dtype), tf.cast(var, dtype))

    def compute_lr(self, grad, var):
        """The learning rate of one variable, and its gradient with weight decay.

        Args:
          grad: Tensor, the gradient of `var`, of the same shape.
          var: the variable.

        Returns:
          A pair of Tensors: the scaled learning rate, a scalar, and the gradient
          plus weight_decay * var, of the shape of `var`. Unscaled and without decay
          for a skipped variable. Both are float32 for a half-precision variable
          and have the variable's type for all others.
        """
        var = tensorflow_variable(var)
        dtype = compute_dtype(var.dtype)
        grad = tf.cast(tf.convert_to_tensor(grad), dtype)
        learning_rate = as_dtype(self._hyper("learning_rate"), dtype)
        if self._skips(var):
            return learning_rate, grad
        w = tf.cast(var, dtype)
        weight_decay = as_dtype(self._hyper("weight_decay"), dtype)
        return (
            learning_rate * self._trust_ratio(grad, w),
            decayed_gradient(grad, w, weight_decay),
        )

    def _skips(self, var):
        return any(part in var.name for part in self._skip_list)

    def _trust_ratio(self, g, w):
        hyper = [
            as_dtype(self._hyper(name), w.dtype)
            for name in ("weight_decay", "eeta", "epsilon")
        ]
        return layer_trust_ratio(l2_norm(w), l2_norm(g), *hyper)

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _update_dense(self, grad, var):
        if id(var) in self._step_updates:
            return self._step_updates[id(var)]
        scaled_lr, grad = self.compute_lr(grad, var)
        return self._apply_momentum(grad * scaled_lr, var, 1.0)

    # The same for all variables of a step, with fewer operations and less memory.

    def _prepare(self):
        super()._prepare()
        self._step_updates = {}
        if self._may_update_in_batches():
            for pairs in by_device(self._step_pairs):
                self._update_in_batches(pairs)

    def _may_update_in_batches(self):
        """Whether nobody, and no strategy, has put another update in place of ours."""
        return not tf.distribute.has_strategy() and all(
            getattr(getattr(self, name), "__func__", None) is function
            for name, function in _UPDATE_OF_A_VARIABLE.items()
        )

    def _update_in_batches(self, grads_and_vars):
        """Updates variables of one device and type; see contrib_opt/optimizers/batches.

        Sets `_step_updates`, for `_update_dense` to return.
        """
        first = grads_and_vars[0][1]
        dtype = first.dtype.base_dtype
        with colocated(first):
            hyper = {n: as_dtype(self._hyper(n), dtype) for n in self._hyperparameters}
            hyper["one"] = tf.ones([], dtype)
        lanes = Lanes()
        for batch in batches_of(grads_and_vars):
            with lanes.batch():
                weights = self._scaled_weights(batch)
                rates = self._scaled_rates(batch, weights, hyper)
                for (grad, var), rate in zip(batch, rates):
                    update = functools.partial(
                        self._update_scaled, grad, var, weights, rate, hyper
                    )
                    with update_scope(var), colocated(var):
                        self._step_updates[id(var)] = lanes.run(var, update)

    def _scaled_weights(self, grads_and_vars):
        """A dict from id to value of the variables that are not skipped."""
        weights = {}
        for _, var in grads_and_vars:
            if not self._skips(var):
                with colocated(var):
                    weights[id(var)] = tf.convert_to_tensor(var)
        return weights

    def _scaled_rates(self, grads_and_vars, weights, hyper):
        """The list of the learning rates, scaled where a variable is in `weights`."""
        learning_rate = hyper["learning_rate"]
        if not weights:
            return [learning_rate] * len(grads_and_vars)
        w_squares, g_squares = [], []
        for grad, var in grads_and_vars:
            if id(var) in weights:
                with colocated(var):
                    w_squares.append(tf.nn.l2_loss(weights[id(var)]))
                    g_squares.append(tf.nn.l2_loss(grad))
        with colocated(grads_and_vars[0][1]):
            norms = tf.sqrt(2.0 * tf.stack(w_squares + g_squares))
            ratios = layer_trust_ratio(
                *tf.split(norms, 2),
                hyper["weight_decay"],
                hyper["eeta"],
                hyper["epsilon"],
            )
            rates = iter(tf.unstack(learning_rate * ratios))
        return [
            next(rates) if id(var) in weights else learning_rate
            for _, var in grads_and_vars
        ]

    def _update_scaled(self, grad, var, weights, rate, hyper):
        if id(var) in weights:
            # Popped: in eager mode the kernel copies a variable whose value is held.
            grad = decayed_gradient(grad, weights.pop(id(var)), hyper["weight_decay"])
        return self._apply_momentum(grad * rate, var, hyper["one"], hyper["momentum"])

    def _apply_momentum(self, grad, var, learning_rate, momentum=None):
        """v <- momentum * v + grad; var <- var - learning_rate * v."""
        if momentum is None:
            momentum = self._hyper("momentum")
        return self._run_momentum_kernel(
            "ApplyMomentum", grad, var, learning_rate, momentum
        )

    def _update_sparse(self, grad, var, indices):
        # Through TensorFlow's default float type, as in 1.15: for a float64 variable
        # a Python number has float32 precision here.
        learning_rate = tf.convert_to_tensor(self._hyper("learning_rate"))
        momentum = tf.convert_to_tensor(self._hyper("momentum"))
        return self._run_momentum_kernel(
            "SparseApplyMomentum", grad, var, learning_rate, momentum, indices=indices
        )

    def _run_momentum_kernel(self, kernel, grad, var, learning_rate, momentum, **rows):
        dtype = var.dtype.base_dtype
        return run_kernel(
            kernel,
            {"var": var, "accum": self.get_slot(var, "momentum")},
            lr=as_dtype(learning_rate, dtype),
            grad=tf.cast(grad, dtype),
            momentum=as_dtype(momentum, dtype),
            use_nesterov=self._use_nesterov,
            **rows,
        )


_UPDATE_OF_A_VARIABLE = {
    name: getattr(LARSOptimizer, name)
    for name in (
        "compute_lr",
        "_update_dense",
        "_apply_dense",
        "_resource_apply_dense",
    )
}

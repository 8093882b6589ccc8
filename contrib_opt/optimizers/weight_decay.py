"""Weight decay that is decoupled from the gradient: AdamW, SGDW, and any other rule.

For a variable w with gradient g, and the update rule of a base optimizer:

    g  = gradient of the loss at w
    w <- w - weight_decay * w
    w <- base_rule(w, g)

in this order: g comes from the weights before the decay. Where g is sparse
(IndexedSlices), only the rows that it names decay, each of them once, however often g
names it. Unlike L2 regularization, the decay does not pass through the base rule's
momentum or through its scaling of the gradient. weight_decay is not multiplied by the
learning rate: a schedule of the one is best applied to the other too.

Symbols: w variable, g gradient, weight_decay the part of w that a step takes off.

Source: I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization",
https://arxiv.org/abs/1711.05101, as `tf.contrib.opt.DecoupledWeightDecayExtension` of
TensorFlow 1.15 computes it. The base rules are TensorFlow's own: `AdamWOptimizer` is a
`tf.compat.v1.train.AdamOptimizer`, `MomentumWOptimizer` a `MomentumOptimizer`.

Deviations from TensorFlow 1.15, each a case in which it failed:
- In a graph the decay waits until every gradient is there. In 1.15 it ran at any time
  in the step, so that gradients came from decayed weights in one run and not in the
  next; the weights of two runs of one program differed.
- `minimize(decay_var_list=...)` is heeded; 1.15 decayed every variable. An empty list
  decays none; 1.15 decayed every variable. A list may name partitioned and mirrored
  variables, and may be given in TensorFlow 2 and in eager mode.
- weight_decay may be a callable, and a Tensor of any float type.
- Sparse gradients decay their rows over every base optimizer; in 1.15 those of
  GradientDescentOptimizer did not.
- Over an optimizer with a weight decay of its own, such as LARSOptimizer, both hold;
  in 1.15 the base optimizer's took the place of the decoupled one.
- Classes of `extend_with_decoupled_weight_decay` take positional arguments.
- AdamW updates float16 and bfloat16 variables in float32 before the result is rounded
  (contrib_opt/optimizers/adam.py says how); in 1.15 epsilon was 0 in float16, and a
  gradient of 0 made the weight NaN.
- A gradient of the wrong shape or dtype, or with an index out of range, is refused
  before anything has changed.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.adam import AdamBase
from contrib_opt.optimizers.base import ContribOptimizer
from contrib_opt.optimizers.gradients import pairs_of
from contrib_opt.optimizers.hyperparameters import (
    as_dtype,
    check_hyperparameter,
    evaluate,
)
from contrib_opt.optimizers.tensorflow_step import tensors_of
from contrib_opt.optimizers.threads import one_at_a_time
from contrib_opt.optimizers.unwrap import tensorflow_variable

# The name of the decoupled weight decay among the values of a step.
_DECAY = "decoupled_weight_decay"


def decay(var, weight_decay, use_locking=False):
    """var <- var - weight_decay * var; returns the operation."""
    return tf.assign_sub(var, weight_decay * var.read_value(), use_locking=use_locking)


def decay_rows(var, indices, weight_decay, use_locking=False):
    """Decays the rows `indices`, each once; returns the operation."""
    rows, _ = tf.unique(indices)
    delta = weight_decay * tf.gather(var, rows)
    return tf.scatter_sub(var, rows, delta, use_locking=use_locking)


def components(variables):
    """The variables, and what the partitioned and the mirrored ones consist of."""
    for var in variables:
        var = tensorflow_variable(var)
        copies = getattr(var, "values", None)
        if isinstance(copies, (list, tuple)):
            yield from copies
        elif hasattr(var, "as_tensor"):
            yield from var
        yield var


def checked_decay_var_list(decay_var_list):
    """A dict from id to variable of what decays; None for all; TypeError if neither."""
    if decay_var_list is None:
        return None
    try:
        variables = list(components(decay_var_list))
    except (TypeError, NotImplementedError):
        variables = [None]
    if not all(hasattr(var, "assign") for var in variables):
        raise TypeError(
            "decay_var_list must be a list of variables, or None for all of them, got "
            f"{decay_var_list!r}."
        )
    # The variables are kept as well, so that no other gets one of the ids.
    return {id(var): var for var in variables}


def _tensors_of(grads_and_vars):
    found = []
    for grad, _ in grads_and_vars:
        if isinstance(grad, tf.IndexedSlices):
            found += [grad.values, grad.indices]
        elif tf.is_tensor(grad):
            found.append(grad)
    return found


class DecoupledWeightDecayExtension(ContribOptimizer):
    """Adds decoupled weight decay to an optimizer class, as the first of its bases.

        class AdagradW(DecoupledWeightDecayExtension, tf.train.AdagradOptimizer):
            pass

        AdagradW(weight_decay=1e-4, learning_rate=0.1)

    or, the same, `extend_with_decoupled_weight_decay(AdagradOptimizer)`. Alone it is no
    optimizer. In each step, with g the gradient at w,

        w <- w - weight_decay * w
        w <- base_rule(w, g)

    A base rule that reads w, such as that of LARSOptimizer, reads it after the decay.
    The source and the deviations are at the top of this file,
    contrib_opt/optimizers/weight_decay.py.
    """

    # Long names: base optimizers have a `_decay` and a `_base` of their own.
    _decoupled_variables = None  # As `checked_decay_var_list` returns it.
    _decoupled_minimized = None  # decay_var_list of the `minimize` that is running.

    def __init__(self, weight_decay, *args, **kwargs):
        """Makes the base optimizer, with weight decay.

        Args:
          weight_decay: the part of a variable that a step takes off, at least 0: a
            number, a Tensor, a Variable, or a callable without arguments that returns
            one of these. In eager mode it is evaluated at each step.
          *args, **kwargs: what the base optimizer takes.

        Raises:
          TypeError: there is no base optimizer.
          ValueError: weight_decay is no scalar, is negative, or is callable only with
            arguments.
        """
        if type(self) is DecoupledWeightDecayExtension:
            raise TypeError(
                "DecoupledWeightDecayExtension alone is no optimizer: derive a class "
                "from it and an optimizer class, or call "
                "extend_with_decoupled_weight_decay(optimizer_class)."
            )
        check_hyperparameter("weight_decay", weight_decay, minimum=0)
        super().__init__(*args, **kwargs)
        self._decoupled_weight_decay = weight_decay

    def minimize(
        self,
        loss,
        global_step=None,
        var_list=None,
        gate_gradients=tf.train.Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        name=None,
        grad_loss=None,
        decay_var_list=None,
    ):
        """As in `tf.compat.v1.train.Optimizer`, with the variables that decay.

        Args:
          loss, global_step, var_list, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, name, grad_loss: as in the base class.
          decay_var_list: list of the variables that decay; None: all in var_list.

        Returns:
          The operation that updates the variables; None in eager mode.

        Raises:
          ValueError: as in the base class, and as in `apply_gradients`.
          TypeError: decay_var_list is no list of variables.
        """
        with one_at_a_time(self):
            self._decoupled_minimized = decay_var_list
            try:
                return super().minimize(
                    loss,
                    global_step=global_step,
                    var_list=var_list,
                    gate_gradients=gate_gradients,
                    aggregation_method=aggregation_method,
                    colocate_gradients_with_ops=colocate_gradients_with_ops,
                    name=name,
                    grad_loss=grad_loss,
                )
            finally:
                self._decoupled_minimized = None

    def apply_gradients(
        self,
        grads_and_vars,
        global_step=None,
        name=None,
        decay_var_list=None,
        **kwargs,
    ):
        """As in `ContribOptimizer`, with the variables that decay.

        Args:
          grads_and_vars: list of (gradient, variable) pairs. A gradient is a Tensor
            of its variable's shape and dtype, IndexedSlices, or None. A variable
            without a gradient does not decay.
          global_step: variable to increment by one after the update, or None.
          name: name of the operation that is returned.
          decay_var_list: list of the variables that decay; None: all of them.
          **kwargs: what else the base class of the installed TensorFlow takes.

        Returns:
          The operation that decays and updates; None in eager mode.

        Raises:
          TypeError: decay_var_list is no list of variables, or a gradient cannot be
            made a Tensor.
          ValueError, RuntimeError, InvalidArgumentError: as in `ContribOptimizer`.
        """
        grads_and_vars = pairs_of(grads_and_vars)
        # One operation for all, so that the graph has an edge and not one a gradient.
        barrier = tf.group(*_tensors_of(grads_and_vars))
        with one_at_a_time(self):
            if decay_var_list is None:
                decay_var_list = self._decoupled_minimized
            self._decoupled_variables = checked_decay_var_list(decay_var_list)
            with tf.control_dependencies([] if barrier is None else [barrier]):
                return super().apply_gradients(
                    grads_and_vars, global_step, name, **kwargs
                )

    def _values_of_step(self, global_step):
        values = super()._values_of_step(global_step)
        values[_DECAY] = evaluate(self._decoupled_weight_decay)
        if not self._decoupled_is_ours():
            # TensorFlow's optimizers evaluate their hyperparameters here, and keep the
            # Tensors as attributes.
            self._decoupled_base()._prepare()
            values.update(tensors_of(self))
        return values

    def _prepare(self):
        super()._prepare()
        if not self._decoupled_is_ours():
            for name, value in self._step_values.items():
                if name != _DECAY:
                    setattr(self, name, value)

    def _step_settings(self, variables):
        decayed = self._decoupled_variables
        if decayed is not None:
            decayed = tuple(id(var) in decayed for var in variables)
        return super()._step_settings(variables), decayed

    def _decoupled_decay(self, var, indices=None):
        """The operations that must run before the base rule."""
        if (
            self._decoupled_variables is not None
            and id(var) not in self._decoupled_variables
        ):
            return []
        weight_decay = as_dtype(self._hyper(_DECAY), var.dtype.base_dtype)
        if indices is None:
            return [decay(var, weight_decay, self._use_locking)]
        return [decay_rows(var, indices, weight_decay, self._use_locking)]

    def _decoupled_is_ours(self):
        """Whether the base optimizer is a `ContribOptimizer` too."""
        return type(self)._update_dense is not ContribOptimizer._update_dense

    def _decoupled_base(self):
        """The base optimizer's methods."""
        # `ContribOptimizer` stands before a base optimizer that is not one itself.
        return super() if self._decoupled_is_ours() else super(ContribOptimizer, self)

    def _apply_dense(self, grad, var):
        with tf.control_dependencies(self._decoupled_decay(var)):
            return self._decoupled_base()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad, var):
        with tf.control_dependencies(self._decoupled_decay(var)):
            return self._decoupled_base()._resource_apply_dense(grad, var)

    def _apply_sparse_duplicate_indices(self, grad, var):
        with tf.control_dependencies(self._decoupled_decay(var, grad.indices)):
            return self._decoupled_base()._apply_sparse_duplicate_indices(grad, var)

    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices):
        with tf.control_dependencies(self._decoupled_decay(var, indices)):
            base = self._decoupled_base()
            return base._resource_apply_sparse_duplicate_indices(grad, var, indices)

    def _apply_sparse(self, grad, var):
        return self._decoupled_base()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._decoupled_base()._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer):
    """Makes an optimizer class that decays weights out of one that does not.

        AdagradW = extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)
        optimizer = AdagradW(weight_decay=1e-4, learning_rate=0.1)
        train_op = optimizer.minimize(loss, decay_var_list=[kernel])

    Args:
      base_optimizer: a subclass of `tf.compat.v1.train.Optimizer`, TensorFlow's own,
        ours or the user's.

    Returns:
      A subclass of `DecoupledWeightDecayExtension` and of base_optimizer. Its
      constructor takes weight_decay first, then what base_optimizer's takes; its
      `minimize` and `apply_gradients` take decay_var_list.

    Raises:
      TypeError: base_optimizer is no such class.
    """
    if not (
        isinstance(base_optimizer, type)
        and issubclass(base_optimizer, tf.train.Optimizer)
    ):
        raise TypeError(
            "base_optimizer must be a class derived from tf.compat.v1.train.Optimizer, "
            f"got {base_optimizer!r}."
        )

    class OptimizerWithDecoupledWeightDecay(
        DecoupledWeightDecayExtension, base_optimizer
    ):
        __doc__ = f"{base_optimizer.__name__} with decoupled weight decay."

    return OptimizerWithDecoupledWeightDecay


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamBase):
    """AdamW: Adam with decoupled weight decay.

    Use it where Adam's weights need regularization: L2 regularization passes through
    Adam's scaling, so that it hardly acts on weights with large gradients. In each
    step t, with g the gradient at w,

        w <- w - weight_decay * w
        m <- beta1 * m + (1 - beta1) * g
        v <- beta2 * v + (1 - beta2) * g * g
        w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
                 * m / (sqrt(v) + epsilon)

    m and v are the slots 'm' and 'v'. A sparse gradient decays the rows that it names;
    m, v and the step of Adam are those of all rows, as in
    `tf.compat.v1.train.AdamOptimizer`. The source and the deviations are at the top
    of this file, contrib_opt/optimizers/weight_decay.py.
    """

    def __init__(
        self,
        weight_decay,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-08,
        use_locking=False,
        name="AdamW",
    ):
        """Makes an AdamW optimizer.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          weight_decay: the part of a variable that a step takes off, at least 0.
          learning_rate: the learning rate of Adam.
          beta1: the part of m that a step keeps, in [0, 1).
          beta2: the part of v that a step keeps, in [0, 1).
          epsilon: added to the denominator, at least 0.
          use_locking: whether updates of ref variables take the variable's lock.
          name: name of the slot variables and operations.

        Raises:
          ValueError: a hyperparameter is no scalar, out of its range, or callable
            only with arguments.
        """
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )

    def _update_sparse(self, grad, var, indices):
        # Adam's sparse rule is its dense one, with 0 in the rows that have no gradient.
        indices = tf.expand_dims(indices, 1)
        shape = tf.shape(var, out_type=indices.dtype)
        return self._update_dense(tf.scatter_nd(indices, grad, shape), var)


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """SGDW: gradient descent with momentum and decoupled weight decay.

    Use it to search for weight decay and learning rate apart from each other. In each
    step, with g the gradient at w,

        w <- w - weight_decay * w
        v <- momentum * v + g
        w <- w - learning_rate * v
                        (Nesterov: w <- w - learning_rate * (g + momentum * v))

    v is the slot 'momentum'. A sparse gradient decays and updates the rows that it
    names. The source and the deviations are at the top of this file,
    contrib_opt/optimizers/weight_decay.py.
    """

    def __init__(
        self,
        weight_decay,
        learning_rate,
        momentum,
        use_locking=False,
        name="MomentumW",
        use_nesterov=False,
    ):
        """Makes a momentum optimizer with weight decay.

        Each hyperparameter is a scalar: a number, a Tensor, a Variable, or a
        callable without arguments that returns one of these. In eager mode it is
        evaluated at each step.

        Args:
          weight_decay: the part of a variable that a step takes off, at least 0.
          learning_rate: the learning rate.
          momentum: the part of the velocity that the next step keeps, at least 0.
          use_locking: whether updates of ref variables take the variable's lock.
          name: name of the slot variables and operations.
          use_nesterov: whether to use Nesterov momentum.

        Raises:
          ValueError: a hyperparameter is no scalar, or callable only with arguments;
            weight_decay or momentum is negative.
        """
        check_hyperparameter("learning_rate", learning_rate)
        check_hyperparameter("momentum", momentum, minimum=0)
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )

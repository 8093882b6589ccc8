"""Gradients that come too late are dropped: DropStaleGradientOptimizer.

Several workers share their variables on a parameter server and do not wait for each
other. Let a worker read the global step t before it computes its gradients, and t'
when they are there:

    t' - t <= staleness:  the wrapped optimizer applies them
    else:                 they are dropped, and stale_counter <- stale_counter + 1

Source: `tf.contrib.opt.DropStaleGradientOptimizer` of TensorFlow 1.15.5.

Deviations from TensorFlow 1.15: works in eager mode and `tf.function` and with a
callable loss; apply_gradients may be called again in one graph (ValueError there, since
it makes `stale_counter` twice); a None as global_step raises ValueError, not
AttributeError; the wrapped optimizer's hyperparameters and variables are there.
"""

import numbers

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.conditional import update_if
from contrib_opt.optimizers.hyperparameters import check_scalar
from contrib_opt.optimizers.tensorflow_step import apply_gradients
from contrib_opt.optimizers.threads import one_at_a_time
from contrib_opt.optimizers.unwrap import tensorflow_variable
from contrib_opt.wrappers.wrapper import WrapperOptimizer


class DropStaleGradientOptimizer(WrapperOptimizer):
    """Drops gradients that were computed more than `staleness` global steps ago.

        global_step = tf.train.get_or_create_global_step()
        optimizer = DropStaleGradientOptimizer(LARSOptimizer(0.1), staleness=2)
        train_op = optimizer.minimize(loss, global_step)

    The equations are at the top of this file,
    contrib_opt/wrappers/drop_stale_gradient.py. A summary 'Gradient staleness
    percentage' says what part of the steps was dropped.

    Not under a strategy with several replicas, whose gradients are never stale:
    RuntimeError.
    """

    def __init__(self, opt, staleness, use_locking=False, name="DropStaleGradient"):
        """Wraps an optimizer.

        Args:
          opt: the `tf.compat.v1.train.Optimizer` that applies the gradients.
          staleness: number or scalar Tensor, the global steps that may pass while
            gradients are computed, at least 0.
          use_locking: accepted, and without effect, as in TensorFlow 1.15.
          name: name of the optimizer.

        Raises:
          TypeError: opt is no optimizer.
          ValueError: staleness is no scalar, or a negative number.
        """
        super().__init__(opt, name, use_locking)
        check_scalar("staleness", staleness)
        if isinstance(staleness, numbers.Real):
            check_scalar("staleness", staleness, minimum=0)
        self._staleness = staleness
        self._global_step = None
        self._local_step = None
        self._counters = {}

    def minimize(self, loss, global_step=None, *args, **kwargs):
        """As in `tf.compat.v1.train.Optimizer`; global_step must be given."""
        with one_at_a_time(self):
            self._global_step = tensorflow_variable(global_step)
            try:
                return super().minimize(loss, global_step, *args, **kwargs)
            finally:
                self._global_step = None

    def compute_gradients(self, loss, *args, **kwargs):
        """As in `tf.compat.v1.train.Optimizer`; notes the global step first.

        Raises:
          ValueError: there is no global step: neither was one given to `minimize`,
            nor has `tf.compat.v1.train.get_or_create_global_step` made one.
        """
        step = self._global_step
        if step is None:
            step = tf.train.get_global_step()
        if step is None:
            raise ValueError(
                "global_step must be given to minimize, or made by "
                "tf.compat.v1.train.get_or_create_global_step() before."
            )
        self._local_step = tf.identity(step.read_value())

        with tf.control_dependencies([self._local_step]):
            if not callable(loss):
                loss = tf.identity(loss)
            return super().compute_gradients(loss, *args, **kwargs)

    def _apply_checked(self, grads_and_vars, global_step, name):
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            raise RuntimeError(
                "DropStaleGradientOptimizer is for workers that do not wait for each "
                "other. The replicas of a strategy do: use the wrapped optimizer."
            )
        if global_step is None:
            raise ValueError("global_step must be given: gradients are stale by it.")
        if self._local_step is None:
            raise ValueError(
                "compute_gradients must be called before apply_gradients: it notes the "
                "global step that gradients are stale by."
            )
        counter = self._stale_counter(global_step)
        grads, variables = zip(*grads_and_vars)
        computed = [grad for grad in grads if grad is not None]
        with tf.control_dependencies([tensor_of(grad) for grad in computed]):
            age = tf.reshape(global_step.read_value() - self._local_step, [])

        def update(grads):
            pairs = zip(grads, variables)
            return apply_gradients(self._optimizer, pairs, global_step, name)

        fresh = age <= tf.cast(self._staleness, age.dtype)
        applied = update_if(fresh, update, list(grads))
        counted = counter.assign_add(1.0 - tf.cast(applied, counter.dtype))
        if tf.executing_eagerly():
            return None
        if not hasattr(tf.get_default_graph(), "outer_graph"):
            part = counter / tf.cast(global_step + 1, tf.float32)
            tf.summary.scalar("Gradient staleness percentage", part)
        return counted

    def _stale_counter(self, global_step):
        """The variable that counts the steps dropped, beside the global step."""
        # None for the variables of eager mode and tf.function, which have no graph.
        key = None if tf.executing_eagerly() else getattr(global_step, "graph", None)
        if key not in self._counters:
            with tf.init_scope(), tf.device(global_step.device):
                counter = tf.get_variable(
                    "stale_counter",
                    [],
                    initializer=tf.zeros_initializer(),
                    trainable=False,
                )
            self._counters[key] = counter
            _tf.track(self, counter, "stale_counter")
        return self._counters[key]

    def variables(self):
        """The variables of the wrapped optimizer, and `stale_counter`."""
        return super().variables() + list(self._counters.values())


def tensor_of(grad):
    """What is there once `grad`, a Tensor or IndexedSlices, has been computed."""
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad

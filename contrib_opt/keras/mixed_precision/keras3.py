"""The kind for Keras 3, on its TensorFlow backend.

Keras 3 has a LossScaleOptimizer with another contract: its trainer calls `scale_loss`,
then `apply` with scaled gradients, and so must a training loop. Loops of Keras 2 call
`get_scaled_loss` and `get_unscaled_gradients`, then `apply_gradients` with unscaled
gradients. Here both work, by turns if need be: `scale_loss` notes that the gradients
come scaled, and the next `apply` of the same thread unscales them.
"""

import threading
import weakref

import tensorflow as tf

import keras
from contrib_opt import _tf
from contrib_opt.keras import _keras
from contrib_opt.keras.mixed_precision import hyperparameters, rule, strategies
from contrib_opt.keras.mixed_precision.keras2 import graph_gradients
from contrib_opt.optimizers.unwrap import tensorflow_variable


class Keras3LossScaleOptimizer(
    hyperparameters.Delegating,
    _tf.delegating_trackable(),
    keras.mixed_precision.LossScaleOptimizer,
):
    """A LossScaleOptimizer of Keras 3 that also keeps the contract of Keras 2."""

    clipnorm = hyperparameters.delegated("clipnorm")
    global_clipnorm = hyperparameters.delegated("global_clipnorm")
    clipvalue = hyperparameters.delegated("clipvalue")
    weight_decay = hyperparameters.delegated("weight_decay")
    use_ema = hyperparameters.delegated("use_ema")
    ema_momentum = hyperparameters.delegated("ema_momentum")
    ema_overwrite_frequency = hyperparameters.delegated("ema_overwrite_frequency")
    gradient_accumulation_steps = hyperparameters.delegated(
        "gradient_accumulation_steps"
    )

    def __init__(
        self,
        inner_optimizer,
        dynamic=True,
        initial_scale=None,
        dynamic_growth_steps=None,
    ):
        _check_wrapped(inner_optimizer)
        initial_scale, dynamic_growth_steps = _checked(
            dynamic, initial_scale, dynamic_growth_steps
        )
        strategies.check_supported()

        object.__setattr__(self, "_trackable", inner_optimizer)
        keras.mixed_precision.LossScaleOptimizer.__init__(
            self, inner_optimizer, initial_scale, dynamic_growth_steps
        )
        self._wrapped = inner_optimizer
        inner_optimizer._is_wrapped_by_loss_scale_optimizer = True
        self._dynamic = dynamic
        self._was_scaled = self._was_unscaled = False
        self._scaled_here = _ScaledHere()
        if dynamic:
            self._create_state()

    def _create_state(self):
        # The names of the attributes, and their order among the variables, are those of
        # Keras 3: each reads the .keras files of the other.
        self.step_counter = self.add_variable(
            shape=(), dtype="int64", initializer="zeros", name="step_counter"
        )
        self.dynamic_scale = self.add_variable(
            shape=(),
            dtype="float32",
            initializer=keras.initializers.Constant(self.initial_scale),
            name="dynamic_scale",
        )
        # These names are the checkpoint's, since TensorFlow 2.2.
        state = tf.Module()
        state.current_loss_scale = tensorflow_variable(self.dynamic_scale)
        state.good_steps = tensorflow_variable(self.step_counter)
        _tf.track(self._wrapped, state, "loss_scale")

    def build(self, var_list):
        """Makes the slots of the wrapped optimizer."""
        var_list = list(var_list)
        self._built_for = var_list
        if not self._wrapped.built:
            self._wrapped.build(var_list)
        self.built = True

    # ------------------------------------------------------------------ the contract

    @property
    def dynamic(self):
        """Whether the loss scale changes."""
        return self._dynamic

    @property
    def loss_scale(self):
        """The loss scale now, a float32 scalar tensor."""
        value = self.dynamic_scale if self._dynamic else self.initial_scale
        return tf.convert_to_tensor(tensorflow_variable(value), tf.float32)

    @property
    def dynamic_counter(self):
        """The finite steps since the loss scale changed, a variable; None if fixed."""
        return tensorflow_variable(self.step_counter) if self._dynamic else None

    def get_scaled_loss(self, loss):
        """`loss`, a tensor or a callable that returns one, times the loss scale."""
        self._was_scaled = True
        self._scaled_here.forget()
        return rule.scaled_loss(loss, lambda: self.loss_scale)

    def get_unscaled_gradients(self, grads):
        """The list `grads` over the loss scale; None and IndexedSlices are kept."""
        self._was_unscaled = True
        self._scaled_here.forget()
        return rule.unscaled_gradients(grads, self.loss_scale)

    def scale_loss(self, loss):
        """As Keras 3's trainer calls it: the next `apply` gets scaled gradients."""
        self._scaled_here.note()
        if loss.dtype.size < 4:
            # Here nothing would stop a loss times 2 ** 15 from overflowing.
            loss = tf.cast(loss, tf.float32)
        return rule.scaled_loss(loss, lambda: self.loss_scale)

    def minimize(self, loss, var_list, tape=None):
        """Computes, unscales and applies the gradients of `loss`.

        Args:
          loss: a callable, or a tensor that `tape` recorded.
          var_list: variables, one variable, or a callable that returns them.
          tape: the `tf.GradientTape`, if `loss` is a tensor.

        Returns:
          `iterations`.
        """
        if not callable(loss) and tape is None:
            raise ValueError("`tape` must be given when `loss` is a tensor")
        with tape or tf.GradientTape() as tape:
            if callable(loss):
                if not callable(var_list):
                    tape.watch([tensorflow_variable(v) for v in _flat(var_list)])
                loss = loss()
            scaled = self.get_scaled_loss(loss)
        variables = _flat(var_list() if callable(var_list) else var_list)
        grads = tape.gradient(scaled, [tensorflow_variable(v) for v in variables])
        return self.apply_gradients(zip(self.get_unscaled_gradients(grads), variables))

    def get_gradients(self, loss, params):
        """The unscaled gradients of the tensor `loss` in a graph of TensorFlow 1."""
        return graph_gradients(self, loss, params)

    def apply_gradients(
        self, grads_and_vars, name=None, experimental_aggregate_gradients=True
    ):
        """Applies gradients, unless one of them is inf or NaN; updates the loss scale.

        Args:
          grads_and_vars: list of (gradient, variable): unscaled gradients, or
            scaled ones if `scale_loss` scaled the loss.
          name: ignored.
          experimental_aggregate_gradients: must be True where there are replicas.

        Returns:
          `iterations`.

        Raises:
          ValueError: called in the cross-replica context of a strategy, or under a
            strategy that is not supported, or no variable has a gradient.
        """
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if not experimental_aggregate_gradients and replicas > 1:
            raise ValueError(
                "experimental_aggregate_gradients=False is not supported: optimizers "
                "of Keras 3 always sum the gradients of the replicas"
            )
        grads_and_vars = list(grads_and_vars)
        if grads_and_vars:
            self.apply(*zip(*grads_and_vars))
        return self.iterations

    def apply(self, grads, trainable_variables=None):
        """`apply_gradients`, with gradients and variables in lists of their own."""
        if tf.distribute.in_cross_replica_context():
            raise ValueError(
                "apply_gradients() must be called in a replica context, such as in a "
                "function that strategy.run() runs"
            )
        strategies.check_supported()
        grads = list(grads)
        if not grads:
            return
        if all(grad is None for grad in grads):
            raise ValueError("No gradients provided for any variable.")
        variables = self._built_for if self.built else None
        if trainable_variables is not None:
            variables = list(trainable_variables)
            if not self.built:
                # Outside of the function that is being traced: slots made inside would
                # be initialized in a branch of it, and replicas cannot join in one.
                with tf.init_scope():
                    self.build(variables)
        if self._scaled_here.take():
            grads = self._unscaled(grads, variables)
        else:
            self._warn_if_forgotten()
        if self._dynamic:
            self._apply_if_finite(grads, variables)
        else:
            self._wrapped.apply(grads, variables)

    # --------------------------------------------------------------------- the steps

    def _unscaled(self, grads, variables):
        unscaled = rule.unscaled_gradients(grads, self.loss_scale)
        # Variables of float8 layers are given their values as gradients.
        return [
            grad if getattr(var, "overwrite_with_gradient", False) else small
            for grad, small, var in zip(grads, unscaled, variables)
        ]

    def _apply_if_finite(self, grads, variables):
        finite = rule.all_finite(grads)
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            # One replica's NaN must stop them all.
            context = tf.distribute.get_replica_context()
            bad = tf.cast(tf.logical_not(finite), tf.float32)
            finite = tf.equal(context.all_reduce(tf.distribute.ReduceOp.SUM, bad), 0.0)

        def update(grads):
            self._wrapped.apply(grads, variables)

        if not _tf.can_merge_replicas():
            self._step(finite, lambda: update(grads))
            return

        def joined(strategy, finite, grads):
            # All replicas have the same.
            finite = strategy.experimental_local_results(finite)[0]
            run = strategy.extended.call_for_each_replica
            self._step(finite, lambda: run(update, args=(grads,)))

        tf.distribute.get_replica_context().merge_call(joined, args=(finite, grads))

    def _step(self, finite, update):
        tf.cond(finite, update, self._count_skipped)
        scale, counter = self.dynamic_scale, self.step_counter
        scale, counter = tensorflow_variable(scale), tensorflow_variable(counter)
        next_scale, next_counter = rule.next_state(
            tf.convert_to_tensor(scale),
            tf.convert_to_tensor(counter),
            finite,
            self.dynamic_growth_steps,
        )
        scale.assign(next_scale)
        counter.assign(next_counter)

    def _count_skipped(self):
        # Gradients that are being accumulated wait for a certain number of steps.
        if not self.gradient_accumulation_steps:
            self.iterations.assign_add(1)

    def _warn_if_forgotten(self):
        forgotten = []
        if not self._was_scaled:
            forgotten.append("get_scaled_loss()")
        if not self._was_unscaled:
            forgotten.append("get_unscaled_gradients()")
        if forgotten:
            tf.get_logger().warning(
                "apply_gradients() of a LossScaleOptimizer was called, but %s never "
                "was. Gradients may underflow, or have the wrong size: a training loop "
                "must call get_scaled_loss(), then get_unscaled_gradients().",
                " and ".join(forgotten),
            )

    # ---------------------------------------------------------- state and attributes

    @property
    def iterations(self):
        """The steps so far, skipped ones as well."""
        return self._wrapped.iterations

    @iterations.setter
    def iterations(self, value):
        if not hasattr(value, "assign_add"):
            self.iterations.assign(value)
        elif self.built:
            raise RuntimeError(
                "iterations can be set to a variable only before the first step"
            )
        else:
            _keras.replace_iterations(self._wrapped, value)

    @property
    def variables(self):
        """The variables of the wrapped optimizer; may be called, as in Keras 2."""
        return _CallableList(self._wrapped.variables)

    def save_own_variables(self, store):
        """Writes the state, that of the wrapped optimizer with it."""
        for index, variable in enumerate(super().variables):
            store[str(index)] = variable.numpy()

    def load_own_variables(self, store):
        """Reads what `save_own_variables` wrote, here or in Keras 3's own class."""
        variables = super().variables
        if len(store.keys()) != len(variables):
            tf.get_logger().warning(
                "The state of the optimizer is not restored: the file has %d "
                "variables for it, and it has %d.",
                len(store.keys()),
                len(variables),
            )
            return
        for index, variable in enumerate(variables):
            variable.assign(store[str(index)])

    def get_config(self):
        """As in TensorFlow 2.8: the wrapped optimizer, and how the scale changes."""
        inner = keras.saving.serialize_keras_object(self._wrapped)
        inner["config"]["name"] = _without_number(self._wrapped)
        return {
            "inner_optimizer": inner,
            "dynamic": self.dynamic,
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    def _set_own(self, name, value):
        # Past the tracking of attributes: a checkpoint takes this object for the
        # wrapped optimizer, which tracks its own.
        object.__setattr__(self, name, value)

    def __dir__(self):
        # Keras saves what it finds here, by these names: once is enough.
        return [n for n in super().__dir__() if n not in ("_trackable", "_wrapped")]


class _CallableList(list):
    def __call__(self):
        return self


class _ScaledHere(threading.local):
    """Whether `scale_loss` scaled the loss of the step that this thread is at."""

    graph = None

    def note(self):
        self.graph = weakref.ref(tf.compat.v1.get_default_graph())

    def forget(self):
        self.graph = None

    def take(self):
        """True once for each step that noted it.

        Raises:
          RuntimeError: it was noted while another `tf.function` was traced. When that
            runs again it will scale, but not note.
        """
        graph, self.graph = self.graph and self.graph(), None
        if graph is None:
            # Not noted, or in the trace of a function that failed and is gone.
            return False
        here = tf.compat.v1.get_default_graph()
        if here not in _with_outer(graph) and graph not in _with_outer(here):
            raise RuntimeError(
                "scale_loss() was called in another tf.function than "
                "apply_gradients(). Call both in one, or call get_scaled_loss() and "
                "get_unscaled_gradients()."
            )
        return True

    def __deepcopy__(self, memo):
        return type(self)()

    def __reduce__(self):
        return type(self), ()


def _with_outer(graph):
    """`graph`, and those of the functions in whose traces it was traced."""
    graphs = [graph]
    while hasattr(getattr(graph, "outer_graph", None), "outer_graph"):
        graph = graph.outer_graph
        graphs.append(graph)
    return graphs


def _without_number(optimizer):
    """The name of `optimizer`: 'sgd' for 'sgd_3', which Keras called the third SGD."""
    stem = optimizer.name.rstrip("0123456789").rstrip("_")
    generated = stem.replace("_", "") == type(optimizer).__name__.lower()
    return stem if generated else optimizer.name


def _flat(variables):
    return tf.nest.flatten(variables)


def _check_wrapped(optimizer):
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "LossScaleOptimizer needs the TensorFlow backend of Keras, not "
            f"{keras.backend.backend()}"
        )
    if isinstance(optimizer, keras.mixed_precision.LossScaleOptimizer):
        raise TypeError(
            f"LossScaleOptimizer cannot wrap another LossScaleOptimizer: {optimizer}"
        )
    if getattr(optimizer, "_is_wrapped_by_loss_scale_optimizer", False):
        raise ValueError(f"A LossScaleOptimizer already wraps {optimizer}")


def _checked(dynamic, initial_scale, growth_steps):
    """`initial_scale` and `growth_steps`, checked, with their defaults."""
    if not isinstance(dynamic, bool):
        raise TypeError(
            f"dynamic must be a bool: {dynamic!r}. "
            "experimental.LossScaleOptimizer takes a loss scale there"
        )
    if dynamic:
        if initial_scale is None:
            initial_scale = rule.DEFAULT_INITIAL_SCALE
        if growth_steps is None:
            growth_steps = rule.DEFAULT_GROWTH_STEPS
        return float(initial_scale), int(growth_steps)
    if initial_scale is None:
        raise ValueError("initial_scale must be given when dynamic is False")
    if growth_steps is not None:
        raise ValueError(
            f"dynamic_growth_steps must be None when dynamic is False: {growth_steps}"
        )
    return float(initial_scale), None

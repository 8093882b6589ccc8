"""Averages the weights over the steps, for evaluation with smoother ones.

For a variable w, after each step of the wrapped optimizer:

    decay = average_decay, or min(average_decay, (1 + num_updates) / (10 + num_updates))
    a <- a - (1 - decay) * (a - w)

which is decay * a + (1 - decay) * w: an exponential moving average, over about
1 / (1 - decay) steps. It starts at the first value of w. With `sequential_update=False`
the same comes before the step of the wrapped optimizer, so that a lags by a step.

Symbols: w variable, a its average (the variable 'NAME/ExponentialMovingAverage'),
num_updates the number of steps so far, with which the average moves faster at first.

Source: B. T. Polyak, A. B. Juditsky, "Acceleration of Stochastic Approximation by
Averaging", SIAM J. Control and Optimization 30 (1992), in the exponential form that
`tf.contrib.opt.MovingAverageOptimizer` of TensorFlow 1.15 computes.

Deviations from TensorFlow 1.15, each a case in which it failed:
- With `sequential_update=False`, 1.15 read the weights while the step changed them, so
  that an average had them from before or after the step, by chance. Here it has those
  from before.
- get_slot, get_slot_names, variables, get_name and minimize's checks work; the first
  four raised AttributeError. `average(var)` is new.
- Eager mode, tf.function and distribution strategies work. Object-based checkpoints
  have the averages.
- average_decay and num_updates may be callables, and Tensors of any real type.
  bfloat16 variables are averaged.
- `swapping_saver` knows variables under any name in a dict; 1.15 left out, without a
  word, those whose key was not their name.

In float16 and bfloat16 the average is kept in that type, as in 1.15: with a decay
above 0.998 (0.99 in bfloat16) most steps are too small to change it. Keep the variables
in float32 there, as automatic mixed precision does.
"""

import numbers

import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.conditional import branches_see_ref_variables, first_value
from contrib_opt.optimizers.hyperparameters import check_hyperparameter, evaluate
from contrib_opt.optimizers.kernels import run_kernel
from contrib_opt.optimizers.unwrap import (
    is_partitioned,
    parts_of,
    tensorflow_variable,
)
from contrib_opt.wrappers.wrapper import WrapperOptimizer

_NAME = "ExponentialMovingAverage"


def averaging_rate(average_decay, num_updates=None):
    """The part of the way to w that the average goes in this step, a scalar Tensor.

    Args:
      average_decay: the part of the average that a step keeps, a real scalar.
      num_updates: the number of steps so far, a real scalar, or None.
    """
    # Through TensorFlow's default float type, as in 1.15: for a float64 variable a
    # Python number has float32 precision here.
    decay = _float_tensor(average_decay)
    if num_updates is not None:
        # Not read_value: TensorFlow 1.15 may put the cast of a ref variable before what
        # its read_value waits for.
        steps = tf.cast(num_updates, decay.dtype)
        decay = tf.minimum(decay, (1.0 + steps) / (10.0 + steps))
    return 1.0 - decay


def move_average(average, w, rate):
    """average <- average - rate * (average - w); returns the operation."""
    with tf.device(average.device):
        return run_kernel(
            "ApplyGradientDescent",
            {"var": average},
            alpha=tf.cast(rate, average.dtype.base_dtype),
            delta=average.read_value() - w.read_value(),
        )


def _float_tensor(value):
    tensor = tf.reshape(tf.convert_to_tensor(value), [])
    return tensor if tensor.dtype.is_floating else tf.cast(tensor, tf.float32)


class MovingAverageOptimizer(WrapperOptimizer):
    """Runs another optimizer, and keeps moving averages of the weights.

    Use it where the last steps are noisy: the averages are often better than any of
    the weights. The saver that `swapping_saver` returns writes the averages under the
    names of the variables, so that an evaluation that knows nothing of all this, with
    an ordinary `tf.compat.v1.train.Saver`, has the averages.

        a <- a - (1 - decay) * (a - w)

    after each step, for each variable w that has a gradient in it. The equations, the
    source and the deviations are at the top of this file,
    contrib_opt/wrappers/moving_average.py.

    Slots, variables and checkpoints are those of the wrapped optimizer, and the
    averages. If it leaves a step out, as an optimizer for mixed precision does when a
    gradient is inf, the averages move towards the same weights once more.
    """

    def __init__(
        self, opt, average_decay=0.9999, num_updates=None, sequential_update=True
    ):
        """Wraps `opt`.

        Args:
          opt: the `tf.compat.v1.train.Optimizer` that updates the weights.
          average_decay: the part of the average that a step keeps, in [0, 1]: a
            number, a Tensor, a Variable, or a callable without arguments that
            returns one of these. In eager mode it is evaluated at each step.
          num_updates: number of steps so far, at least 0, of the same kinds; most
            often the global step. None: do not change the decay.
          sequential_update: whether the average has the weights from after the step;
            otherwise those from before it.

        Raises:
          TypeError: opt is no `tf.compat.v1.train.Optimizer`.
          ValueError: average_decay or num_updates is no scalar, is out of its range,
            or is callable only with arguments.
        """
        check_hyperparameter("average_decay", average_decay, minimum=0)
        if isinstance(average_decay, numbers.Real) and average_decay > 1:
            raise ValueError(f"average_decay must be 1 or less, got {average_decay!r}.")
        if num_updates is not None:
            check_hyperparameter("num_updates", num_updates, minimum=0)
        super().__init__(opt, "MovingAverageOptimizer")
        self._average_decay = average_decay
        self._num_updates = num_updates
        self._sequential_update = sequential_update
        # From the id of a variable to: its graph or None, the variable, its average.
        self._averaged = {}

    def average(self, var):
        """The variable that holds the average of `var`; None before the first step."""
        # Not get_slot: it has another key for a mirrored variable inside of a function.
        _, _, average = self._averaged.get(id(tensorflow_variable(var)), [None] * 3)
        return average

    def variables(self):
        """The variables of the wrapped optimizer, then the averages."""
        # The base class leaves out what was made in a replica in eager mode.
        return self._optimizer.variables() + [average for _, average in self._pairs()]

    def _pairs(self):
        """The variables of this graph, or of eager mode, with their averages."""
        here = _graph()
        return [(var, a) for graph, var, a in self._averaged.values() if graph is here]

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """Makes a saver that swaps the variables and their averages.

        Save with it in training, and restore with it to go on training. To evaluate,
        restore with an ordinary saver: it finds the averages under the names of the
        variables.

        Args:
          var_list: list of variables, or dict from names to variables, as for
            `tf.compat.v1.train.Saver`; None: all that the graph has now. In eager
            mode there must be one.
          name: name of the saver's operations.
          **kwargs: what else `tf.compat.v1.train.Saver` takes.

        Returns:
          A `tf.compat.v1.train.Saver`.

        Raises:
          TypeError: var_list is no list or dict.
          RuntimeError: neither `minimize` nor `apply_gradients` was called before.
          ValueError: var_list has a variable without its average, or an average without
            its variable, or two variables of one name, or is missing in eager mode.
        """
        pairs = self._pairs()
        if not pairs:
            raise RuntimeError(
                "Call minimize or apply_gradients before swapping_saver: the averages "
                "do not exist yet."
            )
        if var_list is None:
            if tf.executing_eagerly():
                raise ValueError("In eager mode swapping_saver needs a var_list.")
            var_list = tf.global_variables()
        if isinstance(var_list, str) or hasattr(var_list, "assign"):
            raise TypeError(
                "var_list must be a list of variables, or a dict from names to "
                f"variables, got {var_list!r}."
            )
        named = var_list if isinstance(var_list, dict) else _by_name(var_list)
        present = {_key(part) for item in named.values() for part in parts_of(item)}
        partners = {}
        for var, average in pairs:
            partners[_key(var)] = average
            partners[_key(average)] = var

        def swapped(item):
            partner = partners.get(_key(item))
            if partner is not None and _key(partner) not in present:
                raise ValueError(
                    f"var_list has {item.name} without {partner.name}, with which "
                    "swapping_saver swaps it: add it."
                )
            return item if partner is None else partner

        return tf.train.Saver(
            {
                key: [swapped(part) for part in item]
                if is_partitioned(item)
                else _tf.saved_as(swapped(item), key)
                for key, item in named.items()
            },
            name=name,
            **kwargs,
        )

    def _apply_checked(self, grads_and_vars, global_step, name):
        variables = [var for grad, var in grads_and_vars if grad is not None]
        _joined(self._make_averages, variables)

        def step():
            apply = super(MovingAverageOptimizer, self)._apply_checked
            return apply(grads_and_vars, global_step, name)

        def average():
            return _joined(self._move_averages, variables)

        if self._sequential_update:
            train_op = step()
            with tf.control_dependencies(_operations(train_op)):
                average_op = average()
        else:
            # Only in steps that have gradients to go on with.
            with tf.control_dependencies(_operations([g for g, _ in grads_and_vars])):
                average_op = average()
            with tf.control_dependencies(_operations(average_op)):
                train_op = step()
        return tf.group(*_operations([train_op, average_op]), name="train_with_avg")

    def _make_averages(self, strategy, variables):
        with tf.init_scope():
            for var in variables:
                if self.average(var) is None:
                    self._make_average(var)

    def _make_average(self, var):
        with branches_see_ref_variables():
            average = self._get_or_make_slot(var, first_value(var), _NAME, _NAME)
        self._averaged[id(var)] = _graph(), var, average
        if not tf.executing_eagerly():
            tf.add_to_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES, var)
        # Eager variables may share a name, and their averages then do not.
        names = [_name(other) for other, _ in self._pairs()]
        count = names.count(_name(var)) - 1
        suffix = f"_{count}" if count else ""
        _tf.track(self, average, f"{_name(var)}/{_NAME}{suffix}")

    def _move_averages(self, strategy, variables):
        rate = averaging_rate(
            evaluate(self._average_decay), evaluate(self._num_updates)
        )
        moved = []
        for var in variables:
            average = self.average(var)
            if strategy is None:
                moved.append(move_average(average, var, rate))
            else:
                moved += strategy.extended.update(
                    average, move_average, args=(var, rate), group=False
                )
        return tf.group(*_operations(moved))


def _joined(update, variables):
    """Calls `update(strategy, variables)` once for all replicas; None: no strategy."""
    if not _tf.in_replica_context():
        return update(None, variables)
    return tf.distribute.get_replica_context().merge_call(update, args=(variables,))


def _operations(results):
    """What an update returned, for `tf.control_dependencies`; [] in eager mode."""
    if tf.executing_eagerly():
        return []
    found = tf.nest.flatten(results, expand_composites=True)
    return [op for op in found if op is not None]


def _graph():
    """The graph in which variables are made now; None: eagerly."""
    with tf.init_scope():
        return None if tf.executing_eagerly() else tf.get_default_graph()


def _name(var):
    return var.name.rpartition(":")[0]


def _key(var):
    return id(var) if tf.executing_eagerly() else var.op.name


def _by_name(var_list):
    """Under which names a `tf.compat.v1.train.Saver` saves the list `var_list`."""
    named = {}
    for var in [part for item in var_list for part in parts_of(item)]:
        whole = _partitioned_name(var)
        if whole is not None:
            named.setdefault(whole, []).append(var)
            continue
        name = var.name if hasattr(var, "specs") else _name(var)
        if name in named:
            raise ValueError(f"var_list has two variables of the name {name}.")
        named[name] = var
    return named


def _partitioned_name(var):
    """The name of the partitioned variable that `var` is a part of, or None."""
    if tf.executing_eagerly() or not hasattr(var, "to_proto"):
        return None
    proto = var.to_proto()
    if not proto.HasField("save_slice_info_def"):
        return None
    return proto.save_slice_info_def.full_name

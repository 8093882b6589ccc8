"""Eager mode's step as one compiled function, called once instead of once an operation.

A function is compiled for a list of variables, the kinds of their gradients (dense,
sparse or None; their types and shapes, but not how many rows a sparse one has) and the
settings of the optimizer. Gradients and hyperparameters are its inputs: another
learning rate, from a schedule or a callable, needs no other function.

The first step of a kind runs operation by operation, and makes the variables that the
optimizer needs. The second one is compiled, so that what happens once costs no
compilation. Both have the same numbers, to the last bit.

Not compiled, since a function might not do the same: methods that a user's class
overrides, steps under a distribution strategy, variables with a constraint, and
gradients that are neither Tensors nor IndexedSlices of Tensors.
"""

import functools
import itertools
import numbers
import threading
import types
import weakref

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt import _tf
from contrib_opt.optimizers.gradients import CheckedPairs, checked_gradients
from contrib_opt.optimizers.hyperparameters import CompiledNumber, compute_dtype
from contrib_opt.optimizers.threads import one_at_a_time

# Whose classes are known to compute with Tensors alone.
_KNOWN_PACKAGES = {"contrib_opt", "tensorflow", "tensorflow_core"}
# What other classes may define: it says nothing about how a step updates variables.
_HARMLESS = {
    "__init__",
    "minimize",
    "compute_gradients",
    "apply_gradients",
    # Every class has some of these.
    "__annotations__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__orig_bases__",
    "__parameters__",
    "__qualname__",
    "__static_attributes__",
    "__weakref__",
}
_SETTING_TYPES = {bool, int, float, str, types.FunctionType}


def can_compile(optimizer):
    """Whether the step that `optimizer` takes now may be a compiled one."""
    if not tf.executing_eagerly() or tf.distribute.has_strategy():
        return False
    cls = type(optimizer)
    methods = _methods(cls)
    if methods is None or _tf.runs_functions_eagerly():
        return False
    # Each time, since somebody may have put another function into a class.
    if not _are_known(tuple([getattr(cls, name, None) for name in methods])):
        return False
    # `MultitaskOptimizerWrapper` sets some methods of the optimizer itself.
    own = methods.intersection(vars(optimizer))
    return not own or _are_known(tuple([vars(optimizer)[name] for name in own]))


@functools.lru_cache(maxsize=256)
def _methods(optimizer_class):
    """The names of the methods that say how an optimizer of the class updates.

    Returns:
      A set; None if a user's class overrides any of them.
    """
    methods, overridden = set(), set()
    for cls in optimizer_class.__mro__:
        if _is_known(cls):
            methods |= {n for n in vars(cls) if callable(getattr(cls, n))}
        elif cls is not object:
            overridden |= set(vars(cls))
    methods -= _HARMLESS
    return None if methods & overridden else frozenset(methods)


@functools.lru_cache(maxsize=256)
def _are_known(functions):
    return all(map(_is_known, functions))


def _is_known(thing):
    """Whether a class or function is of one of the packages that are known."""
    module = getattr(thing, "__module__", None) or ""
    return module.partition(".")[0] in _KNOWN_PACKAGES


def settings(optimizer):
    """The attributes that say how `optimizer` updates, its hyperparameters aside.

    Returns:
      A hashable value: pairs of a name and a number, a string or a function.
    """
    found = []
    hyperparameters = getattr(optimizer, "_hyperparameters", ())
    for name, value in vars(optimizer).items():
        kind = type(value)
        if kind in _SETTING_TYPES:
            # TensorFlow counts restored checkpoints in an attribute '_self_...'.
            if name[1:] not in hyperparameters and name[:6] != "_self_":
                found.append((name, value))
        elif kind is list:
            found += [(name, part) for part in value if type(part) is str]
    return tuple(found)


class CompiledSteps:
    """The compiled steps of one optimizer.

    Attributes:
      compiled: how many functions have been compiled so far.
    """

    # How many kinds of steps are known at a time; the one that was not taken for the
    # longest time goes.
    MOST = 16

    def __init__(self):
        self._lock = threading.Lock()
        self.compiled = 0
        self._steps = {}
        self._clock = itertools.count()

    def __reduce__(self):
        # The copy of an optimizer compiles functions of its own.
        return CompiledSteps, ()

    def __len__(self):
        return len(self._steps)

    def take(self, optimizer, pairs, global_step, name):
        """Takes a step of `optimizer`; see `ContribOptimizer.apply_gradients`."""
        values = values_described = None
        described = _described_gradients(pairs)
        if described is None:
            pairs, _ = checked_gradients(pairs)
            described = _described_gradients(pairs)
        if described is not None:
            with one_at_a_time(optimizer):
                values = optimizer._values_of_step(global_step)
            values_described = _described_values(values)

        def uncompiled():
            return optimizer._take_step(pairs, global_step, name, values)

        if values_described is None:
            return uncompiled()
        kinds, inputs = described
        value_kinds, known_numbers, tensors = values_described
        variables = [var for _, var in pairs]
        of_step = optimizer._step_settings(variables)
        key = (kinds, value_kinds, id(global_step), of_step)
        if global_step is not None:
            variables.append(global_step)
        step = self._steps.get(key)
        if step is None or not step.is_for(variables):
            done = uncompiled()
            # Without an error: these gradients fit their variables.
            self._remember(key, variables)
            return done
        step.used = next(self._clock)
        if step.function is None:
            if not step.is_refused:
                with one_at_a_time(optimizer):
                    self._compile(step, optimizer, pairs, global_step, values, of_step)
            if step.function is None:
                return uncompiled()
        step.run(inputs, known_numbers, tensors)
        return None

    def _remember(self, key, variables):
        this = weakref.ref(self)

        def forget(_):
            # Without the lock: this may run at any time and in any thread.
            steps = this()
            if steps is not None:
                steps._steps.pop(key, None)

        step = _Step(variables, forget)
        step.used = next(self._clock)
        with self._lock:
            known = self._steps.get(key)
            if known is None or not known.is_for(variables):
                self._steps[key] = step
            while len(self._steps) > self.MOST:
                known = list(self._steps.items())
                self._steps.pop(min(known, key=lambda item: item[1].used)[0], None)

    def _compile(self, step, optimizer, pairs, global_step, values, of_step):
        """Sets the function of `step`, or refuses to do so."""
        if step.function is not None or step.is_refused:
            return  # Another thread was faster.
        variables = [var for _, var in pairs]
        if not all(map(_is_plain, [*variables, global_step])):
            step.is_refused = True
            return
        try:
            function = compiled(optimizer, pairs, global_step, values)
        except Exception:
            # Uncompiled it works, or raises its error in the words of eager mode.
            step.is_refused = True
            return
        # Another thread may have changed the settings meanwhile.
        if optimizer._step_settings(variables) == of_step:
            step.function = function
            self.compiled += 1


class _Step:
    """One kind of step, and the function for it once that is compiled.

    It does not keep the variables: `forget` is called when one of them is gone.
    """

    def __init__(self, variables, forget):
        self._variables = [weakref.ref(var, forget) for var in variables]
        self._numbers = None, None
        self.function = None
        self.is_refused = False
        self.used = 0

    def is_for(self, variables):
        """Whether it is for these variables, and not for others with the same ids."""
        return all(ref() is var for ref, var in zip(self._variables, variables))

    def run(self, inputs, known_numbers, tensors):
        """Calls the function; `inputs` are the gradients."""
        if known_numbers:
            before, tensor = self._numbers
            if before != known_numbers:
                tensor = tf.constant(known_numbers, tf.float64)
                self._numbers = known_numbers, tensor
            inputs.append(tensor)
        self.function(inputs + tensors)


def compiled(optimizer, pairs, global_step, values):
    """Compiles a step of `optimizer`.

    Args:
      optimizer: a `ContribOptimizer`, or what stands for an optimizer of TensorFlow's
        (contrib_opt/optimizers/tensorflow_step.py), whose variables exist.
      pairs: list of (gradient, variable), as `checked_gradients` returns it.
      global_step: a variable or None.
      values: what `_values_of_step` returns.

    Returns:
      A function of a list of Tensors: those of `_described_gradients`; the numbers of
      `_described_values`, if there are any, as one float64 vector; and its Tensors.
    """
    _, known_numbers, tensors = _described_values(values)
    specs = []
    for grad, _ in pairs:
        if isinstance(grad, tf.IndexedSlices):
            rows = [None] + grad.values.shape.as_list()[1:]
            specs.append(tf.TensorSpec(rows, grad.dtype))
            specs.append(tf.TensorSpec([None], grad.indices.dtype))
        elif grad is not None:
            specs.append(tf.TensorSpec(grad.shape, grad.dtype))
    if known_numbers:
        specs.append(tf.TensorSpec([len(known_numbers)], tf.float64))
    specs += [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
    dtypes = {tf.float32, tf.float64}
    for _, var in pairs:
        dtypes |= {var.dtype.base_dtype, compute_dtype(var.dtype)}

    def step(*inputs):
        inputs = iter(inputs)
        checked = []
        for grad, var in pairs:
            if isinstance(grad, tf.IndexedSlices):
                grad = tf.IndexedSlices(next(inputs), next(inputs))
            elif grad is not None:
                grad = next(inputs)
            checked.append((grad, var))
        unpacked = iter(tf.unstack(next(inputs)) if known_numbers else [])
        given = {}
        for name, value in values.items():
            dtype = _dtype_of_number(value)
            if dtype is None:
                given[name] = next(inputs)
            else:
                given[name] = CompiledNumber(next(unpacked), dtype, dtypes)
        optimizer._take_step(CheckedPairs(checked), global_step, values=given)

    attributes = vars(optimizer)
    before = dict(attributes)
    try:
        with tf.device(None):
            function = tf.function(step, autograph=False).get_concrete_function(*specs)
    finally:
        # No Tensor of the graph stays in the optimizer.
        for name in list(attributes):
            if name not in before:
                del attributes[name]
            elif attributes[name] is not before[name]:
                attributes[name] = before[name]
    return _tf.eager_caller(function)


def _described_gradients(pairs):
    """What kinds of gradients there are, and the Tensors that they consist of.

    Returns:
      The pair (kinds, Tensors). kinds is hashable, and holds whatever the checks of
      gradients look at. None if a gradient does not fit, or is of another type.
    """
    kinds, tensors = [], []
    eager_tensor, layout = _tf.eager_tensor_type(), _tf.layout
    for grad, var in pairs:
        if type(grad) is eager_tensor:
            kinds.append((id(var), layout(grad)))
            tensors.append(grad)
        elif grad is None:
            kinds.append(id(var))
        elif isinstance(grad, tf.IndexedSlices):
            values, indices = grad.values, grad.indices
            if not type(values) is type(indices) is eager_tensor:
                return None
            dtype, shape = layout(values)
            index_dtype, index_shape = layout(indices)
            if shape[:1] != index_shape or not _in_range(indices, var):
                return None
            kinds.append((id(var), dtype, shape[1:], index_dtype))
            tensors += [values, indices]
        else:
            return None
    return tuple(kinds), tensors


def _in_range(indices, var):
    rows = var.shape.as_list()[0] if var.shape.ndims else None
    indices = indices.numpy()
    if rows is None or indices.dtype.kind not in "iu":
        return False
    return indices.size == 0 or (indices.min() >= 0 and indices.max() < rows)


def _described_values(values):
    """What kinds of values there are; the numbers, a tuple; the others as Tensors.

    Returns:
      The three; None if there is a number that float64 might not hold.
    """
    kinds, found, tensors = [], [], []
    for value in values.values():
        dtype = _dtype_of_number(value)
        if dtype is not None:
            kinds.append(dtype)
            found.append(value)
        elif isinstance(value, numbers.Number):
            return None
        else:
            tensors.append(tf.convert_to_tensor(value))
            kinds.append(_tf.layout(tensors[-1]))
    return tuple(kinds), tuple(found), tensors


def _dtype_of_number(value):
    """The type that `tf.convert_to_tensor` gives a number; None for all else."""
    if type(value) is float:
        return tf.float32
    if type(value) is int:
        return tf.int32 if -(2**31) <= value < 2**31 else None
    if isinstance(value, np.floating) and value.dtype.itemsize <= 8:
        return tf.as_dtype(value.dtype)
    return None


def _is_plain(var):
    """Whether `var`, or None, is what `tf.Variable` makes in eager mode."""
    return var is None or (
        type(var) is _tf.resource_variable_type()
        and _tf.is_eager(var)
        and getattr(var, "distribute_strategy", None) is None
        and var.shape.is_fully_defined()
        and var.constraint is None
    )

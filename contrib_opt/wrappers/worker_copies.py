"""What ElasticAverage, ModelAverage and AGN share: copies of the variables.

Each worker trains variables of its own, on its own device. For each of them a custom
getter of `tf.compat.v1.get_variable` makes a global center variable, which all
workers share (on a parameter server, if `tf.compat.v1.train.replica_device_setter`
places it), and what else the algorithm keeps for each variable. Every few steps of
its own a worker communicates: it exchanges values with the center.

    variable                            collections             device
    NAME                                LOCAL, TRAINABLE        the worker's
    global_center_variable/NAME         GLOBAL                  as for any variable
    other copies, as PREFIX/NAME        LOCAL                   the worker's
    local_step                          LOCAL                   the worker's

Local variables are the worker's: other sessions do not see them, and no checkpoint
has them. Names and collections are those of TensorFlow 1.15.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.conditional import run_if
from contrib_opt.optimizers.unwrap import is_partitioned, parts_of
from contrib_opt.wrappers.wrapper import WrapperOptimizer

GLOBAL_CENTER = "global_center_variable"

_LOCAL = [tf.GraphKeys.LOCAL_VARIABLES]
_GLOBAL = [tf.GraphKeys.GLOBAL_VARIABLES]


# ------------------------------------------------------------------- the getter


class CopyingGetter:
    """A custom getter that makes copies of each trainable variable.

    For a subclass to write: `_local_prefix`, the name before the variable's name of
    a further copy on the worker, or None; and `_make_center` if the center variable
    is made in another way.
    """

    _local_prefix = None

    def __init__(self, worker_device):
        """Makes a getter, for `tf.compat.v1.variable_scope(..., custom_getter=...)`.

        Args:
          worker_device: where this worker's variables go: a device's name, such as
            '/job:worker/task:0/cpu:0', or what else `tf.device` takes.

        Raises:
          TypeError: worker_device is nothing that `tf.device` takes.
        """
        is_device = worker_device is None or isinstance(worker_device, str)
        if not (is_device or callable(worker_device) or hasattr(worker_device, "job")):
            raise TypeError(
                "worker_device must be the name of a device, such as "
                f"'/job:worker/task:0/cpu:0', got {worker_device!r}."
            )
        self._worker_device = worker_device
        # By id: under TensorFlow 2 a variable is no key of a dict. The variable is in
        # the record as well, so that its id stays its own.
        self._records = {}

    def __call__(self, getter, name, trainable=True, collections=None, **kwargs):
        """Makes or gets the variable `name`, and its copies if it is trainable.

        Called by `tf.compat.v1.get_variable`. A variable that is not trainable is
        made as it would be without this getter, but on the worker's device if it is
        in the collection of local variables.
        """
        require_graph(type(self).__name__)
        if not trainable:
            kwargs.update(name=name, trainable=trainable, collections=collections)
            if _LOCAL[0] not in (collections or ()):
                return getter(**kwargs)
            with tf.device(self._worker_device):
                return getter(**kwargs)
        with tf.device(self._worker_device):
            variable = getter(name=name, trainable=True, collections=_LOCAL, **kwargs)
        parts = parts_of(variable)
        if kwargs.get("reuse") is True or all(id(p) in self._records for p in parts):
            return variable
        # A regularizer adds a loss for each variable that it is given to.
        kwargs["regularizer"] = None
        centers = parts_of(self._make_center(getter, name, variable, kwargs))
        locals_ = [None] * len(parts)
        if self._local_prefix:
            with tf.device(self._worker_device):
                locals_ = parts_of(
                    getter(
                        name=f"{self._local_prefix}/{name}",
                        trainable=False,
                        collections=_LOCAL,
                        **kwargs,
                    )
                )
        whole = name if is_partitioned(variable) else None
        for part, center, local in zip(parts, centers, locals_):
            self._records[id(part)] = _Record(part, center, local, whole)
        return variable

    def _make_center(self, getter, name, variable, kwargs):
        return getter(
            name=f"{GLOBAL_CENTER}/{name}",
            trainable=False,
            collections=_GLOBAL,
            **kwargs,
        )

    def record(self, variable):
        """The `_Record` of a variable that this getter made, or None."""
        return self._records.get(id(variable))

    def records(self, variables=None):
        """The records of `variables`, or all those of the current graph.

        Raises:
          ValueError: this getter did not make one of the variables, or made none.
        """
        if variables is None:
            graph = tf.get_default_graph()
            records = [r for r in self._records.values() if r.variable.graph is graph]
            if not records:
                raise ValueError(
                    f"The {type(self).__name__} has made no trainable variables in "
                    "this graph: make the model first, with tf.compat.v1.get_variable "
                    "in tf.compat.v1.variable_scope('', custom_getter=getter)."
                )
            return records
        records = [self.record(variable) for variable in variables]
        for variable, record in zip(variables, records):
            if record is None:
                raise ValueError(
                    f"The variable {variable.name} was not made through this "
                    f"{type(self).__name__}, so that it has no center variable: make "
                    "it with tf.compat.v1.get_variable in "
                    "tf.compat.v1.variable_scope('', custom_getter=getter), or leave "
                    "it out of var_list."
                )
        return records


class _Record:
    """A worker's variable and its copies."""

    def __init__(self, variable, center, local, whole):
        self.variable = variable
        self.center = center
        self.local = local
        # The name of the partitioned variable that `variable` is a part of, or None.
        self.whole = whole


# ---------------------------------------------------------------- the optimizer


class CopiesOptimizer(WrapperOptimizer):
    """A wrapper whose worker communicates with the center every few steps.

    For a subclass to write: `_apply_local(grads_and_vars)`, which returns the
    operation of the worker's own step, and `_communicate(grads_and_vars,
    global_step)`, which returns the operation of an exchange.
    """

    def __init__(self, opt, num_worker, getter, period, use_locking, name):
        require_graph(type(self).__name__)
        super().__init__(opt, name, use_locking)
        self._num_worker = num_worker
        self._getter = getter
        self._period = period
        with tf.device(getter._worker_device):
            self._local_step = tf.get_variable(
                "local_step", initializer=0, trainable=False, collections=_LOCAL
            )

    def variables(self):
        """The variables of the wrapped optimizer, and the worker's step counter."""
        return super().variables() + [self._local_step]

    def _apply_checked(self, grads_and_vars, global_step, name):
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        self._getter.records([var for _, var in pairs])  # Raises if one is not ours.
        with tf.control_dependencies([self._apply_local(pairs)]):
            step = self._local_step.assign_add(1, use_locking=self._use_locking)
        communicates = tf.equal(tf.math.floormod(step, self._period), 0)
        train_op = run_if(communicates, lambda: self._communicate(pairs, global_step))
        return train_op if name is None else tf.identity(train_op, name=name)

    def _apply_with_local_slots(self, grads_and_vars):
        """The wrapped optimizer's step; the variables it makes become local."""
        globals_ = tf.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)
        before = list(globals_)
        train_op = self._optimizer.apply_gradients(grads_and_vars)
        new = [v for v in globals_ if not any(v is old for old in before)]
        globals_[:] = before
        for variable in new:
            tf.add_to_collection(tf.GraphKeys.LOCAL_VARIABLES, variable)
        return train_op

    def _records(self, grads_and_vars):
        return self._getter.records([var for _, var in grads_and_vars])

    def _add_one(self, global_step):
        """Operations that count an exchange: none if there is no global step."""
        if global_step is None:
            return []
        one = tf.ones([], global_step.dtype.base_dtype)
        return [assign_add(global_step, one, self._use_locking)]


class InitHook(tf.train.SessionRunHook):
    """Runs the operation that `make_init_op` returns in each new session."""

    def __init__(self, make_init_op):
        self._make_init_op = make_init_op

    def begin(self):
        self._init_op = self._make_init_op()

    def after_create_session(self, session, coord):
        session.run(self._init_op)


# ------------------------------------------------------------------------ graphs


def require_graph(name):
    """Raises RuntimeError in eager mode, also inside a `tf.function`."""
    with tf.init_scope():
        eager = tf.executing_eagerly()
    if eager:
        raise RuntimeError(
            f"{name} is for workers that run graphs in sessions, and does not work in "
            "eager mode or tf.function: build the model and the optimizer in `with "
            "tf.Graph().as_default():` and train in a tf.compat.v1.Session, or call "
            "tf.compat.v1.disable_eager_execution() when the program starts."
        )
    if tf.distribute.has_strategy():
        raise RuntimeError(
            f"{name} does not work under a tf.distribute strategy, which makes copies "
            "of variables itself: leave one of the two out."
        )


def first_value(variable):
    """What a variable that is made as a copy of `variable` starts with.

    Returns:
      A Tensor: the value of `variable` if it is initialized already, and otherwise
      what it will be initialized with. (Of a ref variable always the latter, if
      TensorFlow 2's tf.cond is in force: see `conditional.branches_see_ref_variables`.)
    """
    if not hasattr(variable, "handle"):
        # TensorFlow rewrites initial values that read a ref variable, so as to call
        # initialized_value, which cannot read one in a function.
        in_function = tf.control_flow_v2_enabled()
        return variable.initial_value if in_function else variable.initialized_value()
    initialized = tf.is_variable_initialized(variable)
    no, yes = tf.raw_ops.Switch(data=initialized, pred=initialized)
    otherwise, _ = tf.raw_ops.Switch(data=variable.initial_value, pred=initialized)
    # What depends on the dead output of a Switch does not run.
    with tf.control_dependencies([tf.identity(yes)]):
        value = variable.read_value()
    return tf.raw_ops.Merge(inputs=[otherwise, value]).output


def read(variable):
    """The value of `variable`, read on the variable's device."""
    with tf.device(variable.device):
        return variable.read_value()


def assign(variable, value, use_locking=False):
    """An operation that sets `variable`, on the variable's device."""
    with tf.device(variable.device):
        return variable.assign(value, use_locking=use_locking)


def assign_add(variable, value, use_locking=False):
    """An operation that adds to `variable`, on the variable's device."""
    with tf.device(variable.device):
        return variable.assign_add(value, use_locking=use_locking)


# --------------------------------------------------------------------- arguments


def check_count(name, value, minimum=1):
    """Raises TypeError or ValueError if `value` is no integer of `minimum` or more."""
    is_int = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_int:
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value!r}.")


def check_task(name, value, num_worker):
    """Raises TypeError or ValueError if `value` is no index of a worker."""
    check_count(name, value, minimum=0)
    if value >= num_worker:
        raise ValueError(
            f"{name} must be less than num_worker, which is {num_worker}, got {value}."
        )


def check_getter(name, value, kind):
    """Raises TypeError if `value` is no custom getter of class `kind`."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be a contrib_opt.{kind.__name__}, the one that the "
            f"model's variables were made with, got {value!r}."
        )

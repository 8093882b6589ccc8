"""Accumulated Gradient Normalization: workers that send the mean of their gradients.

Each worker has its own x, on which the wrapped optimizer takes steps, and sums the
gradients g that it saw:

    x <- opt's step on g
    a <- a + g

In every step whose number (of this worker's own steps, from 1) is a multiple of
communication_period, the worker then sends their mean to the center c, which all
workers share, and starts from there again:

    c <- opt's step on a / communication_period
    x <- c
    a <- 0

and the global step counts one exchange.

Symbols: x variable, c `global_center_variable/NAME`, a `grad_variable/NAME`.

Source: J. Hermans, G. Spanakis, R. Moeckel, "Accumulated Gradient Normalization",
ACML 2017, https://arxiv.org/abs/1710.02368, as `tf.contrib.opt.AGNOptimizer` of
TensorFlow 1.15 computes it.

The wrapped optimizer has slots for x, which are local variables of the worker, and
slots for c, which are global variables beside c: all workers share them, and a
checkpoint has them. What an optimizer keeps once for all variables, such as Adam's
powers of beta, is the worker's, and steps of both kinds count in it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- The center always takes the mean. On a cluster, 1.15 now and then sent it the sum,
  read before it was divided: in 6 of 100 runs of 10 steps.
- Sparse gradients are added up row by row; 1.15 made them dense.
- get_slot, get_slot_names, variables and compute_gradients are the wrapped
  optimizer's; 1.15 answered for the wrapper alone: no slots, no variables.
- use_locking is used: the exchange updates variables under their locks.
- A regularizer adds its loss for the variable alone; 1.15 also added those of the
  two copies, which no gradient reached.
- local_step, and any variable that is not trainable but local, is always on the
  worker's device.
- A variable that the getter did not make is refused with an error that names it.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.wrappers.worker_copies import (
    CopiesOptimizer,
    CopyingGetter,
    InitHook,
    assign,
    assign_add,
    check_count,
    check_getter,
    check_task,
    read,
)
from contrib_opt.wrappers.wrapper import check_optimizer


def normalized_gradient(gradient_sum, communication_period):
    """The mean of the gradients of a period, from their sum."""
    return gradient_sum / communication_period


class AGNCustomGetter(CopyingGetter):
    """Makes a worker's variables, and two copies of each, for AGN.

    In `tf.compat.v1.variable_scope(..., custom_getter=getter)` a trainable variable
    NAME becomes a local variable on the worker's device. Made with it, from the same
    initializer, are `global_center_variable/NAME`, a global variable, placed as the
    program's device scope says, which should be a
    `tf.compat.v1.train.replica_device_setter`; and `grad_variable/NAME`, a
    local variable on the worker's device. `tf.Variable` does not ask the getter: use
    `tf.compat.v1.get_variable`, or layers that do.
    """

    _local_prefix = "grad_variable"


class AGNOptimizer(CopiesOptimizer):
    """Trains on each worker with an optimizer, and sends normalized gradients.

    Use it for several workers with a parameter server that cannot exchange gradients
    in every step; they run without waiting for each other.

        every step:       x <- opt's step on g;  a <- a + g
        every period:     c <- opt's step on a / period;  x <- c;  a <- 0

    for a worker's variable x with gradient g and the center c that all share. The
    source and the deviations from TensorFlow 1.15 are at the top of this file,
    contrib_opt/wrappers/agn.py.

        getter = AGNCustomGetter(worker_device)
        device = tf.train.replica_device_setter(
            worker_device=worker_device, ps_device="/job:ps/cpu:0", cluster=cluster)
        with tf.device(device), tf.variable_scope("", custom_getter=getter):
            loss = model()
            opt = AGNOptimizer(
                tf.train.MomentumOptimizer(0.1, 0.9), num_worker=2,
                custom_getter=getter, communication_period=20)
            train_op = opt.minimize(loss, tf.train.get_or_create_global_step())
        hook = opt.make_session_run_hook(is_chief, task_index)
        with tf.train.MonitoredTrainingSession(
                server.target, is_chief, hooks=[hook]) as session:
            ...

    Works in graphs of `tf.compat.v1`, on ref and resource variables. In eager mode
    and under distribution strategies it raises RuntimeError.
    """

    def __init__(
        self,
        optimizer,
        num_worker,
        custom_getter,
        communication_period=10,
        use_locking=True,
        name="AGNOptimizer",
    ):
        """Wraps the optimizer of one worker.

        Makes the variable `local_step`, in the current variable scope.

        Args:
          optimizer: the `tf.compat.v1.train.Optimizer` that takes the steps of the
            worker and of the center.
          num_worker: number of workers, at least 1.
          custom_getter: the `AGNCustomGetter` of the model's variables.
          communication_period: how many of its steps a worker takes from one exchange
            to the next, at least 1.
          use_locking: whether exchanges update variables under their locks.
          name: name of the optimizer.

        Raises:
          TypeError: optimizer is no optimizer, custom_getter no getter of this class,
            or a count no integer.
          ValueError: a count is less than 1.
          RuntimeError: in eager mode, or under a distribution strategy.
        """
        check_optimizer("optimizer", optimizer)
        check_count("num_worker", num_worker)
        check_getter("custom_getter", custom_getter, AGNCustomGetter)
        check_count("communication_period", communication_period)
        super().__init__(
            optimizer,
            num_worker,
            custom_getter,
            communication_period,
            use_locking,
            name,
        )

    def _apply_local(self, grads_and_vars):
        updates = [self._apply_with_local_slots(grads_and_vars)]
        for record, (grad, _) in zip(self._records(grads_and_vars), grads_and_vars):
            if isinstance(grad, tf.IndexedSlices):
                updates.append(record.local.scatter_add(grad, self._use_locking))
            else:
                updates.append(assign_add(record.local, grad, self._use_locking))
        return tf.group(*updates)

    def _communicate(self, grads_and_vars, global_step):
        records = self._records(grads_and_vars)
        means = [normalized_gradient(read(r.local), self._period) for r in records]
        centers = [record.center for record in records]
        with tf.control_dependencies(means):
            train_op = self._optimizer.apply_gradients(zip(means, centers))
        with tf.control_dependencies([train_op]):
            updates = self._add_one(global_step)
            updates += _start(records, self._use_locking)
        return tf.group(*updates)

    def get_init_op(self, task_index):
        """An operation that starts a worker at the center: x <- c, a <- 0.

        Args:
          task_index: which of the workers this is, from 0 to num_worker - 1. (All
            do the same.)

        Returns:
          The operation, to be run when all variables are initialized.

        Raises:
          TypeError, ValueError: task_index is no integer or out of range.
          ValueError: the custom getter has made no variables in this graph.
        """
        check_task("task_index", task_index, self._num_worker)
        return tf.group(*_start(self._getter.records()))

    def make_session_run_hook(self, is_chief, task_index):
        """A hook that runs `get_init_op` in each new session.

        Args:
          is_chief: whether this worker is the chief. (All workers do the same.)
          task_index: as in `get_init_op`.

        Returns:
          A `tf.compat.v1.train.SessionRunHook`, for the session's `hooks`.
        """
        check_task("task_index", task_index, self._num_worker)
        return InitHook(lambda: self.get_init_op(task_index))


def _start(records, use_locking=False):
    updates = []
    for record in records:
        updates.append(assign(record.variable, read(record.center), use_locking))
        zeros = tf.zeros_like(record.variable)
        updates.append(assign(record.local, zeros, use_locking))
    return updates

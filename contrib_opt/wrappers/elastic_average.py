"""Elastic Averaging SGD: workers that explore, tied to a common center.

Each of p workers has its own x and a center variable c that all share. The loss
that it trains on is

    loss(x) + rho / 2 * |x - l|^2

where l is the center as this worker last saw it, and the wrapped optimizer takes the
steps. In every step whose number (of this worker's own steps, from 1) is a multiple
of communication_period, the worker then exchanges

    l <- c
    d  = moving_rate * (x - l)
    x <- x - d
    c <- c + d

and the global step counts one exchange. Defaults: moving_rate = BETA /
communication_period / p, with the paper's BETA = 0.9, and rho = moving_rate /
learning rate of the wrapped optimizer.

Symbols: x variable, c `global_center_variable/NAME`, l `local_center_variable/NAME`.

Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic Averaging
SGD", https://arxiv.org/abs/1412.6651, as `tf.contrib.opt.ElasticAverageOptimizer` of
TensorFlow 1.15 computes it.

The slots of the wrapped optimizer are made local variables, so that each worker has
its own and a checkpoint has none.

Deviations from TensorFlow 1.15, each a case in which it failed:
- A var_list that is not the list of all trainable variables, in their order, gives
  each variable its own center; 1.15 took the first ones' centers by position.
- The default rho also works with Adam and other optimizers that keep their learning
  rate under another name, and with a callable.
- float64 variables work, and variables of several types; 1.15 raised TypeError.
- get_slot, get_slot_names and variables are the wrapped optimizer's; 1.15 answered
  for the wrapper alone: no slots, no variables.
- use_locking is used: the exchange updates variables under their locks.
- A regularizer adds its loss for the variable alone; 1.15 also added those of the
  two copies, which no gradient reached.
- local_step is always on the worker's device, and the queues of the barrier on that
  of a center variable. 1.15 put them wherever the program's device scope said.
- A variable that is not trainable needs no collections argument, so that an
  optimizer with slots can be made in the scope of the getter; 1.15 raised TypeError.
- A variable that the getter did not make is refused with an error that names it.
"""

import numbers

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.hyperparameters import as_dtype, check_scalar, evaluate
from contrib_opt.optimizers.unwrap import is_partitioned, tensorflow_variable
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


def elastic_loss(differences, rho, dtype):
    """rho / 2 * |x - l|^2, summed over all variables; the x - l are given."""
    halves = [tf.cast(tf.nn.l2_loss(difference), dtype) for difference in differences]
    return as_dtype(rho, dtype) * tf.add_n(halves)


def elastic_difference(x, center, moving_rate):
    """What an exchange takes from x and adds to the center."""
    return as_dtype(moving_rate, x.dtype) * (x - center)


def default_moving_rate(beta, communication_period, num_worker):
    """beta / (period * p): the less, the more often workers pull at the center."""
    return beta / communication_period / num_worker


def default_rho(moving_rate, opt):
    """moving_rate / learning rate of the optimizer `opt`, a number or a Tensor.

    Raises:
      ValueError: the learning rate is unknown, or the number 0.
    """
    # Optimizers have no public name for it. These two are those of TensorFlow's own
    # and of this package's, the third that of its wrappers.
    for name in ("_learning_rate", "_lr"):
        learning_rate = evaluate(getattr(opt, name, None))
        if learning_rate is not None:
            break
    else:
        inner = getattr(opt, "_optimizer", None)
        if isinstance(inner, tf.train.Optimizer):
            return default_rho(moving_rate, inner)
        raise ValueError(
            f"rho=None means moving_rate / learning rate, and {type(opt).__name__} "
            "does not say its learning rate: give rho."
        )
    if isinstance(learning_rate, numbers.Real):
        if learning_rate == 0:
            raise ValueError(
                "rho=None means moving_rate / learning rate, and the learning rate of "
                f"{type(opt).__name__} is 0: give rho."
            )
        return moving_rate / learning_rate
    learning_rate = tf.convert_to_tensor(learning_rate)
    return as_dtype(moving_rate, learning_rate.dtype) / learning_rate


class ElasticAverageCustomGetter(CopyingGetter):
    """Makes a worker's variables, and two copies of each, for Elastic Averaging.

    In `tf.compat.v1.variable_scope(..., custom_getter=getter)` a trainable variable
    NAME becomes a local variable on the worker's device. Made with it, from the same
    initializer, are `global_center_variable/NAME`, a global variable, placed as the
    program's device scope says, which should be a
    `tf.compat.v1.train.replica_device_setter`; and `local_center_variable/NAME`, a
    local variable on the worker's device. `tf.Variable` does not ask the getter: use
    `tf.compat.v1.get_variable`, or layers that do.
    """

    _local_prefix = "local_center_variable"


class ElasticAverageOptimizer(CopiesOptimizer):
    """Trains on each worker with an optimizer, and averages elastically.

    Use it for several workers with a parameter server that cannot exchange gradients
    in every step; they run without waiting for each other.

        every step:       x <- opt's step on the gradient of loss + rho / 2 |x - l|^2
        every period:     l <- c;  d = moving_rate * (x - l);  x <- x - d;  c <- c + d

    for a worker's variable x and the center c that all share; l is the worker's copy
    of the center. The source and the deviations from TensorFlow 1.15 are at the top
    of this file, contrib_opt/wrappers/elastic_average.py.

        getter = ElasticAverageCustomGetter(worker_device)
        device = tf.train.replica_device_setter(
            worker_device=worker_device, ps_device="/job:ps", cluster=cluster)
        with tf.device(device), tf.variable_scope("", custom_getter=getter):
            loss = model()
            opt = ElasticAverageOptimizer(
                tf.train.MomentumOptimizer(0.1, 0.9), num_worker=2,
                ea_custom_getter=getter, communication_period=20)
            train_op = opt.minimize(loss, tf.train.get_or_create_global_step())
        hook = opt.make_session_run_hook(is_chief, task_index)
        with tf.train.MonitoredTrainingSession(
                server.target, is_chief, hooks=[hook]) as session:
            ...

    Works in graphs of `tf.compat.v1`, on ref and resource variables. In eager mode
    and under distribution strategies it raises RuntimeError.
    """

    BETA = 0.9

    def __init__(
        self,
        opt,
        num_worker,
        ea_custom_getter,
        communication_period=10,
        moving_rate=None,
        rho=None,
        use_locking=True,
        synchronous=False,
        name="ElasticAverageOptimizer",
    ):
        """Wraps the optimizer of one worker.

        Makes the variable `local_step`, in the current variable scope.

        Args:
          opt: the `tf.compat.v1.train.Optimizer` that takes the worker's steps.
          num_worker: number of workers, at least 1.
          ea_custom_getter: the `ElasticAverageCustomGetter` of the model's variables.
          communication_period: how many of its steps a worker takes from one exchange
            to the next, at least 1.
          moving_rate: the part of a worker's distance from the center that an
            exchange moves: a number or scalar Tensor, at least 0, or None for
            BETA / communication_period / num_worker.
          rho: coefficient of the elastic loss: a number or scalar Tensor, at least 0,
            or None for moving_rate / learning rate of `opt`. The smaller, the more
            a worker explores; 0 is advised for workers that do not wait.
          use_locking: whether exchanges update variables under their locks.
          synchronous: whether all workers wait for each other before the first step
            of a session. (They never wait afterwards.) A worker that starts
            again then waits for the others to do so too.
          name: name of the optimizer.

        Raises:
          TypeError: opt is no optimizer, ea_custom_getter no getter of this class, or
            a count no integer.
          ValueError: a count is less than 1; moving_rate or rho is negative or no
            scalar; rho is None and opt does not say its learning rate.
          RuntimeError: in eager mode, or under a distribution strategy.
        """
        check_optimizer("opt", opt)
        check_count("num_worker", num_worker)
        check_getter("ea_custom_getter", ea_custom_getter, ElasticAverageCustomGetter)
        check_count("communication_period", communication_period)
        if moving_rate is None:
            moving_rate = default_moving_rate(
                self.BETA, communication_period, num_worker
            )
        check_scalar("moving_rate", moving_rate, minimum=0)
        if rho is not None:
            check_scalar("rho", rho, minimum=0)
        super().__init__(
            opt, num_worker, ea_custom_getter, communication_period, use_locking, name
        )
        self._moving_rate = moving_rate
        self._rho = default_rho(moving_rate, opt) if rho is None else rho
        self._synchronous = synchronous

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=tf.train.Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """The gradients of the loss plus rho / 2 * |x - l|^2, summed over var_list.

        Args:
          loss: Tensor, the loss, or a callable without arguments that returns it.
          var_list: list of variables, by default all trainable variables. All must
            come from the custom getter.
          gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss:
            as in `tf.compat.v1.train.Optimizer.compute_gradients`.

        Returns:
          List of (gradient, variable) pairs.

        Raises:
          ValueError: the custom getter did not make one of the variables.
        """
        if not var_list:
            var_list = tf.trainable_variables()
        var_list = [tensorflow_variable(v) for v in tf.nest.flatten(var_list)]
        records = self._getter.records(var_list)
        loss = tf.convert_to_tensor(evaluate(loss))
        differences = [tf.subtract(r.variable, r.local) for r in records]
        return super().compute_gradients(
            loss + elastic_loss(differences, self._rho, loss.dtype),
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )

    def _apply_local(self, grads_and_vars):
        return self._apply_with_local_slots(grads_and_vars)

    def _communicate(self, grads_and_vars, global_step):
        updates = self._add_one(global_step)
        for record in self._records(grads_and_vars):
            pull = assign(record.local, read(record.center), self._use_locking)
            with tf.control_dependencies([pull]), tf.device(record.variable.device):
                difference = elastic_difference(
                    record.variable.read_value(),
                    record.local.read_value(),
                    self._moving_rate,
                )
            updates.append(assign_add(record.variable, -difference, self._use_locking))
            updates.append(assign_add(record.center, difference, self._use_locking))
        return tf.group(*updates)

    def get_init_op(self, task_index):
        """An operation that starts a worker at the center: x <- c, l <- c.

        If the optimizer is synchronous, it also waits until all workers run theirs.

        Args:
          task_index: which of the workers this is, from 0 to num_worker - 1.

        Returns:
          The operation, to be run when all variables are initialized.

        Raises:
          TypeError, ValueError: task_index is no integer or out of range.
          ValueError: the custom getter has made no variables in this graph.
        """
        check_task("task_index", task_index, self._num_worker)
        records = self._getter.records()
        copies = []
        for record in records:
            center = read(record.center)
            copies.append(assign(record.variable, center))
            copies.append(assign(record.local, center))
        init_op = tf.group(*copies)
        if not self._synchronous:
            return init_op
        with tf.device(records[0].center.device):
            return self._barrier(task_index, init_op)

    def _barrier(self, task_index, ready):
        """Waits until the other workers come here too, after `ready`."""
        queues = [
            tf.FIFOQueue(
                self._num_worker,
                [tf.bool],
                shapes=[[]],
                shared_name=f"variable_init_sync_queue{task}",
            )
            for task in range(self._num_worker)
        ]
        own = queues.pop(task_index)
        with tf.control_dependencies([ready]):
            token = tf.constant(False)
            tell = [queue.enqueue(token) for queue in queues]
            wait = own.dequeue_many(len(queues))
        return tf.group(wait, *tell)

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

    def swapping_saver(self, var_list=None, name="swapping_saver", **kwargs):
        """A saver of the center under the names of the trainable variables.

        What it saves restores into a model without this optimizer, for evaluation
        and serving. Call it when the model is made.

        Args:
          var_list: variables to save, as for `tf.compat.v1.train.Saver`: a list, or
            a dict from names; by default all trainable variables. A variable
            without a center is saved as it is.
          name: name of the saver's operations.
          **kwargs: what else `tf.compat.v1.train.Saver` takes.

        Returns:
          A `tf.compat.v1.train.Saver`.

        Raises:
          RuntimeError: the custom getter has made no variables in this graph.
        """
        try:
            self._getter.records()
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        if var_list is None:
            var_list = tf.trainable_variables()
        if isinstance(var_list, dict):
            named = {key: self._center_of(var) for key, var in var_list.items()}
        else:
            named = self._named_centers(var_list)
        return tf.train.Saver(named, name=name, **kwargs)

    def _named_centers(self, var_list):
        named = {}
        for var in var_list:
            record = self._getter.record(var)
            if record is not None and record.whole:
                named.setdefault(record.whole, []).append(record.center)
            else:
                key = var.name if is_partitioned(var) else var.op.name
                named[key] = self._center_of(var)
        return named

    def _center_of(self, var):
        if is_partitioned(var):
            return [self._center_of(part) for part in var]
        record = self._getter.record(var)
        return var if record is None else record.center

"""Model averaging: workers that train apart and are averaged every few steps.

Each of p workers has its own x_i, on which the wrapped optimizer takes steps. In
every step whose number (of the worker's own steps, from 1) is a multiple of
interval_steps, all workers wait for each other, and then

    c <- (x_1 + ... + x_p) / p
    x_i <- c                            for each worker i

The chief averages, and counts one in the global step; the others wait for its token.

Symbols: x_i variable of worker i, c `global_center_variable/NAME`, shared by all.

Source: R. McDonald, K. Hall, G. Mann, "Distributed Training Strategies for the
Structured Perceptron", NAACL 2010, where it is called iterative parameter mixing, as
`tf.contrib.opt.ModelAverageOptimizer` of TensorFlow 1.15 computes it.

Deviations from TensorFlow 1.15, each a case in which it failed:
- The session hook starts every worker at the center and sets the accumulators to the
  global step. 1.15's built these operations and ran neither: the
  workers started at values of their own, and after a restart of the chief from a
  checkpoint went on from new random ones. (To run the chief's by hand took
  a step of training, and had no effect unless an average was due in it.)
- Resource variables work; 1.15 raised an error.
- A worker that is not the chief makes the wrapped optimizer's slots local variables.
  In 1.15 they were global variables, which only the chief initializes, and only its
  own: with Momentum or Adam the others waited for ever. The chief's are global, as
  in 1.15, and in its checkpoints.
- A variable that is got again by reuse keeps its center; 1.15 made a second one.
- Partitioned variables work.
- get_slot, get_slot_names and variables are the wrapped optimizer's; 1.15 answered
  for the wrapper alone: no slots, no variables.
- use_locking is used.
- local_step is always on the worker's device. 1.15 put it where the program's device
  scope said, which could be the parameter server, where workers shared it.
- A variable that is not trainable needs no collections argument, so that an
  optimizer with slots can be made in the scope of the getter; 1.15 raised TypeError.
- A variable that the getter did not make is refused with an error that names it.
"""

import tensorflow.compat.v1 as tf

from contrib_opt.optimizers.conditional import branches_see_ref_variables
from contrib_opt.optimizers.unwrap import parts_of
from contrib_opt.wrappers.worker_copies import (
    GLOBAL_CENTER,
    CopiesOptimizer,
    CopyingGetter,
    InitHook,
    assign,
    check_count,
    check_getter,
    first_value,
    read,
)
from contrib_opt.wrappers.wrapper import check_optimizer


class ModelAverageCustomGetter(CopyingGetter):
    """Makes a worker's variables, and a center of each, for model averaging.

    In `tf.compat.v1.variable_scope(..., custom_getter=getter)` a trainable variable
    NAME becomes a local variable on the worker's device. Made with it, and starting
    at its value, is `global_center_variable/NAME`, a global variable, placed as the
    program's device scope says, which should be a
    `tf.compat.v1.train.replica_device_setter`. `tf.Variable` does not ask the
    getter: use `tf.compat.v1.get_variable`, or layers that do.
    """

    def _make_center(self, getter, name, variable, kwargs):
        with branches_see_ref_variables():
            return [
                tf.Variable(
                    first_value(part),
                    name=f"{GLOBAL_CENTER}/{part.op.name}",
                    trainable=False,
                    collections=[tf.GraphKeys.GLOBAL_VARIABLES],
                    use_resource=kwargs.get("use_resource"),
                )
                for part in parts_of(variable)
            ]


class ModelAverageOptimizer(CopiesOptimizer):
    """Trains on each worker with an optimizer, and averages the models.

    Use it for several workers that cannot exchange gradients in every step, but may
    wait for each other every few steps.

        every step:          x_i <- opt's step of worker i on its own loss
        every interval:      c <- mean of all x_i;  x_i <- c

    for the variable x_i of worker i and the center c. The source and the
    deviations from TensorFlow 1.15 are at the top of this file,
    contrib_opt/wrappers/model_average.py.

        getter = ModelAverageCustomGetter(worker_device)
        device = tf.train.replica_device_setter(
            worker_device=worker_device, ps_device="/job:ps/cpu:0", cluster=cluster)
        with tf.device(device), tf.variable_scope("", custom_getter=getter):
            loss = model()
            opt = ModelAverageOptimizer(
                tf.train.GradientDescentOptimizer(0.1), num_worker=2,
                is_chief=is_chief, ma_custom_getter=getter, interval_steps=20)
            train_op = opt.minimize(loss, tf.train.get_or_create_global_step())
        hook = opt.make_session_run_hook()
        with tf.train.MonitoredTrainingSession(
                server.target, is_chief, hooks=[hook]) as session:
            ...

    Works in graphs of `tf.compat.v1`, on ref and resource variables. In eager mode
    and under distribution strategies it raises RuntimeError. All workers must
    take equally many steps: an average waits for every one of them.
    """

    def __init__(
        self,
        opt,
        num_worker,
        is_chief,
        ma_custom_getter,
        interval_steps=100,
        use_locking=True,
        name="ModelAverageOptimizer",
    ):
        """Wraps the optimizer of one worker.

        Makes the variable `local_step`, in the current variable scope.

        Args:
          opt: the `tf.compat.v1.train.Optimizer` that takes the worker's steps.
          num_worker: number of workers, the chief among them, at least 1.
          is_chief: whether this worker averages. One worker must, and only one.
          ma_custom_getter: the `ModelAverageCustomGetter` of the model's variables.
          interval_steps: how many of its steps a worker takes from one average to the
            next, at least 1. All workers must have the same.
          use_locking: whether variables are updated under their locks.
          name: name of the optimizer.

        Raises:
          TypeError: opt is no optimizer, ma_custom_getter no getter of this class, or
            a count no integer.
          ValueError: a count is less than 1.
          RuntimeError: in eager mode, or under a distribution strategy.
        """
        check_optimizer("opt", opt)
        check_count("num_worker", num_worker)
        check_getter("ma_custom_getter", ma_custom_getter, ModelAverageCustomGetter)
        check_count("interval_steps", interval_steps)
        super().__init__(
            opt, num_worker, ma_custom_getter, interval_steps, use_locking, name
        )
        self._is_chief = is_chief
        self._chief_init_op = None

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Takes a step of this worker, and averages the models if it is time to.

        Args:
          grads_and_vars: list of (gradient, variable) pairs, as from
            `compute_gradients`. A gradient is a Tensor of its variable's shape and
            dtype, IndexedSlices, or None. All variables must come from the custom
            getter; those without a gradient are not averaged.
          global_step: variable to increment by one after an average. Required.
          name: name of the Tensor that is returned.

        Returns:
          A Tensor that does it: true if the models were averaged in this step.

        Raises:
          ValueError: global_step is None; no variable has a gradient; a gradient has
            another shape or dtype than its variable; the custom getter did not make
            one of the variables.
        """
        if global_step is None:
            raise ValueError(
                "global_step is required: give the variable that counts the averages, "
                "such as tf.compat.v1.train.get_or_create_global_step()."
            )
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _apply_checked(self, grads_and_vars, global_step, name):
        self._accumulators = []
        train_op = super()._apply_checked(grads_and_vars, global_step, name)
        starts = []
        for center, accumulator in self._accumulators:
            with tf.device(center.device):
                starts.append(accumulator.set_global_step(global_step))
        self._chief_init_op = tf.group(*starts)
        return train_op

    def _apply_local(self, grads_and_vars):
        if self._is_chief:
            return self._optimizer.apply_gradients(grads_and_vars)
        return self._apply_with_local_slots(grads_and_vars)

    def _communicate(self, grads_and_vars, global_step):
        records = self._records(grads_and_vars)
        # They are no part of the exchange: the chief sets them up before the first.
        with tf.control_dependencies(None):
            for record in records:
                with tf.device(record.center.device):
                    self._accumulators.append((record.center, _accumulator(record)))
            with tf.device(global_step.device):
                tokens = tf.FIFOQueue(
                    -1, [tf.bool], shapes=[[]], shared_name="sync_queue"
                )
        gives = []
        for record, (center, accumulator) in zip(records, self._accumulators):
            with tf.device(center.device):
                gives.append(
                    accumulator.apply_grad(read(record.variable), read(global_step))
                )
        if self._is_chief:
            with tf.control_dependencies(gives):
                updates = self._add_one(global_step)
                for center, accumulator in self._accumulators:
                    with tf.device(center.device):
                        average = accumulator.take_grad(self._num_worker)
                    updates.append(assign(center, average, self._use_locking))
            with tf.control_dependencies(updates), tf.device(global_step.device):
                token_op = tokens.enqueue_many(tf.fill([self._num_worker - 1], False))
        else:
            with tf.control_dependencies(gives), tf.device(global_step.device):
                token_op = tokens.dequeue()
        with tf.control_dependencies([token_op]):
            return self._pull(records)

    def _pull(self, records):
        return tf.group(*[assign(r.variable, read(r.center)) for r in records])

    def get_init_op(self):
        """An operation that starts a worker at the center: x_i <- c.

        Returns:
          The operation, to be run when all variables are initialized.

        Raises:
          ValueError: the custom getter has made no variables in this graph.
        """
        return self._pull(self._getter.records())

    def make_session_run_hook(self):
        """A hook that starts a worker in each new session, after `apply_gradients`.

        It runs `get_init_op`; the chief's also tells the accumulators the global
        step, so that they take what the workers send after a restart.

        Returns:
          A `tf.compat.v1.train.SessionRunHook`, for the session's `hooks`.
        """
        return InitHook(self._start)

    def _start(self):
        if self._chief_init_op is None:
            raise ValueError(
                "The hook of ModelAverageOptimizer starts what apply_gradients makes: "
                "call apply_gradients or minimize before the session is made."
            )
        init_op = self.get_init_op()
        return tf.group(init_op, self._chief_init_op) if self._is_chief else init_op


def _accumulator(record):
    """What collects a variable's values from all workers."""
    return tf.ConditionalAccumulator(
        record.variable.dtype.base_dtype,
        shape=record.variable.shape,
        shared_name=record.center.name + "/var_accum",
    )

"""The order in which the variables of a step are updated, and what waits for what.

A rule with a norm for each variable has a dozen operations on scalars a variable. In
batches of variables they become a dozen operations on vectors a batch. The order also
bounds what a step needs beside variables, slots and gradients, and how often it reads
them from memory:

- Variables come last first. Backpropagation makes their gradients in that order.
- The norms of a batch are computed when the batch before the last one is updated, so
  that the update of a variable finds it and its gradient still in the cache.
- Large variables are updated in two lanes. An update starts when the one before it in
  its lane is done: at most two of them have temporaries at a time.

A lane waits only for what comes earlier in this order, and so never for itself.
"""

import collections

import tensorflow.compat.v1 as tf

# In elements. Both are a matter of speed only.
BATCH_SIZE = 2**22
# Smaller variables are in no lane: their temporaries are small, and on many cores they
# are faster side by side.
LARGE = 2**15
LANES = 2


def by_device(grads_and_vars):
    """Lists of the pairs whose variables have one device and one type.

    Args:
      grads_and_vars: list of (gradient, variable) pairs.

    Returns:
      List of lists of pairs, of those alone that can be updated in batches: with a
      dense gradient, a known shape, float32 or float64, and listed once.
    """
    times = collections.Counter(id(var) for _, var in grads_and_vars)
    groups = {}
    for grad, var in grads_and_vars:
        if (
            tf.is_tensor(grad)
            and not isinstance(grad, tf.IndexedSlices)
            and hasattr(var, "assign")
            and var.shape.is_fully_defined()
            and var.dtype.base_dtype in (tf.float32, tf.float64)
            and times[id(var)] == 1
        ):
            key = var.device, var.dtype.base_dtype
            groups.setdefault(key, []).append((grad, var))
    return list(groups.values())


def batches_of(grads_and_vars):
    """Yields lists of pairs, last pair first: BATCH_SIZE elements, or one variable."""
    batch, size = [], 0
    for grad, var in reversed(grads_and_vars):
        elements = var.shape.num_elements()
        if batch and size + elements > BATCH_SIZE:
            yield batch
            batch, size = [], 0
        batch.append((grad, var))
        size += elements
    yield batch


class Lanes:
    """What the updates of one device wait for."""

    def __init__(self):
        self._last = [[] for _ in range(LANES)]  # The last update of each lane.
        self._size = [0] * LANES
        self._ends = [[], []]  # The last updates of the two batches before.

    def batch(self):
        """A context for the operations of the next batch."""
        self._ends = [self._ends[1], sum(self._last, [])]
        return tf.control_dependencies(self._ends[0])

    def run(self, var, update):
        """Runs `update`, a function of no arguments, on `var`, in its turn.

        Returns:
          What `update` returns: an operation, or None in eager mode.
        """
        elements = var.shape.num_elements()
        if elements < LARGE:
            return update()
        lane = self._size.index(min(self._size))
        with tf.control_dependencies(self._last[lane]):
            done = update()
        self._last[lane] = [done]
        self._size[lane] += elements
        return done

"""One optimizer in several threads: they take turns."""

import contextlib
import threading
import weakref

import tensorflow.compat.v1 as tf

# Not attributes of the optimizers, which can be copied.
_locks = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def one_at_a_time(optimizer):
    """A context in which no other thread builds or runs a step of `optimizer`.

    TensorFlow's optimizers, and ours, keep what belongs to a step in attributes of
    their own, such as the learning rate as a Tensor of the graph of that step. The
    same thread may enter again.
    """
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        # The threads of replicas wait for each other within a step.
        yield
        return
    with _locks.setdefault(optimizer, threading.RLock()):
        yield

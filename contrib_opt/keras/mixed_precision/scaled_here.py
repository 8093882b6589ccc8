"""Whether the gradients that reach `apply` are scaled, on Keras 3.

Its trainer calls `scale_loss`, then `apply` with scaled gradients. A loop of Keras 2
calls `apply_gradients`, which is the same method, with unscaled ones.
"""

import threading
import weakref

import tensorflow as tf


class ScaledHere(threading.local):
    """Whether `scale_loss` scaled the loss of the step that this thread is at."""

    graph = None

    def note(self):
        """Called by `scale_loss`."""
        self.graph = weakref.ref(tf.compat.v1.get_default_graph())

    def forget(self):
        """Called by the names of Keras 2."""
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


def _with_outer(graph):
    """`graph`, and those of the functions in whose traces it was traced."""
    graphs = [graph]
    while hasattr(getattr(graph, "outer_graph", None), "outer_graph"):
        graph = graph.outer_graph
        graphs.append(graph)
    return graphs

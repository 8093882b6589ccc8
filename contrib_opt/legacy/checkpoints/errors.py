"""Explains errors of restoring: what is missing, what was renamed, what is damaged.

After `explain_errors()`, which install() calls, an error of `tf.train.Saver.restore`
(also where a MonitoredSession or an Estimator restores) or
`tf.train.init_from_checkpoint` begins with TensorFlow's own sentence and goes on with
- which variables the checkpoint lacks, which of it nobody wants, which have another
  shape, which look renamed, and code that restores these (names.py, report.py);
- or what is wrong with its files, and which checkpoint beside it is complete
  (files.py).

The type of the error stays, and the error as it was is its cause. An error about which
there is nothing to say stays as it was.
"""

import functools
import os
import re

import tensorflow as tf

from contrib_opt.legacy.checkpoints import files, report, restores

_v1 = tf.compat.v1
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def explain_errors():
    """Starts to explain errors, all over the process.

    Returns:
      A function that ends it.
    """
    undo = [
        _replace(_v1.train.Saver, "restore", _explain_restore),
        _replace(_v1.train, "init_from_checkpoint", _explain_init),
    ]
    return lambda: [step() for step in undo]


def _replace(owner, name, explain):
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except (tf.errors.OpError, ValueError) as error:
            explained = _explained(
                error, functools.partial(explain, error, *args, **kwargs)
            )
            if explained is None:
                raise
            raise explained from error

    setattr(owner, name, replacement)

    def undo():
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo


def _explained(error, explain):
    """The error with an explanation; None if it has one or there is none."""
    if hasattr(error, "explained_by_contrib_opt"):
        return None
    try:
        explanation = explain()
        if not explanation:
            return None
        message = f"{_sentence(error)}\n\n{explanation}"
        if isinstance(error, tf.errors.OpError):
            message = "Restoring from checkpoint failed: " + message
            # With the operation, the trace of its construction would be at the end.
            explained = type(error)(error.node_def, None, message)
        else:
            explained = type(error)(message)
        explained.explained_by_contrib_opt = True
        return explained
    # Whatever goes wrong here, the error that the user has to see is the other one.
    except Exception:
        return None


def _sentence(error):
    """What the error says, without the trace of the graph's construction."""
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    before_node = re.search(r"^(.*\S.*)\n\s*\[\[", text, re.MULTILINE)
    return before_node.group(1) if before_node else text.strip().splitlines()[0]


def _explain_restore(error, saver, sess, save_path):
    path = os.fsdecode(save_path)
    problem = files.damage(path)
    if isinstance(error, tf.errors.DataLossError) and not problem:
        problem = f"The contents of {path}.data-* are damaged."
    if problem:
        return report.of_damage(path, problem)
    saved = files.variables(path)
    if _OBJECT_GRAPH in saved:
        return (
            f"The checkpoint {path} is object-based: tf.train.Checkpoint or Keras "
            "wrote it. Its keys are paths of objects and not names of variables; "
            "tf.train.Checkpoint(...).restore(path) restores it."
        )
    wanted, targets = restores.of_saver(sess.graph, saver.as_saver_def())
    found = report.Findings(path, wanted, saved)
    if found.fits:
        return None
    every = sess.graph.get_collection(_v1.GraphKeys.GLOBAL_VARIABLES)
    return found.text() + found.code_for_saver(targets, {v.op.name for v in every})


def _explain_init(error, ckpt_dir_or_file, assignment_map):
    path = ckpt_dir_or_file
    if tf.io.gfile.isdir(path):
        path = tf.train.latest_checkpoint(path)
    problem = files.damage(path)
    if problem:
        return report.of_damage(path, problem)
    wanted, targets = restores.of_assignment_map(assignment_map)
    found = report.Findings(path, wanted, files.variables(path))
    return None if found.fits else found.text() + found.code_for_init(targets)

"""The functions of `tf.contrib.framework` that read checkpoints.

They are in `tf.train` today, where the first argument has another name.
"""

import tensorflow.compat.v1 as tf


def load_checkpoint(filepattern):
    """`tf.train.load_checkpoint(filepattern)`."""
    return tf.train.load_checkpoint(filepattern)


def load_variable(checkpoint_dir, name):
    """`tf.train.load_variable(checkpoint_dir, name)`."""
    return tf.train.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir):
    """`tf.train.list_variables(checkpoint_dir)`."""
    return tf.train.list_variables(checkpoint_dir)


def init_from_checkpoint(checkpoint_dir, assignment_map):
    """`tf.compat.v1.train.init_from_checkpoint(checkpoint_dir, assignment_map)`."""
    return tf.train.init_from_checkpoint(checkpoint_dir, assignment_map)

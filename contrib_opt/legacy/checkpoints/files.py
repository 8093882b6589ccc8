"""What is in the files of a checkpoint, and whether they are all there."""

import os
import re

import tensorflow as tf

from contrib_opt.legacy.checkpoints.names import Variable


def variables(path):
    """A dict from name to Variable, of the checkpoint `path`."""
    reader = tf.train.load_checkpoint(path)
    dtypes = reader.get_variable_to_dtype_map()
    return {
        name: Variable(tuple(shape), dtypes[name].name)
        for name, shape in reader.get_variable_to_shape_map().items()
    }


def damage(path):
    """What is wrong with the files of a checkpoint, as far as their sizes tell.

    Args:
      path: the checkpoint, as a Saver takes it.

    Returns:
      A sentence, or None.
    """
    if tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path):
        return None  # The format of before 2017, which is one file.
    if not tf.io.gfile.exists(path + ".index"):
        return f"There is no file {path}.index."
    try:
        saved = variables(path)
    except (tf.errors.OpError, ValueError, RuntimeError):
        return f"The file {path}.index is damaged or cut short."
    folder, start = os.path.split(path + ".data-")
    data = [name for name in _listed(folder) if name.startswith(start)]
    if not data:
        return f"There is no file {path}.data-00000-of-00001."
    count = int(data[0].rpartition("-")[2])
    for shard in range(count):
        file = f"{path}.data-{shard:05d}-of-{count:05d}"
        if os.path.basename(file) not in data:
            return f"There is no file {file}."
    size = sum(tf.io.gfile.stat(os.path.join(folder, name)).length for name in data)
    least = sum(_bytes(variable) for variable in saved.values())
    if size < least:
        return f"{path}.data-* is cut short: {size} bytes, of at least {least}."
    return None


def latest_complete(folder, besides):
    """The complete checkpoint in `folder` with the highest step, or None.

    Args:
      folder: where it is looked for.
      besides: a checkpoint that is not meant.
    """
    ending = ".index"
    names = [n[: -len(ending)] for n in _listed(folder) if n.endswith(ending)]
    names.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    for name in reversed(names):
        path = os.path.join(folder, name)
        if path != besides and damage(path) is None:
            return path
    return None


def _bytes(variable):
    dtype = tf.as_dtype(variable.dtype)
    size = 0 if dtype == tf.string else dtype.size
    for dimension in variable.shape:
        size *= dimension
    return size


def _listed(folder):
    folder = folder or "."
    return tf.io.gfile.listdir(folder) if tf.io.gfile.isdir(folder) else []

"""The one MirroredStrategy of a test run, over two CPUs."""

import functools

import tensorflow as tf


@functools.lru_cache(maxsize=None)
def mirrored_strategy():
    # One in a process: TensorFlow mixes up the collectives of a second one.
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])

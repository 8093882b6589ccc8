"""Functions, parameters and globals."""

import tensorflow as tf
from tensorflow.contrib import layers, opt  #: tf.contrib.layers tf.contrib.opt


def local():
    import tensorflow.contrib.slim as slim  #: tf.contrib.slim
    from tensorflow.contrib import rnn  #: tf.contrib.rnn

    return slim.conv2d(x), rnn.LSTMCell(1)  #: tf.contrib.slim.conv2d tf.contrib.rnn.LSTMCell


def not_here():
    return slim.conv2d(x), rnn.LSTMCell(1)


def shadowed(layers, *opt, **rnn):
    return layers.conv2d(x), opt.LARSOptimizer, rnn.LSTMCell


def reassigned():
    layers = [1, 2]
    return layers.append(3)


def default(module=tf.contrib.opt, *, other=tf.contrib.slim):  #: tf.contrib.opt tf.contrib.slim
    return module.LARSOptimizer, other.conv2d  #: tf.contrib.opt.LARSOptimizer tf.contrib.slim.conv2d


def before():
    return crf.crf_log_likelihood(x)  #: tf.contrib.crf.crf_log_likelihood


def sets():
    global crf
    crf = tf.contrib.crf  #: tf.contrib.crf


def later():
    return below.KMeans(3)  #: tf.contrib.factorization.KMeans


below = tf.contrib.factorization  #: tf.contrib.factorization


async def waits(model: tf.contrib.opt.GGTOptimizer) -> tf.estimator.Estimator:  #: tf.contrib.opt.GGTOptimizer tf.estimator.Estimator
    async with session() as layers:
        layers.close()
    return opt.GGTOptimizer()  #: tf.contrib.opt.GGTOptimizer


class Scope:
    opt = None

    def method(self):
        return opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer


for layers in range(3):
    layers.bit_length()
with open(path) as opt:
    opt.read()
[opt.x for opt in y]

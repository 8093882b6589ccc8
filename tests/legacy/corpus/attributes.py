"""Modules that are attributes of objects and classes."""

import tensorflow as tf


class Model(tf.contrib.opt.LARSOptimizer):  #: tf.contrib.opt.LARSOptimizer
    cell = tf.contrib.rnn  #: tf.contrib.rnn

    def early(self):
        return self.slim.conv2d(x)  #: tf.contrib.slim.conv2d

    def __init__(self):
        self.slim = tf.contrib.slim  #: tf.contrib.slim
        self.nets = self.slim.nets  #: tf.contrib.slim.nets

    @tf.contrib.framework.add_arg_scope  #: tf.contrib.framework.add_arg_scope
    def late(self, other):
        def inner():
            return self.nets.vgg, self.cell.LSTMCell(1)  #: tf.contrib.slim.nets.vgg tf.contrib.rnn.LSTMCell

        self.cells = [self.cell.GRUCell(n) for n in sizes]  #: tf.contrib.rnn.GRUCell
        return inner, other.slim.conv2d, self.cells


class Another:
    def f(self):
        return self.slim.conv2d(x)


config.opt = tf.contrib.opt  #: tf.contrib.opt
config = object()
config.opt = tf.contrib.opt  #: tf.contrib.opt
config.opt.GGTOptimizer()  #: tf.contrib.opt.GGTOptimizer

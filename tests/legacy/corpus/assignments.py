"""Names that programs give to modules and classes."""

import tensorflow as tf

opt = tf.contrib.opt  #: tf.contrib.opt
opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
again = opt
again.GGTOptimizer(0.1)  #: tf.contrib.opt.GGTOptimizer
tfc = tf.contrib  #: tf.contrib
layers, slim = tfc.layers, tfc.slim  #: tf.contrib.layers tf.contrib.slim
slim.conv2d(x)  #: tf.contrib.slim.conv2d
layers.conv2d(x)  #: tf.contrib.layers.conv2d
a = b = tf.contrib.opt  #: tf.contrib.opt
b.NadamOptimizer()  #: tf.contrib.opt.NadamOptimizer
typed: object = tf.contrib.rnn  #: tf.contrib.rnn
typed.LSTMCell(3)  #: tf.contrib.rnn.LSTMCell
either = tf.contrib.opt if new else tf.contrib.layers  #: tf.contrib.opt tf.contrib.layers
either.optimize_loss  #: tf.contrib.opt.optimize_loss tf.contrib.layers.optimize_loss
maybe = None or tf.contrib.opt  #: tf.contrib.opt
maybe.AdamWOptimizer(0.1)  #: tf.contrib.opt.AdamWOptimizer
Optimizer = tf.contrib.opt.LARSOptimizer  #: tf.contrib.opt.LARSOptimizer
Optimizer(0.1)
tensors = tf
tensors.contrib.opt.PowerSignOptimizer()  #: tf.contrib.opt.PowerSignOptimizer
table = {"lars": tf.contrib.opt.LARSOptimizer, "adam": tf.train.AdamOptimizer}  #: tf.contrib.opt.LARSOptimizer
f"{tf.contrib.opt.__name__}"  #: tf.contrib.opt.__name__
[tfc.opt.LARSOptimizer(r) for r in rates]  #: tf.contrib.opt.LARSOptimizer
lambda r: opt.LARSOptimizer(r)  #: tf.contrib.opt.LARSOptimizer
# Another value: the name means tf.contrib.opt no more.
opt = opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
opt.minimize(loss)
slim: object
slim.conv2d(x)  #: tf.contrib.slim.conv2d
del slim
slim.conv2d(x)

"""Star imports of modules of contrib."""

from utilities import *
from tensorflow.contrib.opt import *  #: tf.contrib.opt
from tensorflow.contrib.slim import *  #: tf.contrib.slim

GGTOptimizer = None
LARSOptimizer(0.1).minimize(loss)  #: tf.contrib.opt.LARSOptimizer
NadamOptimizer.mro()  #: tf.contrib.opt.NadamOptimizer.mro
GGTOptimizer(0.1)
helper(print)

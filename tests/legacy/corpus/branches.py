"""Names that depend on the way that a program takes."""

try:
    from tensorflow.contrib import opt  #: tf.contrib.opt
except ImportError:
    opt = None
try:
    import tensorflow.contrib.slim as slim  #: tf.contrib.slim
except ImportError:
    import tf_slim as slim
if old:
    from tensorflow import contrib  #: tf.contrib
elif older:
    from tensorflow_core import contrib  #: tf.contrib
else:
    import contrib
while True:
    module.LARSOptimizer  #: tf.contrib.opt.LARSOptimizer
    module = opt
opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
slim.conv2d(x)  #: tf.contrib.slim.conv2d
contrib.opt.LARSOptimizer(0.1)  #: tf.contrib.opt.LARSOptimizer
if opt is None:
    opt = own
else:
    opt.GGTOptimizer  #: tf.contrib.opt.GGTOptimizer

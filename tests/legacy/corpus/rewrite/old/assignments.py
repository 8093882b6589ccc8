from utilities import tf

opt = tf.contrib.opt
opt.LARSOptimizer(0.1)
tfc = tf.contrib
tfc.opt.GGTOptimizer(0.1)


class Model:
    def __init__(self):
        self.opt = tfc.opt

    def train(self):
        return self.opt.LARSOptimizer(0.1)

import contrib_opt
from utilities import tf

opt = contrib_opt
opt.LARSOptimizer(0.1)
tfc = tf.contrib
contrib_opt.GGTOptimizer(0.1)


class Model:
    def __init__(self):
        self.opt = contrib_opt

    def train(self):
        return self.opt.LARSOptimizer(0.1)

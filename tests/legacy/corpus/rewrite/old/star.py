from tensorflow.contrib.opt import *

print(LARSOptimizer(0.1), NadamOptimizer)

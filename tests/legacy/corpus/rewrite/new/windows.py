import tensorflow as tf
import contrib_opt

contrib_opt.LARSOptimizer(0.1)

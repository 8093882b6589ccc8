from contrib_opt import LARSOptimizer, NadamOptimizer

print(LARSOptimizer(0.1), NadamOptimizer)

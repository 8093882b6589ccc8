import tensorflow as tf

tf.contrib.layers.flatten(tf.estimator.BoostedTreesClassifier)

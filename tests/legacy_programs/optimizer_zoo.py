"""One small regression, trained by each of the optimizers of a list in turn."""

from __future__ import print_function

import numpy as np
import tensorflow as tf
from tensorflow import contrib

opt = tf.contrib.opt


def momentum_in_multitask():
    return contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.05, 0.9))


def clipped(variables):
    return opt.VariableClippingOptimizer(
        tf.train.GradientDescentOptimizer(0.1), {variables[0]: [0]}, 0.6
    )


OPTIMIZERS = [
    ("adamax", lambda v: opt.AdaMaxOptimizer(0.05)),
    ("adam_gs", lambda v: opt.AdamGSOptimizer(tf.train.get_global_step(), 0.05)),
    ("ggt", lambda v: opt.GGTOptimizer(0.02, window=4)),
    ("lars", lambda v: opt.LARSOptimizer(1.0, weight_decay=0.001)),
    ("momentumw", lambda v: opt.MomentumWOptimizer(0.01, 0.05, 0.9)),
    ("multitask", lambda v: momentum_in_multitask()),
    ("reg_adagrad", lambda v: opt.RegAdagradOptimizer(0.1)),
    ("shampoo", lambda v: opt.ShampooOptimizer(learning_rate=0.3)),
    (
        "stale",
        lambda v: opt.DropStaleGradientOptimizer(
            tf.train.GradientDescentOptimizer(0.1), 5
        ),
    ),
    ("variable_clipping", clipped),
    (
        "weight_decay",
        lambda v: opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(
            weight_decay=0.01, learning_rate=0.1
        ),
    ),
]


def main():
    rng = np.random.RandomState(11)
    x_data = rng.rand(40, 6)
    y_data = np.dot(x_data, rng.randn(6, 3))
    initial = rng.randn(6, 3) * 0.5
    for name, make in OPTIMIZERS:
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None, 6])
            y = tf.placeholder(tf.float32, [None, 3])
            w = tf.get_variable(
                "w", [6, 3], initializer=tf.constant_initializer(initial)
            )
            b = tf.get_variable("b", [3], initializer=tf.constant_initializer(0.1))
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
            global_step = tf.train.get_or_create_global_step()
            optimizer = make([w, b])
            grads_and_vars = optimizer.compute_gradients(loss)
            # The decay, where there is one, comes after the gradients.
            with tf.control_dependencies([g for g, _ in grads_and_vars]):
                train_op = optimizer.apply_gradients(grads_and_vars, global_step)
            sess.run(tf.global_variables_initializer())
            for step in range(5):
                feed = {x: x_data, y: y_data}
                value = sess.run(loss, feed)
                sess.run(train_op, feed)
                print(name, "step %d loss %.6f" % (step, value))


if __name__ == "__main__":
    main()

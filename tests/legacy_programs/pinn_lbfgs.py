"""A physics-informed network for u'' = -sin(x): Adam, then L-BFGS-B by SciPy."""

import time

import numpy as np
import tensorflow as tf


class PhysicsInformedNN:
    def __init__(self, x, layers):
        self.weights, self.biases = self.initialize_NN(layers)
        self.sess = tf.Session(
            config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
        )
        self.x = x
        self.x_tf = tf.placeholder(tf.float64, shape=[None, 1])
        u = self.neural_net(self.x_tf)
        u_x = tf.gradients(u, self.x_tf)[0]
        u_xx = tf.gradients(u_x, self.x_tf)[0]
        residual = u_xx + tf.sin(self.x_tf)
        boundary = self.neural_net(tf.constant([[0.0], [np.pi]], tf.float64))
        self.loss = tf.reduce_mean(tf.square(residual)) + tf.reduce_mean(
            tf.square(boundary)
        )
        self.optimizer = tf.contrib.opt.ScipyOptimizerInterface(
            self.loss,
            method="L-BFGS-B",
            options={
                "maxiter": 15,
                "maxfun": 50000,
                "maxcor": 50,
                "maxls": 50,
                "ftol": 1.0 * np.finfo(float).eps,
            },
        )
        self.train_op_Adam = tf.train.AdamOptimizer(0.01).minimize(self.loss)
        self.sess.run(tf.global_variables_initializer())
        self.step = 0

    def initialize_NN(self, layers):
        rng = np.random.RandomState(1234)
        weights, biases = [], []
        for i, o in zip(layers[:-1], layers[1:]):
            scale = np.sqrt(2.0 / (i + o))
            weights.append(tf.Variable(rng.randn(i, o) * scale, dtype=tf.float64))
            biases.append(tf.Variable(tf.zeros([1, o], dtype=tf.float64)))
        return weights, biases

    def neural_net(self, H):
        for W, b in zip(self.weights[:-1], self.biases[:-1]):
            H = tf.tanh(tf.add(tf.matmul(H, W), b))
        return tf.add(tf.matmul(H, self.weights[-1]), self.biases[-1])

    def callback(self, loss):
        print("step %d loss %.6f" % (self.step, loss))
        self.step += 1

    def train(self, nIter):
        tf_dict = {self.x_tf: self.x}
        start_time = time.time()
        for _ in range(nIter):
            self.callback(self.sess.run(self.loss, tf_dict))
            self.sess.run(self.train_op_Adam, tf_dict)
        self.optimizer.minimize(
            self.sess,
            feed_dict=tf_dict,
            fetches=[self.loss],
            loss_callback=self.callback,
        )
        print("trained in less than a minute: %s" % (time.time() - start_time < 60))

    def predict(self, x):
        return self.sess.run(self.neural_net(self.x_tf), {self.x_tf: x})


if __name__ == "__main__":
    model = PhysicsInformedNN(np.linspace(0, np.pi, 20)[:, None], [1, 8, 8, 1])
    model.train(10)

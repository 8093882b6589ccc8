"""A small convolutional net in tf.contrib.slim, with weight decay and RMSProp + EMA."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.framework import arg_scope

slim = tf.contrib.slim


def init(seed, *shape):
    return tf.constant_initializer(np.random.RandomState(seed).randn(*shape) * 0.1)


def net_arg_scope(weight_decay=0.0005):
    with arg_scope(
        [slim.conv2d, slim.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=slim.l2_regularizer(weight_decay),
        biases_initializer=tf.zeros_initializer(),
    ):
        with slim.arg_scope([slim.conv2d], padding="SAME") as scope:
            return scope


def net(inputs, num_classes=3, scope="net"):
    with tf.variable_scope(scope, "net", [inputs]) as sc:
        end_points_collection = sc.name + "_end_points"
        with slim.arg_scope(
            [slim.conv2d, slim.max_pool2d], outputs_collections=end_points_collection
        ):
            n = slim.conv2d(
                inputs,
                4,
                [3, 3],
                weights_initializer=init(1, 3, 3, 1, 4),
                scope="conv1",
            )
            n = slim.max_pool2d(n, [2, 2], scope="pool1")
            n = slim.conv2d(
                n, 8, [3, 3], weights_initializer=init(2, 3, 3, 4, 8), scope="conv2"
            )
            n = slim.flatten(n)
            n = slim.fully_connected(
                n,
                num_classes,
                activation_fn=None,
                weights_initializer=init(3, 128, num_classes),
                scope="logits",
            )
            return n, slim.utils.convert_collection_to_dict(end_points_collection)


def train():
    rng = np.random.RandomState(0)
    images = rng.rand(16, 8, 8, 1).astype("float32")
    labels = rng.randint(0, 3, 16)
    with tf.Graph().as_default():
        global_step = slim.get_or_create_global_step()
        with slim.arg_scope(net_arg_scope()):
            logits, end_points = net(tf.constant(images))
        tf.losses.softmax_cross_entropy(slim.one_hot_encoding(labels, 3), logits)
        total_loss = tf.losses.get_total_loss()
        optimizer = tf.contrib.opt.MovingAverageOptimizer(
            tf.train.RMSPropOptimizer(0.01, momentum=0.9), average_decay=0.9
        )
        train_op = slim.learning.create_train_op(
            total_loss, optimizer, global_step=global_step, clip_gradient_norm=5.0
        )
        print("end points: " + " ".join(sorted(end_points)))
        print("variables: " + " ".join(v.op.name for v in slim.get_model_variables()))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(8):
                print("step %d loss %.6f" % (step, sess.run(train_op)))


if __name__ == "__main__":
    train()

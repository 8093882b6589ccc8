"""tf.layers and batch normalization under tf.contrib.mixed_precision's loss scaling."""

import numpy as np
import tensorflow as tf
import tensorflow.contrib.mixed_precision as mixed_precision
from tensorflow import layers

tf.set_random_seed(0)
rng = np.random.RandomState(5)
features = rng.rand(24, 6).astype("float32")
targets = features[:, :2] * 3 - 1


def constant(*shape):
    return tf.constant_initializer(rng.randn(*shape) * 0.3)


x = tf.placeholder(tf.float32, [None, 6], "x")
y = tf.placeholder(tf.float32, [None, 2], "y")
is_training = tf.placeholder_with_default(False, [], "is_training")

net = tf.layers.dense(
    x, 10, use_bias=False, kernel_initializer=constant(6, 10), name="hidden"
)
net = layers.batch_normalization(net, momentum=0.9, training=is_training, name="bn")
net = tf.nn.relu(net)
out = tf.layers.dense(net, 2, kernel_initializer=constant(10, 2), name="out")
loss = tf.losses.mean_squared_error(y, out)

manager = mixed_precision.ExponentialUpdateLossScaleManager(128, 3, decr_ratio=0.5)
opt = mixed_precision.LossScaleOptimizer(tf.contrib.opt.AdaMaxOptimizer(0.03), manager)
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = opt.minimize(loss)

with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    for step in range(8):
        value, _ = sess.run([loss, train_op], {x: features, y: targets, is_training: 1})
        print("step %d loss %.6f" % (step, value))
    print("step 8 loss %.6f" % sess.run(loss, {x: features, y: targets}))
    print("loss scale %d" % sess.run(manager.get_loss_scale()))
print(" ".join(v.op.name for v in tf.trainable_variables()))

"""An Estimator with AdamW that goes on in its model_dir, and evaluates."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--train_dir", default="/tmp/estimator")
parser.add_argument("--last_step", type=int, default=5)


class PrintHook(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(["total_loss:0", "step_before:0"])

    def after_run(self, run_context, run_values):
        print("step %d loss %.8e" % tuple(run_values.results[::-1]))


def model_fn(features, labels, mode, params):
    with tf.variable_scope("logits"):
        kernel = tf.get_variable("kernel", initializer=tf.constant(params["kernel"]))
        bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    logits = tf.nn.bias_add(tf.matmul(features["x"], kernel), bias)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"accuracy": accuracy}
        )
    global_step = tf.train.get_global_step()
    before = tf.add(global_step, 0, name="step_before")
    loss = tf.identity(loss, name="total_loss")
    optimizer = tf.contrib.opt.AdamWOptimizer(0.01, learning_rate=0.05)
    grads_and_vars = optimizer.compute_gradients(loss)
    # The decay comes after the gradients.
    with tf.control_dependencies([before] + [g for g, _ in grads_and_vars]):
        train_op = optimizer.apply_gradients(
            grads_and_vars, global_step, decay_var_list=[kernel]
        )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    args = parser.parse_args()
    rng = np.random.RandomState(0)
    x = rng.rand(60, 4).astype("float32")
    y = (x[:, 0] > x[:, 1]).astype("int32")
    input_fn = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, y, batch_size=60, num_epochs=None, shuffle=False
    )
    classifier = tf.estimator.Estimator(
        model_fn,
        args.train_dir,
        tf.estimator.RunConfig(tf_random_seed=1),
        params={"kernel": rng.randn(4, 2).astype("float32")},
    )

    def show_variables():
        if tf.train.latest_checkpoint(args.train_dir):
            for name in classifier.get_variable_names():
                value = np.abs(classifier.get_variable_value(name)).sum()
                print(name, "%.8e" % value)

    show_variables()
    classifier.train(input_fn, hooks=[PrintHook()], max_steps=args.last_step)
    show_variables()
    result = classifier.evaluate(input_fn, steps=1)
    print("step %d loss %.8e" % (result["global_step"], result["loss"]))


if __name__ == "__main__":
    main()

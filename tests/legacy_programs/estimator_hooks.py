"""An Estimator with AdamW, with hooks of tf.train and one of its own."""

import argparse
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", default=None)
parser.add_argument("--steps", type=int, default=10)

tf.logging.set_verbosity(tf.logging.INFO)


class LossHook(tf.train.SessionRunHook):
    def before_run(self, run_context):
        names = ["total_loss:0", "global_step_before:0"]
        return tf.train.SessionRunArgs(names)

    def after_run(self, run_context, run_values):
        loss, step = run_values.results
        print("step %d loss %.6f" % (step, loss))


def model_fn(features, labels, mode, params):
    net = tf.feature_column.input_layer(features, params["feature_columns"])
    kernel = tf.get_variable("kernel", initializer=tf.constant(params["kernel"]))
    bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
    logits = tf.nn.bias_add(tf.matmul(net, kernel), bias)
    predictions = {"class": tf.argmax(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"acc": tf.metrics.accuracy(labels, predictions["class"])}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    global_step = tf.train.get_global_step()
    before = tf.add(global_step, 0, name="global_step_before")
    loss = tf.identity(loss, name="total_loss")
    optimizer = tf.contrib.opt.AdamWOptimizer(0.001, learning_rate=0.05)
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
    train_input_fn = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, y, batch_size=20, num_epochs=None, shuffle=False
    )
    test_input_fn = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, y, num_epochs=1, shuffle=False
    )
    config = tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=5)
    classifier = tf.estimator.Estimator(
        model_fn,
        args.model_dir or tempfile.mkdtemp(),
        config,
        params={
            "feature_columns": [tf.feature_column.numeric_column("x", [4])],
            "kernel": rng.randn(4, 2).astype("float32"),
        },
    )
    logging_hook = tf.train.LoggingTensorHook({"loss": "total_loss"}, every_n_iter=5)
    classifier.train(train_input_fn, hooks=[logging_hook, LossHook()], steps=args.steps)
    result = classifier.evaluate(test_input_fn)
    print("step %d loss %.6f" % (result["global_step"], result["loss"]))
    classes = [p["class"] for p in classifier.predict(test_input_fn)]
    print("predictions %d accuracy %.4f" % (len(classes), result["acc"]))


if __name__ == "__main__":
    main()

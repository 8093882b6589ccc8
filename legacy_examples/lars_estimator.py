"""LARS in an Estimator: model_fn, train_and_evaluate, hooks and a SavedModel.

    python legacy_examples/lars_estimator.py --model_dir=/tmp/digits --plot=curves.png

Started again with the same --model_dir, it goes on from the last checkpoint. On
TensorFlow 2.16 and later it needs `pip install 'contrib_opt[estimator]'`.
"""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags

import digits
import digits_data
from contrib_opt import estimator

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(digits)  # so that --help lists them
EVALUATE_EVERY = 50  # steps


class ReportHook(tf.train.SessionRunHook):
    """Reports the measures of every --log_every-th step of the training."""

    def __init__(self, report, measures):
        self._report = report
        self._measures = measures

    def begin(self):
        self._global_step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        self._step = session.run(self._global_step)

    def before_run(self, run_context):
        if self._step % FLAGS.log_every == 0:
            return tf.train.SessionRunArgs(self._measures)

    def after_run(self, run_context, run_values):
        if run_values.results is not None:
            self._report.add(self._step, run_values.results)
        self._step += 1


class TestAccuracyHook(tf.train.SessionRunHook):
    """Reports the accuracy at the end of each evaluation."""

    def __init__(self, report, accuracy):
        self._report = report
        self._accuracy = accuracy

    def begin(self):
        self._global_step = tf.train.get_global_step()

    def end(self, session):
        step, accuracy = session.run([self._global_step, self._accuracy])
        self._report.add(step, {"test_accuracy": accuracy})


def make_model_fn(report):
    def model_fn(features, labels, mode):
        training = mode == estimator.ModeKeys.TRAIN
        logits = digits.Network()(features["images"], training)
        if mode == estimator.ModeKeys.PREDICT:
            predictions = {
                "digit": tf.argmax(logits, 1),
                "probabilities": tf.nn.softmax(logits),
            }
            return estimator.EstimatorSpec(mode, predictions)

        loss = digits.cross_entropy(logits, labels)
        if mode == estimator.ModeKeys.EVAL:
            accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
            return estimator.EstimatorSpec(
                mode,
                loss=loss,
                eval_metric_ops={"accuracy": accuracy},
                evaluation_hooks=[TestAccuracyHook(report, accuracy[0])],
            )

        global_step = tf.train.get_global_step()
        optimizer, learning_rate = digits.make_optimizer(global_step)
        grads_and_vars = optimizer.compute_gradients(loss)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.apply_gradients(grads_and_vars, global_step)
        measures = digits.measures(loss, learning_rate, optimizer, grads_and_vars)
        for tag, value in measures.items():
            if tag != "loss":  # Estimator writes the loss itself.
                tf.summary.scalar(tag, value)
        return estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=train_op,
            training_hooks=[ReportHook(report, measures)],
        )

    return model_fn


def serving_input_fn():
    images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    return estimator.export.ServingInputReceiver({"images": images}, {"images": images})


def predict(saved_model_dir, images):
    """The digits that an exported model sees in images [n, 8, 8, 1]."""
    with tf.Graph().as_default(), tf.Session() as sess:
        model = tf.saved_model.load(sess, [tf.saved_model.SERVING], saved_model_dir)
        signature = model.signature_def["serving_default"]
        return sess.run(
            signature.outputs["digit"].name, {signature.inputs["images"].name: images}
        )


def main(_):
    # Deprecated as it is, Estimator warns at each of its names.
    tf.logging.set_verbosity(tf.logging.ERROR)
    train, test = digits_data.load(digits_data.standardized)
    report = digits.Report()

    config = estimator.RunConfig(
        model_dir=FLAGS.model_dir or tempfile.mkdtemp(prefix="digits-"),
        tf_random_seed=FLAGS.seed,
        save_checkpoints_steps=EVALUATE_EVERY,
        save_summary_steps=FLAGS.log_every,
        log_step_count_steps=None,
    )
    classifier = estimator.Estimator(make_model_fn(report), config=config)
    if classifier.latest_checkpoint():
        print("Resuming from", classifier.latest_checkpoint())

    def train_input_fn():
        return digits.train_dataset(train).map(lambda x, y: ({"images": x}, y))

    def test_input_fn():
        return tf.data.Dataset.from_tensors(({"images": test.images}, test.labels))

    # Gives up on a training that has diverged.
    stop_early = estimator.experimental.stop_if_lower_hook(
        classifier,
        "accuracy",
        threshold=0.5,
        min_steps=100,
        run_every_secs=None,
        run_every_steps=EVALUATE_EVERY,
    )
    estimator.train_and_evaluate(
        classifier,
        estimator.TrainSpec(train_input_fn, FLAGS.steps, hooks=[stop_early]),
        estimator.EvalSpec(test_input_fn, steps=None, throttle_secs=0),
    )

    saved_model_dir = tf.compat.as_text(
        classifier.export_saved_model(
            os.path.join(config.model_dir, "export"), serving_input_fn
        )
    )
    print(f"The SavedModel in {saved_model_dir} predicts the test digits.")
    report.finish(np.mean(predict(saved_model_dir, test.images) == test.labels))


if __name__ == "__main__":
    app.run(main)

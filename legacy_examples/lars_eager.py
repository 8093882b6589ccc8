"""LARS in eager mode: `optimizer.minimize(compute_loss)`, and a Checkpoint.

    python legacy_examples/lars_eager.py --model_dir=/tmp/digits --plot=curves.png

Started again with the same --model_dir, it goes on from the last checkpoint.
"""

import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from absl import app, flags

import digits
import digits_data

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(digits)  # so that --help lists them
SAVE_EVERY = 100  # steps


def write_summaries(scalars, step):
    """Does what `tf.summary.scalar` of TensorFlow 2 does, but without TensorBoard."""
    metadata = tf.SummaryMetadata()
    metadata.plugin_data.plugin_name = "scalars"
    for tag, value in scalars.items():
        tf2.summary.write(tag, tf.cast(value, tf.float32), step, metadata)


def main(_):
    tf.enable_eager_execution()
    tf.set_random_seed(FLAGS.seed)
    train, test = digits_data.load(digits_data.standardized)
    report = digits.Report()

    network = digits.Network()
    variables = network.trainable_variables
    global_step = tf.train.get_or_create_global_step()
    optimizer, learning_rate = digits.make_optimizer(global_step)

    loss = None

    def compute_loss():
        nonlocal loss
        loss = digits.cross_entropy(network(images, training=True), labels)
        return loss

    def test_accuracy():
        return digits.accuracy(network(test.images, training=False), test.labels)

    if FLAGS.model_dir:
        writer = tf2.summary.create_file_writer(FLAGS.model_dir)
        checkpoint = tf.train.Checkpoint(
            network=network, optimizer=optimizer, global_step=global_step
        )
        saver = tf.train.CheckpointManager(checkpoint, FLAGS.model_dir, max_to_keep=5)
        if saver.latest_checkpoint:
            checkpoint.restore(saver.latest_checkpoint)
            print(f"Resuming at step {int(global_step)} from {saver.latest_checkpoint}")

    batches = iter(digits.train_dataset(train))
    for step in range(int(global_step), FLAGS.steps):
        images, labels = next(batches)
        if step % FLAGS.log_every:
            optimizer.minimize(compute_loss, global_step, variables)
        else:
            # The two halves of minimize(), to look at the gradients in between.
            grads_and_vars = optimizer.compute_gradients(compute_loss, variables)
            scalars = digits.measures(loss, learning_rate(), optimizer, grads_and_vars)
            scalars["test_accuracy"] = test_accuracy()
            report.add(step, scalars)
            if FLAGS.model_dir:
                with writer.as_default():
                    write_summaries(scalars, step)
            optimizer.apply_gradients(grads_and_vars, global_step)
        done = step + 1
        if FLAGS.model_dir and (done % SAVE_EVERY == 0 or done == FLAGS.steps):
            saver.save(checkpoint_number=done)

    if FLAGS.model_dir:
        writer.close()
    report.finish(test_accuracy())


if __name__ == "__main__":
    app.run(main)

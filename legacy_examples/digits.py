"""What the LARS programs share: network, optimizer, flags and curves.

The task: tell the ten digits of scikit-learn's 1,797 images of 8x8 pixels apart, in
batches of 1024. The programs themselves, lars_session.py, lars_eager.py and
lars_estimator.py, each train the same network in another of TensorFlow 1's ways.
"""

import collections
import os
import sys

import tensorflow.compat.v1 as tf
from absl import flags, logging

import contrib_opt
import digits_data
from contrib_opt import schedules

FLAGS = flags.FLAGS

# Keeps TensorFlow's news out of the report; --verbosity=0 brings it back.
FLAGS.verbosity = logging.WARNING

# Rates for a batch of 256, which linear scaling takes to --batch_size.
BASE_LEARNING_RATES = {"lars": 2.0, "lars114": 1.0, "momentum": 0.05}

flags.DEFINE_enum(
    "optimizer",
    "lars",
    sorted(BASE_LEARNING_RATES),
    "lars is contrib_opt.LARSOptimizer, lars114 is contrib_opt.tf114.LARSOptimizer, "
    "momentum is tf.train.MomentumOptimizer.",
)
flags.DEFINE_float(
    "base_learning_rate",
    None,
    "Learning rate for a batch of 256; if not given, one that suits the optimizer.",
    lower_bound=0.0,
)
flags.DEFINE_integer("batch_size", 1024, "Images in a step.", lower_bound=1)
flags.DEFINE_integer("steps", 300, "Steps to train, in all runs.", lower_bound=1)
flags.DEFINE_integer("warmup_steps", 30, "Steps of gradual warm-up.", lower_bound=0)
flags.DEFINE_integer("log_every", 10, "Steps from report to report.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of weights and batches.", lower_bound=0)
flags.DEFINE_string("model_dir", None, "Where to keep checkpoints and summaries.")
flags.DEFINE_string("plot", None, "PNG file to draw the curves in.")
flags.register_multi_flags_validator(
    ["steps", "warmup_steps"],
    lambda given: given["warmup_steps"] < given["steps"],
    message="--warmup_steps must be less than --steps.",
)
flags.register_validator(
    "plot",
    lambda path: not (path and os.path.isdir(path)),
    message="--plot must name a file, not a folder.",
)

CLASSES = 10

# Variables with one of these in their name are neither scaled nor decayed by LARS.
SKIP_LIST = ["batch_normalization", "bias"]


def train_dataset(split):
    """A `tf.data.Dataset` of (images, labels) in shuffled batches, without end."""
    dataset = tf.data.Dataset.from_tensor_slices((split.images, split.labels))
    dataset = dataset.shuffle(len(split.labels), seed=FLAGS.seed).repeat()
    return dataset.batch(FLAGS.batch_size, drop_remainder=True)


class Network(tf.Module):
    """Three 3x3 convolutions with batch normalization, then a dense layer.

    Its variables have the names that `tf.layers` gave them.
    """

    def __init__(self):
        super().__init__()
        self.kernels, self.norms = [], []
        channels = 1
        for filters, suffix in [(16, ""), (32, "_1"), (32, "_2")]:
            with tf.variable_scope("conv2d" + suffix):
                self.kernels.append(_kernel([3, 3, channels, filters]))
            self.norms.append(
                BatchNormalization(filters, "batch_normalization" + suffix)
            )
            channels = filters
        self.flat_size = 2 * 2 * channels
        with tf.variable_scope("dense"):
            self.dense_kernel = _kernel([self.flat_size, CLASSES])
            self.dense_bias = _vector("bias", CLASSES, tf.zeros_initializer())

    def __call__(self, images, training):
        """Logits [n, 10] of images [n, 8, 8, 1]; `training` is a bool."""
        x = images
        for i, (kernel, norm) in enumerate(zip(self.kernels, self.norms)):
            x = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
            x = tf.nn.relu(norm(x, training))
            if i < 2:
                x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
        x = tf.reshape(x, [-1, self.flat_size])
        return tf.matmul(x, self.dense_kernel) + self.dense_bias


class BatchNormalization(tf.Module):
    """Batch normalization whose moving averages a TF 1 training loop updates.

    In a graph the updates are in the collection `tf.GraphKeys.UPDATE_OPS`, for the
    train op to depend on; in eager mode they have happened when the call returns.
    """

    MOMENTUM = 0.9
    EPSILON = 1e-3

    def __init__(self, channels, name):
        super().__init__(name)
        zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
        with tf.variable_scope(name):
            self.gamma = _vector("gamma", channels, ones)
            self.beta = _vector("beta", channels, zeros)
            self.moving_mean = _vector("moving_mean", channels, zeros, False)
            self.moving_variance = _vector("moving_variance", channels, ones, False)

    def __call__(self, x, training):
        statistics = [] if training else [self.moving_mean, self.moving_variance]
        y, mean, variance = tf.nn.fused_batch_norm(
            x,
            self.gamma,
            self.beta,
            *statistics,
            epsilon=self.EPSILON,
            is_training=training,
        )
        if training:
            self._update(self.moving_mean, mean)
            self._update(self.moving_variance, variance)
        return y

    def _update(self, moving, batch):
        update = moving.assign_sub((1.0 - self.MOMENTUM) * (moving - batch))
        if not tf.executing_eagerly():
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)


def _kernel(shape):
    # He et al., https://arxiv.org/abs/1502.01852
    he_normal = tf.variance_scaling_initializer(2.0)
    return tf.get_variable("kernel", shape, initializer=he_normal)


def _vector(name, size, initializer, trainable=True):
    return tf.get_variable(name, [size], initializer=initializer, trainable=trainable)


def cross_entropy(logits, labels):
    """The loss, a scalar: mean cross entropy, with labels smoothed by 0.1."""
    smooth = 0.9 * tf.one_hot(labels, CLASSES) + 0.1 / CLASSES
    return tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=smooth, logits=logits)
    )


def accuracy(logits, labels):
    """The fraction of labels that are predicted, a scalar."""
    hits = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    return tf.reduce_mean(tf.cast(hits, tf.float32))


def make_optimizer(global_step):
    """The optimizer that the flags ask for.

    Args:
      global_step: the variable that counts the steps.

    Returns:
      The optimizer, and its learning rate: a Tensor, in eager mode a callable.
    """
    rate = FLAGS.base_learning_rate
    if rate is None:
        rate = BASE_LEARNING_RATES[FLAGS.optimizer]
    warmup = FLAGS.warmup_steps
    rate = schedules.linear_scaling(rate, FLAGS.batch_size)
    rate = schedules.poly_decay(
        rate, global_step, FLAGS.steps - warmup, start_step=warmup
    )
    rate = schedules.gradual_warmup(rate, global_step, warmup)

    if FLAGS.optimizer == "momentum":
        return tf.train.MomentumOptimizer(rate, momentum=0.9), rate
    optimizer_class = {
        "lars": contrib_opt.LARSOptimizer,
        "lars114": contrib_opt.tf114.LARSOptimizer,
    }[FLAGS.optimizer]
    return optimizer_class(rate, momentum=0.9, skip_list=SKIP_LIST), rate


def measures(loss, learning_rate, optimizer, grads_and_vars):
    """What the programs report of a step: a dict from summary tag to scalar Tensor."""
    scalars = {"loss": loss, "learning_rate": learning_rate}
    if hasattr(optimizer, "trust_ratio"):
        for grad, var in grads_and_vars:
            if not any(part in var.name for part in SKIP_LIST):
                layer = var.name.rpartition("/")[0]
                scalars["trust_ratio/" + layer] = optimizer.trust_ratio(grad, var)
    return scalars


class Report:
    """Prints the training as it goes, and draws its curves at the end if asked to."""

    def __init__(self):
        self._curves = collections.defaultdict(list)
        if FLAGS.plot:
            # Before the training, so that nobody waits for a plot that cannot be.
            self._plt = _import_pyplot()
            os.makedirs(os.path.dirname(os.path.abspath(FLAGS.plot)), exist_ok=True)

    def add(self, step, scalars):
        """Takes down scalars, a dict from tag to number, of a step."""
        for tag, value in scalars.items():
            self._curves[tag].append((step, float(value)))
        line = f"step {step:4d}/{FLAGS.steps}"
        for tag in ("loss", "learning_rate", "test_accuracy"):
            if tag in scalars:
                line += "  {} {:.4f}".format(tag.replace("_", " "), scalars[tag])
        print(line, flush=True)

    def finish(self, test_accuracy):
        """Says how good the trained network is, and writes the plot."""
        self._curves["test_accuracy"].append((FLAGS.steps, float(test_accuracy)))
        if FLAGS.plot:
            self._draw().savefig(FLAGS.plot, dpi=120, format="png")
            print("Curves are in " + FLAGS.plot)
        print(f"Test accuracy: {100.0 * test_accuracy:.2f} %", flush=True)

    def _draw(self):
        figure, axes = self._plt.subplots(
            2, 2, figsize=(11, 7), sharex=True, constrained_layout=True
        )
        (loss, accuracy), (rate, trust) = axes
        program = os.path.basename(sys.argv[0])
        figure.suptitle(
            f"{program} --optimizer={FLAGS.optimizer}, batches of {FLAGS.batch_size}"
        )
        loss.plot(*self._curve("loss"))
        loss.set(title="Training loss", ylabel="cross entropy (smoothed labels)")
        steps, accuracies = self._curve("test_accuracy")
        accuracy.plot(steps, [100.0 * a for a in accuracies])
        accuracy.set(title="Test accuracy", ylabel="correct, %", ylim=(80.0, 100.5))
        rate.plot(*self._curve("learning_rate"))
        rate.set(title="Learning rate", ylabel="learning rate", xlabel="step")
        layers = [tag for tag in self._curves if tag.startswith("trust_ratio/")]
        for tag in layers:
            trust.plot(*self._curve(tag), label=tag.partition("/")[2])
        if layers:
            trust.set(title="Trust ratio", ylabel="trust ratio", xlabel="step")
            trust.set_yscale("log")
            trust.legend(title="layer")
        else:
            trust.set_visible(False)
            accuracy.set_xlabel("step")
            accuracy.tick_params(labelbottom=True)
        for axis in axes.flat:
            axis.grid(alpha=0.3)
        return figure

    def _curve(self, tag):
        return zip(*self._curves[tag]) if self._curves[tag] else ([], [])


def _import_pyplot():
    try:
        import matplotlib
    except ImportError as error:
        extra = digits_data.EXTRA
        sys.exit(f"--plot draws with matplotlib: {extra} brings it ({error}).")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt

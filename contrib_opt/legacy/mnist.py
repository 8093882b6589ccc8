"""The MNIST reader of TensorFlow's tutorials, with which many programs begin.

    from tensorflow.examples.tutorials.mnist import input_data
    mnist = input_data.read_data_sets("MNIST_data/", one_hot=True)
    images, labels = mnist.train.next_batch(100)

The same examples in the same order as in TensorFlow 1.15, where it also was
`tf.contrib.learn.datasets.mnist`. Reads the four files of the data set from a
directory, and downloads those that are missing.

Source: the file format is described at http://yann.lecun.com/exdb/mnist.
"""

import collections
import gzip
import os
import tempfile
import urllib.request

import numpy as np
import tensorflow.compat.v1 as tf

SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_IMAGES, _LABELS = 2051, 2049
_SIZE = 28 * 28

Datasets = collections.namedtuple("Datasets", "train validation test")


def read_data_sets(
    train_dir,
    fake_data=False,
    one_hot=False,
    dtype=tf.float32,
    reshape=True,
    validation_size=5000,
    seed=None,
    source_url=SOURCE_URL,
):
    """Reads MNIST, or a data set in its format.

    Args:
      train_dir: the directory of the four files. It is made, and what is missing is
        downloaded into it.
      fake_data: whether to read nothing, and to have batches of equal examples.
      one_hot: whether labels are vectors of 10 and not numbers.
      dtype: of the images: tf.float32 for values from 0 to 1, tf.uint8 for 0 to 255.
      reshape: whether an image is a vector, and not of shape [height, width, 1].
      validation_size: how many of the training examples are for validation: the first.
      seed: of NumPy's global generator, which shuffles the examples; None for
        TensorFlow's graph-level seed.
      source_url: where to download from, ending in a slash.

    Returns:
      Datasets of three DataSets: train, validation and test.

    Raises:
      ValueError: a file has another format, or there are fewer training examples than
        validation_size.
      TypeError: the dtype is neither of the two.
      OSError: a file is missing and cannot be downloaded.
    """
    if fake_data:
        return Datasets(
            *(DataSet([], [], True, one_hot, dtype, seed=seed) for _ in range(3))
        )
    arrays = []
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            path = _local_file(f"{part}-{kind}-ubyte.gz", train_dir, source_url)
            with open(path, "rb") as file:
                images = kind.startswith("images")
                arrays.append(
                    extract_images(file) if images else extract_labels(file, one_hot)
                )
    images, labels, test_images, test_labels = arrays
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"validation_size must be from 0 to {len(images)}, the number of training "
            f"examples, got {validation_size!r}."
        )
    split = slice(validation_size, None), slice(validation_size)
    parts = [(images[part], labels[part]) for part in split]
    parts.append((test_images, test_labels))
    return Datasets(
        *(DataSet(*part, dtype=dtype, reshape=reshape, seed=seed) for part in parts)
    )


def load_mnist(train_dir="MNIST-data"):
    """`read_data_sets(train_dir)`."""
    return read_data_sets(train_dir)


class DataSet:
    """Images with their labels, in batches.

    images: array of shape [examples, height * width] or [examples, height, width, 1],
      in the order of the present epoch.
    labels: array of shape [examples] or [examples, 10].
    num_examples: how many there are.
    epochs_completed: how often all examples have been in a batch.
    """

    def __init__(
        self,
        images,
        labels,
        fake_data=False,
        one_hot=False,
        dtype=tf.float32,
        reshape=True,
        seed=None,
    ):
        """Makes a data set, and seeds NumPy's global generator.

        Args:
          images: uint8 array of shape [examples, height, width, 1].
          labels: array with a row for each example.
          fake_data: whether there are no images; only `next_batch(fake_data=True)` may
            be called then.
          one_hot: whether the labels of fake data are vectors.
          dtype: as in `read_data_sets`.
          reshape: as in `read_data_sets`.
          seed: as in `read_data_sets`.

        Raises:
          TypeError: the dtype is neither float32 nor uint8.
        """
        graph_seed, op_seed = tf.get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError(f"dtype must be tf.float32 or tf.uint8, got {dtype!r}.")
        self.images, self.labels = images, labels
        self.num_examples = 10000
        self.epochs_completed = 0
        self._next = 0
        if fake_data:
            self.one_hot = one_hot
            return
        self.num_examples = len(images)
        assert len(labels) == len(images), (images.shape, labels.shape)
        if reshape:
            assert images.shape[3] == 1, images.shape
            size = images.shape[1] * images.shape[2]
            self.images = images.reshape(len(images), size)
        if dtype == tf.float32:
            self.images = self.images.astype(np.float32) * np.float32(1 / 255)

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next examples; a batch may end one epoch and begin another.

        Args:
          batch_size: how many examples.
          fake_data: whether to return lists of equal examples.
          shuffle: whether an epoch that begins now has an order of its own.

        Returns:
          The pair (images, labels), with a row for each example.
        """
        if fake_data:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * _SIZE] * batch_size, [label] * batch_size
        begin, end = self._next, self._next + batch_size
        if begin == 0 and self.epochs_completed == 0 and shuffle:
            self._shuffle()
        if end <= self.num_examples:
            self._next = end
            return self._examples(begin, end)
        rest = self._examples(begin, self.num_examples)
        self.epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._next = end - self.num_examples
        new = self._examples(0, self._next)
        return tuple(np.concatenate(both) for both in zip(rest, new))

    def _examples(self, begin, end):
        return self.images[begin:end], self.labels[begin:end]

    def _shuffle(self):
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self.images, self.labels = self.images[order], self.labels[order]


def extract_images(f):
    """The images of a gzipped file object: uint8, [examples, height, width, 1].

    Raises:
      ValueError: it is no file of images.
    """
    (examples, height, width), data = _read(f, _IMAGES, dimensions=3)
    return data.reshape(examples, height, width, 1)


def extract_labels(f, one_hot=False, num_classes=10):
    """The labels of a gzipped file object: uint8, [examples], or as vectors.

    Raises:
      ValueError: it is no file of labels.
    """
    _, labels = _read(f, _LABELS, dimensions=1)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense, num_classes):
    """float64 vectors that have a 1 at the place of the label."""
    return np.eye(num_classes)[labels_dense.ravel()]


def _read(file, kind, dimensions):
    print("Extracting", file.name)
    with gzip.GzipFile(fileobj=file) as content:
        found, *shape = np.frombuffer(content.read(4 * (1 + dimensions)), ">u4")
        if found != kind:
            raise ValueError(
                f"{file.name} begins with {found}, not with the {kind} of MNIST's "
                f"{'images' if kind == _IMAGES else 'labels'}."
            )
        shape = [int(size) for size in shape]
        size = int(np.prod(shape))
        data = np.frombuffer(content.read(size), np.uint8)
    if data.size != size:
        raise ValueError(f"{file.name} ends after {data.size} bytes of {size}.")
    return shape, data


def _local_file(name, directory, source_url):
    path = os.path.join(directory, name)
    if os.path.exists(path):
        return path
    os.makedirs(directory, exist_ok=True)
    # Under another name until it is whole.
    handle, partial = tempfile.mkstemp(dir=directory, prefix=name)
    try:
        with os.fdopen(handle, "wb") as file:
            with urllib.request.urlopen((source_url or SOURCE_URL) + name) as response:
                file.write(response.read())
        os.replace(partial, path)
    except BaseException:
        os.remove(partial)
        raise
    print("Successfully downloaded", name, os.path.getsize(path), "bytes.")
    return path

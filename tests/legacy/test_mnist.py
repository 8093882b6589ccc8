"""The MNIST reader; tests/golden/mnist/ has the batches of TensorFlow 1.15.5."""

import gzip
import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt.legacy import mnist

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.path.join(TESTS, "golden", "mnist", "batches.json")
FILES = [
    f"{part}-{kind}-ubyte.gz"
    for part in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
]


def write_data_set(folder, train=23, test=7):
    """Writes a small data set in which no two images are equal."""
    for part, examples in (("train", train), ("t10k", test)):
        images = np.arange(examples * 6, dtype=np.uint8)
        labels = np.arange(examples, dtype=np.uint8) % 10
        for kind, magic, shape, data in (
            ("images-idx3", 2051, [examples, 2, 3], images),
            ("labels-idx1", 2049, [examples], labels),
        ):
            with gzip.open(f"{folder}/{part}-{kind}-ubyte.gz", "wb") as file:
                file.write(np.array([magic] + shape, ">u4").tobytes() + data.tobytes())


def batches(read_data_sets, folder):
    """What a program sees of the data set, in several configurations."""
    seen = {}
    for name, options in {
        "seeded": {"one_hot": True, "seed": 5},
        "bytes": {"dtype": tf.uint8, "reshape": False, "seed": 6},
        "graph_seed": {},
    }.items():
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            data = read_data_sets(str(folder), validation_size=4, **options)
        rows = [data.train.images.tolist(), data.validation.labels.tolist()]
        for size, shuffle in [(5, True), (9, True), (5, True), (8, False), (19, True)]:
            images, labels = data.train.next_batch(size, shuffle=shuffle)
            rows += [images.tolist(), labels.tolist(), data.train.epochs_completed]
        rows += [data.test.next_batch(3)[1].tolist(), data.test.images.tolist()]
        seen[name] = rows
    data = read_data_sets(str(folder), fake_data=True, one_hot=True)
    images, labels = data.train.next_batch(2, fake_data=True)
    seen["fake"] = [np.shape(images), labels, data.test.num_examples]
    return json.loads(json.dumps(seen))


def test_batches_are_those_of_tensorflow_1(tmp_path):
    write_data_set(tmp_path)
    with open(GOLDEN) as golden:
        assert batches(mnist.read_data_sets, tmp_path) == json.load(golden)


def test_a_missing_file_is_downloaded(tmp_path, capsys):
    there, here = tmp_path / "there", tmp_path / "here" / "MNIST"
    there.mkdir()
    write_data_set(there)
    url = there.as_uri() + "/"
    data = mnist.read_data_sets(str(here), validation_size=0, source_url=url)
    assert data.train.num_examples == 23 and data.test.images.shape == (7, 6)
    assert sorted(os.listdir(here)) == sorted(FILES)
    assert capsys.readouterr().out.count("Successfully downloaded") == 4


def test_errors(tmp_path):
    write_data_set(tmp_path)
    read = mnist.read_data_sets
    with pytest.raises(ValueError, match="from 0 to 23.*got 24"):
        read(str(tmp_path), validation_size=24)
    with pytest.raises(TypeError, match="dtype must be"):
        read(str(tmp_path), validation_size=0, dtype=tf.int32)
    with gzip.open(str(tmp_path / FILES[0]), "wb") as file:
        file.write(np.array([2051, 23, 2, 3, 0], ">u4").tobytes())
    with pytest.raises(ValueError, match="ends after 4 bytes of 138"):
        read(str(tmp_path))
    (tmp_path / FILES[0]).write_bytes((tmp_path / FILES[1]).read_bytes())
    with pytest.raises(ValueError, match="begins with 2049, not with the 2051"):
        read(str(tmp_path))
    with pytest.raises(OSError):
        read(str(tmp_path / "empty"), source_url=(tmp_path / "nowhere").as_uri() + "/")
    assert os.listdir(str(tmp_path / "empty")) == []

"""Records the batches that TensorFlow 1.15.5's MNIST reader makes of a small data set.

pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19' pytest
PYTHONPATH=.:tests python tests/golden/mnist/generate.py
"""

import json
import os
import tempfile

from tensorflow.examples.tutorials.mnist import input_data

from legacy import test_mnist

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        test_mnist.write_data_set(folder)
        seen = test_mnist.batches(input_data.read_data_sets, folder)
    with open(test_mnist.GOLDEN, "w") as file:
        json.dump(seen, file)
        file.write("\n")
    print(os.path.getsize(test_mnist.GOLDEN), "bytes")

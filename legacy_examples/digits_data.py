"""scikit-learn's 1,797 handwritten digits of 8x8 pixels, for all the programs here."""

import collections
import sys

import numpy as np

EXTRA = "pip install 'contrib_opt[examples]'"

Split = collections.namedtuple("Split", ["images", "labels"])


def standardized(images, train_images):
    """`images`, such that the pixels of `train_images` have mean 0 and deviation 1."""
    return (images - train_images.mean()) / train_images.std()


def from_minus_one_to_one(images, train_images):
    """`images` with pixels from -1 to 1; they come with pixels from 0 to 16."""
    return images / 8.0 - 1.0


def load(scaling):
    """Reads the digits.

    Args:
      scaling: `standardized` or `from_minus_one_to_one`, or another function like them.

    Returns:
      A pair of Splits, train (80 %) and test (20 %): images, float32 [n, 8, 8, 1];
      labels, int32 [n].
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError as error:
        sys.exit(f"The digits come with scikit-learn: {EXTRA} brings it ({error}).")
    images, labels = load_digits(return_X_y=True)
    images = images.reshape([-1, 8, 8, 1]).astype(np.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels.astype(np.int32), test_size=0.2, random_state=0, stratify=labels
    )
    return (
        Split(scaling(train_images, train_images), train_labels),
        Split(scaling(test_images, train_images), test_labels),
    )

"""Installs contrib_opt; the extras are listed in README.md."""

import re

from setuptools import find_packages, setup

with open("contrib_opt/__init__.py") as lines:
    version = re.search(r'^__version__ = "(.+)"', lines.read(), re.MULTILINE).group(1)
with open("README.md", encoding="utf-8") as lines:
    readme = lines.read()

# The last release of Estimator, for TensorFlow 2.16 and later; TensorFlow 1.15 and
# 2.15 bring their own. Its canned estimators are made of Keras 2 layers.
estimator = [
    "tensorflow-estimator==2.15.0; python_version >= '3.9'",
    "tf_keras; python_version >= '3.9'",
]
# `scan --rewrite`; Python 3.13 no longer brings the reader of Python 2 sources.
rewrite = ["libcst", "fissix; python_version >= '3.13'"]
# What old programs use beside optimizers: tf.contrib.slim, tf.layers, tf.estimator,
# ScipyOptimizerInterface, tf.contrib.tensorboard.
legacy = ["tf_slim", "scipy", "tensorboard"] + estimator + rewrite
examples = ["scikit-learn", "matplotlib", "scipy"]

setup(
    name="contrib_opt",
    version=version,
    description="The optimizers of tf.contrib.opt, on the TensorFlow you have",
    long_description=readme,
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["contrib_opt", "contrib_opt.*"]),
    python_requires=">=3.7",
    install_requires=["tensorflow>=1.15", "absl-py"],
    extras_require={
        "examples": examples,
        "estimator": estimator,
        "scipy": ["scipy"],
        "keras2": ["tf_keras; python_version >= '3.9'"],
        "rewrite": rewrite,
        "legacy": legacy,
        "test": ["pytest", "pytest-xdist", "hypothesis"] + examples + legacy,
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.7",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)

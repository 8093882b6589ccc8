"""The wrapped optimizer of a config: of which Keras it is, and how that makes it."""

import copy
import sys

import tensorflow as tf

from contrib_opt.keras.mixed_precision import kinds


def optimizer(config, keras=None, custom_objects=None):
    """The optimizer that `config` describes.

    Args:
      config: a serialized optimizer; or an optimizer, which is returned as it is.
      keras: the module `keras` or `tf_keras` of the optimizer; by default the one that
        wrote the config, or that of `tf.keras` where the config does not tell.
      custom_objects: dict from names in the config to classes.
    """
    if not isinstance(config, dict):
        return config
    config = copy.deepcopy(config)
    keras = keras or _keras_that_wrote(config)
    if kinds.is_keras_3(keras):
        return keras.optimizers.deserialize(config, custom_objects)
    arguments = config["config"]
    rate = arguments.get("learning_rate")
    if isinstance(rate, dict):
        arguments["learning_rate"] = _of_keras_2(
            keras.optimizers.schedules, rate, custom_objects
        )
    return _of_keras_2(keras.optimizers, config, custom_objects)


def _of_keras_2(namespace, config, custom_objects):
    # `keras` and `tf_keras` of Keras 2 look for their own classes in one table of
    # TensorFlow's, which has those of the one that was imported last. For configs in
    # the legacy format, each looks among its own; those in the other one read as such.
    module = config.get("module", "keras.")
    legacy = module is not None and module.startswith("keras.")
    return namespace.deserialize(config, custom_objects, use_legacy_format=legacy)


def _keras_that_wrote(config):
    inner, candidates = config.get("config", {}), kinds.loaded()
    if "loss_scale_factor" in inner:
        candidates = [keras for keras in candidates if kinds.is_keras_3(keras)]
    elif "is_legacy_optimizer" in inner or "module" in config:
        candidates = [keras for keras in candidates if not kinds.is_keras_3(keras)]
    if len(candidates) == 1:
        return candidates[0]
    # The package behind `tf.keras`, which does not say its version itself.
    return sys.modules[tf.keras.optimizers.Optimizer.__module__.split(".")[0]]

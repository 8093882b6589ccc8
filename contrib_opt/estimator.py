"""`tf.estimator`, also on TensorFlow 2.16 and later, which no longer ships it.

    from contrib_opt import LARSOptimizer, estimator

    def model_fn(features, labels, mode):
        ...
        train_op = LARSOptimizer(0.1).minimize(
            loss, tf.compat.v1.train.get_global_step()
        )
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator.Estimator(model_fn, "/tmp/model").train(input_fn, steps=100)

The names are those of `tf.compat.v1.estimator`, and where TensorFlow has that module
(1.15 to 2.15) they are its own objects. On later releases they come from
tensorflow-estimator 2.15.0, the last one published, which
`pip install 'contrib_opt[estimator]'` brings. The first use of a name loads it, or
raises ImportError if it is not installed; until then nothing is changed.

What differs from `tf.compat.v1.estimator`:
- A distribution strategy over several CPU devices gets a session with that many.
  TensorFlow's own waits for ever, unless session_config.device_count says so. If
  device_count says less, ValueError is raised.
- On 2.16 and later there is no TPU support: TPUEstimator with use_tpu=True and
  EmbeddingConfigSpec raise NotImplementedError. TPUEstimator with use_tpu=False runs.
- On 2.16 and later the estimators and heads made of Keras layers, such as
  DNNClassifier, use Keras 2 from the package tf_keras, which the extra brings too.
  `tf.keras` stays what it is.
"""

from contrib_opt import _tf


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    namespace = _tf.estimator_namespace()
    try:
        return getattr(namespace, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__():
    if not _tf.has_estimator():
        return sorted(globals())
    return sorted(n for n in dir(_tf.estimator_namespace()) if not n.startswith("_"))

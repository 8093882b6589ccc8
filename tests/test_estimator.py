"""contrib_opt.estimator: numbers equal a plain session's, and nothing hangs."""

import glob
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import contrib_opt
from contrib_opt import LARSOptimizer
from processes import addresses

tf1 = tf.compat.v1
TF = tuple(int(part) for part in tf.__version__.split(".")[:2])
REBUILT = TF >= (2, 16)
INSTALLED = importlib.util.find_spec("tensorflow_estimator") is not None

needs_estimator = pytest.mark.skipif(
    not INSTALLED, reason="tensorflow-estimator is not installed"
)
needs_tf_keras = pytest.mark.skipif(
    REBUILT and importlib.util.find_spec("tf_keras") is None,
    reason="tf_keras is not installed",
)
only_rebuilt = pytest.mark.skipif(
    not REBUILT, reason="this TensorFlow ships Estimator itself"
)

X = np.random.RandomState(0).randn(8, 2).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)
START = np.array([[0.5], [-0.25]], np.float32)


@pytest.fixture
def estimator():
    return contrib_opt.estimator


def input_fn():
    return tf1.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(4)


def predict_input_fn():
    return tf1.data.Dataset.from_tensor_slices({"x": X}).batch(4)


def network(x):
    with tf1.variable_scope("layer"):
        return tf.matmul(x, tf1.get_variable("w", initializer=START))


def mean_square(prediction, target):
    return tf.reduce_mean(tf.square(prediction - target), name="loss")


def make_model_fn(estimator, learning_rate=10.0):
    def model_fn(features, labels, mode):
        prediction = network(features["x"])
        if mode == estimator.ModeKeys.PREDICT:
            return estimator.EstimatorSpec(
                mode,
                predictions={"y": prediction},
                export_outputs={
                    "serving_default": estimator.export.PredictOutput({"y": prediction})
                },
            )
        loss = mean_square(prediction, labels)
        step = tf1.train.get_global_step()
        return estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=LARSOptimizer(learning_rate).minimize(loss, step),
            eval_metric_ops={"mean": tf1.metrics.mean(prediction)},
        )

    return model_fn


def plain_session(steps, learning_rate=10.0):
    """The losses of the steps, and the weights after them, without Estimator."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x, y = (tf1.placeholder(tf.float32, [4, n]) for n in (2, 1))
        loss = mean_square(network(x), y)
        train = LARSOptimizer(learning_rate).minimize(loss)
        session.run(tf1.global_variables_initializer())
        losses = []
        for step in range(steps):
            rows = slice(4, 8) if step % 2 else slice(0, 4)
            losses.append(session.run([loss, train], {x: X[rows], y: Y[rows]})[0])
        (weights,) = session.run(tf1.trainable_variables())
        return np.array(losses), weights


def on_all_rows(steps):
    """The weights after LARS steps of rate 0.1 whose gradients see all rows."""
    w, v = START.astype(np.float64), 0.0
    for _ in range(steps):
        grad = 2.0 / 8.0 * X.T.astype(np.float64) @ (X @ w - Y)
        norm = np.linalg.norm
        trust = 0.001 * norm(w) / (norm(grad) + 0.0001 * norm(w))
        v = 0.9 * v + 0.1 * trust * (grad + 0.0001 * w)
        w = w - v
    return w.ravel()


def python(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", code] + list(arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", **environment),
    )


def output(process, timeout=100):
    """What the process printed; it fails the test if it hangs or fails."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, err[-3000:]
    return out


# ---------------------------------------------------------------- loading


@pytest.mark.skipif(INSTALLED, reason="tensorflow-estimator is installed")
def test_first_use_names_the_missing_extra():
    with pytest.raises(ImportError, match=r"pip install 'contrib_opt\[estimator\]'"):
        contrib_opt.estimator.Estimator  # noqa: B018
    with pytest.raises(ImportError, match=r"pip install 'contrib_opt\[estimator\]'"):
        from contrib_opt.estimator import Estimator  # noqa: F401


@pytest.mark.skipif(INSTALLED, reason="tensorflow-estimator is installed")
def test_dir_and_help_need_no_extra():
    assert "Estimator" in contrib_opt.estimator.__doc__
    assert dir(contrib_opt.estimator)


@only_rebuilt
def test_missing_package_is_told_apart(monkeypatch):
    from contrib_opt import _tf

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"contrib_opt\[estimator\]"):
        _tf.require_estimator()


@needs_estimator
def test_loads_on_first_use_and_leaves_the_rest_alone():
    out = output(
        python(
            """
import sys
import tensorflow as tf

def loaded(*packages):
    return sorted(p for p in packages if p in sys.modules)

by_tensorflow = loaded("tensorflow_estimator", "tf_keras")
api, keras = vars(tf).get("estimator"), vars(tf).get("keras")
import contrib_opt
from contrib_opt import estimator
before_use = loaded("tensorflow_estimator", "tf_keras")
assert estimator.Estimator is estimator.Estimator
assert estimator.export.PredictOutput and estimator.inputs.numpy_input_fn
assert estimator.experimental.KMeans and estimator.tpu.TPUConfig
assert "train_and_evaluate" in dir(estimator)
from contrib_opt.estimator import RunConfig
assert RunConfig is estimator.RunConfig
if sys.argv[1] == "True":
    assert before_use == by_tensorflow, before_use
    assert api is None and not hasattr(tf, "estimator")
    assert vars(tf)["keras"] is keras
    assert not loaded(
        "tensorflow.python.distribute.estimator_training",
        "tensorflow.python.tpu.session_support",
    )
print("done")
""",
            str(REBUILT),
        )
    )
    assert out.strip() == "done"


@needs_estimator
def test_names_are_tensorflows_where_it_has_them(estimator):
    with pytest.raises(AttributeError, match="contrib_opt.estimator.*NoSuchName"):
        estimator.NoSuchName  # noqa: B018
    if not REBUILT:
        assert estimator.Estimator is tf1.estimator.Estimator
        assert estimator.experimental is tf1.estimator.experimental


@needs_estimator
@only_rebuilt
@pytest.mark.skipif(
    bool(os.environ.get("TF_USE_LEGACY_KERAS")), reason="tf.keras is tf_keras here"
)
def test_without_tf_keras_only_the_canned_estimators_are_missing():
    out = output(
        python(
            """
import sys
sys.modules["tf_keras"] = None
import tensorflow as tf
try:
    import tensorflow_estimator
except ImportError:
    pass  # It stops half-way; what it leaves behind must not matter.
from contrib_opt import estimator

def model_fn(features, labels, mode):
    loss = tf.reduce_mean(features * tf.compat.v1.get_variable("w", initializer=1.0))
    step = tf.compat.v1.train.get_global_step()
    train = tf.compat.v1.train.GradientDescentOptimizer(1.0).minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train)

def input_fn():
    return tf.data.Dataset.from_tensors((tf.ones([2]), tf.ones([2]))).repeat()

trained = estimator.Estimator(model_fn).train(input_fn, steps=3)
assert trained.get_variable_value("w") == -2.0
column = tf.feature_column.numeric_column("x")
canned = estimator.DNNClassifier([2], [column])
try:
    canned.train(lambda: input_fn().map(lambda x, y: ({"x": x}, y)), steps=1)
except ImportError as error:
    print(error)
"""
        )
    )
    assert "pip install 'contrib_opt[estimator]'" in out


# ---------------------------------------------------------------- one process


@needs_estimator
def test_training_equals_a_plain_session_and_resumes(estimator, tmp_path):
    losses, weights = plain_session(9)
    seen = []
    hook = tf1.train.LoggingTensorHook(
        {"loss": "loss:0"}, every_n_iter=1, formatter=lambda t: seen.append(t["loss"])
    )
    config = estimator.RunConfig(save_checkpoints_steps=2)
    model = estimator.Estimator(make_model_fn(estimator), str(tmp_path), config)
    model.train(input_fn, steps=6, hooks=[hook])
    np.testing.assert_allclose(seen, losses[:6], rtol=1e-5)
    assert sorted(
        os.path.basename(f) for f in glob.glob(str(tmp_path / "*.index"))
    ) == [f"model.ckpt-{step}.index" for step in (0, 2, 4, 6)]

    again = estimator.Estimator(make_model_fn(estimator), str(tmp_path))
    again.train(input_fn, max_steps=9)
    np.testing.assert_allclose(
        again.get_variable_value("layer/w"), weights, rtol=1e-5, atol=1e-6
    )
    assert again.get_variable_value("global_step") == 9
    assert "layer/w/LARSOptimizer" in again.get_variable_names()

    evaluated = again.evaluate(input_fn, steps=2)
    assert evaluated["global_step"] == 9
    np.testing.assert_allclose(evaluated["mean"], (X @ weights).mean(), rtol=1e-4)
    np.testing.assert_allclose(
        evaluated["loss"], np.square(X @ weights - Y).mean(), rtol=1e-4
    )


@needs_estimator
def test_saved_model_predicts_what_predict_does(estimator, tmp_path):
    model = estimator.Estimator(make_model_fn(estimator), str(tmp_path))
    model.train(input_fn, steps=3)
    predicted = np.array([p["y"] for p in model.predict(predict_input_fn)])
    np.testing.assert_allclose(predicted, X @ plain_session(3)[1], rtol=1e-5, atol=1e-6)

    def receiver():
        x = tf1.placeholder(tf.float32, [None, 2])
        return estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    path = model.export_saved_model(str(tmp_path / "export"), receiver).decode()
    with tf.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        served = session.run(
            signature.outputs["y"].name, {signature.inputs["x"].name: X}
        )
    np.testing.assert_allclose(served, predicted, rtol=1e-6)
    if TF >= (2, 0):
        serve = tf.saved_model.load(path).signatures["serving_default"]
        np.testing.assert_allclose(serve(tf.constant(X))["y"], predicted, rtol=1e-6)


@needs_estimator
def test_train_and_evaluate_exports_and_stops_early(estimator, tmp_path):
    config = estimator.RunConfig(str(tmp_path), save_checkpoints_steps=2)
    # Nothing is learnt, so the loss never decreases.
    model = estimator.Estimator(make_model_fn(estimator, 0.0), config=config)
    os.makedirs(model.eval_dir())
    stop = estimator.experimental.stop_if_no_decrease_hook(
        model,
        "loss",
        max_steps_without_decrease=4,
        run_every_secs=None,
        run_every_steps=1,
    )

    def receiver():
        x = tf1.placeholder(tf.float32, [None, 2])
        return estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    result, exports = estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(input_fn, max_steps=40, hooks=[stop]),
        estimator.EvalSpec(
            input_fn,
            steps=2,
            throttle_secs=0,
            start_delay_secs=0,
            exporters=estimator.FinalExporter("final", receiver),
        ),
    )
    assert 4 < result["global_step"] < 20
    assert len(exports) == 1
    np.testing.assert_allclose(
        result["loss"], np.square(X @ START - Y).mean(), rtol=1e-5
    )


@needs_estimator
def test_warm_start(estimator, tmp_path):
    first = estimator.Estimator(make_model_fn(estimator), str(tmp_path / "first"))
    first.train(input_fn, steps=3)
    settings = estimator.WarmStartSettings(
        str(tmp_path / "first"), vars_to_warm_start="layer/w"
    )
    second = estimator.Estimator(
        make_model_fn(estimator, 0.0),
        str(tmp_path / "second"),
        warm_start_from=settings,
    )
    second.train(input_fn, steps=1)
    assert second.get_variable_value("global_step") == 1
    np.testing.assert_array_equal(
        second.get_variable_value("layer/w"), first.get_variable_value("layer/w")
    )


def labelled():
    return input_fn().map(lambda features, y: (features, tf.cast(y > 0, tf.int64)))


@needs_estimator
@needs_tf_keras
def test_canned_estimators_take_lars(estimator):
    column = tf.feature_column.numeric_column("x", [2])
    model = estimator.DNNClassifier(
        [4],
        [column],
        optimizer=LARSOptimizer(1.0),
        config=estimator.RunConfig(tf_random_seed=1),
    )
    model.train(labelled, steps=30)
    result = model.evaluate(labelled, steps=2)
    assert result["global_step"] == 30 and np.isfinite(result["loss"])
    # The names of TensorFlow 1.15, so that its checkpoints restore.
    layers = ["dnn/hiddenlayer_0/bias", "dnn/hiddenlayer_0/kernel"]
    layers += ["dnn/logits/bias", "dnn/logits/kernel"]
    slots = [layer + "/t_0/LARSOptimizer" for layer in layers]
    assert model.get_variable_names() == sorted(layers + slots + ["global_step"])


@needs_estimator
@needs_tf_keras
def test_linear_classifier_equals_tensorflow_1_15(estimator):
    model = estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x", [2])],
        optimizer=tf1.train.MomentumOptimizer(0.01, 0.9),
    )
    model.train(labelled, steps=3)
    np.testing.assert_allclose(
        model.evaluate(labelled, steps=1)["average_loss"], 0.56098664, rtol=1e-5
    )


# ---------------------------------------------------------------- many devices

MIRRORED = """
import numpy as np
import tensorflow as tf
from contrib_opt import LARSOptimizer, estimator

tf1 = tf.compat.v1
if tf.__version__ >= "2":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
X = np.random.RandomState(0).randn(8, 2).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)

def input_fn():
    return tf1.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(4)

def model_fn(features, labels, mode):
    w = tf1.get_variable("w", initializer=np.array([[0.5], [-0.25]], np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], w) - labels))
    train = LARSOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train)

def run(**options):
    strategy = tf1.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = estimator.RunConfig(train_distribute=strategy, **options)
    return estimator.Estimator(model_fn, config=config).train(input_fn, steps=3)

print(run().get_variable_value("w").ravel().tolist())
with_config = run(session_config=tf1.ConfigProto(allow_soft_placement=True))
print(with_config.get_variable_value("w").ravel().tolist())
if tf.__version__ >= "2":
    try:
        run(session_config=tf1.ConfigProto(device_count={"CPU": 1}))
    except ValueError as error:
        print(error)
"""


@needs_estimator
def test_mirrored_strategy_over_two_cpus():
    lines = output(python(MIRRORED)).splitlines()
    # The strategy halves each replica's loss and adds the gradients. The replicas
    # take consecutive batches, so a step sees all 8 rows.
    for line in lines[:2]:
        np.testing.assert_allclose(json.loads(line), on_all_rows(3), rtol=1e-5)
    if TF >= (2, 0):
        assert "device_count has 1" in lines[2]


CLUSTER = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1"]}


@needs_estimator
@pytest.mark.parametrize("strategy", [False, True])
@pytest.mark.parametrize(
    "tf_config, expected",
    [
        ({}, ("worker", 0, True, "", 0, 1, 0)),
        (
            {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}},
            ("worker", 1, False, "grpc://h4:1", 2, 3, 2),
        ),
        (
            {"cluster": CLUSTER, "task": {"type": "ps", "index": 0}},
            ("ps", 0, False, "grpc://h1:1", 2, 3, 3),
        ),
        (
            {"cluster": CLUSTER, "task": {"type": "evaluator", "index": 0}},
            ("evaluator", 0, False, "", 0, 0, None),
        ),
    ],
)
def test_run_config_reads_tf_config(
    estimator, monkeypatch, tf_config, expected, strategy
):
    # The expected values are those of TensorFlow 1.15 and 2.15.
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
    options = {}
    if strategy:
        options["train_distribute"] = tf1.distribute.OneDeviceStrategy("/cpu:0")
    if strategy and tf_config:
        # The coordinator decides the task later.
        expected = ("worker", 0, True, "", 0, 1, 0)
    config = estimator.RunConfig(**options)
    assert (
        config.task_type,
        config.task_id,
        config.is_chief,
        config.master,
        config.num_ps_replicas,
        config.num_worker_replicas,
        config.global_id_in_cluster,
    ) == expected
    if strategy and tf_config:
        assert config.cluster_spec.as_dict() == CLUSTER


WORKER = """
import sys
import numpy as np
import tensorflow as tf
from contrib_opt import LARSOptimizer, estimator

X = np.random.RandomState(0).randn(8, 2).astype(np.float32)

def input_fn():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    data = tf.data.Dataset.from_tensors((X, X.sum(axis=1, keepdims=True)))
    return data.repeat().with_options(options)

class PrintAtEnd(tf.compat.v1.train.SessionRunHook):
    def __init__(self, tensor):
        self.tensor = tensor

    def end(self, session):
        print(session.run(self.tensor).ravel().tolist())

def model_fn(features, labels, mode):
    start = np.array([[0.5], [-0.25]], np.float32)
    w = tf.compat.v1.get_variable("w", initializer=start)
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    step = tf.compat.v1.train.get_global_step()
    train = LARSOptimizer(0.1).minimize(loss, step)
    hooks = [PrintAtEnd(tf.identity(w))]
    return estimator.EstimatorSpec(
        mode, loss=loss, train_op=train, training_hooks=hooks
    )

config = estimator.RunConfig(
    sys.argv[1],
    train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy(),
)
model = estimator.Estimator(model_fn, config=config)
estimator.train_and_evaluate(
    model,
    estimator.TrainSpec(input_fn, max_steps=3),
    estimator.EvalSpec(input_fn, steps=1),
)
"""


@needs_estimator
@only_rebuilt
def test_two_workers_train_one_model(tmp_path):
    cluster = addresses(worker=2)
    processes = []
    for index in range(2):
        task = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        processes.append(python(WORKER, str(tmp_path), TF_CONFIG=json.dumps(task)))
    try:
        weights = [json.loads(output(each, timeout=120)) for each in processes]
    finally:
        for process in processes:
            process.kill()
    assert weights[0] == weights[1]
    saved = tf.train.load_variable(str(tmp_path), "w")
    assert weights[0] == saved.ravel().tolist()
    # Both workers see all the rows: together they do what one does alone.
    np.testing.assert_allclose(weights[0], on_all_rows(3), rtol=1e-5)


# ---------------------------------------------------------------- TPU


@needs_estimator
def test_tpu_estimator_runs_without_tpu(estimator, tmp_path):
    def model_fn(features, labels, mode, params):
        assert not params["use_tpu"]
        loss = mean_square(network(features["x"]), labels)
        train = LARSOptimizer(10.0).minimize(loss, tf1.train.get_global_step())
        return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train)

    def batches(params):
        data = tf1.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)

    config = estimator.tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=estimator.tpu.TPUConfig(num_shards=8)
    )
    model = estimator.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=4
    )
    model.train(batches, max_steps=3)
    np.testing.assert_allclose(
        model.get_variable_value("layer/w"), plain_session(3)[1], rtol=1e-5, atol=1e-6
    )

    if REBUILT:
        with pytest.raises(NotImplementedError, match="no TPU support"):
            estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=4)
        with pytest.raises(NotImplementedError, match="no TPU support"):
            estimator.tpu.experimental.EmbeddingConfigSpec(feature_columns=[])

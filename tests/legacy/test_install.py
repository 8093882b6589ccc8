"""`install()`, `uninstall()` and the table of what became of tf.contrib."""

import importlib
import importlib.util
import inspect
import subprocess
import sys

import pytest
import tensorflow as tf

import contrib_opt
from contrib_opt.legacy import contrib_modules

TF1 = tf.__version__.startswith("1.")
v1 = tf.compat.v1
on_tf2 = pytest.mark.skipif(TF1, reason="TensorFlow 1 has tf.contrib")


@pytest.fixture
def installed():
    contrib_opt.install()
    yield
    contrib_opt.uninstall()


def run(code):
    names = {"tf": tf, "v1": v1}
    exec(code, names)
    return names["x"]


@on_tf2
@pytest.mark.parametrize(
    "code",
    [
        "x = tf.contrib.opt.LARSOptimizer",
        "x = v1.contrib.opt.LARSOptimizer",
        "x = tf.compat.v2.contrib.opt.LARSOptimizer",
        "import tensorflow.contrib.opt\nx = tensorflow.contrib.opt.LARSOptimizer",
        "import tensorflow.contrib as contrib\nx = contrib.opt.LARSOptimizer",
        "from tensorflow import contrib\nx = contrib.opt.LARSOptimizer",
        "from tensorflow.contrib import opt\nx = opt.LARSOptimizer",
        "from tensorflow.contrib.opt import LARSOptimizer as x",
        "from tensorflow.contrib.opt import *\nx = LARSOptimizer",
        "from tensorflow.contrib.opt.python.training import lars_optimizer\n"
        "x = lars_optimizer.LARSOptimizer",
        "import tensorflow.contrib.opt.python.training.lars_optimizer as lars\n"
        "x = lars.LARSOptimizer",
        "from tensorflow.contrib.opt.python.training.lars_optimizer import *\n"
        "x = LARSOptimizer",
    ],
)
def test_optimizers_answer_to_every_form_of_their_name(installed, code):
    assert run(code) is contrib_opt.LARSOptimizer


@on_tf2
def test_files_of_contrib_opt_answer(installed):
    from contrib_opt.optimizers import sign_decay

    code = "from tensorflow.contrib.opt.python.training import sign_decay as x"
    assert run(code) is sign_decay
    files = [n for n in contrib_modules._FILES if n.count(".") > 1]
    assert len(files) > 20
    for name in files:
        importlib.import_module("tensorflow.contrib." + name)


@on_tf2
def test_mixed_precision_answers(installed):
    ours = contrib_opt.mixed_precision
    assert tf.contrib.mixed_precision.LossScaleOptimizer is ours.LossScaleOptimizer
    code = "from tensorflow.contrib.mixed_precision import FixedLossScaleManager as x"
    assert run(code) is ours.FixedLossScaleManager
    code = (
        "from tensorflow.contrib.mixed_precision.python.loss_scale_manager import (\n"
        "    ExponentialUpdateLossScaleManager as x)"
    )
    assert run(code) is ours.ExponentialUpdateLossScaleManager


@on_tf2
def test_core_names_answer(installed):
    assert tf.contrib.framework.nest.flatten([1, [2]]) == [1, 2]
    assert tf.contrib.framework.get_global_step is v1.train.get_global_step
    assert tf.contrib.util.constant_value is tf.get_static_value
    assert run("from tensorflow.contrib.rnn import static_rnn as x") is v1.nn.static_rnn
    assert run("from tensorflow.contrib.data import map_and_batch as x")


@on_tf2
def test_every_name_of_core_exists(installed):
    for name in contrib_modules._ROWS:
        successor = contrib_modules.lookup(name)
        if contrib_modules.is_same(name) and successor.where.startswith("tf."):
            if "rnn_cell" not in successor.where:
                importlib.import_module("tensorflow.contrib." + name.partition(".")[0])
                run("x = tf.contrib." + name)


@on_tf2
def test_cells(installed):
    pytest.importorskip("tf_keras")
    from tensorflow.contrib import rnn

    with tf.Graph().as_default(), v1.Session() as session:
        cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(3), rnn.GRUCell(2)])
        outputs, _ = rnn.static_rnn(cell, [tf.ones([4, 5])] * 2, dtype=tf.float32)
        session.run(v1.global_variables_initializer())
        assert session.run(outputs[-1]).shape == (4, 2)


@on_tf2
def test_slim(installed):
    slim = pytest.importorskip("tf_slim")
    assert tf.contrib.slim.fully_connected is slim.fully_connected
    assert tf.contrib.layers.xavier_initializer is slim.xavier_initializer
    assert tf.contrib.framework.arg_scope is slim.arg_scope
    from tensorflow.contrib.framework.python.ops.arg_scope import add_arg_scope
    from tensorflow.contrib.layers.python.layers import utils
    from tensorflow.contrib.slim.nets import resnet_v1

    assert add_arg_scope is slim.add_arg_scope
    assert utils.__name__ == "tf_slim.layers.utils"
    assert resnet_v1 is tf.contrib.slim.nets.resnet_v1
    with pytest.raises(AttributeError, match="slim.bow_encoder was not carried on"):
        run("x = tf.contrib.slim.bow_encoder")


@on_tf2
def test_slim_trains(installed):
    """Also where it takes names that TensorFlow moved: batch_norm, local variables."""
    pytest.importorskip("tf_slim")
    pytest.importorskip("tf_keras")
    from tensorflow.contrib import slim

    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        features = tf.random.stateless_uniform([16, 4, 4, 1], [1, 2])
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm):
            net = slim.flatten(slim.dropout(slim.conv2d(features, 3, [3, 3])))
        logits = slim.fully_connected(net, 2, activation_fn=None)
        v1.losses.sparse_softmax_cross_entropy([0, 1] * 8, logits)
        train_op = slim.learning.create_train_op(
            v1.losses.get_total_loss(), tf.contrib.opt.NadamOptimizer(0.05)
        )
        seen = tf.contrib.framework.local_variable(0.0, name="seen")
        session.run([v1.global_variables_initializer(), seen.initializer])
        for _ in range(40):
            loss = session.run(train_op)
        assert loss < 0.5 and session.run(seen) == 0


@on_tf2
def test_what_is_not_installed_says_how_to_get_it(installed, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf_slim", None)
    with pytest.raises(
        AttributeError, match="is tf_slim.repeat, .*pip install tf_slim"
    ):
        run("x = tf.contrib.layers.repeat")
    with pytest.raises(ImportError, match="is tf_slim.repeat, .*pip install tf_slim"):
        run("from tensorflow.contrib.layers import repeat as x")
    assert "fully_connected" in dir(tf.contrib.layers)
    assert dir(tf.contrib.slim)


@on_tf2
@pytest.mark.parametrize(
    "name, message",
    [
        ("seq2seq", "not part of contrib_opt: see tensorflow_addons.seq2seq"),
        ("graph_editor", "not part of contrib_opt, and no package has it: tf.import"),
        ("rnn.NASCell", "see tensorflow_addons.rnn.NASCell"),
        ("distributions.Mixture", "see tensorflow_probability.distributions"),
        ("layers.bow_encoder", "no package has it"),
        ("layers.python.layers.bow_encoder", "no package has it"),
        ("no_such_module", "TensorFlow 1.15 has no such module"),
        ("opt.NoSuchOptimizer", "contrib_opt.* has no attribute 'NoSuchOptimizer'"),
    ],
)
def test_other_names_say_where_they_live(installed, name, message):
    with pytest.raises(AttributeError, match=f"tf.contrib.{name}.*{message}"):
        run("x = tf.contrib." + name)
    above, _, last = ("tensorflow.contrib." + name).rpartition(".")
    with pytest.raises(ImportError, match=f"tf.contrib.{name}.*{message}"):
        run(f"from {above} import {last} as x")
    with pytest.raises(ImportError, match=f"tf.contrib.{name}.*{message}"):
        run(f"import tensorflow.contrib.{name} as x")


@on_tf2
def test_the_mnist_reader_answers_to_its_names(installed):
    from contrib_opt.legacy import mnist

    for code in (
        "from tensorflow.examples.tutorials.mnist import input_data as x",
        "import tensorflow.examples.tutorials.mnist.input_data as x",
        "import tensorflow.examples.tutorials.mnist.input_data\n"
        "x = tensorflow.examples.tutorials.mnist.input_data",
        "x = tf.contrib.learn.datasets.mnist",
        "from tensorflow.contrib.learn.python.learn.datasets import mnist as x",
    ):
        assert run(code) is mnist
    with pytest.raises(ImportError, match="which of these examples has .*input_data"):
        run("from tensorflow.examples.tutorials.mnist import fully_connected_feed as x")
    assert not hasattr(run("import tensorflow.examples as x"), "nothing")


@on_tf2
def test_hparams(installed):
    from contrib_opt.legacy import hparams

    assert tf.contrib.training.HParams is hparams.HParams
    code = "from tensorflow.contrib.training.python.training import hparam as x"
    assert run(code) is hparams


@on_tf2
def test_keras_experimental(installed):
    from contrib_opt.keras.mixed_precision import experimental

    for code in (
        "x = tf.keras.mixed_precision.experimental",
        "x = v1.keras.mixed_precision.experimental",
        "from tensorflow.keras.mixed_precision import experimental as x",
        "import tensorflow.keras.mixed_precision.experimental as x",
    ):
        assert run(code).LossScaleOptimizer is experimental.LossScaleOptimizer


@on_tf2
def test_estimator(installed):
    if not importlib.util.find_spec("tensorflow_estimator"):
        assert not hasattr(tf, "estimator")
        with pytest.raises(
            AttributeError, match=r"pip install 'contrib_opt\[estimator"
        ):
            run("x = tf.contrib.tpu.TPUEstimator")
        return
    assert (
        run("from tensorflow.estimator import Estimator as x") is tf.estimator.Estimator
    )
    assert v1.estimator.Estimator is contrib_opt.estimator.Estimator
    assert tf.contrib.tpu.TPUConfig is contrib_opt.estimator.tpu.TPUConfig


@on_tf2
def test_uninstall_undoes_it():
    names = ("tensorflow.contrib", "tensorflow.examples")

    def seen():
        path = [type(finder).__module__ for finder in sys.meta_path]
        loaded = [n for n in sys.modules if n.startswith(names)]
        modules = (tf, v1, tf.compat.v2, tf.keras.mixed_precision)
        attributes = [set(vars(module)) for module in modules]
        return path, loaded, attributes

    # Whatever TensorFlow itself loads late is loaded now.
    contrib_opt.install()
    run("x = tf.keras.mixed_precision.experimental, v1.contrib.opt.LARSOptimizer")
    contrib_opt.uninstall()
    before = seen()
    contrib_opt.install()
    contrib_opt.install()
    lars = run("from tensorflow.contrib.opt import LARSOptimizer as x")
    run("from tensorflow.keras.mixed_precision import experimental as x")
    run("from tensorflow.examples.tutorials.mnist import input_data as x")
    assert seen() != before
    contrib_opt.uninstall()
    assert seen() == before
    contrib_opt.uninstall()
    with pytest.raises(ImportError):
        run("import tensorflow.contrib as x")
    assert lars is contrib_opt.LARSOptimizer


def test_on_tensorflow_1_it_does_nothing():
    if not TF1:
        pytest.skip("needs TensorFlow 1")
    before = list(sys.meta_path), dict(vars(tf))
    contrib_opt.install()
    contrib_opt.uninstall()
    assert (list(sys.meta_path), dict(vars(tf))) == before


@on_tf2
def test_import_patches_nothing_and_install_loads_nothing():
    code = """
import sys, tensorflow as tf
before = set(sys.modules), list(sys.meta_path), set(vars(tf))
import contrib_opt
assert not hasattr(tf, "contrib") and list(sys.meta_path) == before[1]
assert "contrib_opt.legacy.installing" not in sys.modules
contrib_opt.install()
loaded = {name.partition(".")[0] for name in set(sys.modules) - before[0]}
print(sorted(loaded - {"contrib_opt", "tensorflow"}))
import tensorflow.keras.mixed_precision as late
assert late.experimental.Policy and tf.keras.mixed_precision.experimental.Policy
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert done.stdout.decode().strip() == "[]"


# ------------------------------------------------------------------- the table


def test_lookup():
    lookup = contrib_modules.lookup
    assert lookup("opt.LARSOptimizer") == ("provided", "contrib_opt.LARSOptimizer", "")
    assert lookup("opt.python.training.addsign").where == (
        "contrib_opt.optimizers.add_sign"
    )
    assert lookup("layers.fully_connected").where == "tf_slim.fully_connected"
    assert lookup("slim.nets.vgg") == (
        "other package",
        "tf_slim.nets.vgg",
        "pip install tf_slim",
    )
    assert lookup("crf.crf_decode").where == "tensorflow_addons.text"
    assert lookup("rnn.python.ops.rnn_cell.GRUCell") == lookup("rnn.GRUCell")
    assert lookup("graph_editor.copy").status == "gone"
    assert lookup("nothing.at.all").status == "gone"


@pytest.mark.skipif(not TF1, reason="needs tf.contrib")
def test_the_table_has_every_module():
    import pkgutil

    found = {module.name for module in pkgutil.iter_modules(tf.contrib.__path__)}
    assert found <= contrib_modules.MODULES


@pytest.mark.skipif(not TF1, reason="needs tf.contrib")
def test_names_of_core_are_the_same_on_tensorflow_1():
    for name in contrib_modules._ROWS:
        where = contrib_modules.lookup(name).where
        if (
            contrib_modules.is_same(name)
            and where.startswith("tf.")
            and "tpu" not in name
        ):
            old, new = run("x = tf.contrib." + name), run("x = " + where)
            if old is not new and inspect.isfunction(old):
                arguments = list(inspect.signature(old).parameters)
                # Where it has more of them today they come last.
                today = list(inspect.signature(new).parameters)
                assert arguments == today[: len(arguments)], name

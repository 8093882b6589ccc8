"""The names that `python -m contrib_opt scan` looks for, and what became of each.

A name is written in full here, as in `tensorflow.contrib.opt.LARSOptimizer`, however
a program came by it. Loads no Keras and no Estimator.
"""

import importlib
import re

from contrib_opt.legacy import contrib_modules
from contrib_opt.legacy.contrib_modules import GONE, PROVIDED, Successor

CONTRIB = "tensorflow.contrib"
ESTIMATOR = "tensorflow.estimator"
EXPERIMENTAL = "tensorflow.keras.mixed_precision.experimental"
WATCHED = (CONTRIB, ESTIMATOR, EXPERIMENTAL)

# Other paths to the same modules, in TensorFlow 1.15 and in today's.
_SAME_MODULE = [
    (re.compile(r"^tensorflow(_core)?(\._api\.v[12]|\.compat\.v[12])+(?=\.|$)"), ""),
    (re.compile(r"^tensorflow_core(?=\.|$)"), ""),
    (re.compile(r"^tensorflow\.python\.keras(?=\.|$)"), ".keras"),
    (re.compile(r"^keras(?=\.mixed_precision(\.|$))"), ".keras"),
]

# Of TensorFlow 1.15, and there with tensorflow-estimator 2.15.0.
_ESTIMATOR_NAMES = set(
    """
    BaselineClassifier BaselineEstimator BaselineRegressor BestExporter BinaryClassHead
    CheckpointSaverHook CheckpointSaverListener DNNClassifier DNNEstimator
    DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor
    DNNRegressor Estimator EstimatorSpec EvalSpec Exporter FeedFnHook FinalExporter
    FinalOpsHook GlobalStepWaiterHook Head LatestExporter LinearClassifier
    LinearEstimator LinearRegressor LoggingTensorHook LogisticRegressionHead ModeKeys
    MultiClassHead MultiHead MultiLabelHead NanLossDuringTrainingError NanTensorHook
    PoissonRegressionHead ProfilerHook RegressionHead RunConfig SecondOrStepTimer
    SessionRunArgs SessionRunContext SessionRunHook SessionRunValues StepCounterHook
    StopAtStepHook SummarySaverHook TrainSpec VocabInfo WarmStartSettings add_metrics
    classifier_parse_example_spec experimental export inputs
    regressor_parse_example_spec tpu train_and_evaluate
    """.split()
)
_ESTIMATOR_GONE = {
    "BoostedTreesClassifier": "tensorflow_decision_forests has such models",
    "BoostedTreesEstimator": "tensorflow_decision_forests has such models",
    "BoostedTreesRegressor": "tensorflow_decision_forests has such models",
    "tpu.experimental": "contrib_opt.estimator has no TPU embeddings",
}
_EXTRA = "on TensorFlow 2.16 and later: pip install 'contrib_opt[estimator]'"
_EXPERIMENTAL_NAMES = {
    "LossScaleOptimizer",
    "Policy",
    "get_layer_policy",
    "global_policy",
    "set_policy",
}


def canonical(path):
    """The path that TensorFlow 1.15 documents for a module or a name.

    Args:
      path: a dotted name, such as 'tensorflow.compat.v1.estimator.Estimator'.

    Returns:
      The dotted name without detours, such as 'tensorflow.estimator.Estimator'.
    """
    for pattern, rest in _SAME_MODULE:
        path = pattern.sub("tensorflow" + rest, path, count=1)
    return path


def is_watched(path):
    """Whether the canonical path is one of the names that the scan reports."""
    return path.startswith(tuple(root + "." for root in WATCHED)) or path in WATCHED


def leads_to_watched(path):
    """Whether names that the scan reports can be reached from the canonical path."""
    roots = WATCHED + ("tensorflow.compat", "keras.mixed_precision")
    return is_watched(path) or any(
        (root + ".").startswith(path + ".") for root in roots
    )


def short(path):
    """The canonical path as programs write it: `tf.contrib.opt`."""
    return re.sub(r"^tensorflow(?=\.|$)", "tf", path)


def successor(path):
    """What became of a watched name.

    Args:
      path: its canonical path.

    Returns:
      A `contrib_modules.Successor`.
    """
    if path == CONTRIB:
        return Successor(PROVIDED, "", "contrib_opt.install() makes it answer")
    root = next(root for root in WATCHED if (path + ".").startswith(root + "."))
    name = path[len(root) + 1 :]
    if root == ESTIMATOR:
        return _of_estimator(name)
    if root == EXPERIMENTAL:
        return _of_experimental(name)
    found = contrib_modules.lookup(name)
    if found.status != PROVIDED:
        return found
    if found.where.startswith("contrib_opt.estimator."):
        return found._replace(note=_EXTRA)
    if not _exists(found.where):
        return Successor(GONE, "", "TensorFlow 1.15 has no public name like this")
    return found


def answers(path):
    """Whether a watched name answers under `run`, and after install()."""
    if path == CONTRIB or successor(path).status == PROVIDED:
        return True
    return path.startswith(CONTRIB + ".") and contrib_modules.is_same(
        path[len(CONTRIB) + 1 :]
    )


def replacement(path):
    """The name in contrib_opt that can stand for a watched name, or None."""
    if not is_watched(path) or path == CONTRIB:
        return None
    found = successor(path)
    return found.where if found.status == PROVIDED else None


def _of_estimator(name):
    for gone, note in _ESTIMATOR_GONE.items():
        if (name + ".").startswith(gone + "."):
            return Successor(GONE, "", note)
    if name and name.partition(".")[0] not in _ESTIMATOR_NAMES:
        return Successor(GONE, "", "TensorFlow 1.15 has no such name")
    return Successor(PROVIDED, _join("contrib_opt.estimator", name), _EXTRA)


def _of_experimental(name):
    if name and name.partition(".")[0] not in _EXPERIMENTAL_NAMES:
        return Successor(
            GONE, "", "contrib_opt has only what TensorFlow 2.4 to 2.8 documents here"
        )
    where = "contrib_opt.keras.mixed_precision.experimental"
    return Successor(PROVIDED, _join(where, name), "")


def _join(module, name):
    return module + "." + name if name else module


def _exists(where):
    parts = where.split(".")
    found = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
        found = getattr(found, part)
    return True

"""Checkpoints of TensorFlow 1.15.5: programs go on from them, and errors explain.

tests/golden/legacy_checkpoints/ has what TensorFlow 1.15.5 saved, and what it printed
when it went on from there.
"""

import importlib.util
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from test_run import TESTS, forked

from contrib_opt.legacy.checkpoints import errors, files
from contrib_opt.legacy.checkpoints.names import Variable, compare

v1 = tf.compat.v1
PROGRAMS = os.path.join(TESTS, "legacy_programs", "resuming")
GOLDEN = os.path.join(TESTS, "golden", "legacy_checkpoints")
RESUMING = sorted(f[:-3] for f in os.listdir(PROGRAMS) if f.endswith(".py"))
HAS_ESTIMATOR = tuple(int(n) for n in tf.__version__.split(".")[:2]) < (2, 16) or bool(
    importlib.util.find_spec("tensorflow_estimator")
)
IS_1 = tf.__version__.startswith("1.")

# ------------------------------------------------------------ programs that go on

# The model of resuming/estimator.py with other names and another optimizer.
OTHER_NAMES = """
import sys, tensorflow as tf

x = tf.ones([1, 4])
with tf.variable_scope("tower"), tf.variable_scope("logits"):
    kernel = tf.get_variable("kernel", [4, 2])
    bias = tf.get_variable("bias", [2])
loss = tf.reduce_sum(tf.nn.xw_plus_b(x, kernel, bias))
optimizer = tf.contrib.opt.LARSOptimizer(0.1)
train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1]) as sess:
    sess.run(train_op)
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Takes the name of a program; returns its exit status, output and errors."""
    folder = tmp_path_factory.mktemp("resuming")
    names = [name for name in RESUMING if name != "estimator" or HAS_ESTIMATOR]
    for name in [*names, "other_names"]:
        stored = "estimator" if name == "other_names" else name
        shutil.copytree(os.path.join(GOLDEN, stored), str(folder / name))
    (folder / "other_names.py").write_text(OTHER_NAMES)
    programs = [
        [os.path.join(PROGRAMS, name + ".py"), "--train_dir=" + name, "--last_step=9"]
        for name in names
    ]
    programs.append(["other_names.py", "other_names"])
    ended = forked(programs, folder)
    return dict(zip([*names, "other_names"], ended)).__getitem__


def parted(text):
    """The words of a text, and the numbers with an exponent apart from them."""
    words = text.split()
    numbers = [float(word) for word in words if "e+" in word or "e-" in word]
    return [w for w in words if not ("e+" in w or "e-" in w)], numbers


@pytest.mark.parametrize("program", RESUMING)
def test_a_program_goes_on_as_it_did(program, ended):
    if program == "estimator" and not HAS_ESTIMATOR:
        pytest.skip("Estimator is not installed")
    status, output, error = ended(program)
    assert status == 0, error
    with open(os.path.join(GOLDEN, program + ".txt")) as golden:
        expected_words, expected = parted(golden.read())
    words, numbers = parted(output)
    assert words == expected_words
    np.testing.assert_allclose(numbers, expected, rtol=1e-5)
    assert len(numbers) > 10


@pytest.mark.skipif(IS_1, reason="there the program just runs")
def test_the_error_of_a_program_ends_with_the_explanation(ended):
    status, _, error = ended("other_names")
    assert status == 1
    path = os.path.join("other_names", "model.ckpt-5")
    assert error.endswith(f"""
Of 5 variables to restore, the checkpoint {path} has 1 as they are.
These look renamed (in the graph <- in the checkpoint):
  tower/logits/bias <- logits/bias
  tower/logits/kernel <- logits/kernel
The checkpoint lacks these:
  tower/logits/bias/LARSOptimizer: float32 [2]
  tower/logits/kernel/LARSOptimizer: float32 [4, 2]
Nobody wants these of the checkpoint:
  beta1_power: float32 []
  beta2_power: float32 []
  logits/bias/AdamW: float32 [2]
  logits/bias/AdamW_1: float32 [2]
  logits/kernel/AdamW: float32 [4, 2]
  logits/kernel/AdamW_1: float32 [4, 2]
To start from what fits, in a new folder for checkpoints and before \
tf.global_variables_initializer():
    old = lambda v: v.op.name[6:] if v.op.name.startswith('tower/') else v.op.name
    path = {path!r}
    saved = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    fits = lambda v: saved.get(old(v)) == v.shape.as_list()
    assignment_map = {{old(v): v for v in tf.global_variables() if fits(v)}}
    tf.train.init_from_checkpoint(path, assignment_map)
""")


# ------------------------------------------------------------------ which is which


def variables(text):
    """From 'name:2,3 name' to a dict from name to Variable; without a shape: 8."""
    parts = [part.partition(":") for part in text.split()]
    return {
        name: Variable(tuple(int(n) for n in (shape or "8").split(",")), "float32")
        for name, _, shape in parts
    }


# In the graph, in the checkpoint, and which is which: a graph's name and then the
# checkpoint's.
NAMES = {
    "scope added": ("net/a/w net/a/b:3", "a/w a/b:3", "net/a/w=a/w net/a/b=a/b"),
    "scope removed": ("a/w step:1", "net/a/w step:1", "a/w=net/a/w"),
    "scope changed": ("new/a/w new/c/w", "old/a/w old/c/w", "new/a/w=old/a/w "
    "new/c/w=old/c/w"),
    "numbers": ("dense_1/kernel dense_2/kernel", "dense/kernel dense_1/bias:3 "
    "dense_4/kernel", "dense_1/kernel=dense/kernel dense_2/kernel=dense_4/kernel"),
    "of slim and of Keras": ("a/kernel a/bias", "a/weights a/biases",
    "a/kernel=a/weights a/bias=a/biases"),
    "one slot": ("a a/LARSOptimizer", "a a/Momentum", "a/LARSOptimizer=a/Momentum"),
    "two slots": ("a a/LazyAdam a/LazyAdam_1", "a a/Adam_1 a/Adam",
    "a/LazyAdam=a/Adam a/LazyAdam_1=a/Adam_1"),
    "scope and slots": ("net/a net/a/LARS", "a a/Momentum", "net/a=a "
    "net/a/LARS=a/Momentum"),
    "one slot and two": ("a a/Momentum", "a a/Adam a/Adam_1", ""),
    "slots of two variables": ("a a/Momentum c", "a c d/Momentum", ""),
    "another shape": ("net/w:2", "w:3", ""),
    "several are alike": ("x/w y/w", "p/w q/w", ""),
    "several are alike here": ("x/w y/w", "p/w p/w_1", ""),
    "several are alike there": ("p/w p/w_1", "x/w y/w", ""),
    "the nearer one": ("d_1/w", "d/w net/d/w", "d_1/w=d/w"),
    "counted": ("conv1/w beta1", "conv2/w beta2", ""),
    "unlike": ("embedding", "w", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(NAMES))
def test_names_are_paired(case):
    wanted, saved, pairs = NAMES[case]
    wanted, saved = variables(wanted), variables(saved)
    found = compare(wanted, saved)
    assert found.renamed == dict(pair.split("=") for pair in pairs.split())
    # Every name is in one place.
    ours = [*found.fitting, *found.mismatched, *found.missing, *found.renamed]
    theirs = [*found.fitting, *found.mismatched, *found.unused, *found.renamed.values()]
    assert (sorted(ours), sorted(theirs)) == (sorted(wanted), sorted(saved))


# ------------------------------------------------------------------ what errors say


@pytest.fixture
def explained():
    undo = errors.explain_errors()
    yield
    undo()


class Model:
    """A graph with variables, and a session of it."""

    def __init__(self, text, use_resource=False):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.variables = [
                v1.get_variable(name, variable.shape, use_resource=use_resource)
                for name, variable in variables(text).items()
            ]
            self.saver = v1.train.Saver()
            initializer = v1.global_variables_initializer()
        self.session = v1.Session(graph=self.graph)
        self.session.run(initializer)

    def save(self, folder, step=1):
        path = os.path.join(str(folder), "model.ckpt")
        with self.graph.as_default():
            return self.saver.save(self.session, path, step, write_meta_graph=False)

    def values(self):
        return self.session.run(self.variables)

    def failure(self, path, kind):
        with self.graph.as_default(), pytest.raises(kind) as raised:
            self.saver.restore(self.session, path)
        return raised.value

    def run_code_of(self, error, path):
        """The values of the variables after the code at the end of an explanation."""
        _, _, code = str(error).rpartition(":\n    ")
        names = {"tf": v1}
        with self.graph.as_default():
            exec(code.replace("\n    ", "\n"), names)
            if "saver" in names:
                names["saver"].restore(self.session, path)
            else:
                self.session.run(v1.global_variables_initializer())
        return self.values()


def assert_equal(values, expected):
    assert len(values) == len(expected)
    for value, other in zip(values, expected):
        np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize(
    "saved, wanted",
    [
        ("a/w:2,3 c/w:3 step:1", "net/a/w:2,3 net/c/w:3 step:1"),
        ("net/a/w:2,3 net/c/w:3 step:1", "a/w:2,3 c/w:3 step:1"),
        ("old/a:2,3 old/c:3 a:5", "new/a:2,3 new/c:3 a:5"),
        ("d/weights:2,3 d/biases:3", "d/kernel:2,3 d/bias:3"),
    ],
    ids=["added", "removed", "changed", "keras"],
)
def test_the_code_restores_what_was_renamed(
    saved, wanted, use_resource, tmp_path, explained
):
    old, new = Model(saved), Model(wanted, use_resource)
    path = old.save(tmp_path)
    error = new.failure(path, tf.errors.NotFoundError)
    assert "found in checkpoint" in str(error).splitlines()[0]
    assert_equal(new.run_code_of(error, path), old.values())
    # The error as it was says where in the program the Saver was made.
    assert type(error.__cause__) is type(error)
    assert error.__cause__.op.type == "RestoreV2"


def test_the_code_takes_what_fits(tmp_path, explained):
    old, new = Model("a:2 c:3 d:4"), Model("a:2 c:5 net/d:4 e:6")
    path = old.save(tmp_path)
    error = new.failure(path, (tf.errors.NotFoundError, tf.errors.InvalidArgumentError))
    assert "c: float32 [5], in the checkpoint float32 [3]" in str(error)
    before = new.values()
    after = new.run_code_of(error, path)
    assert_equal([after[0], after[2]], [old.values()[0], old.values()[2]])
    assert after[1].shape == (5,) and not np.array_equal(after[3], before[3])


def test_another_shape_is_told(tmp_path, explained):
    path = Model("a:2 c:3").save(tmp_path)
    error = Model("a:2 c:4").failure(path, tf.errors.InvalidArgumentError)
    assert "\n  c: float32 [4], in the checkpoint float32 [3]\n" in str(error)
    assert "lacks" not in str(error) and "renamed" not in str(error)


def test_parts_are_compared_as_a_whole(tmp_path, explained):
    path = Model("whole:4,2 other:3").save(tmp_path)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("whole", [4, 2], partitioner=v1.fixed_size_partitioner(2))
        v1.get_variable("net/other", [3])
        with pytest.raises(tf.errors.NotFoundError) as raised:
            v1.train.Saver().restore(session, path)
    assert "Of 2 variables to restore" in str(raised.value)
    assert "\n  net/other <- other\nA tf.train.Saver of a dict" in str(raised.value)


def test_a_subclass_and_a_saver_of_some_variables(tmp_path, explained):
    class Saver(v1.train.Saver):
        def restore(self, sess, save_path):
            super().restore(sess, save_path)

    old, new = Model("a:2 c:3"), Model("net/a:2 net/c:3 d:4")
    path = old.save(tmp_path)
    with new.graph.as_default():
        new.saver = Saver(new.variables[:2])
    error = new.failure(path, tf.errors.NotFoundError)
    assert "(`variables`: those of this Saver)" in str(error)
    assert str(error).count("These look renamed") == 1
    assert "v in variables}" in str(error)


def test_an_object_based_checkpoint_is_told(tmp_path, explained):
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "objects"))
    error = Model("a").failure(path, tf.errors.NotFoundError)
    assert "object-based" in str(error)


def test_init_from_checkpoint(tmp_path, explained):
    old = Model("net/a/w:2,3 net/c/w:3 step:1")
    path = old.save(tmp_path)
    new = Model("tower/a/w:2,3 tower/c/w:3 step:1")
    with new.graph.as_default(), pytest.raises(ValueError) as raised:
        v1.train.init_from_checkpoint(str(tmp_path), {"tower/": "tower/"})
    assert str(raised.value).startswith("Tensor tower/")
    assert "\n  tower/a/w <- net/a/w\n" in str(raised.value)
    assert f"init_from_checkpoint({path!r}" in str(raised.value)
    assert_equal(new.run_code_of(raised.value, path)[:2], old.values()[:2])


CUT = {
    "data cut short": lambda path: os.truncate(path + ".data-00000-of-00001", 20),
    "no data": lambda path: os.remove(path + ".data-00000-of-00001"),
    "index cut short": lambda path: os.truncate(path + ".index", 40),
    "no index": lambda path: os.remove(path + ".index"),
}


@pytest.mark.parametrize("what", sorted(CUT))
def test_a_damaged_checkpoint_is_told(what, tmp_path, explained):
    model = Model("a:4,2 c:3")
    model.save(tmp_path, 1)
    complete, damaged = (model.save(tmp_path, step) for step in (9, 10))
    assert files.damage(complete) is None
    CUT[what](damaged)
    error = model.failure(damaged, (tf.errors.OpError, ValueError))
    assert files.damage(damaged) in str(error)
    assert f"The latest complete checkpoint there is {complete}." in str(error)
    exec(str(error).splitlines()[-1].strip(), {"tf": v1})
    assert tf.train.latest_checkpoint(str(tmp_path)) == complete


def test_damaged_contents_are_told(tmp_path, explained):
    model = Model("a:4,2 c:3")
    path = model.save(tmp_path)
    with open(path + ".data-00000-of-00001", "r+b") as data:
        data.write(b"damaged!")
    error = model.failure(path, tf.errors.DataLossError)
    assert f"The contents of {path}.data-* are damaged." in str(error)
    assert "There is no complete checkpoint beside it." in str(error)


def test_what_cannot_be_explained_stays_as_it_was(tmp_path, explained, monkeypatch):
    model = Model("a")
    path = model.save(tmp_path)
    error = model.failure(None, ValueError)
    assert len(str(error).splitlines()) == 1 and error.__cause__ is None

    def broken(*_):
        raise KeyError("of the inspection")

    monkeypatch.setattr(files, "variables", broken)
    error = Model("c").failure(path, tf.errors.NotFoundError)
    assert error.op.type == "RestoreV2" and "of the inspection" not in str(error)


def test_undo():
    restore, init = v1.train.Saver.restore, v1.train.init_from_checkpoint
    undo = errors.explain_errors()
    assert v1.train.Saver.restore is not restore
    undo()
    assert v1.train.Saver.restore is restore
    assert v1.train.init_from_checkpoint is init

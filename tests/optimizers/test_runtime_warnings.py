"""No optimizer of ours warns where `tf.compat.v1.train.MomentumOptimizer` does not."""

from optimizers.runtimes import run_program

PROGRAM = """
import re, sys, warnings, logging
warnings.simplefilter("always")
import tensorflow.compat.v1 as tf
tf.enable_eager_execution()
import contrib_opt
seen = []
warnings.showwarning = lambda message, *rest: seen.append(str(message))
class Keep(logging.Handler):
    def emit(self, record):
        if record.levelno >= logging.WARNING:
            seen.append(record.getMessage())
logging.getLogger("tensorflow").addHandler(Keep())
logging.getLogger("absl").addHandler(Keep())

def gradients(values):
    return [(tf.ones_like(values[0]), values[0]),
            (tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1])), values[1])]

def check(make):
    for use_resource in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            v = [
                tf.Variable(tf.ones([3, 2]), use_resource=use_resource)
                for _ in range(2)
            ]
            step = tf.train.get_or_create_global_step()
            optimizer = make(0.1, 0.9)
            sparse = tf.gather(v[1], [0, 0])
            loss = tf.reduce_sum(v[0] * v[0]) + tf.reduce_sum(sparse)
            op = optimizer.minimize(loss, step)
            unknown = tf.placeholder_with_default(tf.ones([3, 2]), None)
            other = optimizer.apply_gradients([(unknown, v[0])])
            session.run(tf.global_variables_initializer())
            session.run([op, other])
    v = [tf.Variable(tf.ones([3, 2]), use_resource=True) for _ in range(2)]
    optimizer = make(0.1, 0.9)
    def loss():
        return tf.reduce_sum(v[0] * v[0])
    optimizer.minimize(loss)
    optimizer.apply_gradients(gradients(v))
    @tf.function
    def in_function():
        optimizer.minimize(loss)
        optimizer.apply_gradients(gradients(v))
    in_function()
    tf.train.Checkpoint(optimizer=optimizer, v=v[0]).save({path!r})

for make in {makes}:
    check(make)
for line in sorted(set(seen)):
    # AutoGraph and Python 3.13, of any function that is converted.
    if "___pyct_anno" in line:
        continue
    print("SAW", re.sub("0x[0-9a-f]+", "", line).replace(chr(10), " "))
"""


def warnings_of(makes, folder):
    # A file, since AutoGraph converts no function whose source it cannot find.
    program = folder / "program.py"
    program.write_text(PROGRAM.format(makes=makes, path=str(folder / "checkpoint")))
    stdout, _ = run_program(f"import runpy; runpy.run_path({str(program)!r})")
    return {line for line in stdout.splitlines() if line.startswith("SAW")}


def test_no_warning_of_ours(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    theirs = warnings_of("[tf.train.MomentumOptimizer]", theirs)
    ours = warnings_of(
        """[
            contrib_opt.LARSOptimizer,
            lambda *args: contrib_opt.MomentumWOptimizer(1e-4, *args),
        ]""",
        ours,
    )
    assert ours <= theirs

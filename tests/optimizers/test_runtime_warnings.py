"""LARS prints no warning where `tf.compat.v1.train.MomentumOptimizer` prints none."""

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

make = {make}

def gradients(values):
    return [(tf.ones_like(values[0]), values[0]),
            (tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1])), values[1])]

for use_resource in (True, False):
    with tf.Graph().as_default(), tf.Session() as session:
        v = [tf.Variable(tf.ones([3, 2]), use_resource=use_resource) for _ in range(2)]
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
optimizer.minimize(lambda: tf.reduce_sum(v[0] * v[0]))
optimizer.apply_gradients(gradients(v))
tf.function(lambda: [optimizer.apply_gradients(gradients(v)), None][1])()
tf.train.Checkpoint(optimizer=optimizer, v=v[0]).save({path!r})
for line in sorted(set(seen)):
    print("SAW", re.sub("0x[0-9a-f]+", "", line).replace(chr(10), " "))
"""


def warnings_of(make, path):
    stdout, _ = run_program(PROGRAM.format(make=make, path=path))
    return {line for line in stdout.splitlines() if line.startswith("SAW")}


def test_no_warning_of_ours(tmp_path):
    theirs = warnings_of("tf.train.MomentumOptimizer", str(tmp_path / "theirs"))
    ours = warnings_of("contrib_opt.LARSOptimizer", str(tmp_path / "ours"))
    assert ours <= theirs

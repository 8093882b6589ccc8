"""Measures, within one TensorFlow, what bench_speed.py asks for.

    python worker.py session|eager

A request is a line of JSON on stdin, {"do": the name of a function of this file, ...its
arguments}, the answer a line of JSON on stdout: {"is": what it returned} or {"error":
text}. So the workers of several TensorFlows can take turns.
"""

import inspect
import itertools
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf
from libraries import TF1
from models import make_model
from turns import median_ms

_models = {}
_ids = itertools.count()


def version():
    return tf.__version__


def make(**model):
    """Makes a model and runs two steps of it; its id."""
    made = make_model(**model)
    made.step()
    made.step()
    key = next(_ids)
    _models[key] = made
    return key


def step_ms(id, seconds):
    return median_ms(_models[id].step, seconds)


def temporaries(id):
    """The most memory that steps use beyond what they find, in largest variables."""
    before = _memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM begins anew
    for _ in range(3):
        _models[id].step()
    return (_memory("VmHWM") - before) / _models[id].largest


def _memory(field):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return 1024 * int(line.split()[1])


def drop(id):
    _models.pop(id).close()


def build(**model):
    """What a new model takes: {build_ms, ops} in a session, {first_ms} eagerly."""
    made = make_model(**model)
    if model["kind"] == "eager":
        begin = time.perf_counter()
        made.step()
        return {"first_ms": 1000 * (time.perf_counter() - begin)}
    return {"build_ms": made.build_ms, "ops": made.ops}


def scipy(whose, **arguments):
    """Milliseconds of an evaluation beyond those of the loss and its gradient."""
    import bench_scipy

    times = bench_scipy.evaluation_times(**arguments)
    return 1000 * (times[whose] - times["alone"])


def main():
    mode = sys.argv[1]
    answers, sys.stdout = sys.stdout, sys.stderr  # which others may write to
    tf.logging.set_verbosity(tf.logging.ERROR)
    if mode == "eager":
        tf.enable_eager_execution()
    elif not TF1:
        tf.disable_v2_behavior()
    known = {
        name: value
        for name, value in globals().items()
        if inspect.isfunction(value) and value.__module__ == __name__
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"is": known[request.pop("do")](**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()

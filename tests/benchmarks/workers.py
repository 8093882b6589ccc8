"""The processes that measure, one for a TensorFlow and a mode, and their turns."""

import json
import os
import subprocess
import sys

from turns import in_turns

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

OURS, THEIRS, MOMENTUM = "contrib_opt", "TF 1.15", "momentum"


def environment(**more):
    path = [ROOT, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(p for p in path if p)
    return dict(os.environ, PYTHONPATH=path, TF_CPP_MIN_LOG_LEVEL="2", **more)


class Refused(Exception):
    """What a worker could not do."""


class Worker:
    """worker.py in a process of its own; its functions are called by `ask`."""

    def __init__(self, python, mode, **env):
        self._process = subprocess.Popen(
            [python, os.path.join(HERE, "worker.py"), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(**env),
            universal_newlines=True,
        )

    def ask(self, do, **arguments):
        print(json.dumps(dict(arguments, do=do)), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise Refused(f"the process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["is"]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


class Workers:
    """Starts workers as they are needed.

    Args:
      tf115: path of a Python that has TensorFlow 1.15, or None.
    """

    def __init__(self, tf115):
        self.pythons = {OURS: sys.executable, MOMENTUM: sys.executable}
        if tf115:
            self.pythons[THEIRS] = tf115
        self._started = {}

    def get(self, column, mode, **env):
        """The worker of a column of the table; None where there is no such Python."""
        python = self.pythons.get(column)
        if python is None:
            return None
        key = (python, mode, *env.items())
        if key not in self._started:
            self._started[key] = Worker(python, mode, **env)
        return self._started[key]

    def close(self):
        for worker in self._started.values():
            worker.close()
        self._started = {}


LIBRARIES = {OURS: "contrib_opt", THEIRS: "tf.contrib", MOMENTUM: "tf.train"}


def mode_of(kind):
    return "eager" if kind == "eager" else "session"


def of_models(workers, models, measure, rounds, env=(), others=(), **arguments):
    """Measures models by turns.

    Args:
      workers: Workers.
      models: {key: (column, arguments of `models.make_model` but lib)}.
      measure: the function of worker.py that measures one.
      rounds: int.
      env: dict, environment variables of the workers.
      others: {key: a function that measures something else}.
      **arguments: what else `measure` takes.

    Returns:
      The pair (values, errors): {key: a list, a value for each round} and {key: text}.
    """
    made, errors = {}, {}
    for key, (column, model) in models.items():
        worker = workers.get(column, mode_of(model["kind"]), **dict(env))
        if worker is None:
            continue
        try:
            made[key] = worker, worker.ask("make", lib=LIBRARIES[column], **model)
        except Refused as error:
            errors[key] = str(error)

    def measuring(worker, id):
        return lambda: worker.ask(measure, id=id, **arguments)

    measures = {key: measuring(*made[key]) for key in made}
    values = in_turns({**measures, **dict(others)}, rounds)
    for worker, id in made.values():
        worker.ask("drop", id=id)
    return values, errors

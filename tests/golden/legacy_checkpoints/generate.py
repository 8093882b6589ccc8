"""Records how TensorFlow 1.15.5 goes on with what it has saved.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'
    python tests/golden/legacy_checkpoints/generate.py [PROGRAM...]

Each program of tests/legacy_programs/resuming/ runs as it stands to step SAVED_STEP,
by plain python and with the real tf.contrib, and leaves the folder `<program>/` here.
Then it goes on in a copy of that to step LAST_STEP, and prints `<program>.txt`.

Of what the programs leave, these are removed, for they are large and no restore reads
them: the event files (also the folder `eval`), graph.pbtxt and the .meta files.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, os.pardir, os.pardir, "legacy_programs", "resuming")
SAVED_STEP, LAST_STEP = 5, 9
REMOVED = shutil.ignore_patterns("events.*", "eval", "graph.pbtxt", "*.meta")


def train(program, folder, last_step):
    """What the program prints, run in `folder` with its checkpoints in `model`."""
    # From the folder's name the state file has relative paths, and can be moved.
    return subprocess.check_output(
        [
            sys.executable,
            os.path.join(PROGRAMS, program + ".py"),
            "--train_dir=model",
            f"--last_step={last_step}",
        ],
        cwd=folder,
        universal_newlines=True,
    )


def record(program):
    stored = os.path.join(HERE, program)
    shutil.rmtree(stored, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        train(program, folder, SAVED_STEP)
        shutil.copytree(os.path.join(folder, "model"), stored, ignore=REMOVED)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(stored, os.path.join(folder, "model"))
        output = train(program, folder, LAST_STEP)
    with open(stored + ".txt", "w") as file:
        file.write(output)


if __name__ == "__main__":
    every = sorted(f[:-3] for f in os.listdir(PROGRAMS) if f.endswith(".py"))
    for name in sys.argv[1:] or every:
        record(name)
        print(name)

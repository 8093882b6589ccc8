"""Records what the programs of tests/legacy_programs/ print in TensorFlow 1.15.5.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19' scipy==1.7.3
    python tests/golden/legacy_programs/generate.py [PROGRAM...]

`<program>.txt` is the output of a program, run as it stands by plain python. Where
DIRECTORY_FLAG names a flag, the program gets an empty folder by it.
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, os.pardir, os.pardir, "legacy_programs")
DIRECTORY_FLAG = {"softmax_lars": "--train_dir", "estimator_hooks": "--model_dir"}


def record(program):
    command = [sys.executable, os.path.join(PROGRAMS, program + ".py")]
    with tempfile.TemporaryDirectory() as folder:
        if program in DIRECTORY_FLAG:
            command.append(DIRECTORY_FLAG[program] + "=" + folder)
        output = subprocess.check_output(command, universal_newlines=True)
    with open(os.path.join(HERE, program + ".txt"), "w") as file:
        file.write(output)


if __name__ == "__main__":
    every = sorted(f[:-3] for f in os.listdir(PROGRAMS) if f.endswith(".py"))
    for name in sys.argv[1:] or every:
        record(name)
        print(name)

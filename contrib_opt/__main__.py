"""`python -m contrib_opt`: runs old programs, and says what else they need."""

import sys

import contrib_opt

USAGE = """usage: python -m contrib_opt COMMAND ...

commands:
  run SCRIPT [ARGS...]      run a program of TensorFlow 1 as it stands
  run -m MODULE [ARGS...]   the same for a module
  scan PATH...              list what files use of tf.contrib, and where it is today

`python -m contrib_opt COMMAND --help` says more.
"""


def main(arguments):
    """Runs the command that `arguments` begin with; returns the exit status."""
    command, rest = (arguments or [""])[0], arguments[1:]
    if command == "run":
        from contrib_opt.legacy import run

        return run.main(rest)
    if command == "scan":
        from contrib_opt.legacy import scan

        return scan.main(rest)
    if command in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if command == "--version":
        print("contrib_opt", contrib_opt.__version__)
        return 0
    problem = f"no such command: {command}" if command else "which command?"
    sys.stderr.write(f"{USAGE}\npython -m contrib_opt: {problem}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

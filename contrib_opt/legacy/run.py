"""`python -m contrib_opt run`: runs a program of TensorFlow 1 as it stands.

    python -m contrib_opt run train.py --learning_rate=0.1
    python -m contrib_opt run -m research.train --learning_rate=0.1

What the program and its own modules import as `tensorflow` is described in
contrib_opt/legacy/tensorflow.py, and which modules are its own in own_modules.py.
The behaviour of TensorFlow 2 is off, by `tf.compat.v1.disable_v2_behavior()`; that
holds for the whole process. All else (arguments, paths, tracebacks, exit status and
Ctrl-C) is as with plain python. On TensorFlow 1.15 the program just runs.

Processes that the program starts anew are plain python again: other commands, and
multiprocessing with the start methods "spawn" and "forkserver".
"""

import argparse
import os

import tensorflow as tf

from contrib_opt.legacy import own_modules, program


def main(arguments):
    """Runs what the command line says, as the program `__main__`.

    Args:
      arguments: what follows `python -m contrib_opt run`.

    Returns:
      The exit status, where the program ends by reaching its end, or is not found.

    Raises:
      Whatever the program raises, SystemExit included.
    """
    options = _parser().parse_args(arguments)
    if options.module:
        name, *rest = options.module
    elif options.script:
        name, *rest = options.script
    else:
        _parser().error("which program? Give a SCRIPT, or -m MODULE")
    is_module = bool(options.module)
    if not tf.__version__.startswith("1."):
        tf1 = options.v1 + [name.partition(".")[0]] * is_module
        _prepare(own_modules.Ownership(tf1=tf1, tf2=options.v2))
    found = program.find_module if is_module else program.find_script
    try:
        loaded = found(name)
    except program.NotFoundError as error:
        _parser().exit(error.status, f"python -m contrib_opt run: {error}\n")
    if is_module and name == "pytest":
        # To rewrite asserts it would load the tests in a way of its own.
        options = os.environ.get("PYTEST_ADDOPTS", "")
        os.environ["PYTEST_ADDOPTS"] = options + " --assert=plain"
    loaded.run(rest)
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m contrib_opt run",
        usage="%(prog)s [--v1 PACKAGE] [--v2 PACKAGE] (SCRIPT | -m MODULE) [ARGS...]",
        description="Runs a program of TensorFlow 1 as it stands. The program and its "
        "own modules, which are all those outside of site-packages, get the TensorFlow "
        "1 API from `import tensorflow`; installed packages get what is installed.",
    )
    parser.add_argument(
        "--v1",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="an installed package that is written for TensorFlow 1 too (repeatable)",
    )
    parser.add_argument(
        "--v2",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="a module of the program that is written for TensorFlow 2 (repeatable)",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does; the rest are its arguments",
    )
    parser.add_argument(
        "script",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="a file, or a folder with a __main__.py, and its arguments",
    )
    return parser


def _prepare(ownership):
    from contrib_opt.legacy.installing import install

    install()
    # It warns that variables will be resource variables one day.
    verbosity = tf.compat.v1.logging.get_verbosity()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.disable_v2_behavior()
    tf.compat.v1.logging.set_verbosity(verbosity)
    own_modules.install(ownership)

"""`python -m contrib_opt scan`: what a program needs of TensorFlow that is gone.

Reads programs without running them, and says of every use of `tf.contrib`,
`tf.estimator` and `tf.keras.mixed_precision.experimental` where the name lives now.
"""

import argparse
import collections
import importlib.util
import json
import re
import sys

from contrib_opt.legacy import aliases, names, sources
from contrib_opt.legacy.contrib_modules import GONE, OTHER_PACKAGE, PROVIDED

_DESCRIPTION = """\
Says which names of tf.contrib, tf.estimator and
tf.keras.mixed_precision.experimental programs use, and where each lives now.
Reads Python 3, Python 2 and notebooks; runs nothing.
"""
_EPILOG = """\
exit status:
  0  contrib_opt provides every name that is used
  1  it does not provide some; with --rewrite or --diff: some are left to edit
  2  a file could not be read or edited, or the command line is wrong
"""

Finding = collections.namedtuple("Finding", "where place name successor answers")
Finding.__doc__ = """A use of a name.

where: the place, as a report says it. place: the same, as a dict.
name: such as 'tf.contrib.opt.LARSOptimizer'.
successor: a `contrib_modules.Successor`.
answers: whether the name answers under `python -m contrib_opt run`.
"""


def main(argv=None):
    """Runs the command.

    Args:
      argv: its arguments; those of the process by default.

    Returns:
      The exit status: 0 if contrib_opt provides every name, 1 if not, 2 if a file
      could not be read.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        paths = sources.find(options.paths)
    except FileNotFoundError as error:
        parser.error(str(error))
    programs, errors = _read(paths)
    if options.rewrite or options.diff:
        if options.json:
            parser.error("--json goes with neither --rewrite nor --diff")
        if not importlib.util.find_spec("libcst"):
            parser.error(
                "--rewrite and --diff need libcst: "
                "pip install 'contrib_opt[rewrite]' brings it"
            )
        programs, unwritten = _rewrite(programs, options.rewrite, options.diff)
        errors += unwritten
        # What is left is all that needs a hand.
        findings = [_left(found) for source in programs for found in scan(source)]
        for found in findings:
            print(describe(found), file=sys.stderr)
        _print_errors(errors)
        return 2 if errors else int(bool(findings))
    findings = [finding for source in programs for finding in scan(source)]
    if options.json:
        _print_json(programs, findings, errors)
    else:
        _print_text(programs, findings)
        _print_errors(errors)
    return 2 if errors else exit_status(findings)


def scan(source):
    """The uses in a program.

    Args:
      source: what `sources.read` returned for it.

    Returns:
      A list of Findings, in the order of the lines.
    """
    return [finding(source, use) for use in aliases.find(source.tree).uses]


def finding(source, use):
    """The Finding of one of the uses that `aliases.find` found in a program."""
    return Finding(
        source.where(use.line),
        source.place(use.line),
        names.short(use.path),
        names.successor(use.path),
        names.answers(use.path),
    )


def exit_status(findings):
    """0 if contrib_opt provides every name that is used, else 1."""
    return int(any(found.successor.status != PROVIDED for found in findings))


def describe(found):
    """A Finding as a line of the report."""
    status, where, note = found.successor
    answer = " ".join(filter(None, [where, where and note and f"({note})" or note]))
    return f"{found.where}: {found.name}: {status}" + (answer and ": " + answer)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m contrib_opt scan",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a notebook or a folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="make the provided names imports of contrib_opt, in the files",
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="print what --rewrite changes; alone, nothing is written",
    )
    return parser


def _read(paths):
    programs, errors = [], []
    for path in paths:
        try:
            found = sources.read(path)
        except sources.Unreadable as error:
            errors.append(f"{path}: not read: {error}")
            continue
        programs += found
        for source in found:
            errors += getattr(source, "unreadable", [])
    return programs, errors


def _rewrite(programs, write, diff):
    """The programs as they are then, and lines about those that cannot be edited."""
    # Only now, since libcst is an extra.
    from contrib_opt.legacy import rewrite

    after, errors = [], []
    for program in programs:
        try:
            content = rewrite.rewritten(program)
            if diff:
                sys.stdout.write(rewrite.diff(program, content))
            if write and content != program.content:
                with open(program.path, "wb") as file:
                    file.write(content)
                print(f"{program.path}: rewritten", file=sys.stderr)
        except sources.Unreadable as error:
            errors.append(f"{program.path}: not rewritten: {error}")
        except OSError as error:
            errors.append(f"{program.path}: not rewritten: {error.strerror}")
        else:
            program = type(program)(program.path, content)
        after.append(program)
    return after, errors


def _left(found):
    """The Finding of a use that a rewriting left, with what to do about it."""
    if found.successor.status != PROVIDED:
        return found
    note = "not rewritten; edit it by hand"
    if found.name == names.short(names.CONTRIB):
        note = "not rewritten; take it out when nothing needs it"
    return found._replace(successor=found.successor._replace(note=note))


def _print_text(programs, findings):
    for found in findings:
        print(describe(found))
    statuses = collections.Counter(found.successor.status for found in findings)
    if findings:
        print()
    print(
        f"{_count(programs, 'program')}, {_count(findings, 'use')}: "
        f"{statuses[PROVIDED]} provided, "
        f"{statuses[OTHER_PACKAGE]} provided by another package, "
        f"{statuses[GONE]} gone"
    )
    left = [found.name for found in findings if not found.answers]
    if findings and not left:
        print("python -m contrib_opt run: every name answers")
    elif left:
        print(
            "python -m contrib_opt run: these do not answer: "
            + ", ".join(sorted(set(left)))
        )
    for command in sorted(set(_installs(findings))):
        print("needs: " + command)


def _installs(findings):
    for found in findings:
        if found.successor.status == OTHER_PACKAGE and not _is_installed(found):
            yield from re.findall(r"pip install \S+", found.successor.note)


def _is_installed(found):
    package = found.successor.where.partition(".")[0]
    if package == "tf" and "tf_keras" in found.successor.note:
        package = "tf_keras"
    return bool(importlib.util.find_spec(package))


def _print_json(programs, findings, errors):
    statuses = collections.Counter(found.successor.status for found in findings)
    report = {
        "uses": [
            dict(
                found.place,
                name=found.name,
                answers=found.answers,
                **found.successor._asdict(),
            )
            for found in findings
        ],
        "summary": {
            "programs": len(programs),
            "uses": len(findings),
            **{status: statuses[status] for status in (PROVIDED, OTHER_PACKAGE, GONE)},
        },
        "errors": errors,
    }
    print(json.dumps(report, indent=2))


def _print_errors(errors):
    for error in errors:
        print(error, file=sys.stderr)


def _count(things, name):
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")

"""Compares the variables that a restore wants with those that a checkpoint has.

Names of one shape and dtype are paired as renamed where no other pair is as likely:

1. names that differ in case, in numbers at the end of their parts ('dense_1/kernel',
   'dense/kernel') or by what Keras and slim call the same ('weights', 'kernel');
2. names that end alike ('tower/dense/kernel', 'dense/kernel'), the longest end first;
3. what is below names that are the same or paired already ('dense/gamma' and
   'dense/scale', or slots of another optimizer: 'w/LARSOptimizer' and 'w/Momentum').

Several that are alike are paired only if there are equally many on both sides and the
numbers at the end of their parts tell them apart. Loads nothing.
"""

import collections
import re

Variable = collections.namedtuple("Variable", "shape dtype")
Variable.__doc__ = """What is compared of a variable.

shape: a tuple, or None where it is not known.
dtype: its name.
"""

Comparison = collections.namedtuple(
    "Comparison", "fitting renamed missing unused mismatched"
)
Comparison.__doc__ = """Names that are wanted, and names in a checkpoint.

fitting: those that are in both with one shape and dtype.
renamed: a dict from wanted names to what they seem to be in the checkpoint.
missing: the other ones that the checkpoint lacks.
unused: the other ones in the checkpoint that nobody wants.
mismatched: those that are in both, with another shape or dtype.
"""

_SYNONYMS = {"weights": "kernel", "w": "kernel", "biases": "bias", "b": "bias"}


def compare(wanted, saved):
    """Compares two dicts from name to Variable.

    Args:
      wanted: what a restore wants.
      saved: what is in the checkpoint.

    Returns:
      A Comparison, its lists sorted.
    """
    both = sorted(name for name in wanted if name in saved)
    fitting = [name for name in both if _fits(wanted[name], saved[name])]
    renamed = _renamed(wanted, saved)
    return Comparison(
        fitting=fitting,
        renamed=renamed,
        missing=sorted(set(wanted) - set(both) - set(renamed)),
        unused=sorted(set(saved) - set(both) - set(renamed.values())),
        mismatched=sorted(set(both) - set(fitting)),
    )


def common_change(renamed):
    """The change at the beginning that explains all pairs, or None.

    Args:
      renamed: a dict as in Comparison.

    Returns:
      What the wanted names begin with, and what the saved ones have in its place, each
      '' or ending with '/'.
    """
    changes = set()
    for name, old in renamed.items():
        same = 0
        name, old = name.split("/"), old.split("/")
        while same < min(len(name), len(old)) and name[-1 - same] == old[-1 - same]:
            same += 1
        beginnings = (name[: len(name) - same], old[: len(old) - same])
        changes.add(tuple("".join(part + "/" for part in b) for b in beginnings))
        if not same or len(changes) > 1:
            return None
    return changes.pop() if changes else None


def are_of_other_slots(renamed, wanted):
    """Whether slots are paired with slots of another optimizer.

    Args:
      renamed: a dict as in Comparison.
      wanted: the names that a restore wants.
    """
    return any(
        _above(name) in wanted and _plain(name)[-1] != _plain(old)[-1]
        for name, old in renamed.items()
    )


def _fits(variable, saved):
    return variable.shape in (None, saved.shape) and variable.dtype == saved.dtype


def _renamed(wanted, saved):
    missing = {name: wanted[name] for name in wanted if name not in saved}
    unused = {name: saved[name] for name in saved if name not in wanted}
    renamed = {}

    def pair_up(key_of_missing, key_of_unused):
        groups = collections.defaultdict(lambda: ([], []))
        left = set(unused).difference(renamed.values())
        for side, names, variables, key_of in (
            (0, set(missing).difference(renamed), missing, key_of_missing),
            (1, left, unused, key_of_unused),
        ):
            for name in names:
                key = key_of(name)
                if key:
                    groups[key, variables[name]][side].append(name)
        for ours, theirs in groups.values():
            if len(ours) == len(theirs) and _are_ordered(ours) and _are_ordered(theirs):
                pairs = zip(sorted(ours, key=_numbers), sorted(theirs, key=_numbers))
                renamed.update(pair for pair in pairs if not _count_apart(*pair))

    pair_up(_plain, _plain)
    depth = max([name.count("/") + 1 for name in missing], default=0)
    for length in range(depth, 0, -1):

        def end(name, length=length):
            parts = _plain(name)
            # That two slots are of one kind says nothing of whose they are.
            is_slot = _above(name) in wanted or _above(name) in saved
            return parts[-length:] if len(parts) >= length > is_slot else None

        pair_up(end, end)
    pair_up(lambda name: renamed.get(_above(name), _above(name)), _above)
    return renamed


def _above(name):
    return name.rpartition("/")[0]


def _plain(name):
    """The parts of a name without what often changes in them."""
    parts = [re.sub(r"_\d+$", "", part).lower() for part in name.split("/")]
    return tuple(_SYNONYMS.get(part, part) for part in parts)


def _numbers(name):
    """The numbers at the end of the parts, from the last part to the first."""
    numbers = [re.search(r"_(\d+)$", part) for part in name.split("/")]
    return [int(number.group(1)) if number else 0 for number in reversed(numbers)]


def _are_ordered(names):
    return len({tuple(_numbers(name)) for name in names}) == len(names)


def _count_apart(name, other):
    """Whether they are 'conv1' and 'conv2', say: two things and not one renamed."""
    return any(
        part != of_other and re.sub(r"\d+", "#", part) == re.sub(r"\d+", "#", of_other)
        for part, of_other in zip(reversed(_plain(name)), reversed(_plain(other)))
    )

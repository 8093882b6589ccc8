"""The text of an explanation."""

import os

from contrib_opt.legacy.checkpoints import files, names

_SHOWN = 10
_LONGEST_LINE = 2000
_BY_HAND = (
    "\nA tf.train.Saver of a dict, from names in the checkpoint to variables, restores "
    "what was renamed."
)


def of_damage(path, problem):
    """Says what is wrong with the checkpoint `path`, and what there is instead."""
    folder = os.path.dirname(path)
    other = files.latest_complete(folder, besides=path)
    if other is None:
        return f"{problem}\nThere is no complete checkpoint beside it."
    return (
        f"{problem}\nThe latest complete checkpoint there is {other}. To have "
        "tf.train.latest_checkpoint find it:\n"
        f"    tf.train.update_checkpoint_state({folder or '.'!r}, {other!r})"
    )


class Findings:
    """How what a restore wants differs from what a checkpoint has."""

    def __init__(self, path, wanted, saved):
        """Compares them.

        Args:
          path: the checkpoint.
          wanted: a dict from name to names.Variable.
          saved: the same, of what is in the checkpoint.
        """
        self._path, self._wanted, self._saved = path, wanted, saved
        self._found = names.compare(wanted, saved)

    @property
    def fits(self):
        """Whether the checkpoint has all that is wanted."""
        return len(self._found.fitting) == len(self._wanted)

    def text(self):
        """Lists what differs."""
        found = self._found
        lines = [
            f"Of {len(self._wanted)} variables to restore, the checkpoint "
            f"{self._path} has {len(found.fitting)} as they are."
        ]

        def add(title, items):
            if items:
                lines.append(title)
                lines.extend("  " + item for item in items[:_SHOWN])
                if len(items) > _SHOWN:
                    lines.append(f"  and {len(items) - _SHOWN} more")

        add(
            "These look renamed (in the graph <- in the checkpoint):",
            [f"{name} <- {old}" for name, old in sorted(found.renamed.items())],
        )
        if names.are_of_other_slots(found.renamed, self._wanted):
            lines.append(
                "Slots of another optimizer are among them. Leave them out unless they "
                "mean the same."
            )
        add(
            "These have another shape or type:",
            [
                f"{name}: {_described(self._wanted[name])}, "
                f"in the checkpoint {_described(self._saved[name])}"
                for name in found.mismatched
            ],
        )
        add(
            "The checkpoint lacks these:",
            [f"{name}: {_described(self._wanted[name])}" for name in found.missing],
        )
        add(
            "Nobody wants these of the checkpoint:",
            [f"{name}: {_described(self._saved[name])}" for name in found.unused],
        )
        return "\n".join(lines)

    def code_for_saver(self, targets, every):
        """Code that restores what can be restored, from a new line on, or ''.

        Args:
          targets: as restores.of_saver returns them.
          every: the names of all global variables of the graph, a set.
        """
        found = self._found
        if not found.fitting and not found.renamed:
            return (
                "\nNothing in it fits: this looks like the checkpoint of another model."
            )
        # A Saver of a dict, or of parts of variables, is not made anew so easily.
        is_plain = all(target == [key] for key, target in targets.items())
        if not is_plain or self._has_other_types():
            return _BY_HAND if found.renamed else ""
        source = "tf.global_variables()" if every == set(self._wanted) else "variables"
        lines = [f"old = lambda v: {_old_name(found)}"]
        if len(lines[0]) > _LONGEST_LINE:
            return _BY_HAND
        if found.missing or found.mismatched:
            how = (
                "To start from what fits, in a new folder for checkpoints and before "
                "tf.global_variables_initializer()"
            )
            lines += [
                f"path = {self._path!r}",
                "saved = tf.train.load_checkpoint(path).get_variable_to_shape_map()",
                "fits = lambda v: saved.get(old(v)) == v.shape.as_list()",
                f"assignment_map = {{old(v): v for v in {source} if fits(v)}}",
                "tf.train.init_from_checkpoint(path, assignment_map)",
            ]
        else:
            how = "To restore them"
            lines.append(f"saver = tf.train.Saver({{old(v): v for v in {source}}})")
            lines.append(
                "scaffold = tf.train.Scaffold(saver=saver)  # where one is used"
            )
        if source == "variables":
            how += " (`variables`: those of this Saver)"
        return "\n".join(["", how + ":", *("    " + line for line in lines)])

    def code_for_init(self, targets):
        """The same for `tf.train.init_from_checkpoint`.

        Args:
          targets: as restores.of_assignment_map returns them.
        """
        if not self._found.renamed:
            return ""
        pairs = [(old, targets[key]) for key, old in self._found.renamed.items()]
        pairs += [(key, targets[key]) for key in self._found.fitting]
        return (
            "\nTo take what fits:\n"
            f"    tf.train.init_from_checkpoint({self._path!r}, {dict(sorted(pairs))})"
        )

    def _has_other_types(self):
        return any(
            self._wanted[name].dtype != self._saved[name].dtype
            for name in self._found.mismatched
        )


def _described(variable):
    shape = "of unknown shape" if variable.shape is None else list(variable.shape)
    return f"{variable.dtype} {shape}"


def _old_name(found):
    """Python code of the name that a variable `v` has in the checkpoint."""
    if not found.renamed:
        return "v.op.name"
    change = names.common_change(found.renamed)
    new, old = change or ("", "")
    kept = [name for name in found.fitting if name.startswith(new)]
    if not change or len(found.renamed) == 1 or len(kept) > _SHOWN:
        return f"{dict(sorted(found.renamed.items()))}.get(v.op.name, v.op.name)"
    conditions = []
    if new or not kept:
        conditions.append(f"v.op.name.startswith({new!r})")
    if kept:
        conditions.append(f"v.op.name not in {kept}")
    changed = f"v.op.name[{len(new)}:]" if new else "v.op.name"
    changed = f"{old!r} + {changed}" if old else changed
    return f"{changed} if {' and '.join(conditions)} else v.op.name"

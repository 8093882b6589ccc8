"""The sections of bench_speed.py, each a table or two."""

import os
import shutil
import subprocess
import tempfile

import shapes
from memory_floor import MemoryFloor
from optimizer_table import IN_GRAPHS, LAZY, NOT_LAZY, OPTIMIZERS
from table import Table
from turns import in_turns, median_ms
from workers import LIBRARIES, MOMENTUM, OURS, ROOT, THEIRS, Refused, mode_of, of_models

KINDS = ("resource", "ref", "eager")
FLOOR = "floor"
OF_THEIRS = "of TF 1.15"


def _lars(column, kind, of_shapes):
    optimizer = "Momentum" if column == MOMENTUM else "LARS"
    return column, {"kind": kind, "optimizer": optimizer, "shapes": of_shapes}


def _of_lars(bench, kind, of_shapes, floor):
    """As `of_models`: a step of LARS, of momentum, and the floor."""
    models = {c: _lars(c, kind, of_shapes) for c in (OURS, THEIRS, MOMENTUM)}
    others = {FLOOR: lambda: median_ms(floor.step, bench.seconds)} if floor else {}
    return of_models(
        bench.workers,
        models,
        "step_ms",
        bench.rounds,
        others=others,
        seconds=bench.seconds,
    )


def lars(bench):
    """A step of LARS: of ResNet-50, and of as many tiny variables."""
    of_shapes = {"ResNet-50": shapes.RESNET50, "161 tiny variables": shapes.TINY}
    if bench.quick:
        of_shapes["ResNet-50"] = shapes.scaled_down(shapes.RESNET50, 8)
    floor = MemoryFloor(of_shapes["ResNet-50"])
    for kind in KINDS:
        limits = {OF_THEIRS: 0.6}
        if kind == "eager":
            limits = {OF_THEIRS: 0.25, "of momentum": 1.2}
        table = Table(
            f"A step of LARS, {kind}, ms (the floor is in {floor.how})",
            [OURS, THEIRS, MOMENTUM, FLOOR],
            {
                OF_THEIRS: (OURS, THEIRS),
                "of momentum": (OURS, MOMENTUM),
                "of floor": (OURS, FLOOR),
            },
            limits,
        )
        for name, those in of_shapes.items():
            if bench.wants(f"{kind}, {name}"):
                here = floor if name == "ResNet-50" else None
                table.row(name, *_of_lars(bench, kind, those, here))
        table.close()


def building(bench):
    """What LARS takes before the second step; the shapes do not matter for it."""
    columns = [OURS, THEIRS, MOMENTUM]
    for kind in KINDS:
        table = Table(
            f"LARS of 161 tiny variables before the second step, {kind}",
            columns,
            {OF_THEIRS: (OURS, THEIRS), "of momentum": (OURS, MOMENTUM)},
            {OURS: 3000} if kind == "eager" else {OF_THEIRS: 0.5},
            digits=0,
        )
        measures, errors = {}, {}
        for column in columns:
            worker = bench.workers.get(column, mode_of(kind))
            if worker is not None:
                measures[column] = _building(worker, *_lars(column, kind, shapes.TINY))
        try:
            for measure in measures.values():
                measure()  # What TensorFlow loads when it is first used.
            found = in_turns(measures, bench.rounds)
        except Refused as error:
            found, errors = {}, {"all": str(error)}
        names = {"first_ms": "first step, ms"}
        if kind != "eager":
            names = {"ops": "operations", "build_ms": "build, ms"}
        for key, name in names.items():
            if bench.wants(f"{kind}, {name}"):
                values = {c: [v[key] for v in found[c]] for c in found}
                table.row(name, values, errors)
        table.close()


def _building(worker, column, model):
    return lambda: worker.ask("build", lib=LIBRARIES[column], **model)


def _that_run(kind, names):
    return [name for name in names if kind != "eager" or name not in IN_GRAPHS]


def optimizers(bench):
    """A step of each other optimizer, on one set of shapes."""
    those = shapes.scaled_down(shapes.MIXED, 4) if bench.quick else shapes.MIXED
    for kind in KINDS:
        limit = 0.5 if kind == "eager" else 1.0
        table = Table(
            f"A step on {len(those)} variables of {_millions(those)}, {kind}, ms",
            [OURS, THEIRS],
            {OF_THEIRS: (OURS, THEIRS)},
            {OF_THEIRS: limit},
        )
        for name in _that_run(kind, OPTIMIZERS):
            if name in ("Momentum", "LARS") or not bench.wants(f"{kind}, {name}"):
                continue
            model = {"kind": kind, "optimizer": name, "shapes": those}
            models = {column: (column, model) for column in (OURS, THEIRS)}
            table.row(
                name,
                *of_models(
                    bench.workers,
                    models,
                    "step_ms",
                    bench.rounds,
                    seconds=bench.seconds,
                ),
            )
        table.close()


def _millions(of_shapes):
    count = 0
    for shape in of_shapes:
        size = 1
        for dimension in shape:
            size *= dimension
        count += size
    return f"{count / 1e6:.1f} million elements"


def sparse(bench):
    """100 rows of a small and of a large table."""
    sizes = {"10^4": 10**4, "10^6": 10**6}
    keys = [(column, size) for column in (OURS, THEIRS) for size in sizes]
    headings = {key: f"{key[0]}, {key[1]} rows" for key in keys}
    ours, theirs = headings[OURS, "10^6"], headings[THEIRS, "10^6"]
    ratios = {
        "growth": (ours, headings[OURS, "10^4"]),
        OF_THEIRS: (ours, theirs),
    }
    for names, title in ((LAZY, ""), (NOT_LAZY, ", by rules that decay all of it")):
        for kind in KINDS:
            limits = {OF_THEIRS: 0.5 if kind == "eager" else 1.0}
            if names is LAZY:
                limits["growth"] = 1.3
            table = Table(
                f"A step on 100 rows of a table{title}, {kind}, ms",
                list(headings.values()),
                ratios,
                limits,
                digits=3,
            )
            for name in _that_run(kind, names):
                if not bench.wants(f"{kind}, {name}"):
                    continue
                models = {
                    headings[c, s]: (
                        c,
                        {"kind": kind, "optimizer": name, "rows": sizes[s]},
                    )
                    for c, s in keys
                }
                table.row(
                    name,
                    *of_models(
                        bench.workers,
                        models,
                        "step_ms",
                        bench.rounds,
                        seconds=bench.seconds / 2,
                    ),
                )
            table.close()


def memory(bench):
    """The most memory of a step, beyond variables, slots and gradients."""
    those = {"ResNet-50": shapes.RESNET50, "a large variable": shapes.ONE_LARGE}
    table = Table(
        "Memory of a step beyond variables, slots and gradients, in largest variables",
        [OURS, THEIRS],
        at_most={OURS: 2},
        digits=1,
    )
    # What is freed then goes back to the system at once, and does not count: glibc
    # keeps some of it, oneDNN's allocator all.
    env = {"MALLOC_MMAP_THRESHOLD_": "65536", "TF_ENABLE_ONEDNN_OPTS": "0"}
    for kind in KINDS:
        for name in _that_run(kind, OPTIMIZERS):
            of_shapes = ["a large variable"]
            if name in ("LARS", "Momentum"):
                of_shapes = list(those)
            for shape in of_shapes:
                row = f"{kind}, {name}, {shape}"
                if not bench.wants(row):
                    continue
                model = {"kind": kind, "optimizer": name, "shapes": those[shape]}
                models = {column: (column, model) for column in (OURS, THEIRS)}
                table.row(
                    row, *of_models(bench.workers, models, "temporaries", 1, env=env)
                )
    table.close()


def scipy(bench):
    """ScipyOptimizerInterface."""
    table = Table(
        "An evaluation for SciPy beyond the loss and its gradient, ms",
        [OURS, THEIRS],
        {OF_THEIRS: (OURS, THEIRS)},
        {OF_THEIRS: 0.5},
        digits=3,
    )
    for feed in (False, True):
        for count in (1, 18) if bench.quick else (1, 6, 18, 161):
            row = "{} variables{}".format(count, ", a feed" if feed else "")
            if not bench.wants(row):
                continue
            # Variables of the kind that a program of 1.15 has.
            arguments = {"count": count, "resource": False, "feed": feed}
            arguments.update(rounds=1, repeats=20 if bench.quick else 60)
            measures = {
                column: _scipy(bench.workers.get(column, "session"), whose, arguments)
                for column, whose in ((OURS, "ours"), (THEIRS, "theirs"))
                if column in bench.workers.pythons
            }
            try:
                table.row(row, in_turns(measures, bench.rounds))
            except Refused as error:
                table.row(row, {}, {"all": str(error)})
    table.close()


def _scipy(worker, whose, arguments):
    return lambda: worker.ask("scipy", whose=whose, **arguments)


IMPORT = """
import time
begin = time.process_time()
import tensorflow
middle = time.process_time()
import contrib_opt
print(middle - begin, time.process_time() - middle)
"""


def importing(bench):
    """What `import contrib_opt` adds to `import tensorflow`."""
    added = "then contrib_opt"
    table = Table(
        "Import, ms of a processor", ["tensorflow", added], (), {added: 50}, 0
    )
    for column, python in bench.workers.pythons.items():
        if column == MOMENTUM or not bench.wants(column):
            continue
        found = {"tensorflow": [], added: []}
        with tempfile.TemporaryDirectory() as folder:
            # Compiled, as pip leaves it.
            package = os.path.join(folder, "contrib_opt")
            shutil.copytree(os.path.join(ROOT, "contrib_opt"), package)
            subprocess.check_call([python, "-m", "compileall", "-q", package])
            env = dict(os.environ, PYTHONPATH=folder, TF_CPP_MIN_LOG_LEVEL="2")
            for _ in range(bench.rounds):
                times = subprocess.check_output(
                    [python, "-c", IMPORT],
                    cwd=folder,
                    env=env,
                    stderr=subprocess.DEVNULL,
                )
                for name, seconds in zip(found, times.split()):
                    found[name].append(1000 * float(seconds))
        version = "TensorFlow 1.15" if column == THEIRS else "this TensorFlow"
        table.row(version, found)
    table.close()


def sweep(bench):
    """How a step of LARS grows with the elements, and with the variables."""
    exponents = range(4, 7 if bench.quick else 9)
    counts = (1, 10, 100) if bench.quick else (1, 10, 100, 1000)
    columns = [OURS, THEIRS, MOMENTUM]
    axes = {
        "elements, in 16 variables": [
            (10**e, shapes.equal(10**e, 16)) for e in exponents
        ],
        "variables, of 10^6 elements": [(n, shapes.equal(10**6, n)) for n in counts],
    }
    found = {}
    for kind in ("resource", "eager"):
        table = Table(
            f"A step of LARS as it grows, {kind}, ms",
            columns,
            {OF_THEIRS: (OURS, THEIRS), "of momentum": (OURS, MOMENTUM)},
            digits=3,
        )
        for axis, points in axes.items():
            for x, those in points:
                row = f"{x:,} {axis}"
                if not bench.wants(f"{kind}, {row}"):
                    continue
                values, errors = _of_lars(bench, kind, those, None)
                table.row(row, values, errors)
                for column, times in values.items():
                    line = found.setdefault((axis, kind), {}).setdefault(column, [])
                    line.append((x, sorted(times)[len(times) // 2]))
        table.close()
    if bench.plot and found:
        from plot import draw

        draw(found, bench.plot)
        print(f"\nDrawn into {bench.plot}.")


SECTIONS = {
    "lars": lars,
    "building": building,
    "optimizers": optimizers,
    "sparse": sparse,
    "memory": memory,
    "scipy": scipy,
    "import": importing,
    "sweep": sweep,
}

"""The speed of contrib_opt beside that of TensorFlow 1.15 and of plain momentum.

    python tests/benchmarks/bench_speed.py --tf115 PYTHON3.7

prints tables in Markdown. Columns of a row are measured by turns, and are medians;
ratios are the medians of the ratios within the turns. Without --tf115, the path of a
Python that has TensorFlow 1.15, its columns stay empty. The gradients are given, so
that a step is the update and nothing else.
"""

import argparse
import os
import platform
import shutil

import numpy as np
import sections
from workers import OURS, THEIRS, Refused, Workers


class Bench:
    """What the sections get: the workers, how long to measure, which rows."""

    def __init__(self, arguments):
        self.workers = Workers(arguments.tf115)
        self.quick = arguments.quick
        self.rounds = 2 if self.quick else arguments.rounds
        self.seconds = 0.02 if self.quick else 0.1
        self.plot = arguments.plot
        self._match = arguments.match.lower()
        self.measured = False  # Whether any row was wanted.

    def wants(self, row):
        wanted = self._match in row.lower()
        self.measured |= wanted
        return wanted


def machine():
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            names = [line for line in file if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{os.cpu_count()} cores, {model}, {platform.system()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf115", metavar="PYTHON", help="has TensorFlow 1.15")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="SECTION",
        choices=sections.SECTIONS,
        default=list(sections.SECTIONS),
        help="of " + ", ".join(sections.SECTIONS),
    )
    parser.add_argument("--match", default="", metavar="TEXT", help="rows with TEXT")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each column")
    parser.add_argument("--plot", metavar="PNG", help="draw the section sweep")
    parser.add_argument("--quick", action="store_true", help="small and rough")
    arguments = parser.parse_args()
    if arguments.tf115 and not shutil.which(arguments.tf115):
        parser.error(f"--tf115: there is no program {arguments.tf115}")
    if arguments.plot and "sweep" not in arguments.only:
        parser.error("--plot draws what the section sweep measures: add it to --only")
    folder = os.path.dirname(os.path.abspath(arguments.plot or ""))
    if not os.path.isdir(folder):
        parser.error(f"--plot: there is no folder {folder}")
    bench = Bench(arguments)
    print(machine())
    for column in (OURS, THEIRS):
        worker = bench.workers.get(column, "session")
        if worker is None:
            continue
        try:
            version = worker.ask("version")
            print(f"{column}: TensorFlow {version}")
            if column == THEIRS and not version.startswith("1.15"):
                parser.error(f"{arguments.tf115} has no TensorFlow 1.15")
        except Refused as error:
            parser.error(f"{bench.workers.pythons[column]}: {error}")
    print(f"NumPy {np.__version__}")
    try:
        for name in arguments.only:
            sections.SECTIONS[name](bench)
        if not bench.measured:
            parser.error(f"no row of {', '.join(arguments.only)} has {arguments.match}")
    finally:
        bench.workers.close()


if __name__ == "__main__":
    main()

"""Measuring by turns, so that a change of the machine's load strikes all alike."""

import statistics
import time


def in_turns(measures, rounds):
    """{name: what the function measures[name] returned, a list of `rounds`}.

    Every round calls each function once, and begins with another one.
    """
    found = {name: [] for name in measures}
    names = list(measures)
    for number in range(rounds if names else 0):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(measures[name]())
    return found


def ratio(numerators, denominators):
    """The median of the ratios within the rounds."""
    pairs = zip(numerators, denominators)
    return statistics.median(a / b if b else float("inf") for a, b in pairs)


def median_ms(step, seconds):
    """The median time of `step()`, of as often as fits in `seconds`, twice at least."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)

"""Bad numbers: every optimizer does what faults/behaviour.py says, in every mode.

Indices out of range, and gradients of another shape or type, are in
optimizers/test_suite.py.
"""

import functools

import numpy as np
import pytest

from faults.behaviour import (
    ALL,
    AVERAGE,
    BEHAVIOUR,
    ELEMENT,
    NORM,
    SKIPPED,
    SLOTS,
    VARIABLE,
    WEIGHTS,
)
from faults.problem import (
    ALL_ZERO,
    BAD_COLUMN,
    BAD_ELEMENT,
    BAD_ROW,
    BIAS,
    EMPTY,
    EMPTY_TABLE,
    INF,
    KERNEL,
    NAN,
    NAN_ROW,
    NO_ROWS,
    REPAIRED,
    SCALAR,
    TABLE,
    ZEROS,
    FaultsInEagerMode,
    FaultsInGraph,
)
from optimizers.cases import OPTIMIZERS, make

# Ref variables do the same as resource variables do.
MODES = {"graph": FaultsInGraph, "eager": FaultsInEagerMode}
VARIABLES = [TABLE, KERNEL, BIAS, ZEROS, SCALAR, EMPTY, EMPTY_TABLE]

every_optimizer = pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
every_mode = pytest.mark.parametrize("mode", MODES)


@functools.lru_cache(maxsize=None)
def run_of(case_id, mode):
    case = {case.id: case for case in OPTIMIZERS}[case_id]
    return MODES[mode](lambda: make(case))


def changed(before, after, tolerance=0.0):
    return {
        key
        for key in before
        if not np.allclose(after[key], before[key], tolerance, 0.0, equal_nan=True)
    }


def assert_finite(state):
    for name, values in state.items():
        assert np.isfinite(values).all(), name


@every_optimizer
@every_mode
def test_scalars_zeros_and_variables_without_elements_train(case, mode):
    run = run_of(case.id, mode)
    before, after = run.after(), run.after(0, 1, 2)
    assert_finite(after)
    moved = changed(before, after)
    assert moved.issuperset(set(VARIABLES) - {EMPTY, EMPTY_TABLE})
    assert after["the global step"] == 3
    for name in (EMPTY, EMPTY_TABLE):
        assert after[name].shape == before[name].shape


def assert_reach(reach, where, name, bad, good):
    """`bad`, a state, differs from `good` as far as `reach` says, from name[where]."""
    is_finite = {key: np.isfinite(bad[key]) for key in VARIABLES}
    assert not is_finite[name][where]
    if reach == ALL:
        assert not any(finite.any() for finite in is_finite.values())
        return
    others = {key for key in bad if name not in key}
    assert "the global step" in others
    assert not changed(good, bad) & others
    if reach == VARIABLE:
        touched = [0, BAD_ROW, 4] if name == TABLE else slice(None)
        assert not is_finite[name][touched].any()
        return
    assert is_finite[name].sum() == is_finite[name].size - 1
    if reach == ELEMENT:
        for key in set(bad) - others:
            same = bad[key] == good[key]
            same[where] = True
            assert same.all(), key
    else:
        assert reach == NORM


def check_reach(run, reach, step, where, name):
    if reach == SKIPPED:
        assert not changed(run.after(0, 1, 2), run.after(0, 1, step, 2))
        return
    good, bad = run.after(0, 1, REPAIRED, 2), run.after(0, 1, step, 2)
    assert_finite(good)
    assert_reach(reach, where, name, bad, good)


@every_optimizer
@every_mode
@pytest.mark.parametrize("step", [NAN, INF], ids=["nan", "inf"])
def test_bad_number_in_a_dense_gradient(case, mode, step):
    reach = BEHAVIOUR[case.optimizer].dense
    check_reach(run_of(case.id, mode), reach, step, BAD_ELEMENT, KERNEL)


@every_optimizer
@every_mode
def test_bad_number_in_a_sparse_gradient(case, mode):
    reach = BEHAVIOUR[case.optimizer].sparse
    where = (BAD_ROW, BAD_COLUMN)
    check_reach(run_of(case.id, mode), reach, NAN_ROW, where, TABLE)


@every_optimizer
@every_mode
def test_gradients_of_zeros(case, mode):
    run = run_of(case.id, mode)
    before, after = run.after(), run.after(ALL_ZERO)
    decayed = {
        "none": set(),
        "dense": {KERNEL, BIAS, SCALAR},
        "all": {TABLE, KERNEL, BIAS, SCALAR},
        "clipped": {TABLE, KERNEL, BIAS},
    }
    wanted = decayed[BEHAVIOUR[case.optimizer].zero_gradient]
    assert changed(before, after) & set(VARIABLES) == wanted
    assert after["the global step"] == 1
    later = run.after(ALL_ZERO, 0, ALL_ZERO, 1)
    assert_finite(later)
    assert KERNEL in changed(after, later)


@every_optimizer
@every_mode
def test_indexed_slices_without_rows(case, mode):
    run = run_of(case.id, mode)
    before, after = run.after(0, 1), run.after(0, 1, NO_ROWS)
    assert_finite(after)
    kinds = set()
    # Clipped weights are clipped again where their norm was rounded.
    for key in changed(before, after, tolerance=1e-6):
        if key == TABLE:
            kinds.add(WEIGHTS)
        elif key.startswith(TABLE + "/slot"):
            kinds.add(SLOTS)
        elif TABLE in key:
            kinds.add(AVERAGE)
    assert kinds == BEHAVIOUR[case.optimizer].no_rows
    assert KERNEL in changed(before, after)
    assert after["the global step"] == 3


@every_optimizer
def test_memory_of_a_sparse_gradient(case):
    run = run_of(case.id, "graph")
    table = run.after()[TABLE].nbytes
    largest = run.largest_temporary(0)
    if BEHAVIOUR[case.optimizer].rows_only:
        # Other variables, and what is computed of the rows, are smaller than this.
        assert largest < table / 50
    else:
        assert largest >= table

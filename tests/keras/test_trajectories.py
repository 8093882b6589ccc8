"""The numbers of TensorFlow 2.8.4, to the last bit, on every Keras.

There, the same tests run against the real class: see loss_scaling.py.
"""

import pytest
from installed import every_generation, every_kind
from loss_scaling import SCENARIOS, STEPS, Run, assert_same, golden

TRAJECTORIES = golden("trajectories")
WAYS = ["tape", "minimize", "minimize_with_tape"]

# They skip steps, let inf and NaN pass, and come to the limits of the types.
IN_FUNCTIONS = ["default", "fixed_lets_pass", "half", "never_above_float32"]


def test_the_scenarios_are_not_trivial():
    states = [state for run in TRAJECTORIES.values() for state in run]
    assert len(states) == len(SCENARIOS) * STEPS
    for runs in TRAJECTORIES.values():
        assert runs[-1]["variables"][0] != [[1.0] * 3] * 2  # where all start
    scales = {state["scale"] for state in states}
    assert {1.0, 2.0, 2.0**15, 2.0**127} <= scales


def check(kind, name, step_of):
    """Runs a scenario, each step as `step_of(run, step)` does it."""
    run = Run(SCENARIOS[name], kind.optimizers)
    for step in range(STEPS):
        step_of(run, step)
        assert_same(run.state(), TRAJECTORIES[name][step])


@every_kind
@pytest.mark.parametrize(
    "name, how",
    [(name, "tape") for name in sorted(SCENARIOS)]
    + [(name, how) for name in ("default", "fixed", "half") for how in WAYS[1:]],
)
def test_eagerly(kind, name, how):
    check(kind, name, lambda run, step: run.step(how, step))


@every_generation
@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_in_a_function(kind, name):
    check(kind, name, lambda run, step: run.step("tape", step, compiled=True))


@every_kind
def test_ways_may_alternate(kind):
    def step_of(run, step):
        run.step(WAYS[step % 3], step, compiled=step % 2)

    check(kind, "grows", step_of)

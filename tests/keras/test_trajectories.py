"""The numbers of TensorFlow 2.8.4, to the last bit, on every Keras.

There, the same tests run against the real class: see loss_scaling.py.
"""

import pytest
from loss_scaling import KINDS, SCENARIOS, STEPS, Run, assert_same, golden

TRAJECTORIES = golden("trajectories")
WAYS = ["tape", "minimize", "minimize_with_tape"]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
every_scenario = pytest.mark.parametrize("name", sorted(SCENARIOS))


def test_the_scenarios_are_not_trivial():
    states = [state for run in TRAJECTORIES.values() for state in run]
    assert len(states) == len(SCENARIOS) * STEPS
    for runs in TRAJECTORIES.values():
        assert runs[-1]["variables"][0] != [[1.0] * 3] * 2  # where all start
    scales = {state["scale"] for state in states}
    assert {1.0, 2.0, 2.0**15, 2.0**127} <= scales


@every_kind
@every_scenario
@pytest.mark.parametrize(
    "how, compiled",
    [(how, False) for how in WAYS] + [("tape", True)],
    ids=[*WAYS, "tape_in_function"],
)
def test_trajectory_is_the_references(kind, name, how, compiled):
    run = Run(SCENARIOS[name], kind.optimizers)
    for step in range(STEPS):
        run.step(how, step, compiled)
        assert_same(run.state(), TRAJECTORIES[name][step])


@every_kind
@every_scenario
def test_ways_may_alternate(kind, name):
    run = Run(SCENARIOS[name], kind.optimizers)
    for step in range(STEPS):
        run.step(WAYS[step % 3], step, compiled=step % 2)
        assert_same(run.state(), TRAJECTORIES[name][step])

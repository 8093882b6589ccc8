"""Training between graphs: a parameter server and two workers, a process each."""

import json

import numpy as np
import pytest

from cluster.cases import CASES, COPIES, STEPS, TABLE, alone
from cluster.optimizers import FREE_STEPS
from processes import Processes, addresses

PS = "/job:ps/task:0"


@pytest.mark.cluster
def test_all_optimizers(tmp_path):
    cluster = addresses(ps=1, worker=2)
    with Processes(tmp_path) as processes:
        processes.start("ps", "cluster.server", json.dumps(cluster))
        for task in (0, 1):
            arguments = json.dumps(cluster), task, tmp_path
            processes.start(f"worker{task}", "cluster.optimizers", *arguments)
        expected = {case.id: alone(case) for case in CASES}
        for task in (0, 1):
            processes.finish(f"worker{task}")
        workers = [processes.wait_for_file(f"worker.{task}") for task in (0, 1)]
    for case in CASES:
        for worker in workers:
            check(case, worker[case.id], expected[case.id])
    for kind in COPIES:
        check_copies(kind, [worker[kind] for worker in workers])


def check(case, found, expected):
    assert found["devices"] == [PS], case.id
    assert found["slots"], case.id
    for variable, slot in found["slots"]:
        assert variable == slot == PS, case.id
    assert sorted(found["values"]) == sorted(expected), case.id
    for name, value in expected.items():
        np.testing.assert_allclose(
            found["values"][name], value, 1e-5, 1e-5, err_msg=f"{case.id} {name}"
        )
    assert found["values"]["global_step"] == STEPS
    if case.problem.__name__ == "embeddings":
        table = np.concatenate([found["after"][f"table/part_{i}"] for i in (0, 1)])
        np.testing.assert_array_equal(table[9:], TABLE[9:])
        assert np.all(table[:9] != TABLE[:9])
    if not case.together:
        taken = found["after"]["global_step"] + found["after"].get("stale_counter", 0)
        taken -= STEPS
        assert_counted(taken, 2 * FREE_STEPS, case.use_resource, case.id)


def check_copies(kind, found):
    for each in found:
        assert each["devices"] == [PS], kind
        assert each["loss"] < 0.7 * each["before"], kind
        assert each["centers"] == found[0]["centers"], kind
    # ModelAverage counts the averages, the others the exchanges of each worker.
    exchanges = 2 * FREE_STEPS / 4 * (1 if kind == "ModelAverage" else 2)
    assert_counted(found[0]["global_step"], exchanges, found[0]["is_resource"], kind)


def assert_counted(counted, steps, is_resource, what):
    """A ref variable may lose one of two increments at the same time."""
    least = steps if is_resource else steps // 2
    assert least <= counted <= steps, what

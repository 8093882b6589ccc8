"""AGNOptimizer: numbers, sparse gradients, slots of the center."""

import numpy as np
import pytest

from contrib_opt import LARSOptimizer
from contrib_opt.wrappers import agn
from wrappers import cluster
from wrappers.cluster import ALONE, Worker, case, start

KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])


@pytest.mark.parametrize(
    "row, use_resource", cluster.golden_runs("AGN"), ids=cluster.id_of
)
def test_golden(row, use_resource):
    cluster.check_golden(agn, row, use_resource)


@KINDS
def test_checkpoint_of_tensorflow_1_goes_on(use_resource):
    cluster.check_resumed(agn, "AGN", use_resource)


def test_saver_saves_what_tensorflow_1_saved(tmp_path):
    cluster.check_saved(agn, "AGN", tmp_path)


@KINDS
def test_sparse_gradients_are_summed_as_dense_ones_are(use_resource):
    """SGD alone: a row that occurs twice counts twice."""
    row = case("AGN", "sgd", ALONE, problem="sparse", communication_period=3)
    worker = Worker(agn, row, use_resource=use_resource)
    start([worker])
    table, bias = [r.variable for r in worker.records()]
    summed, x = 0.0, None
    for step in range(3):
        values, biases = worker.session.run([table, bias])
        x = values if x is None else x
        for index in next(iter(worker.batch(step).values())):
            grad = np.zeros_like(values)
            grad[index] = 2 * (values[index] + biases)
            summed = summed + grad
        if step < 2:
            worker.step()
    worker.step()
    np.testing.assert_allclose(
        worker.session.run(table), x - 0.25 * summed / 3, rtol=1e-5, atol=1e-5
    )


@KINDS
def test_ours_inside_has_slots_for_variable_and_center(use_resource):
    row = case("AGN", "sgd", ALONE, communication_period=2)
    worker = Worker(
        agn, row, use_resource=use_resource, make_base=lambda: LARSOptimizer(1.0)
    )
    start([worker])
    for _ in range(5):
        worker.step()
    record = worker.records()[0]
    with worker.graph.as_default():
        for var in (record.variable, record.center):
            slot = worker.optimizer.get_slot(var, "momentum")
            assert np.any(worker.session.run(slot))
        assert worker.optimizer.get_slot_names() == ["momentum"]
        names = {v.op.name for v in worker.optimizer.variables()}
    center = "global_center_variable/" + record.variable.op.name
    assert {record.variable.op.name + "/LARSOptimizer", "local_step"} < names
    assert center + "/LARSOptimizer" in names

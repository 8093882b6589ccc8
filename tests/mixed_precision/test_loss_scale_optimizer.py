"""LossScaleOptimizer beyond test_suite.py: bad steps, sparse gradients, wrapping."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.mixed_precision import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    LossScaleOptimizer,
)
from optimizers.problems import DENSE, LINEAR, STEPS, EagerRun, GraphRun
from optimizers.runtimes import run_program

RUNS = {
    "ref": lambda *run: GraphRun(*run, use_resource=False),
    "resource": GraphRun,
    "eager": EagerRun,
    "function": lambda *run: EagerRun(*run, compiled=True),
}
every_runtime = pytest.mark.parametrize("runtime", sorted(RUNS))
inner_optimizers = pytest.mark.parametrize(
    "make_inner",
    [
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.AdamOptimizer(0.1),
        lambda: contrib_opt.LARSOptimizer(0.5, eeta=0.1),
    ],
    ids=["momentum", "adam", "lars"],
)


def scaled(make_inner, loss_scale=2.0**10):
    return lambda: LossScaleOptimizer(make_inner(), FixedLossScaleManager(loss_scale))


@every_runtime
@inner_optimizers
def test_a_power_of_two_changes_no_number(make_inner, runtime):
    plain, ours = [
        RUNS[runtime](DENSE, make) for make in (make_inner, scaled(make_inner))
    ]
    for run in (plain, ours):
        run.train(range(STEPS))
    np.testing.assert_allclose(ours.values(), plain.values(), rtol=1e-5, atol=1e-6)


class Bad:
    """LINEAR with an inf or a NaN in the gradient of the bias at some steps."""

    def __init__(self, steps, value):
        bias = LINEAR.inputs["layer/bias"].copy()
        bias[steps, 1] = value
        self.problem = LINEAR._replace(
            inputs=dict(LINEAR.inputs, **{"layer/bias": bias})
        )


@every_runtime
@inner_optimizers
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_step_that_is_not_finite_changes_nothing(make_inner, value, runtime):
    def make():
        manager = ExponentialUpdateLossScaleManager(2.0**8, 3, 1, decr_ratio=0.5)
        return LossScaleOptimizer(make_inner(), manager)

    run = RUNS[runtime](Bad([4], value).problem, make)
    run.train(range(4))
    before = run.values()
    run.train([4])
    after = run.values()
    changed = np.flatnonzero(before != after)
    # bad_steps, good_steps, loss_scale are last in the state. 2 ** 9 is halved.
    size = before.size
    assert set(changed) <= {size - 3, size - 2, size - 1}
    assert (before[-1], after[-1]) == (2.0**9, 2.0**8)
    step = run.global_step
    if runtime in ("ref", "resource"):
        assert run.session.run(step) == 4
    else:
        assert int(step.numpy()) == 4
    run.train([5])
    assert (run.values()[: size - 3] != after[: size - 3]).any()


def test_float16_that_needs_it_learns_with_it():
    """Gradients of 2e-9, which are zero in float16, move the weights."""

    def loss(var):
        half = tf.cast(var, tf.float16)
        return tf.cast(tf.reduce_sum(half * 1e-4 * 2e-5), tf.float32)

    def final(make):
        var = tf.Variable([1.0, 1.0], use_resource=True)
        optimizer = make()
        for _ in range(10):
            optimizer.minimize(lambda: loss(var), var_list=[var])
        return var.numpy()

    def make():
        return tf.train.GradientDescentOptimizer(1e7)

    np.testing.assert_array_equal(final(make), [1.0, 1.0])
    np.testing.assert_allclose(final(scaled(make, 2.0**15)), [0.8, 0.8], rtol=0.02)


def test_clipping_sees_unscaled_gradients():
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable("w", initializer=[3.0, 4.0])
        unused = tf.get_variable("unused", initializer=1.0)
        optimizer = scaled(lambda: tf.train.GradientDescentOptimizer(1.0))()
        loss = tf.reduce_sum(tf.square(var))
        (grad, _), (none, _) = optimizer.compute_gradients(loss, [var, unused])
        assert none is None
        clipped = tf.clip_by_norm(grad, 5.0)
        train = optimizer.apply_gradients([(clipped, var), (None, unused)])
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(grad), [6.0, 8.0])
        session.run(train)
        np.testing.assert_allclose(session.run(var), [0.0, 0.0], atol=1e-6)


def test_moving_average_over_loss_scaling_over_lars():
    def make():
        scaling = scaled(lambda: contrib_opt.LARSOptimizer(0.5, eeta=0.1))()
        return contrib_opt.MovingAverageOptimizer(scaling, average_decay=0.5)

    run = EagerRun(DENSE, make)
    plain = EagerRun(DENSE, lambda: contrib_opt.LARSOptimizer(0.5, eeta=0.1))
    averages = {name: var.numpy() for name, var in run.variables.items()}
    for step in range(STEPS):
        run.train([step])
        plain.train([step])
        for name, var in plain.variables.items():
            averages[name] = 0.5 * averages[name] + 0.5 * var.numpy()
            np.testing.assert_allclose(
                run.variables[name].numpy(), var.numpy(), rtol=1e-5, atol=1e-6
            )
    slot = run.optimizer.get_slot(run.variables["head/kernel"], "momentum")
    assert slot.numpy().any()
    own = {v.name: v for v in run.optimizer.variables()}
    average = [v for name, v in own.items() if "layer/kernel/Exp" in name]
    assert len(average) == 1
    np.testing.assert_allclose(
        average[0].numpy(), averages["layer/kernel"], rtol=1e-5, atol=1e-6
    )


def test_checkpoints_hold_the_state_and_fit_the_wrapped_optimizer(tmp_path):
    def make():
        manager = ExponentialUpdateLossScaleManager(4.0, 3)
        return LossScaleOptimizer(tf.train.AdamOptimizer(0.1), manager)

    def checkpoint(run):
        return tf.train.Checkpoint(
            optimizer=run.optimizer, w=run.variables["head/kernel"]
        )

    saved = EagerRun(LINEAR, make)
    saved.train(range(4))
    path = checkpoint(saved).save(str(tmp_path / "scaled"))
    again = EagerRun(LINEAR, make)
    checkpoint(again).restore(path)
    assert [v.numpy() for v in again.optimizer.variables()[-3:]] == [8.0, 1, 0]
    bare = EagerRun(LINEAR, lambda: tf.train.AdamOptimizer(0.1))
    checkpoint(bare).restore(path)
    for run in (again, bare):
        run.train([4])
        slot = run.optimizer.get_slot(run.variables["head/kernel"], "m")
        assert np.abs(slot.numpy()).max() > 0.1
    np.testing.assert_allclose(
        again.optimizer.get_slot(again.variables["head/kernel"], "m").numpy(),
        bare.optimizer.get_slot(bare.variables["head/kernel"], "m").numpy(),
        rtol=1e-5,
    )


def test_errors():
    manager = FixedLossScaleManager(2)
    for wrong in ("sgd", None, tf.train.AdamOptimizer):
        with pytest.raises(TypeError, match="opt must be"):
            LossScaleOptimizer(wrong, manager)
    with pytest.raises(TypeError, match="loss_scale_manager must be"):
        LossScaleOptimizer(tf.train.AdamOptimizer(), 128)


def test_managers_that_programs_derive():
    class Doubling(LossScaleManager):
        def __init__(self):
            self.seen = tf.Variable(1.0, use_resource=True, trainable=False)

        def get_loss_scale(self):
            return self.seen

        def update_loss_scale(self, finite_grads):
            return self.seen.assign(self.seen * 2.0)

    manager = Doubling()
    optimizer = LossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), manager)
    var = tf.Variable(3.0, use_resource=True)
    for _ in range(3):
        optimizer.minimize(lambda: var * 1.0, var_list=[var])
    assert float(manager.seen.numpy()) == 8.0
    assert float(var.numpy()) == 0.0
    assert optimizer.variables()[-1] is manager.seen


# In a process of its own, without eager mode, whose collectives would wait.
IN_A_SESSION_OF_A_STRATEGY = """
import tensorflow.compat.v1 as tf
from contrib_opt import LARSOptimizer
from contrib_opt.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

tf.disable_v2_behavior()
cpu = tf.config.experimental.list_physical_devices("CPU")[0]
device = tf.config.experimental.VirtualDeviceConfiguration()
tf.config.experimental.set_virtual_device_configuration(cpu, [device] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
run = getattr(strategy, "run", None) or strategy.experimental_run_v2

def trained(optimizer):
    with strategy.scope():
        w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
        step = tf.train.get_or_create_global_step()
        train_op = run(lambda: optimizer.minimize(tf.reduce_sum(w * w), step))
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(strategy.experimental_local_results(train_op))
            return session.run([step, *w.values])

for make in (
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    lambda: LARSOptimizer(0.5, eeta=0.1),
):
    with tf.Graph().as_default():
        _, plain, _ = trained(make())
    with tf.Graph().as_default():
        scaled = LossScaleOptimizer(make(), FixedLossScaleManager(1024.0))
        step, first, second = trained(scaled)
    assert step == 5
    assert first.tolist() == second.tolist() == plain.tolist() != [1.0, 2.0]
print("trained")
"""


def test_session_of_a_strategy_counts_its_steps():
    """With a global step an optimizer returns an operation for each replica."""
    stdout, _ = run_program(IN_A_SESSION_OF_A_STRATEGY)
    assert stdout.splitlines()[-1] == "trained"

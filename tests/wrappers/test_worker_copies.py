"""What the wrappers with a center share: getters, arguments, hooks, delegation."""

import functools
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from contrib_opt import LARSOptimizer
from contrib_opt.optimizers.conditional import run_if
from contrib_opt.wrappers import agn, elastic_average, model_average
from contrib_opt.wrappers.worker_copies import first_value
from wrappers import cluster
from wrappers.cluster import ALONE, UNEVEN, Worker, case, start

MODULES = {
    "ElasticAverage": elastic_average,
    "ModelAverage": model_average,
    "AGN": agn,
}
NAMES = pytest.mark.parametrize("name", sorted(MODULES))
KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
# How each constructor calls its arguments.
ARGUMENTS = {
    "ElasticAverage": ("opt", "ea_custom_getter", "communication_period"),
    "ModelAverage": ("opt", "ma_custom_getter", "interval_steps"),
    "AGN": ("optimizer", "custom_getter", "communication_period"),
}


def make_getter(name, device=""):
    return getattr(MODULES[name], name + "CustomGetter")(device)


def make_optimizer(name, base, getter, period=2, num_worker=1, **kwargs):
    opt, custom_getter, count = ARGUMENTS[name]
    arguments = {opt: base, custom_getter: getter, count: period}
    arguments.update(num_worker=num_worker, **kwargs)
    if name == "ModelAverage":
        arguments.setdefault("is_chief", True)
    return getattr(MODULES[name], name + "Optimizer")(**arguments)


def sgd():
    return tf.train.GradientDescentOptimizer(0.5)


def names(collection):
    return sorted(v.op.name for v in tf.get_collection(collection))


def copies_of(name, variable):
    """The names of the global and of the local copies."""
    local = {"ElasticAverage": ["local_center_variable"], "AGN": ["grad_variable"]}
    return (
        ["global_center_variable/" + variable],
        [f"{prefix}/{variable}" for prefix in local.get(name, [])],
    )


# ----------------------------------------------------------------------- getters


@NAMES
@KINDS
def test_collections_and_devices(name, use_resource):
    with tf.Graph().as_default():
        getter = make_getter(name, "/job:worker/task:1/cpu:0")
        with tf.device("/job:ps"), tf.variable_scope(
            "s", custom_getter=getter, use_resource=use_resource
        ):
            a = tf.get_variable("a", [2], collections=["mine"])
            plain = tf.get_variable("plain", [2], trainable=False)
            local = tf.get_variable(
                "local", [2], trainable=False, collections=["local_variables"]
            )
        centers, copies = copies_of(name, "s/a")
        assert names("variables") == centers + ["s/plain"]
        assert names("local_variables") == sorted(copies + ["s/a", "s/local"])
        assert names("trainable_variables") == ["s/a"]
        assert not tf.get_collection("mine")
        for variable in [a, local]:
            assert variable.device == "/job:worker/task:1/device:CPU:0"
        for variable in [plain, getter.record(a).center]:
            assert variable.device == "/job:ps"
            assert hasattr(variable, "handle") == use_resource


@NAMES
def test_a_regularizer_counts_once(name):
    with tf.Graph().as_default():
        with tf.variable_scope(
            "", custom_getter=make_getter(name), regularizer=tf.nn.l2_loss
        ):
            tf.get_variable("a", [2])
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1


@NAMES
@pytest.mark.parametrize("reuse", [True, tf.AUTO_REUSE])
def test_reuse(name, reuse):
    with tf.Graph().as_default():
        getter = make_getter(name)
        with tf.variable_scope("s", custom_getter=getter):
            a = tf.get_variable("a", [2])
        before = names("variables") + names("local_variables")
        center = getter.record(a).center
        with tf.variable_scope("s", reuse=reuse, custom_getter=getter):
            assert tf.get_variable("a", [2]) is a
        assert names("variables") + names("local_variables") == before
        assert getter.record(a).center is center


@NAMES
def test_one_getter_for_two_graphs(name):
    getter = make_getter(name)
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as session:
            with tf.variable_scope("", custom_getter=getter):
                a = tf.get_variable("a", [2])
            opt = make_optimizer(name, sgd(), getter)
            opt.minimize(tf.reduce_sum(a), tf.train.get_or_create_global_step())
            task = () if name == "ModelAverage" else (0,)
            init_op = opt.get_init_op(*task)
            session.run(tf.global_variables_initializer())
            session.run(tf.local_variables_initializer())
            session.run(init_op)
            np.testing.assert_array_equal(*session.run([a, getter.record(a).center]))


@NAMES
@KINDS
def test_partitions_train_as_the_whole_does(name, use_resource):
    results = []
    for partitioner in (None, tf.fixed_size_partitioner(2)):
        with tf.Graph().as_default(), tf.Session() as session:
            getter = make_getter(name)
            with tf.variable_scope("", custom_getter=getter, use_resource=use_resource):
                a = tf.get_variable(
                    "a",
                    [4, 3],
                    initializer=tf.ones_initializer(),
                    partitioner=partitioner,
                )
            opt = make_optimizer(name, tf.train.MomentumOptimizer(0.5, 0.9), getter)
            loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(a) - 3.0))
            train_op = opt.minimize(loss, tf.train.get_or_create_global_step())
            init_op = opt.make_session_run_hook(
                *(() if name == "ModelAverage" else (True, 0))
            )
            init_op.begin()
            session.run(tf.global_variables_initializer())
            session.run(tf.local_variables_initializer())
            init_op.after_create_session(session, None)
            for _ in range(3):
                session.run(train_op)
            records = getter.records()
            centers = [record.center for record in records]
            results.append([np.concatenate(session.run(centers)), session.run(loss)])
            suffixes = ["/part_0", "/part_1"] if partitioner else [""]
            assert [c.op.name for c in centers] == [
                "global_center_variable/a" + suffix for suffix in suffixes
            ]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)


# --------------------------------------------------------------------- bad input


@NAMES
@pytest.mark.parametrize("value", [3, ["/cpu:0"], b"/cpu:0"])
def test_bad_worker_device(name, value):
    with pytest.raises(TypeError, match="worker_device must be the name of a device"):
        make_getter(name, value)


def bad_arguments(name):
    opt, getter, period = ARGUMENTS[name]
    return [
        ({"base": "sgd"}, TypeError, f"{opt} must be a .*Optimizer, got 'sgd'"),
        ({"num_worker": 0}, ValueError, "num_worker must be 1 or more, got 0"),
        ({"num_worker": 2.0}, TypeError, "num_worker must be an integer, got 2.0"),
        ({"period": 0}, ValueError, f"{period} must be 1 or more, got 0"),
        ({"period": True}, TypeError, f"{period} must be an integer, got True"),
        ({"period": None}, TypeError, f"{period} must be an integer, got None"),
        ({"getter": None}, TypeError, f"{getter} must be a contrib_opt.{name}Custom"),
        (
            {"getter": make_getter({"AGN": "ModelAverage"}.get(name, "AGN"))},
            TypeError,
            f"{getter} must be a contrib_opt.{name}CustomGetter, .* got <.*Getter",
        ),
    ]


@NAMES
def test_bad_arguments(name):
    for kwargs, error, message in bad_arguments(name):
        with tf.Graph().as_default():
            arguments = dict({"base": sgd(), "getter": make_getter(name)}, **kwargs)
            with pytest.raises(error, match=message):
                make_optimizer(name, **arguments)


@pytest.mark.parametrize("name", ["AGN", "ElasticAverage"])
def test_bad_task_index(name):
    with tf.Graph().as_default():
        opt = make_optimizer(name, sgd(), make_getter(name), num_worker=2)
        for call in (opt.get_init_op, functools.partial(opt.make_session_run_hook, 1)):
            with pytest.raises(ValueError, match="task_index must be less than num_w"):
                call(2)
            with pytest.raises(ValueError, match="task_index must be 0 or more, got"):
                call(-1)
            with pytest.raises(TypeError, match="task_index must be an integer"):
                call("0")


@NAMES
def test_variables_that_the_getter_did_not_make(name):
    with tf.Graph().as_default():
        opt = make_optimizer(name, sgd(), make_getter(name))
        with pytest.raises(ValueError, match="has made no trainable variables"):
            opt.get_init_op(*([] if name == "ModelAverage" else [0]))
        b = tf.get_variable("b", [2])
        with pytest.raises(ValueError, match="The variable b:0 was not made through"):
            opt.minimize(tf.reduce_sum(b), tf.train.get_or_create_global_step())


@NAMES
def test_eager_mode(name):
    with pytest.raises(RuntimeError, match="does not work in eager mode"):
        make_optimizer(name, sgd(), make_getter(name))
    with pytest.raises(RuntimeError, match="with tf.Graph"):
        with tf.variable_scope("", custom_getter=make_getter(name)):
            tf.get_variable("a", [2])

    @tf.function
    def step():
        make_optimizer(name, sgd(), make_getter(name))

    with pytest.raises(RuntimeError, match="does not work in eager mode"):
        step()


@NAMES
def test_distribution_strategy(name):
    with tf.Graph().as_default():
        with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
            with pytest.raises(RuntimeError, match="tf.distribute strategy"):
                make_optimizer(name, sgd(), make_getter(name))


# -------------------------------------------------------------------- delegation


@NAMES
@KINDS
def test_the_wrapped_optimizer_answers(name, use_resource):
    row = case(name, "sgd", ALONE)
    worker = Worker(
        MODULES[name], row, 0, use_resource, lambda: LARSOptimizer(0.5, name="Mine")
    )
    start([worker])
    worker.step()
    opt = worker.optimizer
    with worker.graph.as_default():
        var = worker.records()[0].variable
        assert opt.get_name() == name + "Optimizer"
        assert opt.get_slot_names() == ["momentum"]
        assert opt.get_slot(var, "momentum").op.name == var.op.name + "/Mine"
        found = {v.op.name for v in opt.variables()}
    assert {"local_step", "layer/bias/Mine", "layer/kernel/Mine"} <= found
    assert np.any(worker.session.run(opt.get_slot(var, "momentum")))


@NAMES
@KINDS
def test_made_in_the_scope_of_the_getter(name, use_resource):
    """As the documentation says; on 1.15 an optimizer with slots cannot be."""
    with tf.Graph().as_default(), tf.Session() as session:
        getter = make_getter(name)
        with tf.variable_scope("", custom_getter=getter, use_resource=use_resource):
            a = tf.get_variable("a", [2])
            opt = make_optimizer(name, tf.train.AdamOptimizer(0.1), getter)
            train_op = opt.minimize(
                tf.reduce_sum(tf.square(a)), tf.train.get_or_create_global_step()
            )
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        assert [session.run(train_op) for _ in range(4)] == [False, True] * 2


@NAMES
def test_name_of_the_result(name):
    with tf.Graph().as_default():
        getter = make_getter(name)
        with tf.variable_scope("", custom_getter=getter):
            a = tf.get_variable("a", [2])
        opt = make_optimizer(name, sgd(), getter)
        step = tf.train.get_or_create_global_step()
        assert opt.minimize(tf.reduce_sum(a), step, name="go").op.name == "go"


# ------------------------------------------------------------- monitored sessions


@NAMES
def test_monitored_sessions_on_two_workers(name, tmp_path):
    """Two workers with Momentum learn y = 2 x, and again from the checkpoint."""
    values = []
    for _ in range(2):
        cluster.cluster().reset()
        ready = threading.Event()
        values = cluster.together(
            *[
                functools.partial(train, name, task, str(tmp_path), ready)
                for task in (0, 1)
            ]
        )
        first_step, _, _ = values[0]
    assert first_step == 20
    for _, center, weight in values:
        np.testing.assert_allclose([center, weight], 2.0, atol=0.2)


def train(name, task, folder, ready):
    """Trains one worker; the chief's global step at the start, center and variable."""
    device = f"/job:worker/task:{task}/cpu:0"
    servers = cluster.cluster()
    with tf.Graph().as_default():
        getter = make_getter(name, device)
        setter = tf.train.replica_device_setter(
            worker_device=device, ps_device="/job:ps", cluster=servers.spec
        )
        with tf.device(setter), tf.variable_scope("", custom_getter=getter):
            x = tf.constant(np.linspace(-1, 1, 8, dtype=np.float32))
            weight = tf.get_variable("w", [])
            loss = tf.reduce_mean(tf.square(weight * x - 2 * x))
            kwargs = {}
            if name == "ModelAverage":
                kwargs["is_chief"] = task == 0
            opt = make_optimizer(
                name,
                tf.train.MomentumOptimizer(0.3, 0.5),
                getter,
                num_worker=2,
                **kwargs,
            )
            step = tf.train.get_or_create_global_step()
            train_op = opt.minimize(loss, step)
        hook = opt.make_session_run_hook(
            *([] if name == "ModelAverage" else [task == 0, task])
        )
        center = getter.record(weight).center
        rounds = 40 if name == "ModelAverage" else 20
        if task > 0:
            # Otherwise it looks for the chief's variables every 30 seconds only.
            assert ready.wait(30)
        with tf.train.MonitoredTrainingSession(
            servers.targets[task],
            is_chief=task == 0,
            checkpoint_dir=folder if task == 0 else None,
            hooks=[hook],
            log_step_count_steps=None,
            max_wait_secs=30,
            save_summaries_steps=None,
            save_summaries_secs=None,
        ) as session:
            first = session.run(step)
            ready.set()
            for _ in range(rounds):
                session.run(train_op)
            if task == 0:
                wait_for(lambda: session.run(step) >= first + 20)
            return (first,) + tuple(session.run([center, weight]))


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("The other worker does not come")


# -------------------------------------------------------------- parts of the house


@KINDS
def test_run_if(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.get_variable("a", initializer=1.0, use_resource=use_resource)
        flag = tf.placeholder(tf.bool, [])
        result = run_if(flag, lambda: a.assign_add(1.0).op)
        session.run(a.initializer)
        for value, after in ((True, 2.0), (False, 2.0), (True, 3.0)):
            assert session.run(result, {flag: value}) == value
            assert session.run(a) == after


def test_the_switch_of_control_flow_is_put_back():
    before = tf.control_flow_v2_enabled()
    with pytest.raises(ZeroDivisionError), tf.Graph().as_default():
        run_if(tf.constant(True), lambda: 1 / 0)
    assert tf.control_flow_v2_enabled() == before


@KINDS
def test_first_value(use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.get_variable("a", [9], use_resource=use_resource)
        value = first_value(a)
        assert session.run(value).shape == (9,)
        session.run(a.initializer)
        session.run(a.assign(tf.ones([9])))
        if use_resource or not tf.control_flow_v2_enabled():
            np.testing.assert_array_equal(session.run(value), np.ones([9]))


# ------------------------------------------------------------------- side by side


def random_case(name, seed):
    random = np.random.RandomState(seed)
    base = random.choice(["sgd", "momentum", "adam", "adagrad"])
    kwargs = {ARGUMENTS[name][2]: int(random.randint(1, 4))}
    if name == "ElasticAverage":
        if base == "adam" or random.randint(2):
            kwargs["rho"] = float(random.uniform(0, 0.3))
        if random.randint(2):
            kwargs["moving_rate"] = float(random.uniform(0, 0.9))
    problem = str(random.choice(["dense", "sparse"]))
    distributed = name == "ElasticAverage" and seed % 2
    return case(name, base, UNEVEN if distributed else ALONE, problem=problem, **kwargs)


@pytest.mark.skipif(
    not tf.__version__.startswith("1.15."), reason="tf.contrib is in 1.15 only"
)
@NAMES
@pytest.mark.parametrize("seed", range(4))
def test_side_by_side(name, seed):
    import tensorflow

    row = random_case(name, seed)
    reference = cluster.run_case(tensorflow.contrib.opt, row)
    for use_resource in (False, True):
        ours = cluster.run_case(MODULES[name], row, use_resource)
        assert ours["names"] == reference["names"]
        assert ours["devices"] == reference["devices"]
        np.testing.assert_allclose(
            np.concatenate(ours["steps"]),
            np.concatenate(reference["steps"]),
            rtol=1e-5,
            atol=1e-5,
        )

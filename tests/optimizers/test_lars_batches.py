"""LARS updates variables in batches: operations, memory, devices, determinism."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from contrib_opt.optimizers import batches
from optimizers.runtimes import each_kind
from optimizers.test_lars import PerVariable

HYPER = {"learning_rate": 0.5, "weight_decay": 0.01, "eeta": 0.1, "epsilon": 0.001}
RESNET_SKIPS = ["batch_normalization", "bias"]


def resnet50():
    """The names and shapes of ResNet-50's 161 variables."""
    convolutions, inputs = [[7, 7, 3, 64]], 64
    for blocks, width in [(3, 64), (4, 128), (6, 256), (3, 512)]:
        for block in range(blocks):
            convolutions += [
                [1, 1, inputs, width],
                [3, 3, width, width],
                [1, 1, width, 4 * width],
            ]
            if block == 0:
                convolutions.append([1, 1, inputs, 4 * width])
            inputs = 4 * width
    shapes = {"dense/kernel": [2048, 1000], "dense/bias": [1000]}
    for i, shape in enumerate(convolutions):
        shapes[f"conv_{i}/kernel"] = shape
        for name in ("gamma", "beta"):
            shapes[f"batch_normalization_{i}/{name}"] = shape[-1:]
    return shapes


def small_shapes():
    """Some of each kind; the tests set BATCH_SIZE to 8 and LARGE to 6 elements."""
    return {
        "scalar": [],
        "bias": [5],
        "empty": [0, 3],
        "kernel": [3, 4],
        "large": [4, 6],
        "deep": [2, 2, 2],
        "last": [7],
    }


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(batches, "BATCH_SIZE", 8)
    monkeypatch.setattr(batches, "LARGE", 6)


def graph_of(shapes, make_optimizer, use_resource=True, device_of=lambda name: None):
    """A graph that updates variables of `shapes`, and the operations of the update."""
    with tf.Graph().as_default() as graph:
        pairs = []
        for name, shape in shapes.items():
            with tf.device(device_of(name)):
                var = tf.get_variable(
                    name,
                    shape,
                    use_resource=use_resource,
                    initializer=tf.zeros_initializer(),
                )
                pairs.append((tf.placeholder(tf.float32, shape), var))
        before = set(graph.get_operations())
        make_optimizer().apply_gradients(pairs)
    return [op for op in graph.get_operations() if op not in before]


@pytest.mark.parametrize("skip_list", [RESNET_SKIPS, None], ids=["skip", "all"])
@each_kind
def test_half_the_operations_of_1_15(use_resource, skip_list):
    """1.15 adds 3495 for ResNet-50 with resource variables, 6919 without skip_list."""
    shapes = resnet50()
    assert len(shapes) == 161
    ops = graph_of(
        shapes,
        lambda: contrib_opt.LARSOptimizer(0.1, skip_list=skip_list),
        use_resource,
    )
    assert len(ops) <= (3495 if skip_list else 6919) // 2


def ancestors_of(op, known):
    if op not in known:
        before = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
        known[op] = set(before).union(*(ancestors_of(b, known) for b in before))
    return known[op]


@each_kind
def test_two_large_temporaries_at_a_time(use_resource):
    """Of any three updates of large variables, one starts when another is done."""
    shapes = resnet50()
    ops = graph_of(
        shapes,
        lambda: contrib_opt.LARSOptimizer(0.1, skip_list=RESNET_SKIPS),
        use_resource,
    )
    known, lives = {}, []
    for update in ops:
        if not update.type.endswith("ApplyMomentum"):
            continue
        ancestors_of(update, known)
        scaled = update.inputs[3].op
        if scaled.outputs[0].shape.num_elements() < batches.LARGE:
            continue
        # rate * (g + weight_decay * w) takes the place of weight_decay * w.
        (decayed,) = [x.op for x in scaled.inputs if x.shape.ndims]
        (first,) = [x.op for x in decayed.inputs if x.op.type == "Mul"]
        lives.append((first, update))
    assert len(lives) == sum(np.prod(s) >= batches.LARGE for s in shapes.values())

    def disjoint(one, other):
        return one[1] in known[other[0]] or other[1] in known[one[0]]

    for three in itertools.combinations(lives, 3):
        assert any(disjoint(*two) for two in itertools.combinations(three, 2))


@each_kind
def test_variables_are_updated_on_their_devices(use_resource, small_batches):
    devices = ["/job:ps/task:0", "/job:ps/task:1"]
    shapes = dict(small_shapes(), other=[3, 4], another=[4, 6])
    place = {name: devices[i % 2] for i, name in enumerate(shapes)}
    ops = graph_of(
        shapes,
        lambda: contrib_opt.LARSOptimizer(**HYPER),
        use_resource,
        place.get,
    )
    updates = [op for op in ops if op.type.endswith("ApplyMomentum")]
    assert len(updates) == len(shapes)
    on_devices = set()
    for op in ops:
        if op.type == "NoOp":
            continue  # The end of the step.
        on_devices.add(device_of(op))
        for source in [x.op for x in op.inputs] + list(op.control_inputs):
            if source.type != "Placeholder":
                assert device_of(source) == device_of(op), (op.name, source.name)
    assert on_devices == set(devices)


def device_of(op):
    # TensorFlow reads a variable where its handle is.
    return (op.inputs[0].op if op.type == "ReadVariableOp" else op).device


def trained(make_optimizer, use_resource, dtype="float32", threads=0, steps=4):
    """The variables and velocities after some steps with random gradients."""
    random = np.random.RandomState(0)
    config = tf.ConfigProto(inter_op_parallelism_threads=threads)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        opt, pairs = make_optimizer(), []
        for name, shape in small_shapes().items():
            var = tf.Variable(
                random.normal(size=shape).astype(dtype),
                name=name,
                use_resource=use_resource,
            )
            grad = tf.constant(random.normal(size=shape).astype(dtype))
            pairs.append((grad + var / 2, var))
        unknown = tf.Variable(
            tf.placeholder_with_default(np.ones([2, 3], dtype), None),
            validate_shape=False,
            use_resource=use_resource,
        )
        rows = tf.Variable(np.ones([3, 2], dtype), use_resource=use_resource)
        sparse = tf.IndexedSlices(tf.constant(np.ones([1, 2], dtype)), tf.constant([1]))
        half = tf.Variable(tf.ones([2], tf.float16), use_resource=use_resource)
        unused = tf.Variable(tf.ones([2]), use_resource=use_resource)
        pairs += [(tf.constant(np.ones([2, 3], dtype)), unknown), (sparse, rows)]
        pairs += [(tf.ones([2], tf.float16), half), (None, unused)]
        train = opt.apply_gradients(pairs)
        # The slot of a ref variable of unknown shape reads it to be initialized, in
        # every optimizer of TensorFlow.
        session.run([var.initializer for _, var in pairs])
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        variables = [var for _, var in pairs] + opt.variables()
        assert len(variables) == 2 * len(pairs) - 1
        return session.run(variables)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("nesterov", [False, True], ids=["plain", "nesterov"])
@each_kind
def test_batches_change_no_numbers(use_resource, nesterov, dtype, rtol, small_batches):
    kwargs = dict(HYPER, skip_list=["bias"], use_nesterov=nesterov)
    batched, single = (
        trained(lambda cls=cls: cls(**kwargs), use_resource, dtype)
        for cls in (contrib_opt.LARSOptimizer, PerVariable)
    )
    for a, b in zip(batched, single):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@each_kind
def test_each_run_has_the_same_numbers(use_resource, small_batches):
    runs = [
        trained(lambda: contrib_opt.LARSOptimizer(**HYPER), use_resource, threads=16)
        for _ in range(3)
    ]
    for run in runs[1:]:
        for a, b in zip(run, runs[0]):
            np.testing.assert_array_equal(a, b)


def clipped_compute_lr(self, grad, var, original=contrib_opt.LARSOptimizer.compute_lr):
    scaled_lr, grad = original(self, grad, var)
    return tf.minimum(scaled_lr, 1e-3), grad


def unscaled_update(self, grad, var):
    return var.assign_sub(1e-3 * (grad + 0.01 * var))


@pytest.mark.parametrize(
    "method, function",
    [
        ("compute_lr", clipped_compute_lr),
        ("_update_dense", unscaled_update),
        ("_apply_dense", unscaled_update),
        ("_resource_apply_dense", unscaled_update),
    ],
)
@pytest.mark.parametrize("on", ["subclass", "instance", "class"])
def test_an_overridden_method_decides_the_step(method, function, on, monkeypatch):
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(
            [3.0, 4.0], use_resource=method != "_apply_dense", name="weights"
        )
        if on == "class":
            monkeypatch.setattr(contrib_opt.LARSOptimizer, method, function)
            opt = contrib_opt.LARSOptimizer(**HYPER)
        elif on == "subclass":
            cls = type("Own", (contrib_opt.LARSOptimizer,), {method: function})
            opt = cls(**HYPER)
        else:
            opt = contrib_opt.LARSOptimizer(**HYPER)
            setattr(opt, method, function.__get__(opt))
        train = opt.apply_gradients([(tf.constant([6.0, 8.0]), w)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        wanted = [3 - 1e-3 * (6 + 0.03), 4 - 1e-3 * (8 + 0.04)]
        np.testing.assert_allclose(session.run(w), wanted, rtol=1e-6)


def test_a_variable_listed_twice_is_updated_twice():
    ends = []
    for cls in (contrib_opt.LARSOptimizer, PerVariable):
        with tf.init_scope():
            w = tf.Variable([3.0, 4.0], use_resource=True)
            pairs = [(tf.constant([6.0, 8.0]), w), (tf.constant([-1.0, 2.0]), w)]
            cls(**HYPER).apply_gradients(pairs)
            ends.append(w.numpy())
    np.testing.assert_array_equal(*ends)


def test_a_callable_is_called_once_a_step(small_batches):
    calls = []

    def learning_rate():
        calls.append(1)
        return 0.5

    kwargs = dict(HYPER, learning_rate=learning_rate)
    graph_of(small_shapes(), lambda: contrib_opt.LARSOptimizer(**kwargs))
    assert len(calls) == 1


def test_nothing_of_a_step_is_kept():
    with tf.Graph().as_default():
        opt = contrib_opt.LARSOptimizer(**HYPER)
        w = tf.get_variable("w", [3], use_resource=True)
        first = opt.apply_gradients([(tf.ones([3]), w)])
        second = opt.apply_gradients([(tf.ones([3]), w)])
        assert not opt._step_updates and not opt._step_pairs
        assert not set(first.control_inputs) & set(second.control_inputs)

"""What is special to VariableClippingOptimizer."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import contrib_opt
from mirrored import mirrored_strategy

TABLE = np.array([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4], [0.0, -5.0]])
CLIPPED = np.array([[0.6, 0.8], [0.6, 0.8], [0.3, 0.4], [0.0, -1.0]])


def zeros_at(rows, dtype=tf.float32):
    """A gradient that has these rows, and changes nothing."""
    values = tf.zeros([len(rows), 2], dtype)
    return tf.IndexedSlices(values, tf.constant(rows), tf.constant([4, 2]))


def wrap(var, dims=(1,), max_norm=1.0, **kwargs):
    opt = tf.train.GradientDescentOptimizer(0.1)
    dims = [(var, list(dims))]
    return contrib_opt.VariableClippingOptimizer(opt, dims, max_norm, **kwargs)


def in_eager_mode(make_grad, dtype=tf.float32, compiled=False, **kwargs):
    var = tf.Variable(tf.constant(TABLE, dtype), use_resource=True)
    opt = wrap(var, **kwargs)

    def step():
        opt.apply_gradients([(make_grad(), var)])

    (tf.function(step) if compiled else step)()
    return tf.cast(var, tf.float64).numpy()


def in_graph(make_grad, dtype=tf.float32, use_resource=False, **kwargs):
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.Variable(tf.constant(TABLE, dtype), use_resource=use_resource)
        train_op = wrap(var, **kwargs).apply_gradients([(make_grad(), var)])
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        return session.run(tf.cast(var, tf.float64))


RUNTIMES = {
    "ref": in_graph,
    "resource": lambda *args, **kwargs: in_graph(*args, use_resource=True, **kwargs),
    "eager": in_eager_mode,
    "function": lambda *args, **kwargs: in_eager_mode(*args, compiled=True, **kwargs),
}


def with_rows_clipped(rows):
    expected = TABLE.copy()
    expected[rows] = CLIPPED[rows]
    return expected


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("dims", [[1], [-1], (np.int64(1),)], ids=str)
@pytest.mark.parametrize("colocate", [False, True])
def test_the_rows_of_a_sparse_gradient_are_clipped_once(runtime, dims, colocate):
    found = RUNTIMES[runtime](
        lambda: zeros_at([0, 2, 0, 0, 3]),
        dims=dims,
        colocate_clip_ops_with_vars=colocate,
    )
    np.testing.assert_allclose(found, with_rows_clipped([0, 2, 3]), rtol=1e-6)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_sparse_gradient_and_dimension_0(runtime):
    found = RUNTIMES[runtime](lambda: zeros_at([2]), dims=[-1, 0], max_norm=2.0)
    np.testing.assert_allclose(found, TABLE * 2 / np.linalg.norm(TABLE), rtol=1e-6)


@pytest.mark.parametrize("runtime", ["ref", "eager"])
@pytest.mark.parametrize("sparse", [False, True])
def test_half_precision_beyond_its_largest_norm(runtime, sparse):
    # The squares of these weights are above the largest number of float16.
    def grad():
        if sparse:
            return zeros_at([0, 1, 2, 3], tf.float16)
        return tf.constant(0 * TABLE, tf.float16)

    found = RUNTIMES[runtime](grad, tf.float16, max_norm=2.0)
    assert np.abs(found - 2 * CLIPPED)[[0, 1, 3]].max() < 5e-3

    var = tf.Variable(tf.constant(100 * TABLE, tf.float16), use_resource=True)
    wrap(var).apply_gradients([(grad(), var)])
    big = [0, 1, 3]
    np.testing.assert_allclose(var.numpy()[big], CLIPPED[big], atol=0.3)
    assert (np.abs(var.numpy()[big]).sum(axis=1) > 0.5).all()


def test_a_norm_of_0():
    found = in_eager_mode(lambda: tf.constant(TABLE * 10, tf.float32), max_norm=0)
    np.testing.assert_array_equal(found, 0)


def test_only_what_has_a_gradient_is_clipped():
    var, other = [
        tf.Variable(TABLE, dtype=tf.float32, use_resource=True) for _ in range(2)
    ]
    opt = tf.train.GradientDescentOptimizer(0.1)
    pairs = [(var, [1]), (other, [1])]
    opt = contrib_opt.VariableClippingOptimizer(opt, pairs, 1.0)
    opt.apply_gradients([(tf.zeros([4, 2]), var), (None, other)])
    np.testing.assert_allclose(var.numpy(), CLIPPED, rtol=1e-6)
    np.testing.assert_allclose(other.numpy(), TABLE, rtol=1e-6)


def test_replicas_clip_the_rows_of_each_other():
    strategy = mirrored_strategy()
    with strategy.scope():
        var = tf.Variable(TABLE, dtype=tf.float32, use_resource=True)
        opt = wrap(var)
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2

    def step():
        # Rows 0 and 0, or 2 and 3.
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        rows = tf.cast(replica, tf.int32) * tf.constant([2, 3])
        slices = tf.IndexedSlices(tf.zeros([2, 2]), rows, tf.constant([4, 2]))
        opt.apply_gradients([(slices, var)])

    tf.function(lambda: run(step))()
    for copy in var.values:
        np.testing.assert_allclose(
            copy.numpy(), with_rows_clipped([0, 2, 3]), rtol=1e-6
        )


@pytest.mark.parametrize("colocate", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_where_norms_are_computed(colocate, sparse):
    with tf.Graph().as_default() as graph:
        var = tf.get_variable("table", initializer=tf.constant(TABLE, tf.float32))
        grad = zeros_at([0]) if sparse else tf.zeros([4, 2])
        wrap(var, colocate_clip_ops_with_vars=colocate).apply_gradients([(grad, var)])
        roots = [op for op in graph.get_operations() if op.type == "Sqrt"]
        assert [b"loc:@table" in op.colocation_groups() for op in roots] == [colocate]


def test_what_may_name_the_variables():
    with tf.Graph().as_default():
        var = tf.get_variable("table", initializer=tf.constant(TABLE, tf.float32))
        ref = getattr(var, "ref", None) or var.experimental_ref
        for keys in ({var: [1]}, {ref(): [1]}, [(var, [1])], [(ref(), (1,))]):
            opt = tf.train.GradientDescentOptimizer(0.1)
            opt = contrib_opt.VariableClippingOptimizer(opt, keys, 1.0)
            with tf.Session() as session:
                train_op = opt.apply_gradients([(zeros_at([0]), var)])
                session.run(tf.global_variables_initializer())
                session.run(train_op)
                found = session.run(var)
            np.testing.assert_allclose(found, with_rows_clipped([0]), rtol=1e-6)


def test_slots_and_variables_are_the_wrapped_optimizers():
    var = tf.Variable(TABLE, dtype=tf.float32, use_resource=True)
    opt = tf.train.MomentumOptimizer(0.1, 0.9)
    opt = contrib_opt.VariableClippingOptimizer(opt, [(var, [1])], 1.0)
    step = tf.Variable(0, dtype=tf.int64, use_resource=True)
    assert opt.apply_gradients([(tf.ones([4, 2]), var)], step) is None
    assert step.numpy() == 1
    np.testing.assert_array_equal(opt.get_slot(var, "momentum").numpy(), 1)
    assert len(opt.variables()) == 1


def test_names_of_what_the_wrapped_optimizer_keeps_once():
    with tf.Graph().as_default():
        var = tf.get_variable("table", initializer=tf.constant(TABLE, tf.float32))
        opt = tf.train.AdamOptimizer()
        opt = contrib_opt.VariableClippingOptimizer(opt, [(var, [1])], 1.0)
        opt.apply_gradients([(tf.zeros([4, 2]), var)])
        # As TensorFlow 1.15 named them.
        assert sorted(v.name for v in opt.variables()) == [
            "VariableClipping/beta1_power:0",
            "VariableClipping/beta2_power:0",
            "table/Adam:0",
            "table/Adam_1:0",
        ]


def test_bad_arguments():
    opt = tf.train.GradientDescentOptimizer(0.1)
    var = tf.Variable(TABLE, dtype=tf.float32, use_resource=True, name="table")

    def make(dims=(1,), max_norm=1.0, opt=opt, var=var):
        contrib_opt.VariableClippingOptimizer(opt, [(var, dims)], max_norm)

    make()
    for max_norm in (-1.0, "1", None):
        with pytest.raises(ValueError, match="max_norm must be"):
            make(max_norm=max_norm)
    for dims in (None, 1, "1", [1.0], ["1"]):
        with pytest.raises(
            ValueError, match="of table:0 .* must be a list of integers"
        ):
            make(dims)
    for dims in ([2], [0, -3]):
        with pytest.raises(ValueError, match="table:0 has 2 dimensions"):
            make(dims)
    with pytest.raises(TypeError, match="opt must be"):
        make(opt=None)
    for wrong in ("table", tf.constant(TABLE), None):
        with pytest.raises(TypeError, match="must have variables"):
            make(var=wrong)
    for wrong in (None, [var], 3):
        with pytest.raises(TypeError, match="vars_to_clip_dims must be a dict"):
            contrib_opt.VariableClippingOptimizer(opt, wrong, 1.0)

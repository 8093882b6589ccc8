"""What loss scale managers go through: arguments, and which steps are finite."""

import tensorflow.compat.v1 as tf

_MIXED = [True, True, False, True, True, True, True, False, False, True, False, True]

ROWS = {
    "defaults": ({"init_loss_scale": 16, "incr_every_n_steps": 2}, _MIXED),
    "ratios": (
        {
            "init_loss_scale": 100.0,
            "incr_every_n_steps": 3,
            "decr_every_n_nan_or_inf": 1,
            "incr_ratio": 1.5,
            "decr_ratio": 0.3,
        },
        _MIXED,
    ),
    "never_below_one": (
        {
            "init_loss_scale": 4.0,
            "incr_every_n_steps": 5,
            "decr_every_n_nan_or_inf": 2,
            "decr_ratio": 0.25,
        },
        [False] * 6 + [True] * 2 + [False] * 4,
    ),
    "never_above_float32": (
        {"init_loss_scale": 2.0**126, "incr_every_n_steps": 1},
        [True] * 4 + _MIXED[:8],
    ),
}


def states(make_manager, row):
    """[loss scale, good steps, bad steps] after each step, in a graph."""
    kwargs, finite_steps = row
    with tf.Graph().as_default(), tf.Session() as session:
        manager = make_manager(**kwargs)
        finite = tf.placeholder(tf.bool, [])
        update = manager.update_loss_scale(finite)
        variables = tf.global_variables()
        assert [v.op.name for v in variables] == [
            "loss_scale",
            "good_steps",
            "bad_steps",
        ]
        session.run(tf.global_variables_initializer())
        found = []
        for value in finite_steps:
            session.run(update, {finite: value})
            found.append([float(number) for number in session.run(variables)])
        return found

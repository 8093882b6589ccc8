"""What one parameter server and two workers train, and what one process makes of it.

A step takes the batches that its number gives, so that whoever takes it, computes it
alike. Workers that train "in turns" take a step each by turns, and do not wait for
each other otherwise; "together" they take a step of SyncReplicasOptimizer, whose
gradient is the mean of both.
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

import contrib_opt

WORKERS = 2
STEPS = 12
BATCHES = 16

_random = np.random.RandomState(0)
FEATURES = _random.normal(size=[BATCHES, 4, 3]).astype(np.float32)
LABELS = _random.normal(size=[BATCHES, 4, 2]).astype(np.float32)
# Sorted, and each row once: a SparseConditionalAccumulator wants them so.
ROWS = np.array([sorted(_random.permutation(9)[:4]) for _ in range(BATCHES)], np.int64)
KERNEL = _random.normal(size=[3, 2]).astype(np.float32)
TABLE = _random.normal(size=[12, 2]).astype(np.float32)  # The last rows are not seen.


def least_squares(batches):
    """The loss of the examples of `batches`, a list of numbers."""
    kernel = tf.get_variable("layer/kernel", initializer=KERNEL)
    bias = tf.get_variable("layer/bias", initializer=np.ones([2], np.float32))
    features = tf.reshape(tf.gather(FEATURES, batches), [-1, 3])
    labels = tf.reshape(tf.gather(LABELS, batches), [-1, 2])
    return tf.reduce_mean(tf.square(tf.matmul(features, kernel) + bias - labels))


def _part_of_table(shape, dtype, partition_info):
    first = partition_info.var_offset[0]
    return tf.constant(TABLE[first : first + shape[0]], dtype)


def embeddings(batches):
    """The loss of the rows of a table in two partitions, looked up for `batches`."""
    table = tf.get_variable(
        "table",
        TABLE.shape,
        initializer=_part_of_table,
        partitioner=tf.fixed_size_partitioner(2),
    )
    rows = tf.reshape(tf.gather(ROWS, batches), [-1])
    looked_up = tf.nn.embedding_lookup(table, rows, partition_strategy="div")
    return tf.reduce_mean(tf.square(looked_up - 0.5))


Case = collections.namedtuple("Case", "id optimizer problem together use_resource")


def lars():
    return contrib_opt.LARSOptimizer(0.05, eeta=1.0, skip_list=["bias"])


def lazy_adam():
    return contrib_opt.LazyAdamOptimizer(0.1)


def adamw():
    return contrib_opt.AdamWOptimizer(weight_decay=0.01, learning_rate=0.1)


def drop_stale():
    return contrib_opt.DropStaleGradientOptimizer(lars(), staleness=0)


CASES = [
    Case("lars-in-turns", lars, least_squares, False, False),
    Case("lars-together", lars, least_squares, True, False),
    Case("lars-resource-together", lars, least_squares, True, True),
    Case("lazy-adam-in-turns", lazy_adam, embeddings, False, False),
    Case("lazy-adam-together", lazy_adam, embeddings, True, True),
    Case("adamw-in-turns", adamw, least_squares, False, True),
    Case("adamw-together", adamw, least_squares, True, False),
    Case("drop-stale-in-turns", drop_stale, least_squares, False, True),
]

# The wrappers that give each worker variables of its own; these run free.
COPIES = ["ElasticAverage", "ModelAverage", "AGN"]


def batches_of(case, step, tasks):
    """The batches that the workers `tasks` take in `step`, a scalar Tensor."""
    if case.together:
        numbers = [step * WORKERS + task for task in tasks]
    else:
        numbers = [step]
    return tf.math.floormod(tf.stack(numbers), BATCHES)


def global_step_of(case):
    return tf.get_variable(
        "global_step",
        [],
        tf.int64,
        initializer=tf.zeros_initializer(),
        trainable=False,
        collections=[tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP],
        use_resource=case.use_resource,
    )


def alone(case):
    """All variables of a case after its steps in one process, by name."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", use_resource=case.use_resource):
            step = global_step_of(case)
            optimizer = case.optimizer()
            batches = batches_of(case, step, range(WORKERS))
            loss = case.problem(batches)
            pairs = optimizer.compute_gradients(loss)
            if case.problem is embeddings and case.together:
                pairs = [(_mean_by_row(grad), var) for grad, var in pairs]
            train_op = optimizer.apply_gradients(pairs, step)
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train_op)
        return session.run({v.op.name: v for v in tf.global_variables()})


def _mean_by_row(grad):
    """As SyncReplicasOptimizer has it: a row's mean over the workers that saw it.

    `grad` is that of the mean over the examples of all workers.
    """
    rows, place, count = tf.unique_with_counts(grad.indices)
    sums = tf.math.unsorted_segment_sum(grad.values, place, tf.size(rows))
    share = tf.cast(WORKERS, tf.float32) / tf.cast(count, tf.float32)
    return tf.IndexedSlices(sums * share[:, None], rows, grad.dense_shape)

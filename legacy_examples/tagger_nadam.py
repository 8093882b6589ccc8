"""Nadam in a graph: a tagger of words with an embedding table, in a Session.

    python legacy_examples/tagger_nadam.py
    python legacy_examples/tagger_nadam.py --optimizer=lazy_adam

The task is a syntax highlighter's: to say of each word of Python source whether it is
part of a comment, of a string, a keyword, a name, a number or an operator. The text
is Python's own standard library, the truth is what the module `tokenize` says, and
the tagger sees a word and its neighbours only: to it, "in" may be a keyword, or
English in a comment or in a docstring. It is tested on modules that it never saw.

The table has a row for each word of the training modules. A step sees few of them: its
gradient is IndexedSlices. Nadam lets the moments of all rows decay in each step,
LazyAdam touches only the rows that the step sees.
"""

import collections
import io
import keyword
import os
import re
import time
import tokenize

import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags, logging

import contrib_opt

FLAGS = flags.FLAGS

# Keeps TensorFlow's news out of the report; --verbosity=0 brings it back.
FLAGS.verbosity = logging.WARNING

OPTIMIZERS = {
    "nadam": contrib_opt.NadamOptimizer,
    "lazy_adam": contrib_opt.LazyAdamOptimizer,
}

flags.DEFINE_enum(
    "optimizer",
    "nadam",
    sorted(OPTIMIZERS),
    "nadam is contrib_opt.NadamOptimizer, lazy_adam is contrib_opt.LazyAdamOptimizer.",
)
flags.DEFINE_float("learning_rate", 0.003, "Learning rate.", lower_bound=0.0)
flags.DEFINE_integer("batch_size", 256, "Words in a step.", lower_bound=1)
flags.DEFINE_integer("steps", 1000, "Steps to train.", lower_bound=1)
flags.DEFINE_integer("log_every", 100, "Steps from report to report.", lower_bound=1)
flags.DEFINE_integer("context", 6, "Neighbours seen on either side.", lower_bound=0)
flags.DEFINE_integer("seed", 0, "Seed of weights and batches.", lower_bound=0)

TRAIN_MODULES = """
    argparse ast calendar cmd code codecs configparser contextlib copy csv dataclasses
    difflib dis enum fractions ftplib functools getopt gettext glob gzip inspect
    ipaddress locale mailbox netrc optparse os pickletools platform plistlib posixpath
    pprint profile queue random reprlib sched selectors shelve shlex shutil smtplib
    socket socketserver stat statistics string struct subprocess tarfile tempfile
    textwrap timeit tokenize traceback types uuid warnings weakref zipapp
""".split()
TEST_MODULES = "bdb bisect cgitb colorsys fileinput heapq pdb trace typing".split()

TAGS = ["comment", "string", "keyword", "name", "number", "operator"]
EMBEDDING_SIZE, HIDDEN_SIZE = 24, 48
UNKNOWN = "<unknown>"  # any word that the training modules have less than twice

# The words in the order of the text, and the tag of each.
Text = collections.namedtuple("Text", ["words", "tags"])


def read_module(name):
    """The source of a module of the standard library; None if Python lacks it."""
    path = os.path.join(os.path.dirname(os.__file__), name + ".py")
    if not os.path.exists(path):
        return None
    with tokenize.open(path) as source:
        return source.read()


def tag_of(token):
    """The tag of a token, or None for white space."""
    if token.type == tokenize.NAME:
        return "keyword" if keyword.iskeyword(token.string) else "name"
    kind = tokenize.tok_name[token.type]
    if "STRING" in kind:  # also the parts of an f-string, in Python 3.12 and later
        return "string"
    return {"COMMENT": "comment", "NUMBER": "number", "OP": "operator"}.get(kind)


def tagged_words(source):
    """Yields (word, tag): letters and digits, single other characters, line ends.

    A line end counts as a word, with the tag None: the tagger sees it, but need not
    tag it.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        tag = tag_of(token)
        for word in re.findall(r"\n|\w+|[^\w\s]", token.string):
            yield word, None if word == "\n" else tag


def read_modules(names):
    """The modules' words, one after the other, as a Text."""
    found = []
    for source in filter(None, map(read_module, names)):
        found.extend(tagged_words(source))
        found.append(("\n", None))
    words, tags = zip(*found)
    return Text(words, tags)


def vocabulary(words):
    """dict from word to row of the table."""
    counts = collections.Counter(words)
    known = sorted(word for word, count in counts.items() if count > 1)
    return {word: row for row, word in enumerate([UNKNOWN, *known])}


def windows(text, rows):
    """The words to tag, as (int32 [n, 2 * context + 1], int32 [n]).

    Each line has the rows of a word and of its neighbours, and the word's tag.
    """
    ids = np.array([rows.get(word, rows[UNKNOWN]) for word in text.words], np.int32)
    padded = np.pad(ids, FLAGS.context, mode="constant")
    size = 2 * FLAGS.context + 1
    seen = np.stack([padded[i : i + len(ids)] for i in range(size)], axis=1)
    tags = np.array([TAGS.index(tag) if tag else -1 for tag in text.tags], np.int32)
    return seen[tags >= 0], tags[tags >= 0]


def network(seen, vocabulary_size):
    """Logits [batch, tags] of windows [batch, 2 * context + 1]."""
    table = tf.get_variable(
        "embedding",
        [vocabulary_size, EMBEDDING_SIZE],
        initializer=tf.random_normal_initializer(stddev=0.3, seed=FLAGS.seed),
    )
    looked_up = tf.nn.embedding_lookup(table, seen)
    x = tf.reshape(looked_up, [-1, (2 * FLAGS.context + 1) * EMBEDDING_SIZE])
    x = tf.nn.relu(dense(x, HIDDEN_SIZE, "hidden"))
    return dense(x, len(TAGS), "tags")


def dense(x, size, name):
    """A dense layer with variables of its own, [batch, size]."""
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel",
            [x.shape[1], size],
            initializer=tf.glorot_uniform_initializer(seed=FLAGS.seed),
        )
        bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        return tf.matmul(x, kernel) + bias


def batches(count):
    """The numbers of the words of each step."""
    random = np.random.RandomState(FLAGS.seed)
    order = np.array([], np.int64)
    for _ in range(FLAGS.steps):
        while len(order) < FLAGS.batch_size:
            order = np.append(order, random.permutation(count))
        chosen, order = np.split(order, [FLAGS.batch_size])
        yield chosen


def main(_):
    """Trains, tests and reports."""
    train, test = read_modules(TRAIN_MODULES), read_modules(TEST_MODULES)
    rows = vocabulary(train.words)
    train_seen, train_tags = windows(train, rows)
    test_seen, test_tags = windows(test, rows)
    print(
        f"{len(train_tags)} words to learn from, {len(rows)} of them different; "
        f"{len(test_tags)} words to test on"
    )

    with tf.Graph().as_default(), tf.Session() as sess:
        seen = tf.placeholder(tf.int32, [None, 2 * FLAGS.context + 1], name="seen")
        tags = tf.placeholder(tf.int32, [None], name="tags")
        logits = network(seen, len(rows))
        found = tf.argmax(logits, axis=1)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=logits)
        )
        global_step = tf.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[FLAGS.optimizer](FLAGS.learning_rate)
        train_op = optimizer.minimize(loss, global_step)
        sess.run(tf.global_variables_initializer())

        start = time.time()
        for step, chosen in enumerate(batches(len(train_tags))):
            feed = {seen: train_seen[chosen], tags: train_tags[chosen]}
            _, value = sess.run([train_op, loss], feed)
            if step % FLAGS.log_every == 0:
                print(f"step {step:5d}/{FLAGS.steps}  loss {value:.4f}")
        seconds = time.time() - start
        answers = sess.run(found, {seen: test_seen})

    print(f"{1000 * seconds / FLAGS.steps:.1f} ms a step with {FLAGS.optimizer}")
    for number, tag in enumerate(TAGS):
        of_tag = test_tags == number
        right = 100 * np.mean(answers[of_tag] == number)
        print(f"{tag:>9}: {of_tag.sum():6d} words, {right:5.1f} % right")
    majority = np.bincount(train_tags).argmax()
    baseline = 100 * np.mean(test_tags == majority)
    print(f"Majority baseline ({TAGS[majority]}): {baseline:.1f} %")
    print(f"Test accuracy: {100 * np.mean(answers == test_tags):.1f} %")


if __name__ == "__main__":
    app.run(main)

"""Records what the swapping saver of TensorFlow 1.15.5 writes: run it there.

    PYTHONPATH=tests:. python tests/golden/moving_average/generate.py

The program is tests/wrappers/swapping.py's. Its checkpoint is `swapped-<steps>.*`;
`final.npz` has all variables at the end of a dozen steps.
"""

import os

import numpy as np
import tensorflow as tf

from wrappers.swapping import SAVED_STEP, Program

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    program = Program(tf.contrib.opt)
    program.train(range(SAVED_STEP))
    program.save(
        os.path.join(HERE, "swapped"),
        SAVED_STEP,
        write_meta_graph=False,
        write_state=False,
    )
    program.train(range(SAVED_STEP, 12))
    np.savez_compressed(os.path.join(HERE, "final.npz"), **program.values())


if __name__ == "__main__":
    main()

"""Records what tf.contrib.opt.ScipyOptimizerInterface makes of each problem.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19' scipy==1.7.3
    PYTHONPATH=.:tests python tests/golden/external/generate.py

Run it in TensorFlow 1.15.5. `results.json` has, for each case of
tests/external_problems.py and each dtype, the solution and the loss at each
evaluation; and the version of SciPy, whose path it is.
"""

import json

import scipy
import tensorflow as tf

from external_problems import CASES, DTYPES, GOLDEN, solve


def main():
    assert tf.__version__ == "1.15.5", tf.__version__
    interface = tf.contrib.opt.ScipyOptimizerInterface
    results = {
        f"{case} {dtype}": solve(interface, case, dtype)[0]
        for case in CASES
        for dtype in DTYPES
    }
    lines = [f'"scipy": "{scipy.__version__}"']
    lines += [f"{json.dumps(name)}: {json.dumps(r)}" for name, r in results.items()]
    with open(GOLDEN, "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

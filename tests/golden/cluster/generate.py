"""Records what workers on a cluster compute: run it in TensorFlow 1.15.5.

    pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'
    PYTHONPATH=tests python tests/golden/cluster/generate.py

- `<case>.json`, for each case of tests/wrappers/cluster.py that has a reference: the
  names of the variables in each collection, their devices, and the values of a
  worker's variables after each of its steps;
- `checkpoints/<kind>.*`: what a Saver saves in the middle of a run on one worker, and
  `resumed.json`: the values from there on in a new session;
- `checkpoints/swapped.*`: what ElasticAverageOptimizer's swapping_saver saves.

The real AGNOptimizer is now and then wrong on a cluster: its center then takes the sum
of the gradients for their mean. So each case runs several times, and what most
runs say is recorded, with their number.
"""

import collections
import json
import os

import tensorflow as tf

from wrappers.cluster import CASES, GOLDEN, RESUMED, resume, run_case, save

RUNS = 15


def most_frequent(results):
    """The result that most runs had; they are compared as JSON."""
    counts = collections.Counter(json.dumps(r, sort_keys=True) for r in results)
    [(text, count)] = counts.most_common(1)
    if 2 * count <= len(results):
        raise ValueError(f"Of {len(results)} runs only {count} agree")
    return dict(json.loads(text), runs=len(results), agreed=count)


def rounded(values, dtype):
    digits = 17 if dtype == "float64" else 9
    return [float(f"{value:.{digits}g}") for value in values]


def write(name, value):
    with open(os.path.join(GOLDEN, name + ".json"), "w") as lines:
        text = json.dumps(value, indent=1, sort_keys=True)
        lines.write(text + "\n")


def main():
    api = tf.contrib.opt
    for case in CASES:
        if not case.golden:
            continue
        result = most_frequent(
            [run_case(api, case) for _ in range(RUNS if case.distributed else 1)]
        )
        result["steps"] = [rounded(values, case.dtype) for values in result["steps"]]
        write(case.id, result)
        print(case.id, result["agreed"], "of", result["runs"])
    resumed = {}
    for case in RESUMED:
        save(api, case)
        values = resume(api, case)
        resumed[case.kind] = [rounded(step, case.dtype) for step in values]
    write("resumed", resumed)


if __name__ == "__main__":
    main()

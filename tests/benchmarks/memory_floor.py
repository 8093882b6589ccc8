"""LARS without TensorFlow, in C or else in NumPy: a floor for the time of an update."""

import ctypes
import os
import shutil
import subprocess
import tempfile

import numpy as np

# Or its idle threads would keep processors from what is measured next.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

HYPER = (0.1, 0.9, 1e-4, 1e-3)  # learning rate, momentum, weight decay, eeta


def numpy_lars(w, v, g, scratch, rate, momentum, weight_decay, eeta):
    w_norm, g_norm = np.sqrt(np.dot(w, w)), np.sqrt(np.dot(g, g))
    if w_norm > 0 and g_norm > 0:
        rate = rate * eeta * w_norm / (g_norm + weight_decay * w_norm)
    v *= momentum
    np.multiply(w, weight_decay * rate, out=scratch)
    v += scratch
    np.multiply(g, rate, out=scratch)
    v += scratch
    w -= v


def compiled_lars():
    """The function of memory_floor.c; None where no C compiler makes it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source = os.path.join(os.path.dirname(__file__), "memory_floor.c")
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "memory_floor.so")
        flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
        command = [compiler, *flags, source, "-o", library, "-lm"]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
            return None
        return ctypes.CDLL(library).lars


class MemoryFloor:
    """The same variables, updated by `how`: 'C, OpenMP' or 'NumPy'."""

    def __init__(self, shapes):
        random = np.random.RandomState(0)
        self._layers = []
        for size in (int(np.prod(shape)) for shape in shapes):
            w, g = random.uniform(-0.5, 0.5, (2, size)).astype(np.float32)
            self._layers.append((w, np.zeros_like(w), g))
        lars = compiled_lars()
        self.how = "NumPy" if lars is None else "C, OpenMP"
        if lars is None:
            scratch = np.empty(max(w.size for w, _, _ in self._layers), np.float32)
            self._calls = [
                (numpy_lars, (w, v, g, scratch[: w.size], *HYPER))
                for w, v, g in self._layers
            ]
            return
        pointer = ctypes.POINTER(ctypes.c_float)
        hyper = [ctypes.c_float(value) for value in HYPER]
        self._calls = [
            (
                lars,
                (*[a.ctypes.data_as(pointer) for a in layer],)
                + (ctypes.c_long(layer[0].size), *hyper),
            )
            for layer in self._layers
        ]

    def step(self):
        for update, arguments in self._calls:
            update(*arguments)

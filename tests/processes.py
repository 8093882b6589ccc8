"""Programs that run at once, on ports of this machine, for as long as a test does."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)

# Longer than any run takes, and shorter than anybody would wait.
SECONDS = 240


def free_port():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def addresses(**tasks):
    """A dict from job to addresses that are free, of so many tasks each."""
    return {
        job: [f"127.0.0.1:{free_port()}" for _ in range(count)]
        for job, count in tasks.items()
    }


class Processes:
    """Starts the programs of a test, and ends them all with the `with` block.

    Each one writes to a file NAME.log in `folder`; a failure shows the ends of all.
    """

    def __init__(self, folder):
        self.folder = str(folder)
        self._running = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for name in list(self._running):
            self.kill(name)

    def start(self, name, module, *arguments):
        """Runs `python -m module arguments`, under a name that is free."""
        self.run(name, "-m", module, *arguments)

    def run(self, name, *arguments, **environment):
        """Runs Python with these arguments and variables of the environment."""
        assert name not in self._running
        path = [ROOT, TESTS, os.environ.get("PYTHONPATH", "")]
        with open(self.log(name), "ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(os.environ, PYTHONPATH=os.pathsep.join(path), **environment),
                # A group of its own, with all that it starts.
                start_new_session=True,
            )

    def kill(self, name):
        """Kills a process, and all that it started, as a lost machine would."""
        process = self._running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        process.stdin.close()

    def interrupt(self, name):
        """What Ctrl-C sends, to this process alone."""
        self._running[name].send_signal(signal.SIGINT)

    def finish(self, name, expected=0, timeout=SECONDS):
        """Waits until a process ends; it must do so with the code `expected`."""
        process = self._running[name]
        self.wait_until(
            lambda: process.poll() is not None, f"{name} ends", timeout, (0, expected)
        )
        code = process.returncode
        assert code == expected, f"{name} ended with {code}\n{self.logs()}"
        self.kill(name)

    def wait_until(self, condition, what, timeout=SECONDS, codes=(0,)):
        """Waits for a condition; no process may end with a code not in `codes`."""
        end = time.monotonic() + timeout
        while not condition():
            ended = {name: each.poll() for name, each in self._running.items()}
            failed = {
                n: c for n, c in ended.items() if c is not None and c not in codes
            }
            assert not failed, f"Ended: {failed}, in wait: {what}\n{self.logs()}"
            assert time.monotonic() < end, f"Waited for ever: {what}\n{self.logs()}"
            time.sleep(0.05)

    def wait_for_file(self, file, timeout=SECONDS):
        """Waits for a file in the folder, and returns what is in it, from JSON."""
        path = os.path.join(self.folder, file)
        self.wait_until(lambda: os.path.exists(path), file, timeout)
        with open(path) as lines:
            return json.load(lines)

    def log(self, name):
        """The file that a process writes to."""
        return os.path.join(self.folder, name + ".log")

    def written(self, name):
        """What a process has written."""
        with open(self.log(name), errors="replace") as lines:
            return lines.read()

    def logs(self):
        """The last lines that each process wrote."""
        names = [f[:-4] for f in sorted(os.listdir(self.folder)) if f.endswith(".log")]
        return "\n".join(f"---- {n}\n{self.written(n)[-3000:]}" for n in names)


# ------------------------------------------------ for the programs that are started


def end_with_the_test(seconds=SECONDS):
    """Ends this process when its test is gone, or after so many seconds at last."""
    signal.alarm(seconds)

    def watch():
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def write(folder, file, content):
    """Writes JSON to a file that is complete as soon as it is there."""
    path = os.path.join(folder, file)
    with open(path + ".part", "w") as lines:
        json.dump(content, lines)
    os.replace(path + ".part", path)


class Barrier:
    """Lets a process go on once all others have come as far."""

    def __init__(self, folder, task, tasks):
        self._folder, self._task, self._tasks = folder, task, tasks

    def wait(self, name, timeout=SECONDS):
        """Waits until all tasks have called it with `name`."""
        write(self._folder, f"{name}.{self._task}", None)
        end = time.monotonic() + timeout
        for task in range(self._tasks):
            path = os.path.join(self._folder, f"{name}.{task}")
            while not os.path.exists(path):
                assert time.monotonic() < end, f"Waited for ever: {name} of {task}"
                time.sleep(0.002)

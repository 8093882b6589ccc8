"""Starts lars_cluster.py on this machine: parameter servers and workers.

    python legacy_examples/cluster/launch.py --workers=2 --steps=300

Flags that are not its own go to lars_cluster.py (its --help lists them). When all
workers have ended, so has this; Ctrl-C ends them all. A worker that fails ends the
others, too.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lars_cluster.py")
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and a request to end


def free_addresses(count):
    """Addresses of this machine whose ports are free."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def wait_for(processes):
    """Waits until all have ended, or one has failed; returns its code, or 0."""
    while True:
        codes = [process.poll() for process in processes]
        failed = [code for code in codes if code]
        if failed:
            return failed[0]
        if None not in codes:
            return 0
        time.sleep(0.2)


def stop(processes, grace_seconds=5):
    """Ends what still runs, whatever comes."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main():
    """Starts the tasks, waits for them, and ends with their exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ps", type=int, default=1, help="parameter servers")
    parser.add_argument("--workers", type=int, default=2, help="workers")
    own, flags = parser.parse_known_args()
    if own.ps < 1 or own.workers < 1:
        parser.error("--ps and --workers must be 1 or more.")

    addresses = free_addresses(own.ps + own.workers)
    ps_hosts, worker_hosts = addresses[: own.ps], addresses[own.ps :]
    flags += [
        "--ps_hosts=" + ",".join(ps_hosts),
        "--worker_hosts=" + ",".join(worker_hosts),
    ]
    for number in SIGNALS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    processes = []
    try:
        for job, hosts in (("ps", ps_hosts), ("worker", worker_hosts)):
            for index, host in enumerate(hosts):
                print(f"{job} {index} is at {host}", flush=True)
                task = [f"--job_name={job}", f"--task_index={index}"]
                processes.append(
                    subprocess.Popen([sys.executable, PROGRAM, *task, *flags])
                )
        return wait_for(processes)
    finally:
        stop(processes)


if __name__ == "__main__":
    sys.exit(main())

"""A Dask scheduler and workers as processes of this machine, for tests."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import labelsure

SOURCE = str(Path(labelsure.__file__).parents[1])
PATIENCE = 120.0  # seconds until a process that says nothing is taken to be broken


class LocalCluster:
    """A scheduler on the loopback device, and workers that join and are ended as a test says.

    Parameters
    ----------
    folder
        Where they run and write what they say.
    """

    def __init__(self, folder):
        self.folder, self.processes, self.workers = folder, [], []

    def __enter__(self):
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self._start("scheduler", *options)
        self.address = self._wait_for("scheduler", r"Scheduler at:\s+(tcp://\S+)")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def add_worker(self, variables=None):
        """Start a worker with one thread; variables are for its environment."""
        name = f"worker{len(self.workers)}"
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        self.workers.append(
            self._start("worker", self.address, *options, name=name, variables=variables)
        )
        self._wait_for(name, "Registered to")

    def _start(self, command, *words, name=None, variables=None):
        environment = {**os.environ, "PYTHONPATH": SOURCE, **(variables or {})}
        with open(self.folder / f"{name or command}.txt", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command}", *words],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def _wait_for(self, name, pattern):
        log = self.folder / f"{name}.txt"
        started = time.monotonic()
        while not (found := re.search(pattern, log.read_text())):
            if time.monotonic() > started + PATIENCE:
                raise TimeoutError(log.read_text())
            time.sleep(0.05)
        return found[1] if found.groups() else found[0]

"""A study in a process of its own, which tests end from outside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import tomli_w

from labelsure.study.plan import load_plan

PATIENCE = 60.0  # seconds; a process that is there after them is taken to stay for good
REPORT_BEGINS = "Writing tables and figures"

PLAN = {
    **load_plan("quick").to_dict(),
    "classifiers": {"Indep": {"class": "BinaryRelevance"}},
    "n_replicates": 100,
}
"""Its cells take a moment and its report some ten seconds, most of them in worker processes."""


class RunningStudy:
    """The command `labelsure study` in a session of its own, by which all its processes are found.

    Parameters
    ----------
    folder
        Where the plan, the run and what is said on stderr are kept.
    n_jobs
        How many worker processes it is asked for; 1 means none.
    settings
        Of its plan.
    """

    def __init__(self, folder, n_jobs, settings=PLAN):
        self.out, self.log = folder / "run", folder / "stderr.txt"
        plan = folder / "plan.toml"
        plan.write_text(tomli_w.dumps(settings))
        command = [
            sys.executable,
            "-m",
            "labelsure",
            "study",
            "run",
            str(plan),
            "--out",
            str(self.out),
        ]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "--jobs", str(n_jobs)],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                # Also where the tests themselves were started by `nohup`.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            )

    def wait_for_cells(self, n_cells):
        """Wait until some cells are finished, or the run is over."""
        cells = self.out / "cells"
        self._wait_until(lambda: len(list(cells.glob("[!.]*.parquet"))) >= n_cells)

    def wait_for_report(self, n_workers):
        """Wait until the report is being made and there are some worker processes."""
        self._wait_until(
            lambda: REPORT_BEGINS in self.log.read_text() and len(self.processes()) > n_workers
        )

    def _wait_until(self, is_reached):
        while not is_reached() and self.process.poll() is None:
            time.sleep(0.005)

    def end(self, number):
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def processes(self):
        """Return the processes of the run that are there, by their numbers."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                before, _, after = path.read_text().rpartition(")")
            except OSError:  # it has just ended
                continue
            state, _, _, session = after.split()[:4]
            if int(session) == self.process.pid and state != "Z":
                found[int(path.parent.name)] = before.partition("(")[2]
        return found

    def seconds_until_all_are_gone(self):
        """Wait until no process of the run is left; infinite where one of them stays."""
        started = time.monotonic()
        while left := self.processes():
            if time.monotonic() > started + PATIENCE:
                for process in left:
                    os.kill(process, signal.SIGKILL)
                return float("inf")
            time.sleep(0.02)
        return time.monotonic() - started

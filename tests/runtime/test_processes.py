"""Worker processes leave with the process that they work for."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from joblib import parallel_config
from joblib.parallel import get_active_backend

from labelsure._runtime.processes import watched_workers

WORKER = (
    "import os, time; from labelsure._runtime.processes import end_with_parent; "
    "end_with_parent(os.getppid());"
)
OWNER = """
import subprocess, sys, time
code = sys.argv[1] + "print(1, flush=True); time.sleep(60)"
worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
time.sleep(60)
"""


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
def test_workers_leave_with_a_run_that_is_killed():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, WORKER], stdout=subprocess.PIPE, text=True
    )
    worker = int(owner.stdout.readline())
    assert is_running(worker)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    until = time.monotonic() + 30
    while is_running(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(worker)


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_another_backend_that_was_chosen_stays(backend):
    with parallel_config(backend, n_jobs=3):
        chosen = get_active_backend()
        with watched_workers():
            assert get_active_backend() == chosen


def test_the_number_of_jobs_that_was_chosen_stays():
    with parallel_config("loky", n_jobs=3), watched_workers():
        assert get_active_backend()[1] == 3
    before = get_active_backend()[1]
    with watched_workers():
        assert get_active_backend()[1] == before

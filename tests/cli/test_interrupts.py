"""Whatever a signal hits, the command ends as an interrupted one does."""

import contextlib
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from joblib import Parallel, delayed

from labelsure._runtime.processes import watched_workers
from labelsure.cli import _app
from labelsure.cli._app import main

SENTENCE = "Interrupted. Finished work is kept.\n"
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Let a command do something else; return its exit code and what it says on stderr."""
    monkeypatch.setattr(_app, "SECONDS_UNTIL_REPEATED", 0.02)

    def run(function):
        monkeypatch.setattr("labelsure.study.run.run_study", lambda *_, **__: function())
        code = main(["study", "run", "quick", "--out", str(tmp_path / "run")])
        return code, capsys.readouterr().err

    return run


def wait_in_vain(seconds=20):
    """Do something that an interrupt ends at once."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("number", NUMBERS)
def test_signals_interrupt(run, number):
    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        assert run(lambda: signal.raise_signal(number)) == (130, SENTENCE)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_stays_so(run):
    seen = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        run(lambda: seen.append(signal.getsignal(signal.SIGHUP)) or signal.raise_signal(2))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_IGN]


def test_another_thread_sets_no_handlers(run):
    def interrupt():
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, interrupt).result() == (130, SENTENCE)


class Finalizer:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def test_an_interrupt_that_python_drops_is_raised_again(run):
    """As in callbacks of compiled code, which numba has."""
    hook = sys.unraisablehook

    def lose_it():
        Finalizer()
        wait_in_vain()

    assert run(lose_it) == (130, SENTENCE)
    assert sys.unraisablehook is hook


def test_what_else_is_dropped_is_printed(run, monkeypatch):
    class Broken:
        def __del__(self):
            raise ValueError("in a finalizer")

    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: said.append(str(dropped.exc_value)))
    assert run(lambda: (Broken(), signal.raise_signal(2))) == (130, SENTENCE)
    assert said == ["in a finalizer"]


def test_a_library_that_raises_something_else(run):
    """As joblib does where the same signal has ended its workers."""

    def replace():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise RuntimeError("A worker was ended.") from None

    assert run(replace) == (130, SENTENCE)


def test_a_library_that_goes_on(run):
    def ignore():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        wait_in_vain()

    assert run(ignore) == (130, SENTENCE)


POOLS = """
import sys, time
import labelsure.study.run
from labelsure._runtime.processes import end_workers, run_tasks, watched_workers
from labelsure.cli import main

def make_pools(*_, **__):
    print("ready", flush=True)
    with watched_workers():
        while True:
            list(run_tasks(time.sleep, [(0.01,)] * 4, n_jobs=2))
            end_workers()

labelsure.study.run.run_study = make_pools
sys.argv = ["labelsure", "study", "run", "quick", "--out", sys.argv[1]]
sys.exit(main())
"""


@pytest.mark.parametrize(
    "seconds",
    [0.1, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(0.4, marks=pytest.mark.slow)],
)
def test_a_signal_while_pools_are_made_and_ended(tmp_path, seconds):
    """The workers hold the pipes open until the last of them has left."""
    words = [sys.executable, "-c", POOLS, str(tmp_path / "run")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, start_new_session=True, **pipes) as program:
        assert program.stdout.readline() == "ready\n"
        time.sleep(seconds)
        program.send_signal(signal.SIGTERM)
        _, said = program.communicate(timeout=60)
    assert (program.returncode, said) == (130, SENTENCE)


PROGRAM = """
import atexit, os, sys, time
from joblib import Parallel, delayed
from labelsure.cli import main
atexit.register(lambda: (os.kill(os.getpid(), {number}), time.sleep(20)))
Parallel(2)(delayed(abs)(i) for i in range(4))
sys.argv = ["labelsure", "--version"]
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_output(number):
    """While Python ends: with a pool that the command has left, and without a trace of it."""
    program = [sys.executable, "-c", PROGRAM.format(number=int(number))]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout.startswith("labelsure ")


def test_workers_leave_interrupts_to_their_owner():
    with watched_workers():
        found = Parallel(2)(delayed(signal.getsignal)(signal.SIGINT) for _ in range(2))
    assert found == [signal.SIG_IGN] * 2
    assert signal.getsignal(signal.SIGINT) != signal.SIG_IGN

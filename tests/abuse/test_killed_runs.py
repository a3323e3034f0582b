"""No process outlives its run, whoever ends the run and whatever it was doing."""

import signal
from pathlib import Path

import pytest
from abuse.killed_runs import PLAN, RunningStudy

from labelsure.study.plan import Plan
from labelsure.study.run import run_study

pytestmark = [
    pytest.mark.jit_only,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes"),
]
INTERRUPTED = "Interrupted. Finished work is kept.\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.slow
def test_ended_during_the_report(tmp_path, number):
    """All cells are kept, so that the report starts the only pool."""
    run_study(Plan.from_dict(PLAN), tmp_path / "run", n_jobs=1)
    run = RunningStudy(tmp_path, n_jobs=2)
    run.wait_for_report(n_workers=2)
    code = run.end(number)
    assert run.seconds_until_all_are_gone() < float("inf")
    assert code == (-9 if number == signal.SIGKILL else 130)
    assert (INTERRUPTED in run.log.read_text()) == (number == signal.SIGTERM)
    assert not (tmp_path / "run" / "tables").exists()


def test_ended_while_cells_are_computed(tmp_path):
    run = RunningStudy(tmp_path, n_jobs=2)
    run.wait_for_cells(1)
    assert run.end(signal.SIGHUP) == 130
    assert run.seconds_until_all_are_gone() < float("inf")
    assert run.log.read_text().endswith(INTERRUPTED)
    assert not (tmp_path / "run" / "scores.parquet").exists()


@pytest.mark.slow
def test_the_pools_of_classifiers_leave_too(tmp_path):
    classifiers = {"Indep": {"class": "BinaryRelevance", "n_jobs": 2}}
    run = RunningStudy(tmp_path, n_jobs=1, settings={**PLAN, "classifiers": classifiers})
    run.wait_for_report(n_workers=2)
    assert len(run.processes()) > 2
    assert run.end(signal.SIGKILL) == -9
    assert run.seconds_until_all_are_gone() < float("inf")

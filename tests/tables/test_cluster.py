"""A Dask cluster for real: processes on the loopback device, workers that die and join."""

import hashlib
import re
import threading

import numpy as np
import pytest
from local_cluster import LocalCluster
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure._runtime import processes
from labelsure._runtime.processes import TaskFailure, run_tasks
from labelsure.study.plan import load_plan
from labelsure.study.run import run_study
from labelsure.tables.estimates import sum_files
from labelsure.tables.scoring import score_dask, score_files, score_frame

pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
pytestmark = pytest.mark.jit_only
ROWS = 400


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        running.add_worker()
        running.add_worker()
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_model().save(folder / "model.labelsure")
    write_files(make_rows(ROWS), folder / "new")
    return folder


def write_files(rows, folder):
    """Twenty files, each of which is a task."""
    folder.mkdir()
    for number in range(20):
        rows[20 * number : 20 * number + 20].to_csv(folder / f"{number:02d}.csv", index=False)


def checksum(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_the_same_bits_though_a_worker_is_killed_and_another_joins(cluster, files):
    finished = []

    def disturb(n_done, n_all):
        finished.append(n_done)
        if len(finished) == 4:
            cluster.workers[0].kill()
            threading.Thread(target=cluster.add_worker).start()

    arguments = {"id_column": "id", "audit": 7}
    score = [files / "model.labelsure", files / "new"]
    run = score_files(
        *score, files / "dask.csv", scheduler=cluster.address, progress=disturb, **arguments
    )
    assert (run.n_rows, run.n_parts, len(finished), finished[-1]) == (ROWS, 20, 20, ROWS)
    for n_jobs in (1, 2):
        score_files(*score, files / f"jobs{n_jobs}.csv", n_jobs=n_jobs, **arguments)
    assert (
        checksum(files / "dask.csv")
        == checksum(files / "jobs1.csv")
        == checksum(files / "jobs2.csv")
    )


@pytest.mark.slow
def test_a_unit_with_bad_rows_loses_no_other(cluster, files):
    rows = make_rows(ROWS).astype(str)
    rows.loc[57, "b"] = "soon"
    write_files(rows, files / "bad")
    arguments = [files / "model.labelsure", files / "bad", files / "bad_scored.csv"]
    with pytest.raises(ls.InputError, match="parts"):
        score_files(*arguments, scheduler=cluster.address)
    run = score_files(*arguments, scheduler=cluster.address, bad_rows=files / "aside.jsonl")
    assert (run.n_rows, run.n_bad, run.n_kept) == (ROWS - 1, 1, 19)


@pytest.mark.slow
def test_estimates_come_from_the_cluster(cluster, files):
    arguments = [files / "model.labelsure", files / "new"]
    found = sum_files(*arguments, scheduler=cluster.address).estimate()
    assert found == sum_files(*arguments, n_jobs=1).estimate()


@pytest.mark.slow
def test_a_study_has_the_same_scores(cluster, tmp_path):
    plan = load_plan("quick").with_repeats(1)
    run = run_study(plan, tmp_path / "dask", scheduler=cluster.address)
    assert run.scores.equals(run_study(plan, tmp_path / "here", n_jobs=1).scores)


def test_partitions_of_a_dask_dataframe(files):
    import dask.dataframe as dd

    rows = make_rows(60)
    frames = dd.from_pandas(rows, npartitions=3)
    path = files / "model.labelsure"
    found = score_dask(frames, path, id_column="id", top=1)
    table = found.compute(scheduler="synchronous")
    expected = score_frame(path, rows, id_column="id", top=1)
    assert found._meta.dtypes.equals(expected.dtypes)
    assert list(table) == list(expected)
    assert table["predicted"].tolist() == expected["predicted"].tolist()
    np.testing.assert_allclose(table["estimated_accuracy"], expected["estimated_accuracy"])
    assert table.index.equals(rows.index)


@pytest.mark.slow
def test_a_task_that_cannot_begin_is_a_failure(cluster):
    """As in a worker that joins later without the package: the task is not to be unpickled."""
    found = dict(run_tasks(len, [(Unknown(),), ([1],)], scheduler=cluster.address))
    assert found[1] == 1
    assert isinstance(found[0], TaskFailure)
    assert re.fullmatch(
        r"A worker could not begin a task \(.*\)\. Every worker needs labelsure and its "
        r"dependencies in the versions that are installed here\. Run again: finished work is "
        r"kept\.",
        found[0].message,
    )


@pytest.mark.slow
def test_what_a_task_raises_is_raised_here(cluster):
    for ordered in (False, True):
        with pytest.raises(ZeroDivisionError):
            list(run_tasks(divmod, [(1, 0)], scheduler=cluster.address, ordered=ordered))


@pytest.mark.slow
def test_a_scheduler_that_goes_away_ends_the_run(files, tmp_path):
    arguments = [files / "model.labelsure", files / "new", tmp_path / "out.csv"]
    with LocalCluster(tmp_path) as doomed:
        doomed.add_worker()

        def end_it(n_done, n_all):
            if n_done == 60:
                doomed.processes[0].kill()

        with pytest.raises(ls.InputError, match="went away"):
            score_files(*arguments, scheduler=doomed.address, progress=end_it)
    run = score_files(*arguments, n_jobs=1)
    assert (run.n_rows, run.n_parts) == (ROWS, 20)
    assert 3 <= run.n_kept < 20
    score_files(*arguments[:2], tmp_path / "whole.csv", n_jobs=1)
    assert checksum(tmp_path / "out.csv") == checksum(tmp_path / "whole.csv")


def test_a_worker_that_joins_later_is_asked_for_its_versions():
    with pytest.raises(processes.RaisedInTask) as caught:
        processes.call_task({**processes.read_versions(), "numpy": "0.1"}, len, [1])
    assert isinstance(caught.value.error, ls.InputError)
    assert processes.call_task(processes.read_versions(), len, [1]) == 1


class Unknown:
    """What can be sent, and cannot be made of what was sent."""

    def __reduce__(self):
        return (int, ("not a number",))


@pytest.mark.slow
def test_a_worker_without_the_package(tmp_path):
    with LocalCluster(tmp_path) as alone:
        hidden = tmp_path / "hidden"
        hidden.mkdir()
        (hidden / "sitecustomize.py").write_text(
            "import importlib.metadata as m\n"
            "found = m.version\n"
            "def version(name):\n"
            "    if name == 'labelsure':\n"
            "        raise m.PackageNotFoundError(name)\n"
            "    return found(name)\n"
            "m.version = version\n"
        )
        alone.add_worker({"PYTHONPATH": str(hidden)})
        message = r"The worker 'tcp://\S+' must have labelsure \S+ as it is .*; it has none\. "
        with pytest.raises(ls.InputError, match=message):
            list(run_tasks(len, [([1],)], scheduler=alone.address))


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "WORKER_SECONDS", 1)
    with LocalCluster(tmp_path) as empty:
        message = (
            f"The scheduler '{empty.address}' must have at least one worker, it had none for 1"
        )
        with pytest.raises(ls.InputError, match=re.escape(message)):
            list(run_tasks(len, [([1],)], scheduler=empty.address))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tls://127.0.0.1:9"])
def test_a_scheduler_that_does_not_answer(address, monkeypatch):
    monkeypatch.setattr(processes, "CONNECT_SECONDS", 1)
    message = f"The scheduler {address!r} must answer within 1 seconds, it does not ("
    with pytest.raises(ls.InputError, match=re.escape(message)):
        list(run_tasks(len, [([1],)], scheduler=address))


@pytest.mark.parametrize(
    "address",
    ["nonsense", "tcp://", "tcp://x", "tcp://:1", "tcp://x:y", "tcp://x:99999", "http://x:1", ""],
)
def test_what_is_no_address_of_a_scheduler(address):
    message = (
        "The address of a scheduler must have the form tcp://HOST:PORT or tls://HOST:PORT, as "
        f"`dask scheduler` prints it, e.g. 'tcp://10.0.0.1:8786', got {address!r}."
    )
    with pytest.raises(ls.InputError, match=re.escape(message)):
        list(run_tasks(len, [([1],)], scheduler=address))


@pytest.mark.parametrize("error", [AssertionError("no loop"), RuntimeError("no loop"), OSError()])
def test_whatever_fails_in_connecting_is_one_sentence(error, monkeypatch):
    import distributed

    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(distributed, "Client", fail)
    with pytest.raises(ls.InputError, match="scheduler"):
        list(run_tasks(len, [([1],)], scheduler="tcp://x:1"))

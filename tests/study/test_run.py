"""Runs: resumed, interrupted, in parallel, two at once, with failing cells."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

from labelsure.errors import InputError
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import RunFolder, open_run, run_study

SETTINGS = load_plan("quick").to_dict()
BINARY = {"Indep": {"class": "BinaryRelevance"}}


def plan_with(**changes):
    return Plan.from_dict({**SETTINGS, **changes})


SMALL = plan_with(
    classifiers=BINARY,
    n_repeats=2,
    datasets={
        name: {"simulated": {"n_samples": 60, "n_labels": 3, "random_state": seed}}
        for seed, name in enumerate(["a", "b"])
    },
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return a plan of twelve cells, and what it gives when nothing happens."""
    plan = load_plan("quick")
    return plan, run_study(plan, tmp_path_factory.mktemp("undisturbed"), n_jobs=1)


def assert_same(folder, run):
    scores = pd.read_parquet(Path(folder) / "scores.parquet")
    pd.testing.assert_frame_equal(scores, run.scores, check_exact=True)
    features = pd.read_parquet(Path(folder) / "features.parquet")
    pd.testing.assert_frame_equal(features, run.features, check_exact=True)


def test_the_folder_holds_everything(undisturbed):
    plan, run = undisturbed
    names = {path.name for path in run.folder.iterdir()} - {".lock", ".owner"}
    files = {"plan.toml", "manifest.json", "failures.json", "scores.parquet", "features.parquet"}
    assert names == {*files, "cells"}
    assert len(list((run.folder / "cells").glob("*.parquet"))) == 12
    assert load_plan(run.folder / "plan.toml").to_dict() == plan.to_dict()
    assert json.loads((run.folder / "failures.json").read_text()) == {}
    assert_same(run.folder, run)
    key = ["dataset", "classifier", "repeat", "instance"]
    assert not run.scores.duplicated(key).any()
    assert len(run.scores) == 12 * 80
    for name, frame in (("scores", run.scores), ("features", run.features)):
        columns = pq.read_schema(run.folder / f"{name}.parquet").names
        assert columns == list(frame.columns)  # other programs see these and no index


def test_the_manifest_says_what_made_the_numbers(undisturbed):
    plan, run = undisturbed
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert manifest["plan"] == plan.to_dict()
    assert {"labelsure", "python", "numpy", "scikit-learn"} <= set(manifest["versions"])
    assert len(manifest["datasets"]["dependent"]["checksum"]) == 64
    assert len(manifest["cells"]) == 12
    assert all(notes["seconds"] > 0 for notes in manifest["cells"].values())
    assert manifest["seconds"] > 0


def test_two_jobs_give_the_same_to_the_last_bit(undisturbed, tmp_path):
    plan, run = undisturbed
    threads = os.environ.get("LABELSURE_NUM_THREADS")
    run_study(plan, tmp_path, n_jobs=2)
    assert_same(tmp_path, run)
    assert os.environ.get("LABELSURE_NUM_THREADS") == threads


def start(plan_path, out, jobs):
    command = [sys.executable, "-m", "labelsure", "study", "run", str(plan_path), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--jobs", str(jobs)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def count_cells(out):
    """Count finished cells."""
    return len(list((out / "cells").glob("[!.]*.parquet")))


def wait_for_cells(process, out, n_cells):
    while count_cells(out) < n_cells and process.poll() is None:
        time.sleep(0.005)


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_numbers(undisturbed, tmp_path):
    plan, run = undisturbed
    path, out = tmp_path / "plan.toml", tmp_path / "run"
    path.write_text(tomli_w.dumps(plan.to_dict()))
    generator = random.Random(0)
    for n_cells, jobs in ((1, 1), (4, 2), (8, 1)):
        process = start(path, out, jobs)
        wait_for_cells(process, out, n_cells)
        time.sleep(generator.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = count_cells(out)
    assert kept >= 8
    last = run_study(plan, out, n_jobs=1)
    assert last.n_kept == kept
    assert last.n_computed == 12 - kept
    assert_same(out, run)


def test_a_finished_run_is_kept(tmp_path):
    first = run_study(SMALL, tmp_path, n_jobs=1)
    events = []
    again = run_study(SMALL, tmp_path, n_jobs=1, progress=events.append)
    assert (first.n_computed, again.n_computed, again.n_kept) == (4, 0, 4)
    assert [event.state for event in events] == ["kept"] * 4
    assert_same(tmp_path, first)


def test_only_what_changed_is_computed_again(tmp_path):
    first = run_study(SMALL, tmp_path, n_jobs=1)
    assert run_study(SMALL.with_repeats(3), tmp_path, n_jobs=1).n_computed == 2
    one = run_study(SMALL.with_repeats(1), tmp_path, n_jobs=1)
    assert (one.n_computed, set(one.scores["repeat"])) == (0, {0})
    other_data = SMALL.to_dict()
    other_data["datasets"]["b"]["simulated"]["random_state"] = 9
    changed = run_study(Plan.from_dict(other_data), tmp_path, n_jobs=1)
    assert changed.n_computed == 2
    ours = changed.scores["dataset"] == "a"
    pd.testing.assert_frame_equal(
        changed.scores[ours], first.scores[first.scores["dataset"] == "a"]
    )


def test_damaged_cells_and_leftovers_are_replaced(tmp_path):
    first = run_study(SMALL, tmp_path, n_jobs=1)
    cells = sorted((tmp_path / "cells").glob("*.parquet"))
    cells[0].write_bytes(cells[0].read_bytes()[:100])
    cells[1].write_bytes(b"")
    pd.DataFrame({"x": [1]}).to_parquet(cells[2])  # not one of ours
    name = ".scores.parquet.1-2.labelsure-tmp"
    left = [tmp_path / folder / name for folder in ("", "cells", "analyses", "tables", "figures")]
    mine = [tmp_path / ".notes.tmp", tmp_path / "cells" / ".x.tmp", tmp_path / "own" / name]
    for path in (*left, *mine):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    assert run_study(SMALL, tmp_path, n_jobs=1).n_computed == 3
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in mine)
    assert_same(tmp_path, first)


def test_cells_with_other_rows_or_notes_are_computed_again(tmp_path):
    first = run_study(SMALL, tmp_path, n_jobs=1)
    names = sorted((tmp_path / "cells").glob("*.parquet"))
    for path, change in zip(names, ("rows", "columns", "values", "notes"), strict=True):
        table = pq.read_table(path)
        if change == "rows":
            table = table.slice(1)
        elif change == "columns":
            table = table.drop_columns(["entropy"])
        elif change == "values":
            frame = table.to_pandas().assign(tp=lambda frame: frame["tp"] + 1)
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            content = path.read_bytes()
            assert content.count(b'"seconds"') == 1
            path.write_bytes(content.replace(b'"seconds"', b'"minutes"'))
            continue
        pq.write_table(table, path)
    assert run_study(SMALL, tmp_path, n_jobs=1).n_computed == 4
    assert_same(tmp_path, first)


def test_a_folder_that_looks_like_a_column(tmp_path):
    """Parquet readers take folders such as seed=3 for columns of the files in them."""
    out = tmp_path / "seed=3"
    first = run_study(SMALL, out, n_jobs=1)
    assert run_study(SMALL, out, n_jobs=1).n_kept == 4
    assert list(open_run(out).scores.columns) == list(first.scores.columns)


def test_a_damaged_score_table_is_refused(tmp_path):
    run_study(SMALL, tmp_path, n_jobs=1)
    path = tmp_path / "scores.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="Parquet"):
        open_run(tmp_path)


@pytest.mark.parametrize("text", ["[]", "3", '{"seconds": "x"}', '{"seconds": {}}', "[" * 9999])
def test_what_is_only_shown_may_be_damaged(tmp_path, text):
    run_study(SMALL, tmp_path, n_jobs=1)
    (tmp_path / "manifest.json").write_text(text)
    (tmp_path / "failures.json").write_text(text)
    run = open_run(tmp_path)
    assert np.isnan(run.seconds)
    assert all(failure["message"] == "" for failure in run.failures.values())


def test_a_second_run_in_the_folder_is_refused(tmp_path):
    with (
        RunFolder(tmp_path).locked(),
        pytest.raises(InputError, match=rf"Another run \(process {os.getpid()}\) is at work in"),
    ):
        run_study(SMALL, tmp_path)
    assert not (tmp_path / "scores.parquet").exists()
    assert run_study(SMALL, tmp_path, n_jobs=1).n_computed == 4


def test_links_in_the_folder_lead_nowhere(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    out = tmp_path / "run"
    (out / "cells").mkdir(parents=True)
    (out / ".lock").symlink_to(precious)
    with pytest.raises(InputError, match="another"):
        run_study(SMALL, out)
    (out / ".lock").unlink()
    for name in (".owner", "plan.toml", "scores.parquet", "cells/a.Indep.0.parquet"):
        (out / name).symlink_to(precious)
    (out / "manifest.json").write_text("{}")
    assert run_study(SMALL, out, n_jobs=1).n_computed == 4
    assert precious.read_text() == "mine"


def state_of(folder):
    return json.loads((folder / "manifest.json").read_text())["state"]


def test_a_run_is_complete_when_its_owner_gives_up_the_folder(tmp_path):
    """A report is written within the lock, and belongs to the run."""
    with RunFolder(tmp_path).locked() as folder:
        run = run_study(SMALL, folder, n_jobs=1)
        assert len(run.scores) == 4 * 24
        assert (tmp_path / "scores.parquet").exists()
        with pytest.raises(InputError, match="Another run"), RunFolder(tmp_path).locked():
            pass
        assert state_of(tmp_path) == "running"
        assert np.isnan(run.seconds)
    assert state_of(tmp_path) == "complete"
    assert run.seconds > 0
    with RunFolder(tmp_path).locked():  # free again
        assert state_of(tmp_path) == "complete"


def test_a_run_that_an_error_ends_is_not_complete(tmp_path):
    def run_and_fail():
        with RunFolder(tmp_path).locked() as folder:
            run_study(SMALL, folder, n_jobs=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_and_fail()
    assert state_of(tmp_path) == "running"
    assert run_study(SMALL, tmp_path, n_jobs=1).n_kept == 4
    assert state_of(tmp_path) == "complete"


HOLDER = """
import sys
from labelsure.study import RunFolder
with RunFolder(sys.argv[1]).locked():
    print(1, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_free(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"1\n"
    who = rf"Another run \(process {holder.pid}\) is at work in"
    with pytest.raises(InputError, match=who), RunFolder(tmp_path).locked():
        pass
    holder.kill()
    holder.communicate()
    with RunFolder(tmp_path).locked():
        assert int((tmp_path / ".owner").read_text()) == os.getpid()


def test_an_opened_run_is_the_run(undisturbed):
    plan, run = undisturbed
    opened = open_run(run.folder)
    assert type(opened) is type(run)
    assert opened.plan == plan
    assert (opened.folder, opened.failures, opened.seconds) == (run.folder, {}, run.seconds)
    assert (opened.n_computed, opened.n_kept) == (0, 12)
    assert_same(run.folder, opened)


def test_a_run_can_be_opened_without_its_classes(tmp_path, undisturbed):
    _, run = undisturbed
    run.scores.to_parquet(tmp_path / "scores.parquet")
    run.features.to_parquet(tmp_path / "features.parquet")
    settings = {**SETTINGS, "base": {"class": "not_installed.Learner"}}
    (tmp_path / "plan.toml").write_text(tomli_w.dumps(settings))
    assert open_run(tmp_path).plan.base.path == "not_installed.Learner"


def test_a_failing_cell_stops_no_other(tmp_path):
    chains = {"class": "EnsembleOfClassifierChains", "n_chains": 0}
    plan = plan_with(classifiers={**BINARY, "Broken": chains}, n_repeats=1)
    events = []
    run = run_study(plan, tmp_path, n_jobs=1, progress=events.append)
    assert sorted(run.failures) == ["dependent.Broken.0", "independent.Broken.0"]
    assert set(run.scores["classifier"]) == {"Indep"}
    written = json.loads((tmp_path / "failures.json").read_text())["dependent.Broken.0"]
    assert written["error"] == "InputError"
    assert written["message"].startswith("`n_chains` must be a whole number from 1 to 10000, got 0")
    assert "Traceback" in written["traceback"]
    assert json.loads((tmp_path / "manifest.json").read_text())["state"] == "incomplete"
    failed = [event for event in events if event.state == "failed"]
    assert len(failed) == 2
    assert failed[0].message == written["message"]
    assert max(event.n_finished for event in events) == 4
    again = run_study(plan, tmp_path, n_jobs=1)
    assert (again.n_kept, len(again.failures)) == (2, 2)


def test_nothing_but_failures(tmp_path):
    chains = {"class": "EnsembleOfClassifierChains", "n_chains": 0}
    run = run_study(plan_with(classifiers={"Broken": chains}, n_repeats=1), tmp_path, n_jobs=1)
    assert len(run.failures) == 2
    assert len(run.scores) == 0


def test_a_worker_that_dies_is_a_failure(tmp_path):
    plan = plan_with(
        base={"class": "deadly_learner.DeadlyLearner"}, classifiers=BINARY, n_repeats=1
    )
    run = run_study(plan, tmp_path, n_jobs=2)
    assert sorted(run.failures) == ["dependent.Indep.0", "independent.Indep.0"]
    message = run.failures["dependent.Indep.0"]["message"]
    assert message.startswith("A worker process was ended from outside")


def test_warnings_of_a_cell_are_remembered(tmp_path):
    base = {**SETTINGS["base"], "max_iter": 1}
    run = run_study(plan_with(base=base, classifiers=BINARY, n_repeats=1), tmp_path, n_jobs=1)
    notes = json.loads((tmp_path / "manifest.json").read_text())["cells"]["dependent.Indep.0"]
    assert not run.failures
    assert any(text.startswith("ConvergenceWarning") for text in notes["warnings"])


def test_own_data_from_a_file(tmp_path):
    rows = [f"{i % 7},{i % 5},{int(i % 7 > 3)},{int(i % 5 > 2)}" for i in range(50)]
    (tmp_path / "own.csv").write_text("\n".join(["u,v,high,wide", *rows]))
    own = {"own": {"file": "own.csv", "labels": ["high", "wide"]}}
    path = tmp_path / "plan.toml"
    path.write_text(tomli_w.dumps({**SETTINGS, "datasets": own, "n_repeats": 1, "metrics": ["f1"]}))
    run = run_study(load_plan(path), tmp_path / "run", n_jobs=1)
    assert set(run.scores["dataset"]) == {"own"}
    assert run.scores["n_labels"].eq(2).all()
    assert run.features["n_train"].tolist() == [30]
    (tmp_path / "own.csv").write_text("\n".join(["u,v,high,wide", *rows[::-1]]))
    assert run_study(load_plan(path), tmp_path / "run", n_jobs=1).n_computed == 3


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True])
def test_jobs_must_be_positive(tmp_path, n_jobs):
    with pytest.raises(InputError, match="`n_jobs`"):
        run_study(SMALL, tmp_path, n_jobs=n_jobs)


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="folder"):
        run_study(SMALL, tmp_path / "file")

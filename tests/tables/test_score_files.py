"""`score_files`: what is in the output, and what happens when a run does not go as it should."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from importlib import resources
from pathlib import Path
from unicodedata import category, normalize

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scored_files import COLUMNS as INPUTS
from scored_files import LABELS, make_model, make_rows

import labelsure as ls
from labelsure._runtime import storage
from labelsure._runtime.processes import run_tasks
from labelsure._runtime.runs import PartStore
from labelsure.model._predictor import Predictor
from labelsure.tables import files, parts, scoring
from labelsure.tables.files import list_files, read_chunks
from labelsure.tables.parts import FORMATS
from labelsure.tables.scoring import score_files, score_frame
from labelsure.tables.training import train_model

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
PAGES = (HOWTO / "scoring.md", HOWTO / "tables_and_plots.md")
N_ROWS = 100


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.labelsure"
    make_model().save(path)
    return path


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    make_rows(N_ROWS).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Parts of thirty rows."""
    monkeypatch.setattr(files, "CHUNK_ROWS", 30)


def score(model_file, inputs, out, **settings):
    return score_files(model_file, inputs, out, **{"n_jobs": 1, **settings})


def read(path):
    if path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    if path.suffix in (".csv", ".tsv"):
        sep = "\t" if path.suffix == ".tsv" else ","
        return pd.read_csv(path, sep=sep, keep_default_na=False)
    return pd.read_parquet(path)


def as_sets(names):
    texts = [name.split(";") if isinstance(name, str) else name for name in names]
    return [tuple(name for name in some if name) for some in texts]


@pytest.mark.parametrize("suffix", [*FORMATS, ""])
def test_the_output_is_the_assessment(model_file, new, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    run = score(model_file, new, out, id_column="id")
    table = read(out)
    expected = make_model().assess(make_rows(N_ROWS).drop(columns="id")).to_frame()
    assert list(table) == ["id", "file", "row", *expected]
    assert table["id"].tolist() == [f"r{i}" for i in range(N_ROWS)]
    assert table["row"].tolist() == list(range(N_ROWS))
    assert set(table["file"]) == {"new.csv"}
    assert as_sets(table["predicted"]) == expected["predicted"].tolist()
    assert table["accept"].tolist() == expected["accept"].tolist()
    for name in expected.select_dtypes("float"):
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-9)
    assert (run.n_rows, run.n_parts, run.n_kept, run.n_bad) == (N_ROWS, 4, 0, 0)
    assert run.n_accepted == int(expected["accept"].sum())
    assert run.mean_estimated == pytest.approx(expected["estimated_accuracy"].mean())
    assert 0 < run.n_accepted < N_ROWS
    left = [path.name for path in tmp_path.glob("[!.]*")]
    assert sorted(left) == sorted(["new.csv", out.name])


def test_a_folder_keeps_its_parts(model_file, new, tmp_path):
    out = tmp_path / "parts"
    score(model_file, new, f"{out}/")
    assert sorted(path.name for path in out.glob("[!._]*")) == [
        f"part-00000-0000{i}.parquet" for i in range(4)
    ]
    sizes = [chunk.n_rows for file in list_files(out) for chunk in read_chunks(file)]
    assert sizes == [30, 30, 30, 10]
    run = score(model_file, new, out)  # the same once more: all is there
    assert (run.n_rows, run.n_kept) == (N_ROWS, 4)


@pytest.mark.parametrize(
    "settings",
    [
        {"top": 1},
        {"top": 0, "probabilities": False},
        {"audit": 7, "seed": 3},
        {"id_column": "id"},
        {"open_cost": 0.2},
    ],
)
def test_the_columns_are_those_on_the_page(model_file, new, tmp_path, settings):
    score(model_file, new, tmp_path / "out.parquet", **settings)
    texts = (
        page.read_text("utf-8").partition("## Columns")[2].partition("## ")[0] for page in PAGES
    )
    described = re.findall(r"^\| `([^`]+)` \| (.+) \|$", "".join(texts), re.MULTILINE)
    top, labels = settings.get("top", 3), LABELS if settings.get("probabilities", True) else []
    expected = []
    for name in dict(described):
        if name in ("top_{}", "top_{}_probability"):
            continue
        if name in ("certain", "possible", "own_predicted"):  # of regions, of frozen models
            continue
        if name in ("decided", "open") and "open_cost" not in settings:
            continue
        if name == "probability_{}":
            for i in range(1, top + 1):
                expected += [f"top_{i}", f"top_{i}_probability"]
            expected += [name.format(label) for label in labels]
        elif name not in ("id", "audit", "fingerprint") or settings.get(
            {"id": "id_column"}.get(name, "audit")
        ):
            expected.append(name)
    assert list(read(tmp_path / "out.parquet")) == expected


def test_types_do_not_depend_on_the_values(model_file, tmp_path):
    """A slice whose predictions are all empty, and a model without a target."""
    make_model(None).save(tmp_path / "free.labelsure")
    make_rows(3).assign(a=-9, b=-9, c=-9).to_parquet(tmp_path / "none.parquet")
    run = score(tmp_path / "free.labelsure", tmp_path / "none.parquet", tmp_path / "out.parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(tmp_path / "out.parquet")
    assert schema.field("predicted").type == pa.list_(pa.string())
    assert schema.field("top_2").type == pa.list_(pa.string())
    assert schema.field("accept").type == pa.bool_()
    assert schema.field("row").type == pa.int64()
    assert schema.field("top_1_probability").type == pa.float64()
    assert schema.field("reason").type == pa.string()
    assert read(tmp_path / "out.parquet")["accept"].isna().all()
    assert run.n_accepted is None


def test_whole_numbers_stay_identifiers_in_parquet(model_file, tmp_path):
    make_rows(5).assign(id=range(5)).to_parquet(tmp_path / "new.parquet")
    score(model_file, tmp_path / "new.parquet", tmp_path / "out.parquet", id_column="id")
    assert read(tmp_path / "out.parquet")["id"].dtype == "int64"


def test_jobs_change_no_bit(model_file, new, tmp_path):
    for n_jobs in (1, 2):
        score(model_file, new, tmp_path / f"out{n_jobs}.jsonl", n_jobs=n_jobs)
    assert (tmp_path / "out1.jsonl").read_bytes() == (tmp_path / "out2.jsonl").read_bytes()


def clear_models():
    """Forget the models that this process has loaded."""
    scoring._LOADED.clear()


class Stop(Exception):
    pass


def stop_after(n_parts):
    left = [n_parts]

    def progress(n_done, n_all):
        left[0] -= 1
        if left[0] == 0:
            raise Stop

    return progress


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ""])
def test_an_interrupted_run_goes_on(model_file, new, tmp_path, suffix):
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    score(model_file, new, whole, audit=9)
    with pytest.raises(Stop):
        score(model_file, new, out, audit=9, progress=stop_after(2))
    assert not out.is_file()
    run = score(model_file, new, out, audit=9)
    assert (run.n_kept, run.n_parts, run.n_audited) == (2, 4, 9)
    pd.testing.assert_frame_equal(read(out), read(whole))


def test_a_damaged_part_is_made_again(model_file, new, tmp_path):
    out = tmp_path / "out"
    score(model_file, new, out)
    paths = [out / f"part-00000-0000{i}.parquet" for i in range(4)]
    whole = [path.read_bytes() for path in paths]
    paths[1].write_bytes(whole[1][:-5])
    paths[2].unlink()
    paths[3].write_bytes(b"PAR1")
    run = score(model_file, new, out)
    assert run.n_kept == 1
    assert [path.read_bytes() for path in paths] == whole


def test_any_flipped_byte_makes_a_part_unfinished(tmp_path):
    store = PartStore(tmp_path)
    names = pa.array([["x"], ["y", "x"]] * 10, pa.list_(pa.string()))
    table = pa.table({"predicted": names, "probability": np.arange(20) / 7})
    store.write("a.parquet", table, "key", {"n": 1})
    content = store.get("a.parquet")
    assert store.read("a.parquet").equals(table)
    assert (store.find("a.parquet", "key"), store.find("a.parquet", "other")) == ({"n": 1}, None)
    for at in range(len(content)):
        flipped = content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]
        (tmp_path / "a.parquet").write_bytes(flipped)
        assert store.find("a.parquet", "key") is None
    with pytest.raises(ls.DataError, match=r"'a\.parquet' .* must be as it was written"):
        store.read("a.parquet")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.slow
def test_a_killed_process_leaves_nothing_half(model_file, tmp_path, monkeypatch, n_jobs):
    monkeypatch.setattr(files, "CHUNK_ROWS", 10)
    rows = tmp_path / "many.csv"
    make_rows(3000).to_csv(rows, index=False)
    out = tmp_path / "out.csv"
    code = (
        "import sys; from labelsure.tables import files, scoring; files.CHUNK_ROWS = 10\n"
        f"scoring.score_files(*sys.argv[1:], n_jobs={n_jobs})"
    )
    words = [str(model_file), str(rows), str(out)]
    process = subprocess.Popen([sys.executable, "-c", code, *words])
    notes = tmp_path / "out.csv.parts"
    while len(list(notes.glob("part-*"))) < 5 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # workers leave soon after
    assert not out.exists()
    n_finished = len(list(notes.glob("part-*")))
    assert 5 <= n_finished < 300
    run = score_files(model_file, rows, out, n_jobs=1)
    assert run.n_kept == n_finished
    score_files(model_file, rows, tmp_path / "whole.csv", n_jobs=1)
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(p.name for p in tmp_path.glob("[!.]*")) == ["many.csv", "out.csv", "whole.csv"]


CHANGES = {
    "settings (top was 3, is 1)": {"top": 1},
    "settings (audit was None, is 5)": {"audit": 5},
}


@pytest.mark.parametrize("words", CHANGES)
def test_other_settings_are_not_mixed(model_file, new, tmp_path, words):
    out = tmp_path / "out.csv"
    with pytest.raises(Stop):
        score(model_file, new, out, progress=stop_after(2))
    message = (
        f"The folder '{out}.parts' holds parts of another run: other {words}. Run the same command "
        "as before to go on with it, choose another name for the output, or say `overwrite` to "
        "begin again."
    )
    with pytest.raises(ls.InputError, match=re.escape(message)):
        score(model_file, new, out, **CHANGES[words])
    assert score(model_file, new, out, overwrite=True, **CHANGES[words]).n_kept == 0


def test_another_model_and_changed_files_are_not_mixed(model_file, new, tmp_path):
    out = tmp_path / "out.csv"
    with pytest.raises(Stop):
        score(model_file, new, out, progress=stop_after(1))
    make_model(None).save(tmp_path / "other.labelsure")
    with pytest.raises(ls.InputError, match=re.escape("another run: other model. Run")):
        score(tmp_path / "other.labelsure", new, out)
    os.utime(new, (1, 1))
    message = "another run: other input files, their sizes or times. Run"
    with pytest.raises(ls.InputError, match=re.escape(message)):
        score(model_file, new, out)
    (tmp_path / "out.csv.parts" / "_manifest.json").write_text("[]")
    for overwrite in (False, True):  # without our mark it is somebody else's
        with pytest.raises(ls.InputError, match="holds something else"):
            score(model_file, new, out, overwrite=overwrite)


def test_what_is_there_is_not_replaced(model_file, new, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(ls.InputError, match="exists already"):
        score(model_file, new, out)
    assert out.read_text() == "mine"
    score(model_file, new, out, overwrite=True)
    assert len(read(out)) == N_ROWS
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ls.InputError, match="exists already"):
        score(model_file, new, tmp_path / "folder.csv", overwrite=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(ls.InputError, match="must be new or empty"):
        score(model_file, new, tmp_path / "full", overwrite=True)


def test_two_runs_do_not_share_a_folder(model_file, new, tmp_path):
    out = tmp_path / "out.csv"

    def start_another(n_done, n_all):
        message = f"Another run (process {os.getpid()}) is at work in '{out}.parts'. Wait"
        with pytest.raises(ls.InputError, match=re.escape(message)):
            score(model_file, new, out)

    score(model_file, new, out, progress=start_another)


@pytest.mark.parametrize("name", ["out.csv", "folder"])
def test_predictions_that_replace_private_ones_are_never_readable_by_others(
    model_file, new, tmp_path, name
):
    out = tmp_path / name
    score(model_file, new, out)
    out.chmod(0o700 if out.is_dir() else 0o600)
    if out.is_file():
        (tmp_path / f".{name}.labelsure.json").chmod(0o644)
    seen = []

    def look(n_done, n_all):
        seen.extend(path.stat().st_mode & 0o077 for path in tmp_path.glob(f"{name}*"))

    before = os.umask(0o022)
    try:
        score(model_file, new, out, top=1, overwrite=True, progress=look)
    finally:
        os.umask(before)
    own = [*tmp_path.glob(f"{name}*"), *tmp_path.glob(f".{name}*")]
    assert len(seen) >= 2  # the old output and the new parts
    assert seen == [0] * len(seen)
    assert [path.stat().st_mode & 0o077 for path in own] == [0] * len(own)


def test_an_audit_is_a_random_part_of_all_rows(model_file, new, tmp_path):
    tables = {}
    for seed in (0, 1):
        out = tmp_path / f"out{seed}.parquet"
        assert score(model_file, new, out, audit=17, seed=seed).n_audited == 17
        tables[seed] = read(out)
        assert tables[seed]["audit"].sum() == 17
    assert tables[0]["audit"].tolist() != tables[1]["audit"].tolist()
    everything = score(model_file, new, tmp_path / "all.parquet", audit=10**9)
    assert everything.n_audited == N_ROWS
    assert read(tmp_path / "all.parquet")["audit"].all()


def test_all_rows_have_the_same_chance():
    """Rows of two files, in parts; those that were set aside are never drawn."""
    bad = {"a.csv": [1, 40], "b.csv": []}
    notes = {
        f"{file} {first}": {
            "file": file,
            "first_row": first,
            "n_rows": 25 - len(own := [row for row in bad[file] if first <= row < first + 25]),
            "bad": [[row, "why"] for row in own],
        }
        for file in bad
        for first in (0, 25)
    }
    counts = {file: np.zeros(50) for file in bad}
    for seed in range(2000):
        drawn = scoring._draw_audit(notes, 10, seed)
        assert len(set(drawn)) == 10
        for file, count in counts.items():
            table = pa.table({"file": [file] * 50, "row": np.arange(50)})
            marked = scoring._mark_audit(table, file, drawn, seed)["audit"].to_numpy()
            count += marked
    counts["a.csv"] = np.delete(counts["a.csv"], bad["a.csv"])
    every = np.concatenate([*counts.values()])
    # Each of 98 counts is binomial with mean 204 and standard deviation 13.5.
    assert 140 < every.min() < every.max() < 265


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ""])
def test_no_bad_row_is_audited(model_file, tmp_path, suffix):
    rows = make_rows(N_ROWS).astype(str)
    rows.loc[::2, "b"] = "soon"
    rows.to_csv(tmp_path / "new.csv", index=False)
    out, settings = tmp_path / f"out{suffix}", {"audit": 30, "bad_rows": tmp_path / "bad.jsonl"}
    assert score(model_file, tmp_path / "new.csv", out, **settings).n_audited == 30
    table = read(out)
    assert (len(table), table["audit"].sum()) == (N_ROWS // 2, 30)
    if not suffix:
        made = [path.stat().st_mtime_ns for path in sorted(out.glob("part-*"))]
        assert score(model_file, tmp_path / "new.csv", out, overwrite=True, **settings).n_kept == 4
        assert [path.stat().st_mtime_ns for path in sorted(out.glob("part-*"))] == made


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_gets_an_audit_when_all_is_scored(model_file, new, tmp_path):
    score(model_file, new, tmp_path / "out.csv", audit=9)
    os.mkfifo(tmp_path / "pipe.csv")
    content = []
    reader = threading.Thread(
        target=lambda: content.append((tmp_path / "pipe.csv").read_bytes()), daemon=True
    )
    reader.start()
    score(model_file, new, tmp_path / "pipe.csv", audit=9)
    reader.join(60)
    assert content == [(tmp_path / "out.csv").read_bytes()]


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5])
def test_no_number_of_rows_for_an_audit(model_file, new, tmp_path, wrong):
    message = f"`audit` must be a whole number >= 1, got {wrong!r}."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        score(model_file, new, tmp_path / "out.csv", audit=wrong)


@pytest.fixture
def spoiled(tmp_path):
    rows = make_rows(N_ROWS).astype(str)
    rows.loc[[41, 95], "b"] = "soon"
    path = tmp_path / "spoiled.csv"
    rows.to_csv(path, index=False)
    return path


def test_a_bad_row_is_named_and_loses_no_other(model_file, spoiled, tmp_path):
    out = tmp_path / "out.csv"
    message = (
        r"Row 41 of 'spoiled.csv' \(rows count from 0\) cannot be used: .*'soon'.* Or set such "
        r"rows aside with `bad_rows`\. Other parts that failed in the same way: 1\. 2 "
        r"finished parts are kept\."
    )
    with pytest.raises(ls.InputError, match=message):
        score(model_file, spoiled, out)
    run = score(model_file, spoiled, out, bad_rows=tmp_path / "bad.jsonl")
    assert (run.n_rows, run.n_bad, run.n_kept) == (N_ROWS - 2, 2, 2)
    assert read(out)["row"].tolist() == [i for i in range(N_ROWS) if i not in (41, 95)]
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["row"]) for row in bad] == [("spoiled.csv", 41), ("spoiled.csv", 95)]
    assert bad[0]["values"]["b"] == "soon"
    assert bad[0]["values"]["id"] == "r41"
    assert "soon" in bad[0]["reason"]


def test_rows_that_were_set_aside_do_not_stay_so_unasked(model_file, spoiled, tmp_path):
    out = tmp_path / "out"
    score(model_file, spoiled, out, bad_rows=tmp_path / "bad.jsonl")
    with pytest.raises(ls.InputError, match="parts"):
        score(model_file, spoiled, out)


def test_a_unit_of_bad_rows_alone(model_file, tmp_path):
    rows = make_rows(60).astype(str)
    rows.loc[:29, "b"] = "soon"
    rows.to_csv(tmp_path / "new.csv", index=False)
    bad, out = tmp_path / "bad.jsonl", tmp_path / "out.csv"
    run = score(model_file, tmp_path / "new.csv", out, bad_rows=bad)
    assert (run.n_rows, run.n_bad) == (30, 30)
    assert len(read(out)) == 30
    rows.assign(b="soon").to_csv(tmp_path / "all.csv", index=False)
    message = "The input must have at least one row that can be scored, none can."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        score(
            model_file, tmp_path / "all.csv", tmp_path / "none.csv", bad_rows=tmp_path / "b.jsonl"
        )


def test_wrong_names_and_inputs(model_file, new, tmp_path):
    def refuse(message, inputs=new, out="out.csv", model=model_file, **settings):
        with pytest.raises(ls.InputError, match=re.escape(message)):
            score(model, inputs, tmp_path / out, **settings)
        assert not (tmp_path / out).exists()

    refuse("Unknown format of predictions '.xlsx'. Known: .csv,", out="out.xlsx")
    refuse("must have a name that ends in .jsonl, got", bad_rows=tmp_path / "bad.csv")
    refuse("There is no file", inputs=tmp_path / "none.csv")
    refuse("There is no file", model=tmp_path / "none.labelsure")
    refuse("`sep` must separate label names", sep="x")
    (tmp_path / "empty.csv").write_text("a,b,c,d\n")
    refuse("The input must have at least one row, it has none.", tmp_path / "empty.csv")
    make_rows(3).drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    refuse("'c'", tmp_path / "less.csv")
    ls.BinaryRelevance().fit([[0.0], [1.0]], [[0, 1], [1, 0]]).save(tmp_path / "plain.labelsure")
    message = "'plain.labelsure' must be an AccuracyAwareClassifier, which knows how accurate its"
    refuse(message, model=tmp_path / "plain.labelsure")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(model_file, new, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(ls.InputError, match="cannot be written to"):
        score(model_file, new, tmp_path / "closed" / "out.csv")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence(model_file, new, tmp_path, monkeypatch):
    write_whole = storage.write_whole

    def write(path, write, *others):
        if path.suffix == ".parquet":
            write_whole(path, lambda _: Path("/dev/full").write_text("x" * 10_000))
        else:
            write_whole(path, write, *others)

    monkeypatch.setattr(storage, "write_whole", write)
    part = f"{tmp_path}/out.csv.parts/part-00000-00000.parquet"
    message = rf"No space left on device: '{part}'\. 0 finished parts are kept\."
    with pytest.raises(ls.InputError, match=message):
        score(model_file, new, tmp_path / "out.csv")


def test_a_model_that_changes_during_a_run(new, tmp_path):
    path = tmp_path / "model.labelsure"
    make_model().save(path)

    def change(n_done, n_all):
        make_model(None).save(path)
        clear_models()

    message = "must be the same for all workers and stay as it is during a run"
    with pytest.raises(ls.InputError, match=message):
        score(path, new, tmp_path / "out.csv", progress=change)


def test_what_a_model_raises_names_the_rows(model_file, new, tmp_path, monkeypatch):
    def fail(self, X):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Predictor, "predict", fail)
    message = "The model could not score rows 0 to 29 of 'new.csv' (RuntimeError: out of luck)."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        score(model_file, new, tmp_path / "out.csv")


def test_a_frame_is_scored_by_a_model_or_its_file(model_file):
    rows = make_rows(5).set_index(pd.Index(list("vwxyz")))
    found = score_frame(model_file, rows, id_column="id", top=1)
    pd.testing.assert_frame_equal(found, score_frame(make_model(), rows, id_column="id", top=1))
    assert list(found.index) == list("vwxyz")
    assert list(found)[:2] == ["id", "predicted"]


def test_a_trained_model_knows_its_columns_and_its_id(tmp_path):
    words = np.array(["late parcel again", "refund the money please", "wrong bill sent"])
    rows = pd.DataFrame(
        {
            "ticket": [f"t{i}" for i in range(120)],
            "text": words[np.arange(120) % 3],
            "channel": np.array(["mail", "phone"])[np.arange(120) % 2],
            "late": (np.arange(120) % 3 == 0).astype(int),
            "money": (np.arange(120) % 3 > 0).astype(int),
        }
    )
    rows.to_csv(tmp_path / "train.csv", index=False)
    model = train_model(
        tmp_path / "train.csv", labels="late,money", id_column="ticket", classifier="br", cv=3
    )
    model.save(tmp_path / "model.labelsure")
    shuffled = rows[["channel", "text", "ticket"]].assign(more=1)
    shuffled.to_json(tmp_path / "new.jsonl", orient="records", lines=True)
    score(tmp_path / "model.labelsure", tmp_path / "new.jsonl", tmp_path / "out.parquet")
    table = read(tmp_path / "out.parquet")
    assert table["id"].tolist() == rows["ticket"].tolist()
    assert as_sets(table["predicted"]) == [
        ("late",) if i % 3 == 0 else ("money",) for i in range(120)
    ]


def test_a_model_of_another_library_version_warns(model_file, new, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.base.__version__", "0.9")
    clear_models()
    with pytest.warns(UserWarning, match="scikit"):
        score(model_file, new, tmp_path / "out.csv")
    clear_models()


def test_labels_that_are_better_left_open(model_file, new, tmp_path):
    score(model_file, new, tmp_path / "out.jsonl", open_cost=0.3)
    table = read(tmp_path / "out.jsonl")
    rows = pd.read_csv(new)
    model = ls.load(model_file)
    answers = model.assess(rows[INPUTS]).leave_open(0.3)
    assert answers.is_open.any()
    assert [tuple(names) for names in table["open"]] == answers.open
    assert [tuple(names) for names in table["decided"]] == answers.certain


FORMULAS = ["=1+1", "+1", "-cmd", "@SUM(A1)", "\t=1", "plain", "a=b", "'quoted"]


@pytest.mark.parametrize("safe", [False, True])
def test_texts_that_spreadsheets_take_for_formulas(model_file, tmp_path, safe):
    rows = make_rows(len(FORMULAS)).assign(id=FORMULAS)
    rows.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.csv"
    score(model_file, tmp_path / "new.parquet", out, id_column="id", spreadsheet_safe=safe)
    found = read(out)
    expected = [f"'{text}" for text in FORMULAS[:5]] if safe else FORMULAS[:5]
    assert found["id"].tolist() == [*expected, *FORMULAS[5:]]
    score(model_file, tmp_path / "new.parquet", tmp_path / "plain.csv", id_column="id")
    pd.testing.assert_frame_equal(
        found.drop(columns="id"), read(tmp_path / "plain.csv").drop(columns="id")
    )


WIDE = [c for c in map(chr, range(0xFE00, 0x10000)) if normalize("NFKC", c) in "=+-@"]
UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")
INVISIBLE = [c for c in map(chr, range(1, 0x10000)) if category(c) in UNSEEN]


@pytest.mark.parametrize("operator", [*"=+-@", *WIDE])
def test_formulas_behind_what_a_spreadsheet_skips(operator):
    """Full-width and small forms of operators, and each operator behind an invisible character."""
    assert len(WIDE) == 8
    texts = [f"{start}{operator}1" for start in ["", *INVISIBLE, "\ufeff \n"]]
    plain = [f"1{operator}1", f"a {operator}1", "1", "", " ", "\ufeffa"]
    file = io.BytesIO()
    table = pa.table({"id": [*texts, *plain]})
    parts.write_tables([table], ".csv", file, spreadsheet_safe=True)
    found = pa_csv.read_csv(
        io.BytesIO(file.getvalue()),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(column_types={"id": pa.string()}),
    )
    assert found["id"].to_pylist() == [*(f"'{text}" for text in texts), *plain]


def test_the_page_escapes_the_same_formulas_as_the_command():
    script = resources.files("labelsure._runtime.pages").joinpath("page.js").read_text("utf-8")
    assert f"/{parts.FORMULA}/u.test(value)" in script


def test_only_spreadsheets_need_that(model_file, new, tmp_path):
    with pytest.raises(ls.InputError, match="for CSV"):
        score(model_file, new, tmp_path / "out.parquet", spreadsheet_safe=True)


ROW = '{"a": 0, "b": 0, "c": 0, "d": 0}'


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        (
            "t.csv",
            "id,a,b,c,d\n1,0,0,0,0\n\n2,0,0\n3,0,0,0,0\n",
            4,
            "line 4 must have 5 values like the header, it has 3",
        ),
        ("t.jsonl", f'{ROW}\n{{"a": 0,\n{ROW}\n', 2, "line 2 must be JSON, but it is not: Expec"),
        ("t.jsonl", f'{ROW}\n{{"a": "\\ud800"}}\n{ROW}\n', 2, "it has half of a surrogate pair"),
        ("t.csv", "a,b,c,d,e\n0,0,0,0,x\n0,0,0,far,y\n0,0,0,0,z\n", 3, "'d' must be a finite"),
    ],
)
def test_rows_that_cannot_be_read_are_set_aside(model_file, tmp_path, name, text, line, reason):
    (tmp_path / name).write_text(text)
    bad = tmp_path / "bad.jsonl"
    run = score(model_file, tmp_path / name, tmp_path / "out.csv", bad_rows=bad)
    assert (run.n_rows, run.n_bad) == (2, 1)
    assert read(tmp_path / "out.csv")["row"].tolist() == [0, 2]
    (found,) = map(json.loads, bad.read_text().splitlines())
    assert (found["row"], found["line"]) == (1, line)
    assert reason in found["reason"]
    if "far" in text:
        assert found["values"] == {"a": "0", "b": "0", "c": "0", "d": "far", "e": "y"}
    with pytest.raises(ls.InputError, match=r"Row 1 of .* cannot be used: "):
        score(model_file, tmp_path / name, tmp_path / "other.csv")


def test_only_columns_that_the_model_needs_are_read(model_file, new, tmp_path, monkeypatch):
    frame = pd.read_csv(new).assign(**{f"unused{j}": "x" for j in range(3)})
    frame.to_parquet(tmp_path / "new.parquet")
    seen = []
    read_file = scoring.read_chunks
    monkeypatch.setattr(
        scoring,
        "read_chunks",
        lambda file, columns=None: seen.append(columns) or read_file(file, columns),
    )
    score(model_file, tmp_path / "new.parquet", tmp_path / "out.csv")
    assert seen
    assert not any(name.startswith("unused") for columns in seen for name in columns)
    score(model_file, new, tmp_path / "plain.csv")
    pd.testing.assert_frame_equal(
        read(tmp_path / "out.csv").drop(columns="file"),
        read(tmp_path / "plain.csv").drop(columns="file"),
        check_dtype=False,
    )


def test_a_compressed_file_gives_the_same_and_goes_on(model_file, new, tmp_path):
    packed = tmp_path / "new.csv.gz"
    packed.write_bytes(gzip.compress(new.read_bytes()))
    score(model_file, packed, tmp_path / "parts")
    score(model_file, new, tmp_path / "plain")
    pd.testing.assert_frame_equal(
        read(tmp_path / "parts").drop(columns="file"), read(tmp_path / "plain").drop(columns="file")
    )
    again = score(model_file, packed, tmp_path / "parts")
    assert again.n_kept == again.n_parts > 1


def test_row_groups_hold_many_parts(model_file, new, tmp_path, monkeypatch):
    monkeypatch.setattr("labelsure.tables.parts.GROUP_ROWS", 50)
    out = tmp_path / "out.parquet"
    score(model_file, new, out)
    with pq.ParquetFile(out) as file:
        groups = [file.metadata.row_group(j).num_rows for j in range(file.num_row_groups)]
    assert sum(groups) == N_ROWS
    assert set(groups[:-1]) == {60}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_pipe_gets_each_part_when_it_is_finished(model_file, new, tmp_path, monkeypatch, suffix):
    pipe, whole = tmp_path / f"pipe{suffix}", tmp_path / f"whole{suffix}"
    score(model_file, new, whole)
    os.mkfifo(pipe)
    has_rows, content = threading.Event(), []
    score_chunk = scoring.score_chunk

    def wait(model, chunk, *task):
        assert chunk.number < 3 or has_rows.wait(60)
        return score_chunk(model, chunk, *task)

    def read_pipe():
        with open(pipe, "rb") as stream:
            while block := os.read(stream.fileno(), 2**16):
                content.append(block)
                if b"".join(content).count(b"\n") > 60:  # two parts
                    has_rows.set()

    monkeypatch.setattr(scoring, "score_chunk", wait)
    reader = threading.Thread(target=read_pipe, daemon=True)
    reader.start()
    assert score(model_file, new, pipe).n_rows == N_ROWS
    reader.join(60)
    assert b"".join(content) == whole.read_bytes()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_come_in_order_whatever_finishes_first(n_jobs):
    found = run_tasks(time.sleep, [(0.5,), (0,)], n_jobs=n_jobs, ordered=True)
    assert list(found) == [(0, None), (1, None)]


def test_no_pattern_finds_the_output(model_file, new, tmp_path):
    for pattern in ("*.csv", "**/*.csv"):
        with pytest.raises(ls.InputError, match="inputs"):
            score(model_file, tmp_path / pattern, tmp_path / "out.csv")
    score(model_file, tmp_path / "n*.csv", tmp_path / "out.csv")


def test_a_table_is_the_same_for_studies_and_for_training(tmp_path):
    path = tmp_path / "t.csv"
    colours = ["none", "red"] * 90
    rows = [f"{colour},{i % 2},{i % 3 % 2}" for i, colour in enumerate(colours)]
    path.write_bytes("\n".join(["caf\u00e9,x,y", *rows]).encode("latin-1"))
    data = ls.read_dataset(path, labels=["x", "y"], encoding="latin-1")
    model = train_model(path, labels="x,y", classifier="br", encoding="latin-1")
    assert set(data.X.iloc[:, 0]) == set(model.estimator_[0].convert(data.X)["caf\u00e9"])


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError("Could not find/load shared object file 'libllvmlite.so'")]
)
def test_too_little_memory_is_named(model_file, new, tmp_path, monkeypatch, error):
    def predict(*_):
        raise error

    monkeypatch.setattr(scoring.FrameScorer, "score", predict)
    with pytest.raises(ls.InputError, match="Memory is short"):
        score(model_file, new, tmp_path / "out.csv")


def test_a_file_that_changes_after_its_last_row_was_read(model_file, tmp_path):
    (tmp_path / "in").mkdir()
    for name in "ab":
        make_rows(20).to_csv(tmp_path / "in" / f"{name}.csv", index=False)

    def change(n_finished, _):
        if n_finished == 40:  # rows of the other file were finished before
            with open(tmp_path / "in" / "a.csv", "a") as file:
                file.write("r9,1,1,1,1\n")

    with pytest.raises(ls.DataError, match=r"'in/a\.csv' must stay as it is .* it has changed"):
        score(model_file, tmp_path / "in", tmp_path / "out.csv", progress=change)
    assert not (tmp_path / "out.csv").exists()

"""Outputs of commands are no inputs and whole before they replace anything; devices and pipes."""

import io
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure._runtime.pages import Page
from labelsure.cli._app import main
from labelsure.tables.scoring import score_files

N_ROWS = 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Inputs of all commands, in the working folder."""
    monkeypatch.chdir(tmp_path)
    make_model().save(tmp_path / "m")
    rows = make_rows(N_ROWS)
    rows.to_json(tmp_path / "in.jsonl", orient="records", lines=True)
    rows.to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "tf").mkdir()
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(60, 2))
    table = pd.DataFrame(Y, columns=["x", "y"]).assign(size=rng.normal(size=60))
    table.to_csv(tmp_path / "tf" / "a.csv", index=False)
    np.save(tmp_path / "z.npy", 0.2 + 0.6 * Y)
    table[["x", "y"]].to_csv(tmp_path / "truth.csv", index=False)
    (tmp_path / "names.txt").write_text("x\ny\n")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        "score m in.jsonl --out out.csv --bad-rows in.jsonl",
        "score m in.jsonl --out bad.jsonl --bad-rows bad.jsonl",
        "score m in.csv --out in.csv --overwrite",
        "score m in.csv --out ./link.csv --overwrite",
        "score m in.csv --out hard.csv --overwrite",
        "score m tf --out tf/out.csv",
        "report m in.csv --out in.csv",
        "report m in.csv --out m",
        "report m in.csv --truth truth.csv --out truth.csv",
        "train tf --labels x,y --out tf/a.csv",
        "train tf --labels x,y --out tf/model",
        "calibrate z.npy --truth truth.csv --out z.npy",
        "calibrate z.npy --truth truth.csv --out truth.csv",
        "calibrate z.npy --truth truth.csv --labels-from names.txt --out names.txt",
        "study run quick --out tf",
        "train tf --labels x,y --out -",
        "calibrate z.npy --truth truth.csv --out -",
        "study run quick --out -",
    ],
)
def test_no_output_is_an_input(folder, words, capsys):
    (folder / "link.csv").symlink_to("in.csv")
    os.link(folder / "in.csv", folder / "hard.csv")
    before = contents(folder)
    assert main(words.split()) == 2
    assert re.match("labelsure: (The|Each) (output|run folder)", capsys.readouterr().err)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "address", ["s3://key:hidden@store/out", "gs://store/out", "nothing://out"]
)
@pytest.mark.parametrize(
    "words",
    [
        "score m in.csv --bad-rows",
        "estimate m in.csv --bad-rows",
        "report m in.csv --out",
        "monitor m in.csv --out",
        "train tf --labels x,y --out",
        "calibrate z.npy --truth truth.csv --out",
        "study run quick --out",
    ],
)
def test_an_address_is_no_name_of_a_local_file(folder, words, address, capsys):
    before = {*folder.rglob("*")}
    rest = ["--out", "out.csv"] if "score" in words else []
    assert main([*words.split(), address, *rest]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("labelsure: ")
    assert "hidden" not in printed.out + printed.err
    assert {*folder.rglob("*")} == before


@pytest.mark.parametrize("address", ["nothing://out", "nothing://out/", "s3://store/out.csv"])
def test_predictions_go_to_an_address_or_nowhere(folder, address, capsys):
    before = {*folder.rglob("*")}
    assert main(["score", "m", "in.csv", "--out", address, "--jobs", "1"]) == 2
    assert "address" in capsys.readouterr().err
    assert {*folder.rglob("*")} == before


def test_predictions_go_to_a_store(folder):
    fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    address = f"memory://{folder.name}/out"
    assert main(["score", "m", "in.csv", "--out", address, "--jobs", "1"]) == 0
    system, place = fsspec.core.url_to_fs(address)
    assert f"{place}/part-00000-00000.parquet" in system.ls(place, detail=False)
    assert not list(folder.glob("memory*"))


def test_a_page_may_stand_in_the_folder_of_its_run(folder, monkeypatch, capsys):
    (folder / "run" / "tables").mkdir(parents=True)
    (folder / "run" / "scores.parquet").write_text("mine")
    page = Page("model", {"title": "Study"})
    monkeypatch.setattr("labelsure.study.report.make_study_page", lambda folder, n_jobs: page)
    monkeypatch.setattr(Page, "html", "<!DOCTYPE html>")
    assert main(["study", "report", "run", "--out", "run/scores.parquet"]) == 2
    assert (folder / "run" / "scores.parquet").read_text() == "mine"
    assert main(["study", "report", "run", "--out", "run/report.html"]) == 0
    assert (folder / "run" / "report.html").read_text() == "<!DOCTYPE html>"


def test_bad_rows_replace_no_file_unasked(folder, capsys):
    (folder / "bad.jsonl").write_text("mine")
    words = ["score", "m", "in.csv", "--out", "out.csv", "--bad-rows", "bad.jsonl", "--jobs", "1"]
    assert main(words) == 2
    assert (folder / "bad.jsonl").read_text() == "mine"
    assert main([*words, "--overwrite"]) == 0
    assert (folder / "bad.jsonl").read_text() == ""


def test_bad_rows_of_the_same_run_are_written_again(folder):
    for _ in range(2):
        score_files("m", "in.csv", "parts", bad_rows="bad.jsonl", n_jobs=1)
    with pytest.raises(ls.InputError, match="exists already"):
        score_files("m", "in.csv", "others", bad_rows="bad.jsonl", n_jobs=1)


def test_a_folder_is_replaced_on_request_but_for_what_is_not_ours(folder):
    score_files("m", "in.csv", "parts", n_jobs=1)
    (folder / "parts" / "readme.txt").write_text("mine")
    make_rows(7).to_csv("other.csv", index=False)
    before = contents(folder / "parts")
    with pytest.raises(ls.InputError, match="holds parts of another run: other input files"):
        score_files("m", "other.csv", "parts", n_jobs=1)
    assert contents(folder / "parts") == {**before, **owner_of(folder / "parts")}

    def stop(n_done, n_all):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_files("m", "other.csv", "parts", n_jobs=1, overwrite=True, progress=stop)
    run = score_files("m", "other.csv", "parts", n_jobs=1, overwrite=True)
    assert run.n_kept == 1  # what was finished when it was interrupted
    assert run.out == "parts"
    assert len(pd.read_parquet(folder / "parts" / "part-00000-00000.parquet")) == 7
    assert (folder / "parts" / "readme.txt").read_text() == "mine"


def owner_of(folder):
    """Return the file that names the process which had the folder last."""
    return {folder / ".owner": (folder / ".owner").read_bytes()}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_without_our_mark_is_not_ours(folder, overwrite):
    (folder / "w.csv.parts").mkdir()
    (folder / "w.csv.parts" / "part-00000.csv").write_text("mine")
    with pytest.raises(ls.InputError, match="holds something else"):
        score_files("m", "in.csv", "w.csv", n_jobs=1, overwrite=overwrite)
    assert (folder / "w.csv.parts" / "part-00000.csv").read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    ["score m in.csv --jobs 1", "report m in.csv", "train tf/a.csv --labels x,y --classifier br"],
)
def test_devices_stay_devices(folder, words):
    """Also for root, who may replace them."""
    device = folder / "null"
    device.symlink_to("/dev/null")
    for name in ("/dev/null", str(device)):
        for more in ([], ["--overwrite"] if words.startswith("score") else []):
            assert main([*words.split(), "--out", name, *more]) == 0
    assert device.is_symlink()
    assert device.is_char_device()


def test_a_pipe_gets_the_predictions(folder):
    pipe = folder / "pipe.jsonl"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(f"score m in.csv --out {pipe} --jobs 1".split()) == 0
    reader.join(timeout=60)
    assert pipe.is_fifo()
    assert found[0].count(b"\n") == N_ROWS


def test_a_link_is_followed(folder):
    (folder / "elsewhere").mkdir()
    (folder / "link.csv").symlink_to("elsewhere/out.csv")
    assert main(["score", "m", "in.csv", "--out", "link.csv", "--jobs", "1"]) == 0
    assert (folder / "link.csv").is_symlink()
    assert len(pd.read_csv(folder / "elsewhere" / "out.csv")) == N_ROWS


def test_standard_input_and_output(folder):
    words = [sys.executable, "-m", "labelsure", "score", "m", "-", "--out", "-", "--jobs", "1"]
    done = subprocess.run(
        words, input=(folder / "in.csv").read_bytes(), capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "-").exists()
    check_rows_of_standard_input(done.stdout.decode(), "csv")
    assert b"Predictions   20 (" in done.stderr


def check_rows_of_standard_input(text, kind):
    header, *rows = text.splitlines()
    assert header.startswith('"file","row","predicted"')
    assert len(rows) == N_ROWS
    assert rows[0].startswith(f'"stdin.{kind}",0,')


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_format_of_standard_input_is_found(folder, monkeypatch, kind):
    make_rows(N_ROWS).to_parquet(folder / "in.parquet")
    content = io.BytesIO((folder / f"in.{kind}").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert main(["score", "m", "-", "--out", "out.csv", "--jobs", "1"]) == 0
    check_rows_of_standard_input((folder / "out.csv").read_text(), kind)


def test_a_report_goes_to_standard_output(folder, capfd):
    assert main(["report", "m", "in.csv", "--out", "-"]) == 0
    assert capfd.readouterr().out.startswith("<!DOCTYPE html>")
    assert not (folder / "-").exists()

"""Files and surroundings that are rare but real: each ends in a result or in one sentence."""

import errno
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scored_files import LABELS, make_model, make_rows

import labelsure as ls
from labelsure.cli._app import main
from labelsure.tables.files import list_files

N_ROWS = 40
NOT_UTF8 = os.fsdecode(b"caf\xe9")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model().save("m")
    make_rows(N_ROWS).to_csv("new.csv", index=False)
    return tmp_path


def score(words):
    return main(["score", "m", *words.split(), "--jobs", "1", "-q"])


def run(*words, **settings):
    command = [sys.executable, "-m", "labelsure", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **settings)


def test_thread_counts_of_nested_loops_and_no_standard_output(folder):
    environment = os.environ | {"OMP_NUM_THREADS": "4,2"}
    words = ["score", "m", "new.csv", "--out", "out.csv", "--jobs", "1"]
    done = run(*words, env=environment, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(pd.read_csv("out.csv")) == N_ROWS


def test_a_broken_pipe_is_no_failed_check(folder):
    reading, writing = os.pipe()
    os.close(reading)
    done = run("data", "list", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_pipe_whose_reader_leaves(folder):
    os.mkfifo("pipe.csv")
    pd.concat([pd.read_csv("new.csv")] * 200).to_csv("new.csv", index=False)  # more than fits in
    command = [sys.executable, "-m", "labelsure", "score", "m", "new.csv", "--jobs", "1"]
    with subprocess.Popen(
        [*command, "--out", "pipe.csv", "-q"], stderr=subprocess.PIPE, text=True
    ) as done:
        with open("pipe.csv", "rb"):
            pass
        assert (done.communicate()[1], done.returncode) == ("", 141)


def test_a_broken_pipe_to_a_worker_is_not_the_output(folder, monkeypatch, capfd):
    def fail(*_, **__):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("labelsure._runtime.runs.PartStore.put", fail)
    assert main(["score", "m", "new.csv", "--out", "out.csv", "--jobs", "1", "-q"]) == 2
    assert "could not start" in capfd.readouterr().err


@pytest.mark.parametrize("words", ["score m {} --out o.csv", "train {} --labels a --out o"])
def test_an_empty_name(folder, words, capsys):
    assert main([word if word != "{}" else "" for word in words.split()]) == 2
    assert "must not be empty" in capsys.readouterr().err


def test_names_that_are_not_utf_8(folder, capsys):
    os.rename("new.csv", f"{NOT_UTF8}.csv")
    os.rename("m", NOT_UTF8)
    for suffix in ("csv", "jsonl", "parquet"):
        out = f"{NOT_UTF8}.{suffix}" if suffix != "csv" else "out.csv"
        assert main(["score", NOT_UTF8, f"{NOT_UTF8}.csv", "--out", out, "--jobs", "1"]) == 0
    assert set(pd.read_csv("out.csv")["file"]) == {r"caf\xe9.csv"}
    assert main(["report", NOT_UTF8, f"{NOT_UTF8}.csv", "--out", f"{NOT_UTF8}.html"]) == 0
    assert main(["estimate", NOT_UTF8, f"{NOT_UTF8}.csv"]) == 0
    assert main(["info", NOT_UTF8]) == 0


def test_carriage_returns_in_csv(folder):
    rows = make_rows(N_ROWS)
    rows["id"] = [f"r\r{i}" for i in range(N_ROWS)]
    rows.to_parquet("cr.parquet")
    assert score("cr.parquet --out out.csv --id id") == 0
    assert pd.read_csv("out.csv")["id"].tolist() == rows["id"].tolist()
    assert (folder / "out.csv").read_bytes().count(b"\r") == N_ROWS


def test_unsigned_ids(folder):
    rows = make_rows(N_ROWS)
    rows["id"] = np.arange(N_ROWS, dtype=np.uint64) + np.uint64(2**63)
    rows.to_parquet("u.parquet")
    assert score("u.parquet --out out.parquet --id id") == 0
    assert pd.read_parquet("out.parquet")["id"].tolist() == rows["id"].tolist()


def test_infinity_is_no_json(folder):
    rows = make_rows(N_ROWS)
    rows.loc[3, "a"] = -np.inf
    rows.to_parquet("inf.parquet")
    assert score("inf.parquet --out out.jsonl --bad-rows bad.jsonl") == 0

    def refuse(constant):
        raise AssertionError(constant)

    bad_rows = (folder / "bad.jsonl").read_text()
    (bad,) = [json.loads(line, parse_constant=refuse) for line in bad_rows.splitlines()]
    assert bad["values"]["a"] == "-inf"
    assert bad["reason"] == "'a' must be a finite number, got -inf"


def test_a_report_says_how_many_rows_have_a_truth(folder, capsys):
    rows = make_rows(N_ROWS)
    truth = pd.DataFrame((rows[["a", "b", "c"]] > 0).to_numpy().astype(int), columns=LABELS)
    truth.assign(id=rows["id"])[:25].to_csv("truth.csv", index=False)
    words = "report m new.csv --truth truth.csv --id id --out r.html"
    assert main(words.split()) == 0
    said = capsys.readouterr().err
    assert "Note: The truth in 'truth.csv' has 25 of the 40 rows of 'new.csv'" in said


def test_tables_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    assert main(["data", "list"]) == 0
    printed = capsys.readouterr().out
    assert "simulated" in printed
    assert "instances" in printed


@pytest.mark.parametrize("sep", [None, ";"])
def test_json_lists_in_cells_of_csv(folder, sep):
    rows = [f'{i},{i % 7},"[""red"", ""dark blue""]"' for i in range(30)]
    rows += [f"{i},{i % 5},[]" for i in range(30, 60)] + ["60,3,", '61,2,"[7]"']
    (folder / "t.csv").write_text("\n".join(["id,size,tags", *rows]))
    data = ls.read_dataset("t.csv", labels="tags", index="id", sep=sep)
    assert data.label_names == ("7", "dark blue", "red")
    assert data.Y.sum(axis=0).tolist() == [1, 30, 30]
    (folder / "t.csv").write_text('id,size,tags\n1,2,"[""a""]"\n2,3,[a]\n')
    with pytest.raises(ls.DataError, match=r"as .*names.*, got '\[a\]' in row 1"):
        ls.read_dataset("t.csv", labels="tags", index="id", sep=sep)


@pytest.mark.parametrize("cell", ["NA", "-nan", "?"])
def test_missing_labels_are_refused(folder, cell):
    (folder / "t.csv").write_text(f"size,red\n1,1\n2,{cell}\n")
    with pytest.raises(ls.DataError, match="'red' is missing in row 1"):
        ls.read_dataset("t.csv", labels="red")
    (folder / "t.csv").write_text(f"size,tags\n1,a;b\n2,{cell}\n")
    message = f"as names with ';' between them, got {cell!r} in row 1"
    with pytest.raises(ls.DataError, match=re.escape(message)):
        ls.read_dataset("t.csv", labels="tags", sep=";")


def test_lists_of_mixed_types(folder):
    (folder / "t.jsonl").write_text('{"a": 1, "tags": [1, "x"]}\n{"a": 2, "tags": [true]}\n')
    assert ls.read_dataset("t.jsonl", labels="tags").label_names == ("1", "True", "x")


def test_a_key_that_the_first_block_lacks(folder):
    rows = make_rows(200).drop(columns="id")
    # Values as long as this fill a block of the reader before the first row with the key.
    rows["unused"] = "x" * 10_000
    parts = rows.drop(columns="d")[:150], rows[150:]
    lines = [part.to_json(orient="records", lines=True).strip() for part in parts]
    (folder / "late.jsonl").write_text("\n".join(lines))
    assert score("late.jsonl --out out.csv --bad-rows bad.jsonl") == 0
    assert pd.read_csv("out.csv")["row"].tolist() == list(range(150, 200))


# Which file a row is of, after its folder has moved


def test_sources_of_rows(folder):
    for name in ("one/a.csv", "one/sub/b.csv", "two/a.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n1\n")

    def sources(*inputs):
        return [file.source for file in list_files([folder / name for name in inputs])]

    assert sources("one/a.csv") == ["a.csv"]
    assert sources("one") == ["one/a.csv", "one/sub/b.csv"]
    assert sources("one/../one/sub") == ["sub/b.csv"]
    assert sources("*/a.csv") == [f"{folder.name}/one/a.csv", f"{folder.name}/two/a.csv"]
    assert sources("one", "two") == ["one/a.csv", "one/sub/b.csv", "two/a.csv"]
    same = [str(folder / "one/a.csv"), str(folder / "two/a.csv")]
    assert sources("one/a.csv", "two/a.csv") == same


def test_an_audit_joins_after_its_folder_has_moved(folder, capsys):
    rows = make_rows(80)
    (folder / "in" / "sub").mkdir(parents=True)
    rows[:40].to_csv("in/a.csv", index=False)
    rows[40:].to_csv("in/sub/a.csv", index=False)
    assert score("in --out out.csv --audit 30") == 0
    audit = pd.read_csv("out.csv").query("audit")[["file", "row"]]
    Y = np.random.default_rng(0).integers(0, 2, size=(30, 3))
    audit.reset_index(drop=True).join(pd.DataFrame(Y, columns=LABELS)).to_csv("t.csv", index=False)

    def estimate(place):
        assert main(["estimate", "m", place, "--truth", "t.csv", "--json", "--jobs", "1"]) == 0
        return json.loads(capsys.readouterr().out)

    before = estimate("in")
    os.makedirs("elsewhere")
    os.rename("in", "elsewhere/renamed")
    assert estimate("elsewhere/renamed") == before
    assert main(["estimate", "m", "elsewhere/renamed/sub", "--truth", "t.csv"]) == 2
    assert "'in/a.csv' is 'sub/a.csv', as another name is" in capsys.readouterr().err

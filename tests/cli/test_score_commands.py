"""`labelsure score` and `labelsure estimate`: what they print, their exit codes, their mistakes."""

import json
import re

import pandas as pd
import pytest
from scored_files import make_model, make_rows

from labelsure.cli import main

N_ROWS = 50


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_model().save(folder / "model.labelsure")
    rows = make_rows(N_ROWS)
    rows.to_csv(folder / "new.csv", index=False)
    rows.astype(str).assign(b=["soon", *["0.5"] * (N_ROWS - 1)]).to_csv(
        folder / "bad.csv", index=False
    )
    return folder


@pytest.fixture
def run(files, tmp_path, monkeypatch, capsys):
    """Run a command on the model and an input, `--out` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(command, data, *words):
        model, rows = str(files / "model.labelsure"), str(files / data)
        code = main([command, model, rows, *words, "--jobs", "1"])
        return code, *capsys.readouterr()

    return run


def test_a_summary_of_what_was_scored(run, tmp_path):
    code, out, err = run("score", "new.csv", "--out", "out.csv", "--id", "id", "--audit", "7")
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    n_accepted = int(table["accept"].sum())
    mean = table["estimated_accuracy"].mean()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"50 predictions, mean estimated accuracy {mean:.3f}; {n_accepted} accepted, "
        f"{50 - n_accepted} to refer.",
        "7 rows were chosen by chance: only their labels say something about all rows, those of "
        "doubtful ones do not.",
        "Predictions out.csv",
    ]


def test_as_json_and_quiet(run):
    code, out, err = run("score", "new.csv", "--out", "out.jsonl", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["n_rows"], found["n_units"], found["out"]) == (50, 1, "out.jsonl")
    assert run("score", "new.csv", "--out", "other.jsonl", "--quiet") == (0, "", "")


def test_all_options_reach_the_table(run, tmp_path):
    words = [
        "--top",
        "1",
        "--no-probabilities",
        "--sep",
        "|",
        "--rows-per-unit",
        "9",
        "--seed",
        "3",
    ]
    assert run("score", "new.csv", "--out", "out.csv", *words)[0] == 0
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert list(table)[-2:] == ["top_1", "top_1_probability"]
    assert table["predicted"].str.contains("|", regex=False).any()
    code, _, err = run("score", "new.csv", "--out", "out.csv", *words)
    assert code == 2
    assert "say `--overwrite` to replace a file" in err
    assert run("score", "new.csv", "--out", "out.csv", "--overwrite")[0] == 0


def test_a_labelling_tool(run, tmp_path):
    assert run("score", "new.csv", "--out", "tasks.json", "--to", "label-studio")[0] == 0
    assert len(json.loads((tmp_path / "tasks.json").read_text())) == N_ROWS


def test_bad_rows_are_one_sentence_or_set_aside(run):
    code, out, err = run("score", "bad.csv", "--out", "out.csv", "--rows-per-unit", "10")
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert re.match(
        r"labelsure: Row 0 of '.*bad.csv' .* Or set such rows aside with `--bad-rows`", lines[-1]
    )
    assert lines[-1].endswith("4 of 5 units are kept.")
    words = ["--rows-per-unit", "10", "--bad-rows", "bad.jsonl"]
    code, out, err = run("score", "bad.csv", "--out", "out.csv", *words)
    assert (code, err) == (0, "40 rows kept from an earlier run\n")
    assert "1 bad rows were set aside, see bad.jsonl" in out


def test_an_estimate(run, files):
    expected = make_model().estimate(make_rows(N_ROWS).drop(columns="id"), level=0.9)
    assert run("estimate", "new.csv", "--level", "0.9") == (0, f"{expected}\n", "")
    code, out, _ = run("estimate", "new.csv", "--level", "0.9", "--json", "--metric", "jaccard")
    found = json.loads(out)
    assert (code, found["n_samples"], found["level"]) == (0, N_ROWS, 0.9)
    assert found["mean"] == pytest.approx(expected.mean)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["score", "new.csv"], r"Missing option '--out'"),
        (["score", "none.csv", "--out", "o.csv"], r"There is no file '.*none.csv'\."),
        (["score", "new.csv", "--out", "o.xls"], r"Unknown format of predictions '.xls'\."),
        (["score", "new.csv", "--out", "o.csv", "--to", "x"], r"Unknown labelling tool 'x'\."),
        (["score", "new.csv", "--out", "o.csv", "--top", "-1"], r"Invalid value for '--top'"),
        (["score", "new.csv", "--out", "o.csv", "--id", "z"], r"'z'"),
        (["score", "new.csv", "--out", "o.csv", "--trust", "x y"], r"`trust`"),
        (["estimate", "new.csv", "--level", "2"], r"`level` must"),
        (["estimate", "bad.csv"], r"Row 0 of 'bad.csv'"),
    ],
)
def test_mistakes_are_one_sentence(run, words, message):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    sentences = [line for line in err.splitlines() if line.startswith("labelsure: ")]
    assert len(sentences) == 1
    assert re.search(message, sentences[0])


def test_a_scheduler_that_does_not_answer(run, monkeypatch):
    pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    monkeypatch.setattr("labelsure._cluster.CONNECT_SECONDS", 1)
    code, _, err = run("score", "new.csv", "--out", "o.csv", "--scheduler", "tcp://127.0.0.1:9")
    assert code == 2
    assert "labelsure: The scheduler 'tcp://127.0.0.1:9' must answer within 1 seconds" in err

"""The gate of a pipeline: which number fails, exit codes, files one by one, bad rows set aside."""

import json
import re

import pandas as pd
import pytest
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.cli._app import main
from labelsure.tables.gate import FileEstimate, Gate

ESTIMATE = ls.Estimate(0.57, 0.552, 0.588, 2158, level=0.95, spread=0.2, quantity="mean F1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_model().save(folder / "model.labelsure")
    rows = make_rows(180)
    (folder / "week").mkdir()
    for number, day in enumerate(["b_mon", "a_tue", "c_wed"]):
        part = rows[60 * number :][:60]
        part.to_csv(folder / "week" / f"{day}.csv", index=False)
    rows.to_csv(folder / "new.csv", index=False)
    rows.assign(a=rows["a"] + 3, b=rows["b"] + 2).to_csv(folder / "drifted.csv", index=False)
    bad = rows[:60].astype(str)
    bad.loc[5, "c"] = "soon"
    bad.to_csv(folder / "bad.csv", index=False)
    return folder


@pytest.fixture
def run(files, tmp_path, monkeypatch, capsys):
    """Run a command on the model and an input."""
    monkeypatch.chdir(tmp_path)

    def run(command, data, *words):
        code = main([command, str(files / "model.labelsure"), str(files / data), *words])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("gate", "failures"),
    [
        (Gate(), []),
        (Gate(0.57), []),
        (Gate(0.5701), ["mean F1 0.570 is below 0.5701"]),
        (Gate(0.552, strict=True), []),
        (Gate(0.56, strict=True), ["the lower end of mean F1, 0.552, is below 0.56"]),
        (Gate(fail_on_shift=True), ["not tested for shift ()"]),
    ],
)
def test_numbers_against_limits(gate, failures):
    assert gate.failures(FileEstimate("", ESTIMATE)) == failures


def test_a_number_that_would_be_rounded_to_its_limit():
    near = ls.Estimate(0.59996, 0.5, 0.7, 100, level=0.95, spread=0.2)
    assert Gate(0.6).failures(FileEstimate("", near)) == ["mean accuracy 0.59996 is below 0.6"]


def test_refused_estimates_fail():
    refused = FileEstimate("", None, None, "Too few rows.")
    assert Gate(0.1).failures(refused) == ["the estimate is refused (Too few rows)"]
    assert Gate().failures(refused) == []


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        (["--fail-below", "0.5"], ""),
        (["--fail-below", "0.5", "--strict", "--fail-on-shift"], ""),
        (["--fail-below", "0.95"], r"mean Jaccard 0\.\d{3} is below 0\.95"),
        (["--metric", "exact", "--fail-below", "0.7"], r"mean exact match 0\.\d{3} is below 0\.7"),
        (["--metric", "f1", "--fail-below", "1", "--strict"], r"the lower end of mean F1, 0\.\d+,"),
        (["--metric", "macro-f1", "--fail-below", "0.6", "--fail-on-shift"], ""),
        (["--metric", "macro-f1", "--fail-below", "0.99"], r"macro-f1 0\.\d{3} is below 0\.99"),
    ],
)
def test_exit_codes(run, words, failure):
    code, out, err = run("estimate", "new.csv", *words, "--jobs", "1")
    assert code == bool(failure)
    assert re.search(rf"^Gate +{'failed' if failure else 'passed'}$", out, re.MULTILINE)
    assert err.count("\n") == bool(failure)
    assert re.match(f"labelsure: Gate failed: {failure}" if failure else "$", err)


def test_the_estimate_is_the_one_of_the_library(run):
    rows = make_rows(180).drop(columns="id")
    for metric in ("exact", "hamming", "recall"):
        _, out, _ = run("estimate", "new.csv", "--metric", metric, "--json", "--jobs", "1")
        found, expected = json.loads(out), make_model().estimate(rows, metric=metric)
        for name in ("mean", "low", "high", "quantity", "n_samples"):
            assert found[name] == pytest.approx(getattr(expected, name), abs=1e-12), name


def test_a_drifted_input_fails(run):
    for words in (["--fail-below", "0.1"], ["--fail-on-shift"]):
        code, out, err = run("estimate", "drifted.csv", *words, "--json")
        found = json.loads(out)
        assert (code, found["shift"]["found"], found["gate"]["passed"]) == (1, True, False)
        assert err.startswith("labelsure: Gate failed: ")
    assert run("estimate", "drifted.csv")[0] == 0  # without a gate


def test_each_file_has_a_line_and_a_test(run):
    code, out, _ = run("estimate", "week", "--by-file", "--fail-on-shift", "--json")
    found = json.loads(out)
    assert code == 0
    assert [one["file"] for one in found["files"]] == [
        f"week/{day}.csv" for day in ("a_tue", "b_mon", "c_wed")
    ]
    rows = make_rows(180).drop(columns="id")
    for one, first in zip(found["files"], (60, 0, 120), strict=True):
        expected = make_model().estimate(rows[first : first + 60])
        assert one["mean"] == pytest.approx(expected.mean, abs=1e-12)
        assert one["shift"]["p_value"] == expected.shift.p_value
    assert found["n_samples"] == 180


def test_one_drifted_file_fails(run, files, tmp_path):
    for name in ("new", "drifted"):
        (tmp_path / f"{name}.csv").write_bytes((files / f"{name}.csv").read_bytes())
    words = ["new.csv", "--by-file", "--fail-on-shift"]
    code, _, err = run("estimate", str(tmp_path / "drifted.csv"), *words)
    assert code == 1
    assert "drifted.csv: shift detected" in err
    assert "; new.csv: " not in err


@pytest.mark.parametrize("command", ["estimate", "report", "monitor"])
def test_bad_rows_are_set_aside(run, command):
    out = ["--out", "page.html"] if command != "estimate" else []
    assert run(command, "bad.csv", *out)[0] == 2
    code, _, err = run(command, "bad.csv", *out, "--bad-rows", "aside.jsonl")
    assert code == 0, err
    with open("aside.jsonl") as file:
        (row,) = map(json.loads, file)
    assert (row["file"], row["row"], row["values"]["c"]) == ("bad.csv", 5, "soon")


def test_a_row_without_a_date_is_a_bad_row(run, files):
    rows = make_rows(60).assign(at="2024-03-05")
    rows.loc[9, "at"] = "05.03.2024"
    rows.to_csv(files / "dated.csv", index=False)
    words = ["--time", "at", "--out", "page.html"]
    code, _, err = run("monitor", "dated.csv", *words)
    assert (code, "Row 9 of 'dated.csv'" in err) == (2, True)
    assert run("monitor", "dated.csv", *words, "--bad-rows", "aside.jsonl")[0] == 0
    with open("aside.jsonl") as file:
        (row,) = map(json.loads, file)
    assert (row["row"], row["values"]["at"]) == (9, "05.03.2024")


def test_files_are_chunks_in_the_order_of_their_names(run, monkeypatch):
    chunks, original = [], ls.monitor

    def monitor(estimator, found, **settings):
        chunks.extend((name, len(rows)) for name, rows in found.items())
        return original(estimator, found, **settings)

    monkeypatch.setattr("labelsure.estimation.monitoring.monitor", monitor)
    code, out, _ = run("monitor", "week", "--out", "page.html")
    assert code == 0
    assert chunks == [(f"week/{day}.csv", 60) for day in ("a_tue", "b_mon", "c_wed")]
    assert "No alarm in 3 chunks" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--strict"], "`--strict` must come with `--fail-below`"),
        (["--fail-below", "2"], "'--fail-below'"),
        (["--fail-on-shift", "--shift", "ignore"], "`--fail-on-shift` needs the shift test"),
        (["--metric", "f2"], "Unknown metric 'f2'"),
        (["--bad-rows", "bad.txt"], "must have a name that ends in .jsonl"),
    ],
)
def test_wrong_settings(run, words, message):
    pd.DataFrame({"id": ["r1"], "x": [1], "y": [1], "z": [1]}).to_csv("t.csv", index=False)
    code, out, err = run("estimate", "new.csv", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_calendar_options_need_a_column_of_dates(run):
    code, _, err = run("monitor", "week", "--every", "D", "--out", "page.html")
    assert (code, "`--every` and `--time-format` must come with `--time`" in err) == (2, True)


def test_train_counts_groups_of_dependent_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = make_rows(200)
    events = [f"e{i // 4}" for i in range(200)]
    rows = rows.assign(odd=rows.index % 2, big=(rows["a"] > 0).astype(int), event=events)
    rows.to_csv("t.csv", index=False)
    words = ["train", "t.csv", "--labels", "odd,big", "--classifier", "br", "--id", "id"]
    assert main([*words, "--groups", "event", "--out", "m.labelsure"]) == 0
    assert "unused column (event)" in capsys.readouterr().out
    model = ls.load("m.labelsure")
    assert model.accuracy_estimator_.scatter_.n_clusters < len(
        model.accuracy_estimator_.calibration_
    )
    assert main([*words, "--groups", "none", "--out", "n.labelsure"]) == 2

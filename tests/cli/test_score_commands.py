"""`labelsure score` and `labelsure estimate`: what they print, their exit codes, their mistakes."""

import json
import re

import pandas as pd
import pytest
from scored_files import make_model, make_rows

from labelsure.cli._app import main

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


def told(line):
    """Return what stands behind the name of a fact."""
    return re.sub(r"^\S*  +", "", line)


def test_a_summary_of_what_was_scored(run, files, tmp_path):
    code, out, err = run("score", "new.csv", "--out", "out.csv", "--id", "id", "--audit", "7")
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    n_accepted = int(table["accept"].sum())
    mean = table["estimated_accuracy"].mean()
    assert (code, err) == (0, "")
    told = [re.split("  +", line, maxsplit=1) for line in out.splitlines()]
    model, rows = files / "model.labelsure", files / "new.csv"
    assert told == [
        ["Predictions", f"50 ({n_accepted} accepted, {50 - n_accepted} referred to a person)"],
        ["Mean Jaccard", f"{mean:.3f} (estimated)"],
        ["Shift", str(make_model().estimate(make_rows(N_ROWS).drop(columns="id")).shift)],
        [
            "Audit",
            "7 random rows: label these, and give the labels to `labelsure estimate --truth`. "
            "Labels of doubtful rows say nothing about all rows.",
        ],
        ["Written to", "out.csv"],
        ["Next", f"labelsure report {model} {rows} --scored out.csv --out report.html"],
    ]


def test_as_json_and_quiet(run):
    code, out, err = run("score", "new.csv", "--out", "out.jsonl", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["n_rows"], found["n_parts"], found["out"]) == (50, 1, "out.jsonl")
    assert run("score", "new.csv", "--out", "other.jsonl", "--quiet") == (0, "", "")


def test_all_options_reach_the_table(run, tmp_path):
    words = [
        "--top",
        "1",
        "--no-probabilities",
        "--label-sep",
        "|",
        "--seed",
        "3",
    ]
    assert run("score", "new.csv", "--out", "out.csv", *words)[0] == 0
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert list(table)[-2:] == ["top_1", "top_1_probability"]
    assert table["predicted"].str.contains("|", regex=False).any()
    code, _, err = run("score", "new.csv", "--out", "out.csv", *words[2:])
    assert code == 2
    assert "say `--overwrite` to replace a file" in err
    assert run("score", "new.csv", "--out", "out.csv", "--overwrite")[0] == 0


@pytest.mark.parametrize("command", ["score", "estimate"])
def test_the_separator_of_csv(run, files, tmp_path, command):
    rows = make_rows(N_ROWS).rename(columns={"id": "id, or so"})  # commas in the header mislead
    rows.to_csv(files / "bars.csv", index=False, sep="|", quoting=3)
    words = ["--out", "out.csv"] if command == "score" else ["--json"]
    assert "must" in run(command, "bars.csv", *words)[2]
    found = run(command, "bars.csv", *words, "--csv-sep", "|")
    expected = run(command, "new.csv", *[word.replace("out.csv", "comma.csv") for word in words])
    assert (found[0], found[2]) == (0, "")
    if command == "estimate":
        assert json.loads(found[1]) == json.loads(expected[1])
        return
    table = pd.read_csv(tmp_path / "out.csv", sep="|")
    same = pd.read_csv(tmp_path / "comma.csv")
    pd.testing.assert_frame_equal(table.drop(columns="file"), same.drop(columns="file"))


@pytest.mark.parametrize("sep", ["", "ab", '"', "\n", "é"])
def test_a_separator_that_csv_cannot_have(run, sep):
    code, _, err = run("score", "new.csv", "--out", "out.csv", "--csv-sep", sep)
    assert (code, err.count("\n")) == (2, 1)
    assert "`--csv-sep` must be one ASCII character" in err


def test_bad_rows_are_one_sentence_or_set_aside(run, monkeypatch):
    monkeypatch.setattr("labelsure.tables.files.CHUNK_ROWS", 10)
    code, out, err = run("score", "bad.csv", "--out", "out.csv")
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert re.match(
        r"labelsure: Row 0 of '.*bad.csv' .* Or set such rows aside with `--bad-rows`", lines[-1]
    )
    assert lines[-1].endswith("4 finished parts are kept.")
    words = ["--bad-rows", "bad.jsonl"]
    code, out, err = run("score", "bad.csv", "--out", "out.csv", *words)
    assert (code, err) == (0, "")
    assert "4 of 5 parts from an earlier run\n" in out
    assert "1 set aside in bad.jsonl\n" in out


def test_an_estimate(run, files):
    expected = make_model().estimate(make_rows(N_ROWS).drop(columns="id"), level=0.9)
    code, out, err = run("estimate", "new.csv", "--confidence", "0.9")
    first, second, third, fourth, _ = (told(line) for line in out.splitlines())
    assert (code, err) == (0, "")
    assert (first, second) == (str(expected), str(expected.shift))
    assert third.startswith("Labels of random rows give a valid interval under any shift")
    assert re.match("labelsure score .*new.csv --audit 200 --out predictions.csv", fourth)
    code, out, _ = run("estimate", "new.csv", "--confidence", "0.9", "--json")
    found = json.loads(out)
    assert (code, found["n_samples"], found["level"]) == (0, N_ROWS, 0.9)
    assert found["mean"] == pytest.approx(expected.mean)
    assert found["shift"]["auc"] == pytest.approx(expected.shift.auc)
    assert (found["shift"]["found"], found["weighted"], found["refusal"]) == (False, None, None)
    code, out, _ = run("estimate", "new.csv", "--shift", "ignore", "--json")
    assert json.loads(out)["shift"] is None


def test_an_estimate_of_rows_that_have_changed(run, files):
    rows = make_rows(400, seed=5)
    rows.assign(a=rows["a"] + 1.5).to_csv(files / "changed.csv", index=False)
    rows.assign(a=50, b=-50).to_csv(files / "far.csv", index=False)
    rows.head(20).to_csv(files / "few.csv", index=False)
    lines = [told(line) for line in run("estimate", "changed.csv")[1].splitlines()]
    X = rows.assign(a=rows["a"] + 1.5).drop(columns="id")
    weighted = make_model().estimate(X, shift="weighted")
    assert lines[1].startswith("Do not rely on this. The batch differs from the reference (AUC 0.")
    assert "Means that changed most: P(x) from" in lines[1]
    assert lines[2] == f"From the importance-weighted calibration set: {weighted}"
    found = run("estimate", "changed.csv", "--shift", "weighted")[1]
    assert found.startswith(f"Estimate  {weighted}\n")
    found = json.loads(run("estimate", "changed.csv", "--json")[1])
    assert found["weighted"]["mean"] == pytest.approx(weighted.mean)
    assert found["weighted"]["effective_size"] == pytest.approx(weighted.effective_size)
    lines = run("estimate", "far.csv")[1].splitlines()
    assert "not estimable from the calibration set" in lines[2]
    code, out, err = run("estimate", "far.csv", "--shift", "weighted")
    assert (code, out) == (2, "")
    assert err.startswith("labelsure: The accuracy of this batch is not estimable")
    out = run("estimate", "few.csv")[1]
    assert "Not tested for shift: fewer than 30 rows." in out.splitlines()[0]
    code, _, err = run("estimate", "few.csv", "--shift", "weihted")
    assert code == 2
    assert "Did you mean 'weighted'?" in err


def test_an_estimate_with_labels_of_some_rows(run, files):
    rows = make_rows(N_ROWS)
    truth = (rows[["a", "b", "c"]] > 0).astype(int).set_axis(["x", "y", "z"], axis=1)
    chosen = [3, 9, 10, 14, 20, 21, 25, 30, 33, 38, 40, 47]
    expected = make_model().estimate(
        rows.drop(columns="id"), Y_true=truth.to_numpy()[chosen], rows=chosen
    )
    some = truth.iloc[chosen]
    some.assign(id=rows["id"]).iloc[::-1].to_csv(files / "by_id.csv", index=False)
    some.assign(row=chosen).to_csv(files / "by_row.csv", index=False)
    names = [";".join(name for name in "xyz" if row[name]) for _, row in some.iterrows()]
    pd.DataFrame({"row": chosen, "labels": names}).to_csv(files / "names.csv", index=False)
    for words in (
        ["by_id.csv", "--id", "id"],
        ["by_row.csv"],
        ["names.csv", "--label-column", "labels", "--label-sep", ";"],
    ):
        code, out, _ = run("estimate", "new.csv", "--truth", str(files / words[0]), *words[1:])
        assert (code, out) == (0, f"Estimate  {expected}\n")
    found = json.loads(
        run("estimate", "new.csv", "--json", "--truth", str(files / "by_row.csv"))[1]
    )
    assert (found["n_labelled"], found["quantity"]) == (12, "mean Jaccard")


def test_labels_of_rows_in_several_files(files, capsys):
    rows = make_rows(40)
    folder = files / "parts"
    folder.mkdir()
    for name, part in (("a.csv", rows[:20]), ("b.csv", rows[20:])):
        part.to_csv(folder / name, index=False)
    truth = (rows[["a", "b", "c"]] > 0).astype(int).set_axis(["x", "y", "z"], axis=1)
    chosen = [0, 2, 5, 6, 9, 12, 20, 22, 25, 26, 33, 39]
    expected = make_model().estimate(
        rows.drop(columns="id"), Y_true=truth.to_numpy()[chosen], rows=chosen
    )
    some = truth.iloc[chosen].assign(row=[i % 20 for i in chosen])
    words = ["estimate", str(files / "model.labelsure"), str(folder), "--jobs", "1", "--truth"]
    some.to_csv(files / "some.csv", index=False)
    assert main([*words, str(files / "some.csv")]) == 2
    assert "must have a column 'file' beside 'row'" in capsys.readouterr().err
    some.assign(file=["a.csv"] * 6 + ["b.csv"] * 6).to_csv(files / "some.csv", index=False)
    assert main([*words, str(files / "some.csv")]) == 0
    assert capsys.readouterr().out == f"Estimate  {expected}\n"


def test_mistakes_in_the_labels_of_some_rows(run, files):
    truth = pd.DataFrame({"x": [0] * 12, "y": 1, "z": 0})
    cases = {
        "must say which rows it labels": truth,
        "must be one row of the input, missing there: '99'": truth.assign(row=[*range(11), 99]),
        "must name each row once, some are there twice": truth.assign(row=[1, 1, *range(2, 12)]),
        "Unknown column 'z' of 'some.csv'": truth.assign(row=range(12)).drop(columns="z"),
        "must be about files of the input, 'b.csv' is none": truth.assign(
            row=range(12), file="b.csv"
        ),
        "whole numbers from 0, got 'first' in row 0": truth.assign(row=["first", *range(11)]),
        "At least 10 rows must be labelled": truth.assign(row=range(12)).head(4),
    }
    for message, frame in cases.items():
        frame.to_csv(files / "some.csv", index=False)
        code, out, err = run("estimate", "new.csv", "--truth", str(files / "some.csv"))
        assert (code, out) == (2, "")
        assert re.search(message, err), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["score", "new.csv"], r"Missing option '--out'"),
        (["score", "none.csv", "--out", "o.csv"], r"There is no file '.*none.csv'\."),
        (["score", "new.csv", "--out", "o.xls"], r"Unknown format of predictions '.xls'\."),
        (["score", "new.csv", "--out", "o.csv", "--top", "-1"], r"Invalid value for '--top'"),
        (["score", "new.csv", "--out", "o.csv", "--id", "z"], r"`--id` must name a column of"),
        (
            ["estimate", "new.csv", "--confidence", "2"],
            r"Invalid value for '--confidence': 2 is not",
        ),
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
    monkeypatch.setattr("labelsure._runtime.processes.CONNECT_SECONDS", 1)
    code, _, err = run("score", "new.csv", "--out", "o.csv", "--scheduler", "tcp://127.0.0.1:9")
    assert code == 2
    assert "labelsure: The scheduler 'tcp://127.0.0.1:9' must answer within 1 seconds" in err


def test_an_error_is_printed_once(run):
    code, out, err = run("score", "bad.csv", "--out", "out.csv")
    assert (code, out) == (2, "")
    assert err.count("soon") == 1

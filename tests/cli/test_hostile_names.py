"""Names and paths that no one expects: they are printed as they are, or refused in one sentence."""

import json
import os
import subprocess
import sys

import pytest
import tomli_w

from labelsure.cli._app import main
from labelsure.errors import InputError
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import run_study
from labelsure.tables.datasets import load_dataset

PLAN = {
    **load_plan("quick").to_dict(),
    "n_repeats": 1,
    "classifiers": {"Indep": {"class": "BinaryRelevance"}},
    "datasets": {"small": {"simulated": {"n_samples": 60, "n_labels": 2}}},
}
NO_HOME = "must begin with the name of a folder, or with `~` of a user who has a home folder here"
NOT_UTF8 = os.fsdecode(b"caf\xe9")
ARFF = "@relation r\n@attribute y {0,1}\n@attribute x numeric\n@data\n0,1\n1,2\n"


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Leave tables and figures, which take seconds, to the tests that are about them."""
    monkeypatch.setattr("labelsure.study.report.write_report", lambda run, **others: None)


def write_plan(path, **changes):
    path.write_text(tomli_w.dumps({**PLAN, **changes}))
    return str(path)


def refused(capsys, *arguments, code=2):
    assert main(arguments) == code
    error = capsys.readouterr().err
    assert error.startswith("labelsure: ")
    assert error.count("\n") == 1
    assert error.endswith(".\n")
    return error


COMMANDS = {
    "plan": ["study", "run", "~no-such-user/plan.toml", "--out", "{}/run"],
    "out": ["study", "run", "{}/plan.toml", "--out", "~no-such-user/run"],
    "data": ["study", "run", "paper", "--out", "{}/run", "--data", "~no-such-user/data"],
    "list": ["data", "list", "--data", "~no-such-user"],
    "info": ["data", "info", "digits", "--data", "~no-such-user"],
    "check": ["study", "check", "~no-such-user/run"],
    "file": ["study", "run", "{}/of_file.toml", "--out", "{}/run"],
    "labels": ["study", "run", "{}/of_labels.toml", "--out", "{}/run"],
}


@pytest.mark.parametrize("place", COMMANDS)
def test_a_home_folder_that_is_not_there(capsys, tmp_path, place):
    write_plan(tmp_path / "plan.toml")
    for name, table in (
        ("of_file", {"file": "~no-such-user/a.csv"}),
        ("of_labels", {"file": "a.arff", "labels": "~no-such-user/a.xml"}),
    ):
        write_plan(tmp_path / f"{name}.toml", datasets={"own": table})
    assert NO_HOME in refused(capsys, *(word.format(tmp_path) for word in COMMANDS[place]))


def test_a_home_folder_in_a_variable(capsys, monkeypatch):
    monkeypatch.setenv("LABELSURE_DATA", "~no-such-user/folder")
    assert NO_HOME in refused(capsys, "data", "info", "digits")


def test_a_folder_that_is_not_utf8(capsys, tmp_path):
    """A run can be anywhere; only a plan, whose place runs note, must have a name that is text."""
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    (folder / f"{NOT_UTF8}.arff").write_text(ARFF)
    plan, out = write_plan(tmp_path / "plan.toml"), str(folder / "run")
    assert main(["study", "run", plan, "--out", out, "--jobs", "1"]) == 0
    assert "caf\\udce9" in capsys.readouterr().out
    assert main(["study", "run", plan, "--out", out, "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == out
    assert main(["data", "list", "--data", str(folder)]) == 0
    assert "caf\\udce9" in capsys.readouterr().out
    assert main(["data", "info", NOT_UTF8, "--data", str(folder)]) == 2  # which column is a label?
    assert "caf\\udce9.arff must be named" in capsys.readouterr().err
    there = write_plan(folder / "plan.toml")
    sentence = refused(capsys, "study", "run", there, "--out", str(tmp_path / "other"))
    assert "cannot be read: 'utf-8'" in sentence
    assert not (tmp_path / "other").exists()
    assert "Unknown plan 'caf\\udce9'" in refused(capsys, "study", "run", NOT_UTF8, "--out", out)


@pytest.mark.parametrize("name", ["[bold]x", "x[/bold]", "[red]x[/]", ":warning:", "x\\[y"])
def test_markup_in_names(capsys, tmp_path, name):
    out = tmp_path / name
    assert (
        main(["study", "run", write_plan(tmp_path / "p.toml"), "--out", str(out), "-j", "1"]) == 0
    )
    assert str(out / "scores.parquet") in capsys.readouterr().out
    flat = name.replace("/", "")
    (out / f"{flat}.arff").touch()
    assert main(["data", "list", "--data", str(out)]) == 0
    assert f" {flat} " in capsys.readouterr().out
    assert f"'{name}'".replace("\\", "\\\\") in refused(capsys, "data", "info", name)


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "a\0b", "\r", "tab\t", "a" * 5000])
def test_characters_that_break_lines(capsys, tmp_path, name):
    for words in (
        ["study", "run", name, "--out", str(tmp_path / "run")],
        ["study", "run", name],
        [name],
        ["data", "list", name],
        ["data", "info", name],
        ["data", "list", "--data", str(tmp_path / name)],
        ["study", "check", str(tmp_path / name)],
    ):
        sentence = refused(capsys, *words)
        assert sentence[:-1].isprintable()


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000])
def test_folders_that_cannot_be(name, tmp_path):
    with pytest.raises(InputError, match="Choose"):
        run_study(Plan.from_dict(PLAN), tmp_path / name)
    with pytest.raises(InputError, match="folder"):
        load_dataset("digits", tmp_path / name)


def broken(*arguments, **settings):
    raise LookupError("a value\nthat nobody thought of")


@pytest.mark.parametrize("place", [0, 2, 4])
def test_what_should_not_happen(capsys, monkeypatch, tmp_path, place):
    monkeypatch.setattr("labelsure.study.run.run_study", broken)
    words = ["study", "run", write_plan(tmp_path / "plan.toml"), "--out", str(tmp_path / "run")]
    assert refused(capsys, *words, code=70) == (
        "labelsure: Internal error (LookupError: a value). Run the command again with "
        "`--debug` to see where, and report it.\n"
    )
    assert main([*words[:place], "--debug", *words[place:]]) == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any("in broken" in line for line in lines)
    assert lines[-1].startswith("labelsure: Internal error (LookupError: a value)")


def test_where_any_other_error_came_from(capsys):
    assert main(["data", "info", "digit", "--debug"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.splitlines()[-1].startswith("labelsure: Unknown data set 'digit'.")
    assert main(["--help"]) == 0
    assert "--debug" in capsys.readouterr().out


def test_a_failure_without_a_reason(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("labelsure.study.run.score_cell", lambda *a: exec("raise KeyError"))
    plan = write_plan(tmp_path / "plan.toml")
    assert main(["study", "run", plan, "--out", str(tmp_path / "run"), "--jobs", "1"]) == 3
    captured = capsys.readouterr()
    assert "FAILED: KeyError" in captured.err
    assert "FAILED small.Indep.0: KeyError" in captured.out


@pytest.mark.parametrize("option", ["--repeats", "--jobs"])
def test_numbers_without_bounds(capsys, tmp_path, option):
    most = {"--repeats": 10_000, "--jobs": 1024}[option]
    words = ["study", "run", "quick", "--out", str(tmp_path / "run"), option, "100000000"]
    sentence = refused(capsys, *words)
    assert f"'{option}'" in sentence
    assert str(most) in sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_nobody_takes():
    command = [sys.executable, "-m", "labelsure", "data", "list", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "labelsure: No space left on device.\n")

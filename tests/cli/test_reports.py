"""Commands from end to end: a study with its tables and figures, its check, and the demo."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from labelsure.cli import _data, _study
from labelsure.cli._app import main
from labelsure.study.paper import check_against_paper


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """Run the quick plan once."""
    folder = tmp_path_factory.mktemp("runs") / "quick"
    assert (
        main(["study", "run", "quick", "--out", str(folder), "--repeats", "1", "--jobs", "1"]) == 0
    )
    return folder


@pytest.fixture(scope="module")
def comparison(run_folder):
    """Compare it with the paper once."""
    return check_against_paper(run_folder)


@pytest.fixture(scope="module")
def digits():
    """Fit the demo's model once."""
    return _data._predict_digits()


def test_tables_and_figures_are_there(run_folder):
    suffixes = {
        name: {path.suffix for path in (run_folder / name).glob("[!.]*")}
        for name in ("tables", "figures")
    }
    assert suffixes == {"tables": {".md", ".tex", ".csv"}, "figures": {".png", ".svg"}}


def test_the_summary_has_candidates_and_files(run_folder, capsys, monkeypatch):
    def kept(*arguments, **settings):
        """Leave the tables as they are."""

    monkeypatch.setattr("labelsure.study.report.write_report", kept, raising=False)
    assert (
        main(["study", "run", "quick", "--out", str(run_folder), "--repeats", "1", "--jobs", "1"])
        == 0
    )
    text = capsys.readouterr().out
    assert "Mean rank correlation of candidates and accuracy" in text
    assert "│ HP        │" in text
    assert str(run_folder / "tables") in text
    assert f"labelsure study report {run_folder} --out study.html" in " ".join(text.split())


@pytest.mark.parametrize(("dataset", "command"), [("emotions", "check"), ("mine", "report")])
def test_a_run_of_the_papers_data_sets_is_compared_with_the_paper_next(dataset, command):
    plan = SimpleNamespace(datasets={"scene": None, dataset: None})
    done = SimpleNamespace(plan=plan, folder=Path("runs/some"))
    assert _study._next_command(done).startswith(f"labelsure study {command} runs/some")


def test_check_prints_the_comparison(run_folder, comparison, capsys):
    assert main(["study", "check", str(run_folder)]) == 0
    assert capsys.readouterr().out == comparison.to_markdown() + "\n"


def test_only_a_strict_check_fails_if_a_conclusion_does_not_hold(run_folder, comparison, capsys):
    code = main(["study", "check", str(run_folder), "--json", "--strict"])
    found = json.loads(capsys.readouterr().out)
    assert found["misses"] == [conclusion.name for conclusion in comparison.misses]
    assert code == (1 if found["misses"] else 0)
    assert main(["study", "check", str(run_folder), "--json"]) == 0


@pytest.mark.parametrize(("misses", "code"), [([], 0), (["tg_worse"], 1)])
def test_strict_follows_the_misses(monkeypatch, misses, code):
    class Check:
        def to_dict(self):
            return {}

    Check.misses = misses
    monkeypatch.setattr("labelsure.study.paper.check_against_paper", lambda folder, n_jobs: Check())
    assert main(["study", "check", "anywhere", "--json", "--strict"]) == code


def test_the_demo_estimates_what_comes_out(digits, capsys, monkeypatch):
    monkeypatch.setattr("labelsure.cli._data._predict_digits", lambda: digits)
    assert main(["demo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == digits
    assert len(found["predictions"]) == 10
    assert found["estimated"]["low"] <= found["actual"] <= found["estimated"]["high"]
    assert found["actual_of_accepted"] >= found["target"]
    first = found["predictions"][0]
    assert set(first["labels"]) == set(first["true_labels"])
    assert first["actual_accuracy"] == 1.0


def test_the_demo_is_a_table(digits, capsys, monkeypatch):
    monkeypatch.setattr("labelsure.cli._data._predict_digits", lambda: digits)
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    assert "Traits of handwritten digits" in text
    assert text.count(" accept ") + text.count(" refer ") == 10
    assert "All 719 predictions: estimated mean Jaccard 0." in text
    assert "are accepted for a target of 0.9" in text
    none = {**digits, "actual_of_accepted": None, "n_accepted": 0}
    monkeypatch.setattr("labelsure.cli._data._predict_digits", lambda: none)
    assert main(["demo"]) == 0
    assert "No prediction is accepted" in capsys.readouterr().out

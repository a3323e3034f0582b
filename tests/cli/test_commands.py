"""The command line: results on stdout, progress on stderr, codes, one sentence for mistakes."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest
import tomli_w

import labelsure as ls
from labelsure.cli._app import main
from labelsure.cli._options import app
from labelsure.errors import InputError
from labelsure.study.plan import load_plan
from labelsure.study.run import RunFolder
from labelsure.tables.estimates import monitor_files, report_files, sum_files
from labelsure.tables.scoring import score_files
from labelsure.tables.training import calibrate_model, train_model

SETTINGS = load_plan("quick").to_dict()
SMALL = {
    **SETTINGS,
    "n_repeats": 1,
    "classifiers": {"Indep": {"class": "BinaryRelevance"}},
}


@pytest.fixture(autouse=True)
def reports(monkeypatch):
    """Leave tables and figures, which take seconds, to the tests that are about them."""
    calls = []

    def write(run, **others):
        state = json.loads((run.folder / "manifest.json").read_text())["state"]
        calls.append((run, state, others))

    monkeypatch.setattr("labelsure.study.report.write_report", write, raising=False)
    return calls


@pytest.fixture
def plan_file(tmp_path):
    """Return a function that writes a plan."""

    def write(**changes):
        path = tmp_path / "plan.toml"
        path.write_text(tomli_w.dumps({**SMALL, **changes}))
        return str(path)

    return write


def refused(capsys, *arguments):
    """Return the one sentence that wrong arguments get."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("labelsure: ")
    assert captured.err.count("\n") == 1
    assert captured.err.endswith(".\n")
    return captured.err


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from labelsure.cli import main; code = main(['study', 'run', '--help']);"
        "code += main(['--help']) + main(['data', '--help']);"
        "heavy = {'sklearn', 'numba', 'pandas', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules);"
        "print(heavy, file=sys.stderr); sys.exit(code or len(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Examples" in done.stdout
    assert "labelsure study run embedded --out runs/embedded" in done.stdout


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"labelsure {ls.__version__}\n"


def test_without_arguments_it_says_what_it_does(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") <= 12
    assert "labelsure demo" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_help_is_grouped(capsys):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    words = ["Models", "train", "calibrate", "score", "estimate", "report", "info"]
    words += ["Research", "study", "data", "Try it", "demo"]
    places = [re.search(rf"^[│╭]\W*{word} ", printed, re.MULTILINE).start() for word in words]
    assert places == sorted(places)


@pytest.mark.parametrize(("variable", "is_coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_errors_and_hints_have_two_colours(capsys, monkeypatch, variable, is_coloured):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, "1")
    assert main(["study", "run", "quik", "--out", "x"]) == 2
    error = capsys.readouterr().err
    assert ("\x1b[31mUnknown plan 'quik'. \x1b[0m\x1b[36mDid you mean" in error) == is_coloured
    assert ("\x1b[" in error) == is_coloured


def test_the_module_is_the_program():
    done = subprocess.run(
        [sys.executable, "-m", "labelsure", "study", "run", "nonsense", "--out", "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Unknown plan 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


def test_study_prints_results_and_progress(capsys, tmp_path, plan_file):
    out = tmp_path / "run"
    assert main(["study", "run", plan_file(), "--out", str(out), "--jobs", "1"]) == 0
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("[1/2] independent.Indep.0 ")
    assert lines[2] == "Writing tables and figures"
    assert "dependent" in captured.out
    assert "2 computed, 0 kept, 0 failed" in captured.out
    assert str(out / "scores.parquet") in captured.out
    scores = pd.read_parquet(out / "scores.parquet")
    one = scores[scores["dataset"] == "dependent"]
    exact = ((one["fp"] + one["fn"]) == 0).mean()
    assert f"{exact:.3f} ({one['expected_exact'].mean():.3f})" in captured.out
    assert main(["study", "run", plan_file(), "--out", str(out)]) == 0
    lines = "2 cells kept from an earlier run\nWriting tables and figures\n"
    assert capsys.readouterr().err == lines


def test_expected_accuracies_in_the_summary_have_the_empty_term(tmp_path, capsys, plan_file):
    out = tmp_path / "run"
    assert (
        main(["study", "run", plan_file(metrics=["jaccard"]), "--out", str(out), "--jobs", "1"])
        == 0
    )
    scores = pd.read_parquet(out / "scores.parquet")
    one = scores[scores["dataset"] == "dependent"]
    nothing = one["tp"] + one["fp"] == 0
    right = one["tp"] / (one["tp"] + one["fp"] + one["fn"])
    right[nothing & (one["fn"] == 0)] = 1.0
    expected = one["expected_jaccard"] + nothing * one["p_empty"]
    assert nothing.any()
    assert f"{right.mean():.3f} ({expected.mean():.3f})" in capsys.readouterr().out


def test_study_as_json(capsys, tmp_path, plan_file):
    out = tmp_path / "run"
    arguments = ["study", "run", plan_file(), "--out", str(out), "--repeats", "2", "--json"]
    assert main([*arguments, "--jobs", "1"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert (found["n_computed"], found["n_rows"], found["failures"]) == (4, 320, {})
    assert found["seconds"] > 0
    assert {"plan.toml", "scores.parquet", "manifest.json"} <= set(found["files"])


def test_failed_cells_are_exit_code_three(capsys, tmp_path, plan_file):
    chains = {"class": "EnsembleOfClassifierChains", "n_chains": 0}
    plan = plan_file(classifiers={**SMALL["classifiers"], "Broken": chains})
    assert main(["study", "run", plan, "--out", str(tmp_path / "run"), "--jobs", "1"]) == 3
    captured = capsys.readouterr()
    assert "FAILED: `n_chains` must be a whole number" in captured.err
    assert "FAILED dependent.Broken.0: `n_chains` must be" in captured.out
    assert "2 computed, 0 kept, 2 failed" in captured.out
    assert str(tmp_path / "run" / "failures.json") in captured.out


def test_a_second_run_is_refused(capsys, tmp_path, plan_file):
    with RunFolder(tmp_path / "run").locked() as folder:
        sentence = refused(capsys, "study", "run", plan_file(), "--out", str(folder.path))
    assert f"Another run (process {os.getpid()}) is at work" in sentence


WRONG = [
    (["studdy"], "No such command 'studdy'"),
    (["study", "run"], "Missing option '--out'"),
    (["study", "run", "--out"], "--out"),
    (["study", "run", "quick", "extra", "--out", "{}"], "extra"),
    (["study", "run", "quick", "--out", "{}", "--jobs", "0"], "--jobs"),
    (["study", "run", "quick", "--out", "{}", "--jobs", "two"], "--jobs"),
    (["study", "run", "quick", "--out", "{}", "--repeats", "0"], "--repeats"),
    (["study", "run", "quick", "--out", "{}", "--nonsense"], "--nonsense"),
    (["study", "run", "quik", "--out", "{}"], "Unknown plan 'quik'. Did you mean 'quick'?"),
    (["study", "run", "{}/no.toml", "--out", "{}"], "There is no plan file"),
    (["study", "run", "quick", "--out", "{}/file"], "cannot be written to (Not a directory)"),
    (["study", "run", "paper", "--out", "{}/run", "--data", "{}/no"], "Check `--data` or"),
    (
        ["study", "run", "paper", "--out", "{}/run", "--data", "{}"],
        "'emotions' must be read from a file",
    ),
    (["study", "check"], "Missing argument 'DIR"),
    (["study", "check", "{}/no"], "must hold scores.parquet"),
    (["study", "check", "{}"], "must hold scores.parquet"),
    (["demo", "extra"], "extra"),
    (["data"], "Missing command"),
    (["data", "info"], "Missing argument 'NAME'"),
    (["data", "info", "digit"], "Unknown data set 'digit'. Did you mean 'digits'?"),
    (["data", "info", "stare"], "'stare' must be read from a file"),
    (["data", "list", "--data", "{}/no"], "The data folder"),
    (["data", "fetch", "nothing"], "Unknown data set 'nothing'"),
    (["data", "fetch", "stare"], "'stare' must be read from a file"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_one_sentence_for_every_mistake(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.delenv("LABELSURE_DATA", raising=False)
    (tmp_path / "file").touch()
    filled = [argument.replace("{}", str(tmp_path)) for argument in arguments]
    assert message in refused(capsys, *filled)


def test_errors_of_the_system_are_sentences(capsys, monkeypatch, tmp_path, plan_file):
    def full(*arguments, **settings):
        raise OSError(28, "No space left on device", "scores.parquet")

    monkeypatch.setattr("labelsure._runtime.runs.PartStore.put", full)
    arguments = ["study", "run", plan_file(), "--out", str(tmp_path / "r"), "--json", "-j", "1"]
    assert refused(capsys, *arguments) == "labelsure: No space left on device: 'scores.parquet'.\n"


def test_interrupts_are_one_line(capsys, monkeypatch, tmp_path, plan_file):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("labelsure.study.run.run_study", interrupted)
    assert main(["study", "run", plan_file(), "--out", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "Interrupted. Finished work is kept.\n"


def test_imports_of_a_plan_are_trusted_on_request(capsys, monkeypatch, tmp_path, plan_file):
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = "from sklearn.linear_model import LogisticRegression as Learner"
    plan = plan_file(base={"class": "learner_beside_me.Learner"})
    (tmp_path / "learner_beside_me.py").write_text(text)
    # Two jobs: the processes that compute cells find the module as well.
    arguments = ["study", "run", plan, "--out", str(tmp_path / "run"), "--jobs", "2"]
    assert "'learner_beside_me.Learner' is in a module outside" in refused(capsys, *arguments)
    assert not (tmp_path / "run").exists()
    assert main([*arguments, "--trust-imports"]) == 0


def test_the_report_gets_the_plan(reports, tmp_path, plan_file):
    out = tmp_path / "run"
    plan = plan_file(n_replicates=7, by_instance=True)
    assert main(["study", "run", plan, "--out", str(out), "--jobs", "1"]) == 0
    ((run, state, others),) = reports
    assert (len(run.scores), len(run.features), run.folder) == (160, 2, out)
    assert (run.plan.name, run.plan.n_replicates, run.plan.by_instance) == ("quick", 7, True)
    assert others == {"n_jobs": 1}
    assert state == "running"  # until the report is there
    assert json.loads((out / "manifest.json").read_text())["state"] == "complete"


def test_a_report_that_cannot_be_made_leaves_the_scores(capsys, monkeypatch, tmp_path, plan_file):
    def refuse(*arguments, **settings):
        raise InputError("`correlations` must hold at least one that is defined, got none.")

    monkeypatch.setattr("labelsure.study.report.write_report", refuse)
    out = tmp_path / "run"
    assert main(["study", "run", plan_file(), "--out", str(out), "--jobs", "1"]) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("labelsure: `correlations` must hold")
    assert (out / "scores.parquet").is_file()


def test_nothing_to_report(capsys, reports, tmp_path, plan_file):
    chains = {"class": "EnsembleOfClassifierChains", "n_chains": 0}
    out = ["--out", str(tmp_path / "run"), "--jobs", "1"]
    assert main(["study", "run", plan_file(classifiers={"Broken": chains}), *out]) == 3
    assert reports == []
    assert "0 computed, 0 kept, 2 failed" in capsys.readouterr().out


def test_data_list(capsys, tmp_path):
    (tmp_path / "mine.arff").touch()
    assert main(["data", "list", "--json", "--data", str(tmp_path)]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["enron"]["n_labels"] == 53
    assert rows["digits"]["is_embedded"] is True
    assert rows["mine"]["n_labels"] is None
    assert main(["data", "list"]) == 0
    assert "slashdot" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["info", "fetch"])
def test_data_of_an_embedded_set(capsys, command):
    assert main(["data", command, "digits", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_samples"], found["n_labels"], found["labels"][0]) == (1797, 5, "even")
    assert main(["data", command, "digits"]) == 0
    assert "n_labelsets        8\n" in capsys.readouterr().out


def test_fetch_asks_openml_for_what_is_there(capsys, monkeypatch):
    asked = []

    def load(name, *arguments, **settings):
        asked.append((name, settings))
        return ls.Dataset([[0.0], [1.0]], [[0, 1], [1, 0]])

    monkeypatch.setattr("labelsure.tables.datasets.load_dataset", load)
    assert main(["data", "fetch", "Emotions", "--json"]) == 0
    assert asked == [("Emotions", {"source": "openml"})]
    assert json.loads(capsys.readouterr().out)["n_samples"] == 2


def test_keys_of_a_plan_are_not_called_options(capsys, tmp_path, plan_file):
    assert main(["calibrate", "x.csv", "--truth", "y.csv", "--out", "m", "--seed", "1"]) == 2
    capsys.readouterr()
    sentence = refused(capsys, "study", "run", plan_file(seed=-1), "--out", str(tmp_path / "r"))
    assert "Plan 'plan': `seed` must be" in sentence


LIBRARY = {
    "train": (train_model, ls.AccuracyAwareClassifier),
    "calibrate": (calibrate_model, ls.AccuracyAwareClassifier),
    "score": (score_files,),
    "estimate": (sum_files,),
    "report": (report_files,),
    "monitor": (monitor_files,),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_every_option_of_a_command_is_used(name):
    """It is an argument of a library function, or the command itself reads it."""
    command = next(one for one in app.registered_commands if one.callback.__name__ == name)
    (function,) = ast.parse(inspect.getsource(command.callback)).body
    read = {node.id for part in function.body for node in ast.walk(part) if type(node) is ast.Name}
    module = inspect.getsource(sys.modules[command.callback.__module__])
    read |= set(re.findall(r'context\.params\["(\w+)"\]', module))
    passed = {key for called in LIBRARY[name] for key in inspect.signature(called).parameters}
    printing = {"out", "as_json", "quiet", "verbose", "overwrite"}  # of `write_page` and others
    options = set(inspect.signature(command.callback).parameters) - {"context"}
    assert options <= passed | read | printing
    shared = options & passed - read  # which the library reads under the same name
    assert len(shared) > 8

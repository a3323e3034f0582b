"""One rule for all commands: what is finished stays, anything else is replaced on request only."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from scored_files import make_model, make_rows

from labelsure.cli._app import main
from labelsure.study.plan import load_plan
from labelsure.tables.files import read_table

COMMANDS = {
    "score": ("score m.labelsure in.csv --jobs 1 --out out.csv", "--top 1"),
    "score as JSONL": ("score m.labelsure in.csv --jobs 1 --out out.jsonl", "--audit 3"),
    "train": ("train tf --labels x,y --classifier br --out model.labelsure", "--seed 1"),
    "calibrate": (
        "calibrate z.npy --truth truth.csv --out tagger.labelsure",
        "--confidence 0.9",
    ),
    "report": ("report m.labelsure in.csv --out page.html", "--title Mine"),
}
"""A command, and another setting of it."""

INPUTS = {
    "score": "in.csv",
    "score as JSONL": "in.csv",
    "train": "tf/a.csv",
    "calibrate": "z.npy",
    "report": "in.csv",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Inputs of all commands, in the working folder."""
    monkeypatch.chdir(tmp_path)
    make_model().save(tmp_path / "m.labelsure")
    make_rows(20).to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "tf").mkdir()
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(60, 2))
    table = pd.DataFrame(Y, columns=["x", "y"]).assign(size=rng.normal(size=60))
    table.to_csv(tmp_path / "tf" / "a.csv", index=False)
    np.save(tmp_path / "z.npy", rng.uniform(0.2, 0.5, Y.shape) + 0.3 * Y)
    table[["x", "y"]].to_csv(tmp_path / "truth.csv", index=False)
    return tmp_path


def state(path):
    return path.stat().st_mtime_ns, path.read_bytes()


@pytest.mark.filterwarnings("ignore")  # sixty random rows are no good model
@pytest.mark.parametrize("name", COMMANDS)
def test_a_finished_output(folder, name, capsys):
    command, other = COMMANDS[name]
    words = command.split()
    out = folder / words[-1]
    assert main(words) == 0
    made, said = state(out), capsys.readouterr().out
    assert main(words) == 0  # the same again: a success that does nothing
    assert state(out) == made
    assert capsys.readouterr().out.startswith(said.rstrip("\n"))
    # Other settings, other inputs and a file that was changed by hand need `--overwrite`.
    assert main([*words, *other.split()]) == 2
    assert "made from other inputs or settings" in capsys.readouterr().err
    os.utime(INPUTS[name], (1, 1))
    assert (main(words), state(out)) == (2, made)
    assert main([*words, "--overwrite"]) == 0
    assert state(out)[0] > made[0]
    assert main(words) == 0
    out.write_bytes(out.read_bytes() + b"\n")
    assert main(words) == 2
    assert main([*words, "--overwrite"]) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_of_somebody_else_stays(folder, name, capsys):
    words = COMMANDS[name][0].split()
    (folder / words[-1]).write_text("mine")
    assert main(words) == 2
    assert "exists already. Choose another name, or say `--overwrite`" in capsys.readouterr().err
    assert (folder / words[-1]).read_text() == "mine"
    (folder / f".{words[-1]}.labelsure.json").write_text("[]")  # no note of ours
    assert main(words) == 2


def test_a_finished_score_says_the_same(folder, capsys):
    words = [*COMMANDS["score"][0].split(), "--json"]
    found = []
    for _ in range(2):
        assert main(words) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[1] == {**found[0], "n_kept": 1}
    assert found[0]["n_rows"] == 20


def test_notes_of_outputs_are_no_inputs(folder):
    (folder / "made").mkdir()
    assert main(["score", "m.labelsure", "in.csv", "--jobs", "1", "--out", "made/out.csv"]) == 0
    assert (folder / "made" / ".out.csv.labelsure.json").is_file()
    assert len(read_table(folder / "made")) == 20


def test_a_study_of_another_plan(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("labelsure.study.report.write_report", lambda *_, **__: [])
    plan = tmp_path / "plan.toml"
    classifiers = {"Indep": {"class": "BinaryRelevance"}}
    settings = {**load_plan("quick").to_dict(), "classifiers": classifiers, "n_repeats": 1}
    plan.write_text(tomli_w.dumps(settings))
    words = ["study", "run", str(plan), "--out", str(tmp_path / "run"), "--jobs", "1"]
    assert main(words) == 0
    assert main(words) == 0
    assert "2 kept" in capsys.readouterr().out
    # More or fewer repeats are more or fewer cells of one plan.
    assert main([*words, "--repeats", "2"]) == 0
    assert "2 computed, 2 kept" in capsys.readouterr().out
    assert main([*words, "--repeats", "1"]) == 0
    assert "0 computed, 2 kept" in capsys.readouterr().out
    assert len(pd.read_parquet(tmp_path / "run" / "scores.parquet")) == 160
    plan.write_text(tomli_w.dumps({**settings, "seed": 1}))
    assert main([*words, "--repeats", "2"]) == 2
    assert "holds a run of other settings (seed)" in capsys.readouterr().err
    assert main([*words, "--repeats", "2", "--overwrite"]) == 0
    assert "4 computed, 0 kept" in capsys.readouterr().out


def test_a_failed_overwrite_keeps_the_old_predictions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_model().save("m")
    rows = make_rows(60)
    rows.to_csv("new.csv", index=False)
    rows[:40].to_csv("good.csv", index=False)
    rows.astype(str).assign(c="soon").to_csv("bad.csv", index=False)
    words = ["--out", "folder", "--jobs", "1"]
    assert main(["score", "m", "new.csv", *words]) == 0
    before = {path.name: path.read_bytes() for path in Path("folder").glob("part-*")}
    assert main(["score", "m", "bad.csv", *words, "--overwrite"]) == 2
    assert {path.name: path.read_bytes() for path in Path("folder").glob("part-*")} == before
    assert not Path("folder.new").exists()
    assert main(["score", "m", "new.csv", *words]) == 0  # still finished
    assert "Nothing to do" in capsys.readouterr().out
    assert main(["score", "m", "good.csv", *words, "--overwrite"]) == 0
    assert len(pd.read_parquet("folder")) == 40
    assert not Path("folder.new").exists()
    assert main(["score", "m", "good.csv", *words]) == 0
    assert "Nothing to do" in capsys.readouterr().out

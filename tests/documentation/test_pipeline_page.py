"""Every command of the page "In a pipeline" runs, with the exit codes that it states."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from scored_files import make_model, make_rows

from labelsure.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/pipeline.md"
COMMAND = re.compile(r"^(?:\t| *- run: | *bash_command=\"|)labelsure (?!:)(.*?)(?:\",)?$", re.M)


def commands():
    """Return the commands of all blocks of the page, in their order."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    joined = [re.sub(r"\\\n\s+", "", block) for block in blocks]
    return [words for block in joined for words in COMMAND.findall(block)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model().save("tickets.labelsure")
    rows = make_rows(240)
    days = pd.date_range("2024-03-04", periods=4, freq="7D").repeat(60)
    for name in ("week", "weeks", "scored"):
        Path(name).mkdir()
    for number in range(4):
        rows[60 * number :][:60].to_csv(f"week/day{number}.csv", index=False)
        rows[60 * number :][:60].to_csv(f"weeks/{number}.csv", index=False)
    rows.assign(received=days.strftime("%Y-%m-%d")).to_csv("all.csv", index=False)
    rows.assign(received=days.strftime("%d.%m.%Y")).to_csv("german.csv", index=False)
    return rows


def test_all_commands_run(folder, capsys):
    found = commands()
    assert len(found) == 9
    for words in found:
        assert main(shlex.split(words)) == 0, (words, capsys.readouterr().err)


def test_the_exit_codes(folder, capsys):
    words = shlex.split(commands()[0])
    assert main(words) == 0
    shifted = folder.assign(a=folder["a"] + 3)
    shifted.to_csv("week/day3.csv", index=False)
    assert main([*words, "--overwrite"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("labelsure: Gate failed: ")
    assert "week/day3.csv: shift detected" in error
    Path("week/day3.csv").write_text("a,b\n")
    assert main([*words, "--overwrite"]) == 2

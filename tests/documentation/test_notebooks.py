"""The notebooks of the site run from beginning to end, as scripts."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))

pytestmark = [pytest.mark.slow, pytest.mark.jit_only]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_prints_its_answer(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(notebook))
    plt.close("all")
    printed = capsys.readouterr().out
    assert "95% interval" in printed
    assert "actual" in printed or "accepted" in printed

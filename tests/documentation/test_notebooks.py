"""The notebooks of the site run from beginning to end, as scripts, and end as their text says."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NOTEBOOKS = sorted(path for path in EXAMPLES.glob("*.py") if path.read_text().startswith("# ---"))

pytestmark = [pytest.mark.slow, pytest.mark.jit_only]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_estimates_hold_the_truth_and_something_is_accepted(
    notebook, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    names = runpy.run_path(str(notebook))
    plt.close("all")
    printed = capsys.readouterr().out
    intervals = re.findall(r"95% interval (\S+) to ([\d.]+)", printed)
    actual = re.findall(r"actual [^:\n]*: +([\d.]+)", printed)
    assert intervals
    assert actual
    assert float(intervals[0][0]) <= float(actual[0]) <= float(intervals[0][1])
    if names["model"].policy_ is not None:
        (accepted,) = re.findall(r"accepted: ([\d.]+)%", printed)
        assert float(accepted) > 0

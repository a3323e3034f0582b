"""The first use, and the study: CPU seconds of whole processes, imports included."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Row

ROOT = Path(__file__).parents[1]
N_WARM = 3
PLANS = {"quick": 8, "embedded": 35}


def cpu_seconds(command: list[str], folder: str, **settings: str) -> float:
    """Return the processor time of a Python command and of the processes that it starts."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LABELSURE_QUIET": "1"}
    # As on other machines: with this set, Python compiles its own modules again in each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = os.times()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])  # user and system time of ended children


def imports() -> Iterator[Row]:
    """Compare the import of the flagship with that of what it needs anyway."""
    ours = "import labelsure; labelsure.AccuracyAwareClassifier"
    theirs = "import pandas, sklearn.linear_model, sklearn.model_selection"
    with TemporaryDirectory() as folder:
        times = [
            min(cpu_seconds(["-c", code], folder) for _ in range(N_WARM + 1))
            for code in (ours, theirs)
        ]
    yield Row("import labelsure with its classifier", times[0], "s")
    what = "import: labelsure / scikit-learn and pandas alone"
    yield Row(what, times[0] / times[1], "x", 1.3, peer="scikit-learn and pandas")


def quick_start() -> Iterator[Row]:
    """Run the example of the README with a folder of its own for compiled kernels."""
    examples = doctest.DocTestParser().get_examples((ROOT / "README.md").read_text("utf-8"))
    command = ["-c", "".join(example.source for example in examples)]
    with TemporaryDirectory() as folder:
        kernels = {"NUMBA_CACHE_DIR": folder}
        cold = cpu_seconds(command, folder, **kernels)
        yield Row("README's quick start, nothing compiled yet", cold, "s", 8)
        warm = min(cpu_seconds(command, folder, **kernels) for _ in range(N_WARM))
        yield Row("README's quick start, kernels compiled", warm, "s", 4)


def study() -> Iterator[Row]:
    """Run plans of the study in a fresh folder, kernels compiled by the smaller plan before."""
    for plan, aim in PLANS.items():
        for _ in range(2 if plan == "quick" else 1):
            with TemporaryDirectory() as folder:
                taken = cpu_seconds(
                    ["-m", "labelsure", "study", "run", plan, "--out", "out"], folder
                )
        yield Row(f"labelsure study run {plan}", taken, "s", aim)


BENCHMARKS = {"imports": imports, "quick_start": quick_start, "study": study}

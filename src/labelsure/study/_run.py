"""`run_study`: compute what is missing of a plan, and put the score table together."""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from labelsure._kernels.threads import n_threads
from labelsure._typing import AnyPath
from labelsure.errors import InputError
from labelsure.study._cells import Cell, cell_key, feature_rows, plan_cells, score_cell
from labelsure.study._manifest import Manifest, labelsure_version
from labelsure.study._plan import Plan
from labelsure.study._plan_parts import StudyData
from labelsure.study._run_folder import RunFolder
from labelsure.study._toml import to_toml
from labelsure.study._workers import WorkerSettings

MAX_COST_LABELS = 24  # beyond, no engine computes all 2**L probabilities


@dataclass(frozen=True)
class CellEvent:
    """A cell that is finished.

    Parameters
    ----------
    cell
        Its name.
    state
        "done", "failed", or "kept" from an earlier run.
    seconds
        How long it took.
    n_finished, n_cells
        How far the run is.
    message
        Why it failed.
    """

    cell: str
    state: str
    seconds: float
    n_finished: int
    n_cells: int
    message: str = ""


Progress = Callable[[CellEvent], None]


@dataclass(frozen=True)
class StudyRun:
    """What a run gave.

    Parameters
    ----------
    plan
        What was computed.
    folder
        Where it is.
    scores
        The score table.
    features
        The training part of each data set and repeat.
    failures
        For each failed cell its error, message and traceback.
    n_computed, n_kept
        Cells computed by this run, and taken from an earlier one.
    seconds
        How long this run took.
    """

    plan: Plan
    folder: Path
    scores: pd.DataFrame
    features: pd.DataFrame
    failures: dict[str, dict[str, str]]
    n_computed: int
    n_kept: int
    seconds: float = 0.0


@dataclass
class _Outcome:
    """What came back for a cell: rows, or why there are none."""

    cell: Cell
    seconds: float = 0.0
    scores: pd.DataFrame | None = None
    warnings: dict[str, int] = field(default_factory=dict)
    failure: dict[str, str] = field(default_factory=dict)


def run_study(
    plan: Plan,
    out: AnyPath,
    *,
    data_dir: AnyPath | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    finish: Callable[[StudyRun], None] | None = None,
) -> StudyRun:
    """Run a study, or what is left of it.

    Finished cells are kept where their settings and data are the same. The result does not depend
    on the number of jobs, nor on how often a run was interrupted.

    Parameters
    ----------
    plan
        What to compute.
    out
        The run folder. It gets plan.toml, manifest.json, cells/, failures.json, scores.parquet
        and features.parquet.
    data_dir
        The folder that data sets with a name are looked for in.
    n_jobs
        How many cells are computed at a time; None means as many as there are cores.
    progress
        Called with a `CellEvent` for each cell.
    finish
        Called with the run while the folder is still locked, e.g. to write a report into it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from labelsure.study import load_plan
    >>> with TemporaryDirectory() as folder:
    ...     run = run_study(load_plan("quick").with_repeats(1), folder, n_jobs=1)
    >>> run.n_computed, len(run.scores)
    (6, 480)
    """
    started = time.monotonic()
    n_jobs = _check_jobs(n_jobs)
    folder = RunFolder(Path(out).expanduser())
    folder.create()
    with folder.locked():
        sets = {source.key: source.load(data_dir) for source in plan.datasets}
        folder.write_text("plan.toml", to_toml(plan.to_dict()))
        manifest = Manifest.start(folder, plan, sets, n_jobs)
        run = _Run(plan, sets, folder, manifest, progress or (lambda event: None))
        result = run.compute(n_jobs)
        if finish is not None:
            finish(result)
        result = replace(result, seconds=time.monotonic() - started)
        manifest.complete(result.failures, result.seconds)
        return result


class _Run:
    """One execution: what is finished, and what is missing."""

    def __init__(
        self,
        plan: Plan,
        sets: dict[str, StudyData],
        folder: RunFolder,
        manifest: Manifest,
        progress: Progress,
    ) -> None:
        self.plan, self.sets, self.folder = plan, sets, folder
        self.manifest, self.progress = manifest, progress
        self.cells = plan_cells(plan)
        self.frames: dict[str, pd.DataFrame] = {}
        self.failures: dict[str, dict[str, str]] = {}

    def compute(self, n_jobs: int) -> StudyRun:
        missing = self._keep_finished()
        n_kept = len(self.frames)
        # The longest first, so that no core is left with one of them at the end.
        missing.sort(key=lambda cell: -_cost(self.sets[cell.dataset]))
        for outcome in _outcomes(missing, self.plan, self.sets, n_jobs):
            self._store(outcome)
        self.folder.write_json("failures.json", self.failures)
        return self._assemble(n_kept)

    def _key(self, cell: Cell) -> str:
        return cell_key(cell, self.plan, self.sets[cell.dataset], labelsure_version())

    def _keep_finished(self) -> list[Cell]:
        missing = []
        for cell in self.cells:
            found = self.folder.read_cell(cell.name, self._key(cell))
            if found is None:
                missing.append(cell)
                continue
            self.frames[cell.name], notes = found
            self.manifest.note_cell(cell.name, notes)
            self._report(cell, "kept", notes["seconds"])
        return missing

    def _store(self, outcome: _Outcome) -> None:
        cell = outcome.cell
        if outcome.scores is None:
            self.failures[cell.name] = outcome.failure
            self.folder.write_json("failures.json", self.failures)
            self._report(cell, "failed", outcome.seconds, outcome.failure["message"])
            return
        notes = {
            "key": self._key(cell),
            "seconds": round(outcome.seconds, 3),
            "warnings": outcome.warnings,
        }
        self.folder.write_frame(self.folder.cell_path(cell.name), outcome.scores, notes)
        self.frames[cell.name] = outcome.scores
        self.manifest.note_cell(cell.name, notes)
        self._report(cell, "done", outcome.seconds)

    def _report(self, cell: Cell, state: str, seconds: float, message: str = "") -> None:
        n_finished = len(self.frames) + len(self.failures)
        self.progress(CellEvent(cell.name, state, seconds, n_finished, len(self.cells), message))

    def _assemble(self, n_kept: int) -> StudyRun:
        frames = [self.frames[cell.name] for cell in self.cells if cell.name in self.frames]
        scores = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        features = feature_rows(self.plan, self.sets)
        self.folder.write_frame(self.folder.path / "scores.parquet", scores, {})
        self.folder.write_frame(self.folder.path / "features.parquet", features, {})
        n_computed = len(self.frames) - n_kept
        return StudyRun(
            self.plan, self.folder.path, scores, features, self.failures, n_computed, n_kept
        )


def _outcomes(
    cells: list[Cell], plan: Plan, sets: dict[str, StudyData], n_jobs: int
) -> Iterator[_Outcome]:
    """Yield what comes of each cell, in the order in which they finish."""
    n_jobs = min(n_jobs, max(len(cells), 1))
    # Twice as many threads as cores: the last long cells do not leave the others' cores idle.
    threads = max(1, min(n_threads(), 2 * n_threads() // n_jobs))
    worker = None if n_jobs == 1 else WorkerSettings(os.getpid(), threads)
    # Arrays are sent, not mapped from files: a killed run leaves nothing behind.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", max_nbytes=None)
    left = {cell.name: cell for cell in cells}
    try:
        for outcome in parallel(
            delayed(_try_cell)(cell, plan, sets[cell.dataset], worker) for cell in cells
        ):
            del left[outcome.cell.name]
            yield outcome
    except TerminatedWorkerError:
        reason = (
            "A worker process was ended from outside, often for lack of memory. Run again with "
            "fewer jobs: finished cells are kept."
        )
        for cell in left.values():
            failure = {"error": "TerminatedWorkerError", "message": reason, "traceback": ""}
            yield _Outcome(cell, failure=failure)


def _try_cell(cell: Cell, plan: Plan, data: StudyData, worker: WorkerSettings | None) -> _Outcome:
    """Compute a cell; whatever goes wrong in it stops no other."""
    if worker is not None:
        worker.apply()
    started = time.monotonic()
    outcome = _Outcome(cell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome.scores = score_cell(cell, plan, data)
        except Exception as error:
            outcome.failure = {
                "error": type(error).__name__,
                "message": str(error),
                "traceback": traceback.format_exc(),
            }
    spoken = Counter(f"{entry.category.__name__}: {entry.message}" for entry in caught)
    outcome.warnings = dict(sorted(spoken.items()))
    outcome.seconds = time.monotonic() - started
    return outcome


def _cost(data: StudyData) -> float:
    """Return a rough measure of how long a data set takes."""
    return data.data.n_samples * 2.0 ** min(data.data.n_labels, MAX_COST_LABELS)


def _check_jobs(n_jobs: Any) -> int:
    if n_jobs is None:
        return n_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1:
        raise InputError(f"`n_jobs` must be a whole number >= 1, got {n_jobs!r}.")
    return n_jobs

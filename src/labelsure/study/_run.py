"""A `StudyRun`: `run_study` computes what is missing of it, `open_run` reads what is there."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import tomli_w

from labelsure._kernels.threads import n_threads
from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.processes import watched_workers
from labelsure._runtime.task_pools import check_jobs
from labelsure._runtime.typing import AnyPath
from labelsure.study._cells import Cell, cell_key, feature_rows, plan_cells
from labelsure.study._code_digest import digest_code
from labelsure.study._kept_frames import fingerprint_rows, read_kept, write_frame
from labelsure.study._plan import Plan
from labelsure.study._plan_parts import StudyData
from labelsure.study._run_folder import Manifest, RunFolder, labelsure_version
from labelsure.study._workers import Outcome, compute_cells

if TYPE_CHECKING:
    from labelsure.study.analyses._all_analyses import Analyses, AnalysisSettings

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
    """A study that was run: what `run_study` returns and `open_run` reads.

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
    """

    plan: Plan
    folder: Path
    scores: pd.DataFrame
    features: pd.DataFrame
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    n_computed: int = 0
    n_kept: int = 0

    @property
    def seconds(self) -> float:
        """How long the last run in the folder took, its report included; NaN until it is over."""
        return RunFolder(self.folder).read_seconds()

    def _repr_html_(self) -> str:
        rows = count(len(self.scores), "prediction")
        failed = count(len(self.failures), "failed cell")
        sentence = f"Study {self.plan.name!r} in {self.folder}: {rows}, {failed}."
        return make_html(sentence, self.scores.head(N_ROWS))

    def analyses(self, n_jobs: int | None = None) -> Analyses:
        """Return all analyses; the mixture's fits are kept in the folder and used again.

        Parameters
        ----------
        n_jobs
            Processes for the mixture; None means as many as there are cores.
        """
        # Here, because it loads statsmodels: neither running nor opening a run needs that.
        from labelsure.study.analyses._all_analyses import AnalysisSettings, run_analyses

        settings = AnalysisSettings.from_plan(self.plan)
        path = self.folder / "analyses" / "mixture_replicates.parquet"
        key = _analyses_key(self.scores, settings)
        kept = read_kept(path, key)
        analyses = run_analyses(
            self.scores,
            self.features,
            settings,
            replicates=None if kept is None else kept[0],
            n_jobs=n_threads() if n_jobs is None else n_jobs,
        )
        if kept is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_frame(path, analyses.replicates, {"key": key})
        return analyses


def _analyses_key(scores: pd.DataFrame, settings: AnalysisSettings) -> str:
    """Return a checksum of all that the mixture's fits depend on."""
    code = digest_code("labelsure.study.analyses._mixture_intervals")
    made_from = json.dumps([asdict(settings), code], sort_keys=True).encode()
    return hashlib.sha256(made_from + fingerprint_rows(scores)).hexdigest()


def run_study(
    plan: Plan,
    out: AnyPath | RunFolder,
    *,
    data_dir: AnyPath | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> StudyRun:
    """Run a study, or what is left of it.

    Finished cells are kept where their settings, their data and the code that made them are the
    same. The result does not depend
    on the number of jobs, nor on how often a run was interrupted.

    Parameters
    ----------
    plan
        What to compute.
    out
        The run folder. It gets plan.toml, manifest.json, cells/, failures.json, scores.parquet
        and features.parquet. To do more before the run counts as complete, such as writing a
        report, lock a `RunFolder`, pass it and write within the lock.
    data_dir
        The folder that data sets with a name are looked for in.
    n_jobs
        How many cells are computed at a time; None means as many as there are cores.
    scheduler
        The address of a Dask scheduler, e.g. "tcp://10.0.0.1:8786", whose workers compute the cells
        instead. What is written is written here.
    progress
        Called with a `CellEvent` for each cell.

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
    n_jobs = check_jobs(n_jobs, n_threads())
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    with folder.locked(), watched_workers():
        sets = {source.key: source.load(data_dir) for source in plan.datasets}
        manifest = folder.start_manifest(plan, sets, n_jobs, started)
        folder.write_text("plan.toml", tomli_w.dumps(plan.to_dict()))
        execution = _Execution(plan, sets, folder, manifest, progress or (lambda event: None))
        return execution.compute(n_jobs, scheduler)


def open_run(out: AnyPath) -> StudyRun:
    """Open the folder of a run that is finished, or as far as it has a score table.

    Nothing that its plan names has to be installed.

    Parameters
    ----------
    out
        The run folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from labelsure.study import load_plan
    >>> with TemporaryDirectory() as folder:
    ...     run = run_study(load_plan("quick").with_repeats(1), folder, n_jobs=1)
    ...     opened = open_run(folder)
    >>> opened.plan == run.plan, opened.scores.equals(run.scores)
    (True, True)
    """
    folder = RunFolder(out)
    scores, features = folder.read_table("scores"), folder.read_table("features")
    settings = folder.read_plan_settings()
    cells = scores.reindex(columns=["dataset", "classifier", "repeat"]).drop_duplicates()
    plan = Plan.from_record(settings, cells["dataset"].unique(), cells["classifier"].unique())
    failures = folder.read_failures()
    return StudyRun(plan, folder.path, scores, features, failures, n_kept=len(cells))


class _Execution:
    """One execution of a plan: what is finished, and what is missing."""

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

    def compute(self, n_jobs: int, scheduler: str | None) -> StudyRun:
        missing = self._keep_finished()
        n_kept = len(self.frames)
        # The longest first, so that no core is left with one of them at the end.
        missing.sort(key=lambda cell: -_cost(self.sets[cell.dataset]))
        for outcome in compute_cells(missing, self.plan, self.sets, n_jobs, scheduler):
            self._store(outcome)
        self.folder.write_json("failures.json", self.failures)
        return self._assemble(n_kept)

    def _key(self, cell: Cell) -> str:
        return cell_key(cell, self.plan, self.sets[cell.dataset], labelsure_version())

    def _keep_finished(self) -> list[Cell]:
        missing = []
        for cell in self.cells:
            found = read_kept(self.folder.cell_path(cell.name), self._key(cell))
            if found is None:
                missing.append(cell)
                continue
            self.frames[cell.name], notes = found
            self.manifest.note_cell(cell.name, notes)
            self._report(cell, "kept", notes["seconds"])
        return missing

    def _store(self, outcome: Outcome) -> None:
        cell = outcome.cell
        if outcome.scores is None:
            self.failures[cell.name] = outcome.failure
            self.manifest.note_failure(cell.name)
            self.folder.write_json("failures.json", self.failures)
            self._report(cell, "failed", outcome.seconds, outcome.failure["message"])
            return
        notes = {
            "key": self._key(cell),
            "seconds": round(outcome.seconds, 3),
            "warnings": outcome.warnings,
        }
        write_frame(self.folder.cell_path(cell.name), outcome.scores, notes)
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
        write_frame(self.folder.path / "scores.parquet", scores, {})
        write_frame(self.folder.path / "features.parquet", features, {})
        n_computed = len(self.frames) - n_kept
        return StudyRun(
            self.plan, self.folder.path, scores, features, self.failures, n_computed, n_kept
        )


def _cost(data: StudyData) -> float:
    """Return a rough measure of how long a data set takes."""
    return data.data.n_samples * 2.0 ** min(data.data.n_labels, MAX_COST_LABELS)

"""Runs: `run_study` computes the missing cells of a folder, `open_run` reads its tables."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
import tomli_w

from labelsure._kernels.threads import n_threads
from labelsure._runtime.code import digest_code
from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.processes import (
    TaskFailure,
    check_jobs,
    read_versions,
    run_tasks,
    watched_workers,
)
from labelsure._runtime.runs import (
    LOCK,
    OWNER,
    PartStore,
    decode_parquet,
    encode_parquet,
    is_leftover,
    locked_folder,
    make_folder,
    make_key,
)
from labelsure._runtime.storage import checksum_bytes, expand_path, first_line, write_text
from labelsure._runtime.typing import AnyPath, JsonObject
from labelsure.errors import DataError, InputError
from labelsure.estimation.score_table import CELL
from labelsure.study.analyses import Analyses
from labelsure.study.cells import Cell, cell_key, feature_rows, plan_cells, score_cell
from labelsure.study.plan import Plan, Settings, StudyData, parse_toml

FOLDERS = ("cells", "analyses", "tables", "figures")
"""Subfolders of a run folder."""

DESCRIBED = ("source", "checksum", "n_samples", "n_labels", "n_features")
"""Attributes of each data set in the manifest."""

MAX_COST_LABELS = 24  # beyond, no engine computes all 2**L probabilities


def _as_table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


class RunFolder:
    """Folder of a run: its plan, cells, tables and figures.

    Parameters
    ----------
    path
        The folder; `locked` makes it where there is none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from labelsure.study import load_plan, run_study
    >>> plan = load_plan("quick").with_repeats(1)
    >>> with TemporaryDirectory() as out, RunFolder(out).locked() as folder:
    ...     run = run_study(plan, folder, n_jobs=1)
    ...     during = folder.read_json("manifest.json")["state"]
    >>> during
    'running'
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = expand_path(path)
        self.manifest: JsonObject = {}
        self._started = 0.0
        self._is_locked = False

    @contextmanager
    def locked(self) -> Iterator[Self]:
        """Lock the folder for this process. Raises InputError that names the process which has it.

        The lock is reentrant for the same object. Leaving the outermost one without an error
        completes the manifest of the run that was made meanwhile.
        """
        if self._is_locked:
            yield self
            return
        make_folder(self.path, "The run folder")
        self._check_is_run_folder()
        with locked_folder(self.path, "The run folder", FOLDERS):
            make_folder(self.path / "cells", "The run folder")
            self._is_locked = True
            try:
                yield self
                if self.manifest:
                    self._complete_manifest()
            finally:
                self._is_locked = False

    def _check_is_run_folder(self) -> None:
        """Raise InputError if the folder holds other files, which a run would replace."""
        if (self.path / "manifest.json").is_file() and (self.path / "cells").is_dir():
            return
        own = {LOCK, OWNER, "cells"}
        others = sorted(
            path.name
            for path in self.path.iterdir()
            if path.name not in own and not is_leftover(path)
        )
        if others:
            raise InputError(
                f"The run folder {str(self.path)!r} must be new or empty, or hold a run; it holds "
                f"{others[0]!r} and no manifest of a run. Choose another folder."
            )

    def start_manifest(self, plan: Plan, sets: dict[str, StudyData], n_jobs: int) -> None:
        """Write the manifest of a running study: versions, settings and checksums."""
        self._started = time.monotonic()
        self.manifest = {
            "state": "running",
            "started": _now(),
            "versions": {
                **read_versions(),
                "python": platform.python_version(),
                "platform": f"{sys.platform} {platform.machine()}",
            },
            "plan": plan.to_dict(),
            "n_jobs": n_jobs,
            "datasets": {
                name: {key: getattr(loaded.data, key) for key in DESCRIBED}
                for name, loaded in sets.items()
            },
            "cells": {},
            "failed": [],
        }
        self.write_json("manifest.json", self.manifest)

    def _complete_manifest(self) -> None:
        self.manifest |= {
            "cells": dict(sorted(self.manifest["cells"].items())),
            "state": "incomplete" if self.manifest["failed"] else "complete",
            "finished": _now(),
            "seconds": round(time.monotonic() - self._started, 3),
        }
        self.write_json("manifest.json", self.manifest)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file, entirely or not at all."""
        write_text(self.path / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> JsonObject:
        """Content of a JSON file; empty if it is missing or damaged."""
        try:
            content = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def refuse_other_plan(self, plan: Plan) -> None:
        """Raise InputError if the folder has another plan; the number of repeats may differ."""
        before = self.read_json("manifest.json").get("plan")
        now = json.loads(json.dumps(plan.to_dict()))
        if isinstance(before, dict) and before | {"n_repeats": 0} != now | {"n_repeats": 0}:
            changed = [key for key in now if before.get(key) != now[key] and key != "n_repeats"]
            raise InputError(
                f"The run folder {str(self.path)!r} holds a run of other settings "
                f"({', '.join(changed) or 'of an older version'}). Choose another folder, or say "
                "`overwrite`; cells that stay the same are kept."
            )

    def read_seconds(self) -> float:
        """Duration of the last run in seconds; NaN if the manifest has none."""
        seconds = self.read_json("manifest.json").get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) else float("nan")

    def read_failures(self) -> dict[str, dict[str, str]]:
        """Error, message and traceback of each failed cell, as far as readable."""
        return {
            name: {key: str(failure.get(key, "")) for key in ("error", "message", "traceback")}
            for name, failure in self.read_json("failures.json").items()
            if isinstance(failure, dict)
        }

    def read_table(self, name: str) -> pd.DataFrame:
        """Table of a finished study. Raises InputError if it is missing, DataError if damaged."""
        path = self._find(f"{name}.parquet")
        try:
            return decode_parquet(path.read_bytes()).to_pandas()
        except Exception as error:  # libraries raise many types for damaged files
            raise DataError(
                f"{str(path)!r} must be a Parquet file, but it cannot be read: {first_line(error)}."
            ) from error

    def read_plan(self) -> Plan:
        """Plan of the run; its classes need not be installed."""
        path = self._find("plan.toml")
        try:
            return Plan.from_dict(parse_toml(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{str(path)!r} must be the plan of a run, but it cannot be read: {error}"
            ) from error

    def _find(self, name: str) -> Path:
        if not (self.path / name).is_file():
            raise InputError(
                f"The run folder must hold {name}, which a finished study writes; there is none "
                f"in {str(self.path)!r}. Run `labelsure study run` with this folder first."
            )
        return self.path / name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class CellEvent:
    """Progress event: one cell has finished.

    Parameters
    ----------
    cell
        Name of the cell.
    state
        "done", "failed", or "kept" from an earlier run.
    seconds
        Duration.
    n_finished, n_cells
        Finished cells, and all cells of the plan.
    message
        Error message of a failed cell.
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
    """A study that was run, from `run_study` or `open_run`.

    Parameters
    ----------
    plan
        Plan of the study.
    folder
        The run folder.
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
        """Duration of the last run in the folder, its report included; NaN until it is over."""
        return RunFolder(self.folder).read_seconds()

    def _repr_html_(self) -> str:
        rows = count(len(self.scores), "prediction")
        failed = count(len(self.failures), "failed cell")
        sentence = f"Study {self.plan.name!r} in {self.folder}: {rows}, {failed}."
        return make_html(sentence, self.scores.head(N_ROWS))

    def analyses(self, n_jobs: int | None = None) -> Analyses:
        """All analyses; the folder caches the fits of the mixture.

        Parameters
        ----------
        n_jobs
            Processes for the mixture; None means as many as there are cores.
        """
        n_jobs = n_threads() if n_jobs is None else n_jobs
        # All that the mixture's fits depend on.
        settings = self.plan.model_dump(mode="json", include=set(Settings.model_fields))
        hashes = pd.util.hash_pandas_object(self.scores, index=False).to_numpy()
        scores = checksum_bytes(hashes.tobytes())
        key = make_key({"settings": settings, "code": digest_code(), "scores": scores})
        name = "mixture_replicates.parquet"
        store = PartStore(self.folder / "analyses")
        if store.find(name, key) is not None:
            replicates = store.read(name).to_pandas()
            return Analyses(self.scores, self.features, self.plan, replicates=replicates)
        analyses = Analyses(self.scores, self.features, self.plan, n_jobs=n_jobs)
        make_folder(self.folder / "analyses", "The run folder")
        store.write(name, _as_table(analyses.replicates), key, {})
        return analyses


def run_study(
    plan: Plan,
    out: AnyPath | RunFolder,
    *,
    data_dir: AnyPath | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> StudyRun:
    """Run a study; finished cells of an earlier run are not computed again.

    Finished cells are kept where their settings, their data and the code that made them are the
    same. The result does not depend on the number of jobs, nor on how often a run was interrupted.

    Parameters
    ----------
    plan
        Plan of the study.
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
        instead. This process writes all files.
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
    n_jobs = check_jobs(n_jobs, n_threads())
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    with folder.locked(), watched_workers():
        sets = {key: source.load(key, data_dir) for key, source in plan.datasets.items()}
        folder.start_manifest(plan, sets, n_jobs)
        write_text(folder.path / "plan.toml", tomli_w.dumps(plan.to_dict()))
        report = progress or (lambda event: None)
        return _compute(plan, sets, folder, report, n_jobs, scheduler)


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
    n_cells = len(scores.reindex(columns=list(CELL)).drop_duplicates())
    return StudyRun(
        folder.read_plan(), folder.path, scores, features, folder.read_failures(), n_kept=n_cells
    )


def _compute(
    plan: Plan,
    sets: dict[str, StudyData],
    folder: RunFolder,
    progress: Progress,
    n_jobs: int,
    scheduler: str | None,
) -> StudyRun:
    """Score table and features of a study: compute the missing cells, store each at once."""
    # The longest first, so that no core is left with one of them at the end.
    order = sorted(plan_cells(plan), key=lambda cell: -_cost(sets[cell.dataset]))
    cells = {f"{cell.name}.parquet": cell for cell in order}
    keys = {name: cell_key(cell, plan, sets[cell.dataset]) for name, cell in cells.items()}
    store = PartStore(folder.path / "cells")
    frames: dict[Cell, pd.DataFrame] = {}
    failures: dict[str, dict[str, str]] = {}
    n_kept = 0

    def make_tasks(names: list[str]) -> list[tuple[Any, ...]]:
        # Twice as many threads as cores: the last long cells leave no core of others idle.
        n_workers = min(n_jobs, max(len(names), 1))
        threads = max(1, min(n_threads(), 2 * n_threads() // n_workers))
        if scheduler is not None:
            threads = 1  # a worker of the cluster may compute several cells, each in a thread
        missing = [cells[name] for name in names]
        return [(cell, plan, sets[cell.dataset], threads, os.getpid()) for cell in missing]

    def run_cells() -> Iterator[tuple[str, Any, bool]]:
        missing = []
        for name, key in keys.items():
            notes = store.find(name, key)
            if notes is None:
                missing.append(name)
            else:
                frames[cells[name]] = store.read(name).to_pandas()
                yield name, notes, True
        tasks, settings = make_tasks(missing), {"n_jobs": n_jobs, "scheduler": scheduler}
        for position, result in run_tasks(_try_cell, tasks, **settings):  # type: ignore[arg-type]
            yield missing[position], result, False

    for name, outcome, is_kept in run_cells():
        cell, state, message = cells[name], "kept", ""
        if is_kept:
            n_kept, notes = n_kept + 1, outcome
        else:
            if isinstance(outcome, TaskFailure):
                failure = {"error": outcome.error, "message": outcome.message, "traceback": ""}
                outcome = failure, {"seconds": 0.0}
            result, notes = outcome
            if isinstance(result, pd.DataFrame):
                state, frames[cell] = "done", result
                store.write(name, _as_table(result), keys[name], notes)
            else:
                state, message, failures[cell.name] = "failed", result["message"], result
                folder.manifest["failed"] = sorted(failures)
                folder.write_json("failures.json", failures)
        if state != "failed":
            folder.manifest["cells"][cell.name] = notes
        n_finished = len(frames) + len(failures)
        progress(CellEvent(cell.name, state, notes["seconds"], n_finished, len(cells), message))
    folder.write_json("failures.json", failures)
    scored = [frames[cell] for cell in plan_cells(plan) if cell in frames]
    scores = pd.concat(scored, ignore_index=True) if scored else pd.DataFrame()
    features = feature_rows(plan, sets)
    for name, frame in (("scores", scores), ("features", features)):
        PartStore(folder.path).put(f"{name}.parquet", encode_parquet(_as_table(frame)))
    return StudyRun(plan, folder.path, scores, features, failures, len(frames) - n_kept, n_kept)


def _try_cell(
    cell: Cell, plan: Plan, data: StudyData, threads: int, owner: int
) -> tuple[pd.DataFrame | dict[str, str], JsonObject]:
    """(rows of a cell or its error as a dict, notes: seconds and warnings)."""
    if os.getpid() != owner:  # a worker process: set the threads of its kernels
        os.environ["LABELSURE_NUM_THREADS"] = str(threads)
    started = time.monotonic()
    result: pd.DataFrame | dict[str, str]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = score_cell(cell, plan, data)
        except Exception as error:
            result = {
                "error": type(error).__name__,
                "message": str(error) or type(error).__name__,
                "traceback": traceback.format_exc(),
            }
    texts = Counter(f"{entry.category.__name__}: {entry.message}" for entry in caught)
    seconds = round(time.monotonic() - started, 3)
    return result, {"seconds": seconds, "warnings": dict(sorted(texts.items()))}


def _cost(data: StudyData) -> float:
    """Relative run time of a data set, roughly."""
    return data.data.n_samples * 2.0 ** min(data.data.n_labels, MAX_COST_LABELS)

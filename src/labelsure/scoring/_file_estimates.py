"""`estimate_files`: the mean accuracy of all rows of files, seen a unit at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._kernels.threads import n_threads, one_thread
from labelsure._processes import TaskFailure, watched_workers
from labelsure._storage import expand_path
from labelsure._task_pools import check_jobs, run_tasks
from labelsure._typing import AnyPath
from labelsure.errors import DataError, InputError, LabelsureError
from labelsure.scoring._score_run import Progress, UnitEvent
from labelsure.scoring._unit_scores import ModelFile
from labelsure.table_files import UNIT_ROWS, Unit, list_units, read_unit

if TYPE_CHECKING:
    from labelsure.estimation import BatchSums, Estimate


def estimate_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    metric: str | None = None,
    level: float | None = None,
    rows_per_unit: int = UNIT_ROWS,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    progress: Progress | None = None,
) -> Estimate:
    """Return the mean accuracy of the predictions for all rows, with an interval.

    The same numbers as `AccuracyAwareClassifier.estimate` of all rows at once, up to rounding.

    Parameters
    ----------
    model
        The file of an `AccuracyAwareClassifier`.
    inputs
        Files or folders, as for `labelsure.table_files.list_units`.
    metric
        None or the metric that the model was fitted for; another one needs the whole batch at once.
    level
        How often such an interval covers; None for that of the model.
    rows_per_unit, n_jobs, scheduler, trust, progress
        As for `score_files`.
    """
    n_jobs = check_jobs(n_jobs, n_threads())
    file = ModelFile.find(expand_path(model), tuple(trust))
    fitted = file.load()
    _check_metric(metric, fitted.metric)
    units = list_units(inputs, rows=rows_per_unit)
    if not units:
        raise DataError("The input must have at least one row to estimate from, it has none.")
    parts: dict[int, BatchSums] = {}
    n_finished, n_total = 0, sum(unit.n_rows for unit in units)
    tasks = [(replace(unit, path=str(Path(unit.path).absolute())), file) for unit in units]
    with watched_workers():
        for place, found in run_tasks(_sum_unit, tasks, n_jobs=n_jobs, scheduler=scheduler):
            if isinstance(found, TaskFailure):
                raise DataError(found.message)
            if isinstance(found, LabelsureError):
                raise found
            parts[place] = found
            if progress is not None:
                n_finished += units[place].n_rows
                progress(UnitEvent("done", units[place].n_rows, n_finished, n_total))
    total = parts[0]
    for place in range(1, len(units)):  # in the order of the rows, whatever finished first
        total = total + parts[place]
    chosen = fitted.level if level is None else level
    return fitted.accuracy_estimator_.estimate_sums(total, level=chosen)


def _check_metric(metric: str | None, fitted: Any) -> None:
    """Refuse what does not follow from sums over units."""
    if metric is not None and metric != fitted:
        raise InputError(
            f"`metric` must be the one that the model was fitted for, {fitted!r}, got {metric!r}: "
            "another one does not follow from parts of the rows. Fit a model for it, or use "
            "`AccuracyAwareClassifier.estimate` for averages over labels, such as micro-f1."
        )


def _sum_unit(unit: Unit, file: ModelFile) -> Any:
    """Return the sums of a unit, or what is wrong with it."""
    from labelsure.file_models import InputTable

    try:
        model = file.load()
        X, _ = InputTable(model).read(read_unit(unit), repr(Path(unit.path).name))
        with one_thread():
            return model.sum_up(X)
    except LabelsureError as error:
        return error

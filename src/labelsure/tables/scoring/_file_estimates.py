"""`estimate_files`: the mean accuracy of all rows of files, seen a unit at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._kernels.threads import n_threads, one_thread
from labelsure._runtime.processes import TaskFailure, watched_workers
from labelsure._runtime.storage import expand_path
from labelsure._runtime.task_pools import check_jobs, run_tasks
from labelsure._runtime.typing import AnyPath, Floats, Indices
from labelsure.errors import DataError, InputError, LabelsureError, unknown_name
from labelsure.tables.scoring._labelled_rows import LabelledRows, find_labelled
from labelsure.tables.scoring._score_run import Progress, UnitEvent, split_rows
from labelsure.tables.scoring._unit_scores import ModelFile
from labelsure.tables.table_files._file_kind import Unit
from labelsure.tables.table_files._units import UNIT_ROWS, list_units, read_unit

if TYPE_CHECKING:
    from labelsure.estimation._batch_estimates import BatchSums, Estimate
    from labelsure.estimation._shift_test import View
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


@dataclass(frozen=True)
class FileSums:
    """What estimates of the rows of files follow from.

    Parameters
    ----------
    model
        What predicts them.
    sums
        Of all rows.
    view
        What is compared with the labelled instances, of at most 2,000 rows that chance has chosen;
        None where that is not wanted.
    accuracy, estimated
        (n,) of the rows whose truth is known.
    """

    model: AccuracyAwareClassifier
    sums: BatchSums
    view: View | None
    accuracy: Floats
    estimated: Floats

    def estimate(
        self,
        *,
        level: float | None = None,
        shift: str = "test",
        population: bool = False,
    ) -> Estimate:
        """Return the mean accuracy of all rows, by what is known of them.

        Parameters
        ----------
        level, shift, population
            As for `AccuracyEstimator.estimate`; with labels `shift` does not matter.
        """
        from labelsure.estimation._few_labels import few_labels_interval

        chosen = self.model.confidence if level is None else level
        estimator = self.model.accuracy_estimator_
        if len(self.accuracy):
            return few_labels_interval(
                self.sums,
                self.accuracy,
                self.estimated,
                None,
                share=estimator.share_of_estimates,
                population=population,
                level=chosen,
            )
        return estimator.estimate_sums(self.sums, level=chosen, shift=shift, view=self.view)


def estimate_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    metric: str | None = None,
    level: float | None = None,
    shift: str = "test",
    truth: AnyPath | None = None,
    population: bool = False,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
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
        Files or folders, as for `labelsure.tables.table_files.list_units`.
    metric
        None or the metric that the model was fitted for; another one needs the whole batch at once.
    level
        How often such an interval covers; None for that of the model.
    shift
        As for `AccuracyEstimator.estimate`.
    truth
        A table with the labels of some rows, **which must have been drawn at random**, as `--audit`
        of `labelsure score` does. It has the column of ids, or a column `row` with the position in
        the file (and `file`, if there are several).
    population
        As for `AccuracyEstimator.estimate`.
    id_column
        The column of input and truth that names the rows; None for that of the model, if both have
        it.
    label_column, sep
        The column of the truth that holds names of labels, and what separates them; None where each
        label has a column of zeros and ones.
    rows_per_unit, n_jobs, scheduler, trust, progress
        As for `score_files`.
    """
    found = sum_files(
        model,
        inputs,
        metric=metric,
        shift=shift,
        truth=truth,
        id_column=id_column,
        label_column=label_column,
        sep=sep,
        rows_per_unit=rows_per_unit,
        n_jobs=n_jobs,
        scheduler=scheduler,
        trust=trust,
        progress=progress,
    )
    return found.estimate(level=level, shift=shift, population=population)


def sum_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    metric: str | None = None,
    shift: str = "test",
    truth: AnyPath | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    rows_per_unit: int = UNIT_ROWS,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    progress: Progress | None = None,
) -> FileSums:
    """Return what every estimate of the rows of files follows from.

    Parameters
    ----------
    shift
        What for, as for `estimate_files`: what is seen of the rows depends on it.
    model, inputs, metric, truth, id_column, label_column, sep
        As for `estimate_files`.
    rows_per_unit, n_jobs, scheduler, trust, progress
        As for `score_files`.
    """
    check_shift(shift)
    n_jobs = check_jobs(n_jobs, n_threads())
    file = ModelFile.find(expand_path(model), tuple(trust))
    fitted = file.load()
    _check_metric(metric, fitted.metric)
    units = list_units(inputs, rows=rows_per_unit)
    if not units:
        raise DataError("The input must have at least one row to estimate from, it has none.")
    known = None
    if truth is not None:
        known = LabelledRows.read(
            truth, fitted, id_column=id_column, label_column=label_column, sep=sep
        )
        known.check_files([unit.path for unit in units])
    n_total = sum(unit.n_rows for unit in units)
    tasks = _make_tasks(units, file, known, shift if known is None else "ignore")
    parts: dict[int, Any] = {}
    n_finished = 0
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
    # In the order of the rows, whatever finished first.
    return _join_parts(fitted, [parts[place] for place in range(len(units))], known)


def _make_tasks(
    units: list[Unit], file: ModelFile, known: LabelledRows | None, shift: str
) -> list[tuple[Any, ...]]:
    """Return what `_sum_unit` takes of each unit."""
    none = np.empty(0, np.intp)
    return [
        (
            replace(unit, path=str(Path(unit.path).absolute())),
            file,
            none if shift == "ignore" else chosen,
            shift,
            None if known is None else known.of_file(unit.path),
        )
        for unit, chosen in zip(units, split_rows(units), strict=True)
    ]


def check_shift(shift: str) -> None:
    """Refuse a way to meet a shift that is not known.

    Parameters
    ----------
    shift
        As for `AccuracyEstimator.estimate`.
    """
    from labelsure.estimation._fitted_estimator import SHIFTS

    if shift not in SHIFTS:
        raise unknown_name("shift", shift, SHIFTS)


def _check_metric(metric: str | None, fitted: Any) -> None:
    """Refuse what does not follow from sums over units."""
    if metric is not None and metric != fitted:
        raise InputError(
            f"`metric` must be the one that the model was fitted for, {fitted!r}, got {metric!r}: "
            "another one does not follow from parts of the rows. Fit a model for it, or use "
            "`AccuracyAwareClassifier.estimate` for averages over labels, such as micro-f1."
        )


def _join_parts(model: Any, parts: list[Any], known: LabelledRows | None) -> FileSums:
    """Add up what was found of each unit."""
    from labelsure.estimation._shift_test import View

    total = parts[0][0]
    for part in parts[1:]:
        total = total + part[0]
    views = [view for _, view, _ in parts if view is not None]
    joined = None
    if views:
        joined = View(views[0].names, np.concatenate([view.values for view in views]))
    labelled = [some for _, _, some in parts if some is not None]
    if known is None:
        return FileSums(model, total, joined, np.empty(0), np.empty(0))
    entries, accuracy, estimated = (
        np.concatenate(values) for values in zip(*labelled, strict=True)
    )
    known.check_found(entries)
    return FileSums(model, total, joined, accuracy, estimated)


def _sum_unit(
    unit: Unit, file: ModelFile, chosen: Indices, shift: str, known: LabelledRows | None
) -> Any:
    """Return the sums of a unit, what is compared of it, and its labelled rows.

    Or return what is wrong with it.
    """
    from labelsure.tables.file_models._input_table import InputTable

    try:
        model = file.load()
        id_column = None if known is None else known.id_column
        frame = read_unit(unit)
        X, ids = InputTable(model, id_column).read(frame, repr(Path(unit.path).name))
        with one_thread():
            dist, decisions = model.predict_all(X)
            estimator = model.accuracy_estimator_
            sums = estimator.sum_up(dist, decisions)
            view = None
            if len(chosen):
                some = None if decisions is None else decisions[chosen]
                view = estimator.view(dist[chosen], some, shift=shift)
            labelled = None
            if known is not None:
                labelled = find_labelled(model, dist, decisions, known, ids, frame.index)
            return sums, view, labelled
    except LabelsureError as error:
        return error

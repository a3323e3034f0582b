"""The mean accuracy of all rows of files, and a report page on them, a slice at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.storage import show_name
from labelsure._runtime.typing import AnyPath, Floats, Indices, Mask
from labelsure.errors import DataError, InputError, RowsError, unknown_name, warn
from labelsure.estimation._batch_summary import BatchSummary
from labelsure.estimation._shift import MAX_ROWS
from labelsure.metrics.registry import counts
from labelsure.tables.files import Chunk, TextFormat, read_table
from labelsure.tables.inputs import InputTable
from labelsure.tables.parts import NAME_SEPARATOR
from labelsure.tables.scoring import (
    FileRows,
    ModelFile,
    Progress,
    draw_keys,
    read_rows,
    refuse_failure,
    score_files,
)
from labelsure.tables.truth import TrueLabels

if TYPE_CHECKING:
    import pandas as pd

    from labelsure._runtime.pages import Page
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.estimation._batch_summary import RowEstimates
    from labelsure.estimation.monitoring import MonitorTable
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.model._fitted import Fitted
    from labelsure.model._model_report import PageBatch


@dataclass(frozen=True)
class FileSums:
    """Sums over the rows of files, from which `estimate` computes their mean accuracy.

    Parameters
    ----------
    model
        The model that predicts the rows.
    summary
        Sums over all rows, and what the shift test compares of at most 2,000 random ones.
    accuracy, estimated
        (n,) actual and estimated accuracy of the rows whose truth is known.
    """

    model: AccuracyAwareClassifier
    summary: BatchSummary
    accuracy: Floats
    estimated: Floats

    def estimate(self, *, level: float | None = None, shift: str = "test") -> Estimate:
        """Estimate the mean accuracy of all rows.

        The result is that of `AccuracyAwareClassifier.estimate` for all rows at once, up to
        rounding.

        Parameters
        ----------
        level
            Confidence level of the interval; None means the model's `confidence`.
        shift
            "test" warns of a shift, "ignore" does not test, "weighted" assumes covariate shift.
            Not used where the truth of some rows is known.

        Returns
        -------
        Estimate
            The mean accuracy and its interval.
        """
        chosen = self.model.confidence if level is None else level
        estimator = self.model.accuracy_estimator_
        if len(self.accuracy):
            sums = self.summary.sums
            return estimator.estimate_labelled(sums, self.accuracy, self.estimated, chosen)
        return estimator.estimate(self.summary, level=chosen, shift=shift)


def sum_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    shift: str = "test",
    truth: AnyPath | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    progress: Progress | None = None,
) -> FileSums:
    """Read files in parts that fit into memory, and sum up what `FileSums.estimate` needs.

    Parameters
    ----------
    model
        Path of a saved `AccuracyAwareClassifier`.
    inputs
        Files, patterns, folders or addresses.
    shift
        How `estimate` will handle a shift: "test", "ignore" or "weighted".
    truth
        Table with the true labels of rows drawn at random.
    id_column
        Column that names the rows of inputs and truth; without it `row` and `file` do.
    label_column, sep
        Column of label names in the truth, and what separates the names.
    csv_sep, encoding
        Delimiter of CSV files; None finds it. Encoding of text files; UTF-8 by default.
    n_jobs, scheduler
        Number of processes (all cores by default), or the address of a Dask scheduler.
    trust
        Types that may be loaded with the model, see `labelsure.load`.
    progress
        Called with the number of finished rows and of all rows.

    Returns
    -------
    FileSums
        Its `estimate` returns the mean accuracy of all rows.

    See Also
    --------
    score_files : Writes the prediction and estimated accuracy of each row.
    """
    check_shift(shift)
    text = TextFormat(csv_sep, encoding)
    rows = FileRows.open(
        model,
        inputs,
        id_column=id_column,
        text=text,
        trust=trust,
        packed=scheduler is not None,
    )
    known = None
    if truth is not None:
        named: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        known = TrueLabels.read(truth, rows.model, sources=rows.sources, text=text, **named)
    found = {}
    for name, sums, _ in rows.map(
        sum_chunk,
        *(known, known is None and shift != "ignore"),
        n_jobs=n_jobs,
        scheduler=scheduler,
        progress=progress,
    ):
        refuse_failure(sums, rows.files)
        found[name] = sums
    if not found:
        raise DataError("The input must have at least one row, it has none.")
    # In the order of the rows, whatever finished first.
    return _join_sums(rows.model, [found[name] for name in sorted(found)], known)


def check_shift(shift: str) -> None:
    """Refuse a way to meet a shift that is not known."""
    from labelsure.estimation._estimator import SHIFTS

    if shift not in SHIFTS:
        raise unknown_name("shift", shift, SHIFTS)


def _join_sums(model: Any, sums: list[Any], known: TrueLabels | None) -> FileSums:
    """Add up what was found of each slice."""
    summaries, labelled = zip(*sums, strict=True)
    summary = reduce(add, summaries)
    if known is None:
        return FileSums(model, summary, np.empty(0), np.empty(0))
    entries, accuracy, estimated = (
        np.concatenate(values) for values in zip(*labelled, strict=True)
    )
    known.check_found(entries)
    return FileSums(model, summary, accuracy, estimated)


def sum_chunk(
    model: AccuracyAwareClassifier,
    chunk: Chunk,
    name: str,
    known: TrueLabels | None,
    tests_shift: bool,
) -> tuple[BatchSummary, tuple[Indices, Floats, Floats] | None]:
    """Return the sums of a chunk, with what is compared of it, and its labelled rows."""
    some = read_rows(InputTable(model, None if known is None else known.id_column), chunk)
    predictions = model.fitted_.predictor.predict(some.X)
    estimated = model.accuracy_estimator_.estimate_rows(model.fitted_.tabulate(predictions))
    labelled = None
    if known is not None:
        names = some.rows.index if known.id_column is None else some.ids
        labelled = _compare_labelled(model.fitted_, estimated, known, names, some.source)
    if not tests_shift:
        return BatchSummary(estimated.sums()), labelled
    return estimated.summarise(keys=some.keys), labelled


def _compare_labelled(
    fitted: Fitted,
    estimated: RowEstimates,
    known: TrueLabels,
    names: Any,
    source: str,
) -> tuple[Indices, Floats, Floats]:
    """Return which entries of the truth some rows have, their accuracy, and what was estimated."""
    entries, places = known.find(names, source)
    if not len(places):
        return entries, np.empty(0), np.empty(0)
    compared = counts(known.labelsets[entries], np.asarray(estimated.table.decisions)[places])
    accuracy = fitted.metric.values(*compared, empty=fitted.empty)
    return entries, accuracy, estimated.accuracy[places]


def report_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath] = (),
    *,
    scored: AnyPath | None = None,
    truth: AnyPath | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    id_column: str | None = None,
    show: Sequence[str] = (),
    title: str | None = None,
    open_cost: float | None = None,
    n_jobs: int | None = None,
    trust: Iterable[str] = (),
    progress: Progress | None = None,
) -> Page:
    """Return a page on a saved model, and on its predictions for the rows of files.

    Estimates of all rows are those that `score_files` wrote, or would write; what else the page
    shows is computed for at most 2,000 rows that chance has chosen.
    """
    from labelsure.model._model_report import make_model_report

    text = TextFormat(csv_sep, encoding)
    paths: list[Any] = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if title is None:
        names = ", ".join(show_name(path)[1:-1] for path in paths)
        title = f"{Path(model).stem}: {names}" if names else Path(model).stem
    if not paths:
        if scored is not None or truth is not None:
            raise InputError(
                "`scored` and `truth` must come with their input, got none. Name its files."
            )
        return make_model_report(ModelFile.find(model, trust).load().fitted_, [], title, open_cost)
    if truth is not None:
        if len(paths) != 1:
            raise InputError(
                f"`truth` must come with one input, got {len(paths)}. Join them, or make a page "
                "for each."
            )
        if scored is not None:
            raise InputError(
                "`truth` must come without `scored`: a page with actual accuracies scores its rows "
                "again. Leave out `scored`."
            )
        fitted = ModelFile.find(model, trust).load()
        named: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        frame, where = read_table(paths[0], text=text), show_name(paths[0])
        known = TrueLabels.read(truth, fitted, text=text, columns=frame.columns, **named)
        batch, note = _predict_with_truth(fitted, frame, where, known, show, id_column)
        return make_model_report(fitted.fitted_, [batch], title, open_cost, note)
    rows = FileRows.open(model, paths, id_column=id_column, columns=show, text=text, trust=trust)
    sampled, n_rows = _sample(rows)
    batches, places = _predict_sample(rows.model, sampled, id_column, show)
    table = None
    if scored is not None:
        table = _read_scored(scored, sep, TextFormat(csv_sep))
    elif len(places) < n_rows:
        with TemporaryDirectory() as folder:
            out = Path(folder) / "scored"
            lean: Any = {"top": 0, "probabilities": False, "id_column": id_column}
            score_files(
                model,
                paths,
                out,
                csv_sep=csv_sep,
                encoding=encoding,
                n_jobs=n_jobs,
                trust=trust,
                progress=progress,
                **lean,
            )
            table = _read_scored(out, None, TextFormat())
    if table is not None:
        _check_scored(rows.model, table, batches, places, scored)
    return make_model_report(rows.model.fitted_, batches, title, open_cost, scored=table)


@dataclass(frozen=True)
class SampledRows:
    """Random rows of a chunk, whose position among all rows is that in their file plus `offset`."""

    chunk: Chunk
    rows: pd.DataFrame
    keys: Floats
    offset: int

    def keep(self, is_kept: Mask) -> SampledRows:
        """Return some of the rows."""
        return replace(self, rows=self.rows[is_kept], keys=self.keys[is_kept])


def _sample(files: FileRows) -> tuple[list[SampledRows], int]:
    """Return at most 2,000 random rows of files by chunk, and the number of all rows."""
    sampled, n_rows = list[SampledRows](), 0
    for _, chunk in files.read():
        rows, bad = chunk.read()
        if bad:
            refuse_failure(RowsError(bad, chunk.where), [chunk.file])
        keys, light = draw_keys(chunk.file.source, rows.index), replace(chunk, content=None)
        sampled.append(SampledRows(light, rows, keys, n_rows - chunk.first_row))
        n_rows += len(rows)
        all_keys = np.concatenate([some.keys for some in sampled])
        if len(all_keys) > MAX_ROWS:
            largest = np.partition(all_keys, MAX_ROWS - 1)[MAX_ROWS - 1]
            sampled = [some.keep(some.keys <= largest) for some in sampled]
    return [some for some in sampled if len(some.rows)], n_rows


def _predict_sample(
    model: AccuracyAwareClassifier,
    sampled: list[SampledRows],
    id_column: str | None,
    show: Sequence[str],
) -> tuple[list[PageBatch], list[tuple[str, int]]]:
    """Return predictions for some rows, as a page takes them, and where the rows are."""
    from labelsure.model._model_report import PageBatch, choose_columns

    if not sampled:
        raise DataError("The input must have at least one row, it has none.")
    batches, places, inputs = [], list[tuple[str, int]](), InputTable(model, id_column)
    for some in sampled:
        X, ids = inputs.read(some.rows, some.chunk.where)
        names = some.rows.index + some.offset if ids is None else ids
        found = model.fitted_.predictor.predict(X).with_index(names)
        batches.append(PageBatch(found, None, choose_columns(some.rows if show else X, show)))
        places += [(some.chunk.file.source, int(row)) for row in some.rows.index]
    return batches, places


ESTIMATED, PREDICTED = "estimated_accuracy", "predicted"


def _read_scored(path: AnyPath, sep: str | None, text: TextFormat) -> pd.DataFrame:
    """Return the estimates and predictions that `score_files` wrote, by file and row."""
    import pandas as pd

    columns = ["file", "row", ESTIMATED, PREDICTED]
    table = read_table(path, columns, text)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InputError(
            f"{str(path)!r} must be a table that `score` wrote, it has no column {missing[0]!r}. "
            "Name its output, or leave out `scored`."
        )
    if isinstance(table[PREDICTED].iloc[0], str):  # CSV has no lists
        texts = table[PREDICTED]
        table[PREDICTED] = [text.split(sep or NAME_SEPARATOR) if text else [] for text in texts]
    table[ESTIMATED] = pd.to_numeric(table[ESTIMATED])
    return table.set_index([table["file"], pd.to_numeric(table["row"])])[[ESTIMATED, PREDICTED]]


def _check_scored(
    model: AccuracyAwareClassifier,
    table: pd.DataFrame,
    batches: list[PageBatch],
    places: list[Any],
    path: AnyPath | None,
) -> None:
    """Refuse predictions of another model or for other rows, by the rows that are scored here."""
    estimator = model.accuracy_estimator_
    predictions = [batch.predictions for batch in batches]
    own = np.concatenate([estimator.predict(some.dist, some.decisions) for some in predictions])
    found = table[ESTIMATED].reindex(places).to_numpy()
    is_other = ~(np.abs(found - own) <= TOLERANCE)
    if is_other.any():
        at = int(np.argmax(is_other))
        (file, row), there = places[at], found[at]
        said = "is missing"
        if not np.isnan(there):
            said = f"has estimated accuracy {there:.6f} there, {own[at]:.6f} now"
        raise InputError(
            f"{str(path)!r} must be what `score` wrote for this model and input, but row {row} of "
            f"{file!r} {said}. Score the input again, or leave out `scored`."
        )


TOLERANCE = 1e-6
"""Between two estimates of one row: results agree to 1e-9, and text may be rounded."""


def _predict_with_truth(
    model: AccuracyAwareClassifier,
    table: pd.DataFrame,
    where: str,
    known: TrueLabels,
    show: Sequence[str],
    id_column: str | None,
) -> tuple[PageBatch, str]:
    """Return the rows whose truth is known, and a note where others are left out."""
    from labelsure.model._model_report import PageBatch, choose_columns

    frame, note = known.join(table, where), ""
    if len(frame) < len(table):
        note = (
            f"The truth in {known.where} has {len(frame):,} of the {len(table):,} rows of "
            f"{where}; the page shows these."
        )
        warn(note, UserWarning)
    X, ids = InputTable(model, known.id_column or id_column).read(frame, where)
    found = model.fitted_.predictor.predict(X)
    Y_true = found.dist.align(known.labelsets, "truth")
    found = found if ids is None else found.with_index(ids)
    return PageBatch(found, Y_true, choose_columns(frame if show else X, show)), note


def monitor_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    time: str,
    every: str,
    truth: AnyPath | None = None,
    drawn: float | None = None,
    bound: float | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    trust: Iterable[str] = (),
) -> MonitorTable:
    """Return what `monitor` says of the rows of files, cut at dates such as "W-MON" or "MS"."""
    from labelsure.estimation.monitoring import monitor

    if (truth is None) != (drawn is None) or (truth is not None and id_column is None):
        raise InputError(
            "`truth` must come with `drawn`, the probability with which each row was drawn to be "
            "labelled, and with `id_column`, which names the rows in both tables."
        )
    fitted = ModelFile.find(model, trust).load()
    reader = InputTable(fitted, id_column)
    columns = None if reader.columns is None else [*dict.fromkeys([*reader.columns, time])]
    text = TextFormat(csv_sep, encoding)
    frame = read_table(inputs, columns, text)
    dates = _read_dates(frame, time)
    chunks = _cut_by_calendar(dates, every)
    X, _ = reader.read(frame, "the input")
    labels = None
    if truth is not None:
        named: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        known = TrueLabels.read(truth, fitted, text=text, **named)
        entries, places = known.locate(frame, "the input")
        labels = {}
        for name, rows in chunks.items():
            own = np.isin(places, rows)
            if own.any():
                truths = known.labelsets[entries[own]]
                labels[name] = (np.searchsorted(rows, places[own]), truths, drawn)
    rows_of = getattr(X, "iloc", X)
    return monitor(
        fitted,
        {name: rows_of[rows] for name, rows in chunks.items()},
        labels=labels,
        bound=bound,
        level=fitted.confidence,
    )


def _read_dates(frame: Any, time: str) -> Any:
    """Return the dates of all rows, or say which is none."""
    import pandas as pd

    if time not in frame.columns:
        raise InputError(f"`time` must name a column of the input, got {time!r}.")
    dates = pd.to_datetime(frame[time], errors="coerce", format="mixed", utc=True)
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        raise InputError(
            f"Each row must have a date in {time!r}, got {frame[time].iloc[row]!r} in row {row} "
            "(rows count from 0). Fix or drop that row."
        )
    return dates.dt.tz_localize(None)


def _cut_by_calendar(dates: Any, every: str) -> dict[str, Indices]:
    """Return the rows of each period that has some, by the date at which it begins."""
    import pandas as pd

    try:
        parts = pd.Series(np.arange(len(dates)), dates).resample(every, closed="left", label="left")
    except ValueError as error:
        raise InputError(
            "`every` must be a calendar frequency of pandas, such as D, W-MON or MS, got "
            f"{every!r}."
        ) from error
    return {
        str(start).removesuffix(" 00:00:00"): np.sort(part.to_numpy())
        for start, part in parts
        if len(part)
    }

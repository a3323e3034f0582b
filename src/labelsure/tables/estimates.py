"""Mean accuracy, report page and monitoring of the rows of files, read in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.arguments import read_choice
from labelsure._runtime.storage import show_name
from labelsure._runtime.typing import AnyPath, Floats, Indices
from labelsure.errors import (
    DataError,
    InputError,
    LabelsureError,
    RowsError,
    warn,
)
from labelsure.estimation._batch_summary import BatchSummary
from labelsure.estimation._estimator import SHIFTS, AccuracyEstimator
from labelsure.estimation._label_estimates import (
    LABEL_METRICS,
    EntryCounts,
    check_labels_are_known,
)
from labelsure.estimation._shift import MAX_ROWS
from labelsure.estimation.score_table import ScoreTable
from labelsure.tables.dates import read_dates
from labelsure.tables.files import Chunk, TextFormat, list_inputs, read_table
from labelsure.tables.gate import FileEstimate
from labelsure.tables.inputs import InputTable
from labelsure.tables.parts import NAME_SEPARATOR
from labelsure.tables.scoring import (
    BadRows,
    FileRows,
    FrameScorer,
    ModelFile,
    Progress,
    ReadRows,
    ScoreSettings,
    read_files,
    read_rows,
    refuse_failure,
)
from labelsure.tables.truth import ID, TrueLabels, fingerprint_rows

if TYPE_CHECKING:
    import pandas as pd

    from labelsure._runtime.pages import Page
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.estimation._batch_summary import RowEstimates
    from labelsure.estimation.monitoring import MonitorResult
    from labelsure.labelsets.label_rules import LabelRules
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.model._model_report import PageBatch


@dataclass(frozen=True)
class LabelledRows:
    """Labelled random sample of rows; `+` concatenates two of them.

    Parameters
    ----------
    entries
        (m,) positions in the table of true labels.
    table
        Score table with the true labels.
    estimated
        (m,) estimated accuracies.
    """

    entries: Indices
    table: ScoreTable
    estimated: Floats

    def __add__(self, other: LabelledRows) -> LabelledRows:
        return LabelledRows(
            np.concatenate([self.entries, other.entries]),
            ScoreTable.concatenate([self.table, other.table]),
            np.concatenate([self.estimated, other.estimated]),
        )


@dataclass(frozen=True)
class RowSums:
    """Sums over rows, and their labelled sample; `+` adds those of two chunks.

    Parameters
    ----------
    summary
        Sums, and at most 2,000 random rows for the shift test.
    labelled
        Labelled rows; None if there are none.
    """

    summary: BatchSummary
    labelled: LabelledRows | None = None

    def __add__(self, other: RowSums) -> RowSums:
        samples = [sums.labelled for sums in (self, other) if sums.labelled is not None]
        return RowSums(self.summary + other.summary, reduce(add, samples) if samples else None)


@dataclass(frozen=True)
class FileSums:
    """Sums over the rows of files, from which `estimate` computes their mean accuracy.

    Parameters
    ----------
    model
        The model that predicts the rows.
    metric
        Metric of the mean, or a micro or macro average.
    is_labelled
        Whether there is a table of true labels.
    whole
        Sums over all rows.
    by_file
        Name and sums of each file, in order; empty unless `by_file` was set.
    n_bad
        Rows that were set aside.
    """

    model: AccuracyAwareClassifier
    metric: str | None
    is_labelled: bool
    whole: RowSums
    by_file: tuple[tuple[str, RowSums], ...] = ()
    n_bad: int = 0

    def estimate(self, *, level: float | None = None, shift: str = "test") -> Estimate:
        """Estimate the mean accuracy of all rows.

        The result is that of `AccuracyAwareClassifier.estimate` for all rows at once, up to
        rounding and the random rows of the shift test.

        Parameters
        ----------
        level
            Confidence level of the interval; None means the model's `confidence`.
        shift
            "test" warns of a shift, "ignore" does not test, "weighted" assumes covariate shift.
            Not used where some rows are labelled.

        Returns
        -------
        Estimate
            The mean accuracy and its interval.
        """
        return self._estimate(self.whole, level, shift)

    def assess(self, *, level: float | None = None, shift: str = "test") -> FileEstimate:
        """Estimate of all rows; under a shift also the weighted one, or the reason against it."""
        return self._assess("", self.whole, level, shift)

    def assess_files(
        self, *, level: float | None = None, shift: str = "test"
    ) -> list[FileEstimate]:
        """Estimate and shift test of each file."""
        return [self._assess(name, sums, level, shift) for name, sums in self.by_file]

    def _estimate(self, rows: RowSums, level: float | None, shift: str) -> Estimate:
        level = self.model.confidence if level is None else level
        average = self.metric if self.metric in LABEL_METRICS else None
        estimator = find_estimator(self.model, self.metric)
        summary, labelled = rows.summary, rows.labelled
        if not self.is_labelled:
            return estimator.estimate(summary, metric=average, level=level, shift=shift)
        if labelled is None:
            raise InputError("No row of it is labelled. Label some, drawn at random.")
        if average is None:
            return estimator.estimate_labelled(
                summary.sums, labelled.table, labelled.estimated, level
            )
        assert summary.entries is not None  # counted for averages
        return estimator.average_labelled(summary.entries, labelled.table, average, level)

    def _assess(self, name: str, rows: RowSums, level: float | None, shift: str) -> FileEstimate:
        try:
            plain = self._estimate(rows, level, shift)
        except LabelsureError as error:  # too few rows, or none like the calibration set
            return FileEstimate(name, None, None, str(error))
        if plain.shift is None or not plain.shift.found:
            return FileEstimate(name, plain)
        if self.metric in LABEL_METRICS:
            reason = f"There is no importance-weighted estimate of {self.metric}."
            return FileEstimate(name, plain, None, reason)
        try:
            return FileEstimate(name, plain, self._estimate(rows, level, "weighted"))
        except LabelsureError as error:
            # What a library call would do next; the files' own next step is printed beside it.
            return FileEstimate(name, plain, None, str(error).partition(" Label some rows")[0])


def find_estimator(model: AccuracyAwareClassifier, metric: str | None) -> AccuracyEstimator:
    """Accuracy estimator of a metric; of the model's metric for averages over labels."""
    return model.fitted_.estimator_for(None if metric in LABEL_METRICS else metric)


def sum_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    metric: str | None = None,
    shift: str = "test",
    truth: AnyPath | None = None,
    by_file: bool = False,
    bad_rows: AnyPath | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> FileSums:
    """Read files in parts that fit into memory, and add up the sums for `FileSums.estimate`.

    Parameters
    ----------
    model
        Path of a saved `AccuracyAwareClassifier`.
    inputs
        Files, patterns, folders or addresses.
    metric
        None for the metric of the model; or any that `AccuracyAwareClassifier.estimate` takes by
        its name.
    shift
        How `estimate` will handle a shift: "test", "ignore" or "weighted".
    truth
        Table with the true labels of rows drawn at random.
    by_file
        Whether to sum up each file as well.
    bad_rows
        JSONL file for rows that cannot be read or used; None refuses such rows.
    id_column
        Column that names the rows of inputs and truth; without it `row` and `file` do.
    label_column, sep
        Column of label names in the truth, and the separator of names.
    csv_sep, encoding
        Delimiter of CSV files; None finds it. Encoding of text files; UTF-8 by default.
    n_jobs, scheduler
        Number of processes (all cores by default), or the address of a Dask scheduler.
    trust
        Types that may be loaded with the model, see `labelsure.load`.
    overwrite
        Whether to replace a file of bad rows of other inputs.
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
    read_choice(shift, "shift", SHIFTS)
    inputs = list_inputs(inputs)
    text = TextFormat(csv_sep, encoding)
    bad = BadRows.open(bad_rows, model, inputs, overwrite=overwrite)
    rows = FileRows.open(
        model,
        inputs,
        id_column=id_column,
        text=text,
        trust=trust,
        packed=scheduler is not None,
    )
    if metric in LABEL_METRICS and shift == "weighted":
        raise InputError(
            f"`metric` must be a mean over rows with shift='weighted', got {metric!r}."
        )
    find_estimator(rows.model, metric)  # refuses an unknown metric
    true_labels = None
    if truth is not None:
        options: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        true_labels = TrueLabels.read(truth, rows.model, sources=rows.sources, text=text, **options)
    sums_of_part = {}
    for name, sums in rows.map(
        sum_chunk,
        *(true_labels, metric, bad.sets_aside),
        n_jobs=n_jobs,
        scheduler=scheduler,
        progress=progress,
    ):
        refuse_failure(sums, rows.files)
        sums_of_part[name] = sums
    if not sums_of_part:
        raise DataError("The input must have at least one row, it has none.")
    files: dict[str, RowSums] = {}
    for chunk in (sums_of_part[name] for name in sorted(sums_of_part)):  # whatever finished first
        bad.add(chunk.source, chunk.bad.items())
        if chunk.sums is not None:
            source = chunk.source if by_file else ""
            files[source] = files[source] + chunk.sums if source in files else chunk.sums
    n_bad = bad.write(rows.files)
    if not files:
        raise DataError("The input must have at least one row that can be used, none can.")
    whole = reduce(add, files.values())
    if true_labels is not None:
        entries = np.empty(0, np.intp) if whole.labelled is None else whole.labelled.entries
        true_labels.check_found(entries)
    by_name = tuple(files.items()) if by_file else ()
    return FileSums(rows.model, metric, true_labels is not None, whole, by_name, n_bad)


@dataclass(frozen=True)
class ChunkSums:
    """Sums over the rows of a chunk.

    Parameters
    ----------
    source
        Name of the file.
    sums
        Sums; None if no row can be used.
    bad
        Reasons of bad rows, by position in the file.
    """

    source: str
    sums: RowSums | None
    bad: dict[int, str]


def sum_chunk(
    model: AccuracyAwareClassifier,
    chunk: Chunk,
    name: str,
    true_labels: TrueLabels | None,
    metric: str | None,
    sets_aside: bool,
) -> ChunkSums:
    """Sums over a chunk, with its labelled rows and its bad rows."""
    inputs = InputTable(model, None if true_labels is None else true_labels.id_column)
    fitted, bad = model.fitted_, dict[int, str]()
    estimator = find_estimator(model, metric)
    usable = read_rows(inputs, chunk, bad if sets_aside else None)
    if usable.X is None:
        return ChunkSums(usable.source, None, bad)
    predictions = fitted.predictor.predict(usable.X)
    estimated = fitted.estimate_rows(predictions, estimator=estimator)
    summary = estimated.summarise(keys=usable.keys)
    if metric in LABEL_METRICS:
        check_labels_are_known(predictions.dist, estimator.label_calibration_)
        summary = replace(summary, entries=EntryCounts.of_table(estimated.table))
    rules = predictions.dist.rules
    labelled = (
        None if true_labels is None else _find_labelled(estimated, true_labels, usable, rules)
    )
    return ChunkSums(usable.source, RowSums(summary, labelled), bad)


def _find_labelled(
    estimated: RowEstimates, true_labels: TrueLabels, usable: ReadRows, rules: LabelRules | None
) -> LabelledRows | None:
    """Labelled rows of a chunk; None if there are none."""
    names = usable.rows.index if true_labels.id_column is None else usable.ids
    assert names is not None  # the input has ids where the truth has
    entries, places = true_labels.find(names, usable.source)
    if not len(places):
        return None
    if true_labels.fingerprints:
        true_labels.check_fingerprints(entries, fingerprint_rows(usable.X, places), usable.source)
    truth = true_labels.truth[entries]
    if rules is not None:
        rules.refuse_broken(truth.labelsets, "truth", truth.index)
    table = estimated.table[places].with_truth(truth.labelsets)
    return LabelledRows(entries, table, estimated.accuracy[places])


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
    bad_rows: AnyPath | None = None,
    id_column: str | None = None,
    show: Sequence[str] = (),
    title: str | None = None,
    open_cost: float | None = None,
    n_jobs: int | None = None,
    trust: Iterable[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Page:
    """Page on a saved model, and on its predictions for the rows of files.

    Estimates are of all rows, as `score_files` writes them. Everything else on the page is computed
    for a random sample of at most 2,000 rows.
    """
    import pandas as pd

    from labelsure.model._model_report import make_model_report

    text = TextFormat(csv_sep, encoding)
    paths = list_inputs(inputs)
    if title is None:
        names = ", ".join(show_name(path)[1:-1] for path in paths)
        title = f"{Path(model).stem}: {names}" if names else Path(model).stem
    if not paths:
        if (scored, truth, bad_rows) != (None, None, None):
            raise InputError(
                "`scored`, `truth` and `bad_rows` must come with their input, got none. Name its "
                "files."
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
    # Rows that `score` set aside are not in its output.
    skips = scored is not None
    bad = BadRows.open(bad_rows, model, paths, overwrite=overwrite, skips=skips)
    shown = [*show, *([id_column or ID] if truth is not None else [])]
    rows = FileRows.open(model, paths, id_column=id_column, columns=shown, text=text, trust=trust)
    fitted = rows.model
    if truth is not None:
        options: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        frame, _ = read_frame(rows, InputTable(fitted, id_column), bad)
        where = show_name(paths[0])
        true_labels = TrueLabels.read(truth, fitted, text=text, columns=frame.columns, **options)
        batch, note = _predict_with_truth(fitted, frame, where, true_labels, show, id_column)
        bad.write(rows.files)
        return make_model_report(fitted.fitted_, [batch], title, open_cost, note)
    task = ScoreSettings(id_column, top=0, probabilities=False), not skips, bad.sets_aside
    results = rows.map(report_chunk, *task, n_jobs=n_jobs, ordered=True, progress=progress)
    sampled, tables, n_rows = list[tuple[int, ReadRows]](), list[pd.DataFrame](), 0
    for _, report_rows in results:
        refuse_failure(report_rows, rows.files)
        bad.add(report_rows.sample.source, report_rows.bad.items())
        sampled.append((n_rows - report_rows.sample.chunk.first_row, report_rows.sample))
        tables += [] if report_rows.scored is None else [report_rows.scored]
        n_rows += report_rows.sample.chunk.n_rows
        sampled = _keep_smallest_keys(sampled)
    if not n_rows:
        raise DataError("The input must have at least one row, it has none.")
    batches, places = _predict_sample(fitted, sampled, show)
    table = None
    if scored is not None:
        table = _read_scored(scored, sep, TextFormat(csv_sep))
        _check_scored(fitted, table, batches, places, scored)
    elif n_rows > MAX_ROWS:
        table = pd.concat(tables)
    bad.write(rows.files)
    return make_model_report(fitted.fitted_, batches, title, open_cost, scored=table)


@dataclass(frozen=True)
class ReportRows:
    """Rows of a chunk for a page.

    Parameters
    ----------
    sample
        At most 2,000 random rows.
    scored
        Estimates, predictions and reasons of all rows, by file and row; None unless computed.
    bad
        Reasons of bad rows, by position in the file.
    """

    sample: ReadRows
    scored: pd.DataFrame | None
    bad: dict[int, str]


def report_chunk(
    model: AccuracyAwareClassifier,
    chunk: Chunk,
    name: str,
    settings: ScoreSettings,
    scores: bool,
    sets_aside: bool,
) -> ReportRows:
    """Rows of a chunk for a page; all are scored if `scores`."""
    import pandas as pd

    scorer, bad = FrameScorer(model, settings), dict[int, str]()
    usable, table = read_rows(scorer.inputs, chunk, bad if sets_aside else None), None
    if scores and usable.X is not None:
        names = pd.MultiIndex.from_product([[usable.source], usable.rows.index])
        table = scorer.score_rows(usable)[0][[ESTIMATED, PREDICTED, REASON]].set_axis(names)
    ((_, sample),) = _keep_smallest_keys([(0, usable)])
    return ReportRows(sample, table, bad)


def _keep_smallest_keys(chunks: list[tuple[int, ReadRows]]) -> list[tuple[int, ReadRows]]:
    """Rows with the 2,000 smallest keys, a random sample of all."""
    keys = np.concatenate([usable.keys for _, usable in chunks])
    largest = np.partition(keys, MAX_ROWS - 1)[MAX_ROWS - 1] if len(keys) > MAX_ROWS else 1.0
    return [(offset, usable.take(usable.keys <= largest)) for offset, usable in chunks]


def _predict_sample(
    model: AccuracyAwareClassifier, sampled: list[tuple[int, ReadRows]], show: Sequence[str]
) -> tuple[list[PageBatch], list[tuple[str, int]]]:
    """Predictions for the sampled rows, and (file, position) of each row."""
    from labelsure.model._model_report import PageBatch, choose_columns

    batches, places = [], list[tuple[str, int]]()
    for offset, usable in sampled:
        if len(usable.rows):
            names = usable.rows.index + offset if usable.ids is None else usable.ids
            predictions = model.fitted_.predictor.predict(usable.X).with_index(names)
            columns = choose_columns(usable.rows if show else usable.X, show)
            batches.append(PageBatch(predictions, None, columns))
            places += [(usable.source, int(row)) for row in usable.rows.index]
    return batches, places


ESTIMATED, PREDICTED, REASON = "estimated_accuracy", "predicted", "reason"


def _read_scored(path: AnyPath, sep: str | None, text: TextFormat) -> pd.DataFrame:
    """Estimates, predictions and reasons of an output of `score_files`, by file and row."""
    import pandas as pd

    columns = ["file", "row", ESTIMATED, PREDICTED, REASON]
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
    return table.set_index([table["file"], pd.to_numeric(table["row"])])[columns[2:]]


def _check_scored(
    model: AccuracyAwareClassifier,
    table: pd.DataFrame,
    batches: list[PageBatch],
    places: list[Any],
    path: AnyPath | None,
) -> None:
    """Raise InputError if the table is of another model or input, by the sampled estimates."""
    estimator = model.accuracy_estimator_
    predictions = [batch.predictions for batch in batches]
    computed = np.concatenate(
        [estimator.predict(batch.dist, batch.decisions) for batch in predictions]
    )
    written = table[ESTIMATED].reindex(places).to_numpy()
    differs = ~(np.abs(written - computed) <= TOLERANCE)
    if differs.any():
        at = int(np.argmax(differs))
        (file, row), written_value = places[at], written[at]
        problem = "is missing"
        if not np.isnan(written_value):
            problem = f"has estimated accuracy {written_value:.6f} there, {computed[at]:.6f} now"
        raise InputError(
            f"{str(path)!r} must be what `score` wrote for this model and input, but row {row} of "
            f"{file!r} {problem}. Score the input again, or leave out `scored`."
        )


TOLERANCE = 1e-6
"""Tolerance of two estimates of one row: computed ones agree to 1e-9, text may be rounded."""


def _predict_with_truth(
    model: AccuracyAwareClassifier,
    table: pd.DataFrame,
    where: str,
    true_labels: TrueLabels,
    show: Sequence[str],
    id_column: str | None,
) -> tuple[PageBatch, str]:
    """Page batch of the labelled rows, and a note if the table has further rows."""
    from labelsure.model._model_report import PageBatch, choose_columns

    frame, note = true_labels.join(table, where), ""
    if len(frame) < len(table):
        note = (
            f"The truth in {true_labels.where} has {len(frame):,} of the {len(table):,} rows of "
            f"{where}; the page shows these."
        )
        warn(note, UserWarning)
    X, ids = InputTable(model, true_labels.id_column or id_column).read(frame, where)
    predictions = model.fitted_.predictor.predict(X)
    Y_true = predictions.dist._align_truth(true_labels.truth.labelsets, "truth")
    predictions = predictions if ids is None else predictions.with_index(ids)
    return PageBatch(predictions, Y_true, choose_columns(frame if show else X, show)), note


def monitor_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    *,
    time: str | None = None,
    time_format: str | None = None,
    every: str | None = None,
    truth: AnyPath | None = None,
    drawn: float | None = None,
    bound: float | None = None,
    bad_rows: AnyPath | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    trust: Iterable[str] = (),
    overwrite: bool = False,
) -> MonitorResult:
    """Monitor the rows of files by the calendar, or file by file.

    Chunks are periods of a frequency such as "W-MON" (default) or "MS" of the dates in column
    `time`, see `read_dates`; without `time` each file is one, in the order of their names.
    """
    from labelsure.estimation.monitoring import monitor

    if (truth is None) != (drawn is None) or (truth is not None and id_column is None):
        raise InputError(
            "`truth` must come with `drawn`, the probability with which each row was drawn to be "
            "labelled, and with `id_column`, which names the rows in both tables."
        )
    if time is None and (every is not None or time_format is not None):
        raise InputError(
            "`every` and `time_format` must come with `time`, the column of dates. Name it, or "
            "leave both out: each file is then a chunk."
        )
    inputs, text = list_inputs(inputs), TextFormat(csv_sep, encoding)
    bad = BadRows.open(bad_rows, model, inputs, overwrite=overwrite)
    dated = [] if time is None else [time]
    rows = FileRows.open(model, inputs, id_column=id_column, columns=dated, text=text, trust=trust)
    fitted, reader = rows.model, InputTable(rows.model, id_column)
    frame, places_of = read_frame(rows, reader, bad)
    if time is None:
        by_file = frame.groupby([source for source, _ in places_of]).indices
        chunks = {str(name): np.asarray(rows) for name, rows in by_file.items()}
    else:
        if time not in frame.columns:
            raise InputError(f"`time` must name a column of the input, got {time!r}.")
        dates, reasons = read_dates(frame[time], time_format)
        undated = list(reasons)
        for at in undated:
            source, row = places_of[at]
            if not bad.sets_aside:
                raise RowsError({row: reasons[at]}, repr(source))
            bad.add(source, [(row, reasons[at])])
        frame = frame.drop(index=undated).reset_index(drop=True)
        chunks = _cut_by_calendar(dates.drop(index=undated), every or "W-MON")
    bad.write(rows.files)
    X, _ = reader.read(frame, "the input")
    labels = None
    if truth is not None:
        options: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
        true_labels = TrueLabels.read(truth, fitted, text=text, **options)
        entries, places = true_labels.locate(frame, "the input")
        labels = {}
        for name, chunk_rows in chunks.items():
            is_in_chunk = np.isin(places, chunk_rows)
            if is_in_chunk.any():
                truths = true_labels.truth.labelsets[entries[is_in_chunk]]
                labels[name] = (np.searchsorted(chunk_rows, places[is_in_chunk]), truths, drawn)
    rows_of = getattr(X, "iloc", X)
    return monitor(
        fitted,
        {name: rows_of[chunk_rows] for name, chunk_rows in chunks.items()},
        labels=labels,
        bound=bound,
        level=fitted.confidence,
    )


def read_frame(
    rows: FileRows, reader: InputTable, bad: BadRows
) -> tuple[pd.DataFrame, list[tuple[str, int]]]:
    """All rows that a model can use, and (file, position) of each row."""
    import pandas as pd

    frames, places = [], list[tuple[str, int]]()
    for usable in read_files(rows, reader, bad):
        frames.append(usable.rows)
        places += [(usable.source, int(row)) for row in usable.rows.index]
    if not frames:
        raise DataError("The input must have at least one row that can be used, none can.")
    return pd.concat(frames, ignore_index=True), places


def _cut_by_calendar(dates: Any, every: str) -> dict[str, Indices]:
    """Row numbers of each non-empty period, by its first day."""
    import pandas as pd

    try:
        bins = pd.Series(np.arange(len(dates)), dates).resample(every, closed="left", label="left")
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise InputError(
            "`every` must be a calendar frequency of pandas, such as D, W-MON or MS, got "
            f"{every!r}."
        ) from error
    return {
        str(start).removesuffix(" 00:00:00"): np.sort(row_numbers.to_numpy())
        for start, row_numbers in bins
        if len(row_numbers)
    }

"""Monitoring: the estimated accuracy of a stream that nobody labels, chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from labelsure._runtime.arguments import read_number, read_whole_number
from labelsure._runtime.storage import first_line
from labelsure._runtime.warnings import hold_warnings
from labelsure.errors import InputError, NotEstimableError, ShiftWarning
from labelsure.estimation._batch_estimates import Estimate
from labelsure.labelsets.names import align_values
from labelsure.labelsets.rows import index_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["monitor"]

N_MOVED = 3  # columns that are named

COLUMNS = [
    "chunk",
    "n_samples",
    "estimated",
    "low",
    "high",
    "band_low",
    "band_high",
    "alert",
    "verdict",
    "auc",
    "moved",
    "weighted",
    "weighted_low",
    "weighted_high",
]

NOT_TESTED, AS_BEFORE = "not tested", "as before"
CHANGED, NOT_TRUSTED = "inputs have changed", "estimate not to be trusted"
VERDICTS = {
    NOT_TESTED: "fewer than 30 instances, or a cross-fitted model: nothing to compare with",
    AS_BEFORE: "inputs are like the labelled instances",
    CHANGED: "they are not, but enough labelled ones are like these, and weighted say the same",
    NOT_TRUSTED: "too few labelled instances are like these, or weighted they say something else",
}
"""What is said of a chunk, and when."""


def monitor(
    estimator: Any,
    chunks: Any,
    *,
    chunk_size: int | None = None,
    times: Any = None,
    every: Any = None,
    reference: Any = None,
    level: float = 0.95,
    band_level: float = 0.997,
) -> pd.DataFrame:
    """Estimate the accuracy of each chunk of an unlabelled stream and say when it is unusual.

    It sees harder and other inputs, but not labels that drift while inputs do not: nothing can see
    these without labels (`docs/howto/monitoring.md`).

    Parameters
    ----------
    estimator
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`.
    chunks
        The stream: chunks one after the other (each a distribution or a table), or one of them
        that is cut into chunks. With an `AccuracyAwareClassifier` the same of features X.
    chunk_size
        Cut the stream every so many rows.
    times, every
        Cut the stream by time: one time for each row (or the name of a column of the table) and
        the length of a chunk. For dates it is a length such as "7D", "W" or "12h", counted from the
        first date, or a calendar frequency of pandas by which chunks begin: "MS" (first of the
        month), "W-MON" (Mondays), "QS". For numbers it is a number.
    reference
        What is usual: a batch, or a pair of limits (low, high). None means what the estimator was
        fitted to; a cross-fitted model needs one.
    level
        Of the interval for each chunk's mean accuracy.
    band_level
        How often a chunk like the reference stays within the band; the rest are false alarms.

    Returns
    -------
    pandas.DataFrame
        One row for each chunk: `chunk` (its number, or the time it begins), `n_samples`,
        `estimated` mean accuracy, its interval from `low` to `high`, the band from `band_low` to
        `band_high` for a chunk of this size, and `alert` (below, above or none). `verdict` compares
        the chunk with the labelled instances: "as before", "inputs have changed", "estimate not to
        be trusted" or "not tested"; `auc` and `moved` say how much and what. Where inputs have
        changed, `weighted`, `weighted_low` and `weighted_high` are the estimate by weighted
        labelled instances, missing where these are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> rng = np.random.default_rng(0)
    >>> usual, harder = rng.beta(0.3, 0.3, size=(900, 4)), rng.uniform(size=(300, 4))
    >>> dist = IndependentLabels(np.concatenate([usual, harder]))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("exact").fit(dist[:600], Y[:600])
    >>> table = monitor(estimator, dist[600:], chunk_size=300)
    >>> table[["estimated", "band_low", "band_high", "alert", "verdict"]].round(2)
       estimated  band_low  band_high  alert              verdict
    0       0.57      0.52       0.61   none            as before
    1       0.29      0.52       0.61  below  inputs have changed
    """
    import pandas as pd

    normal = _read_reference(reference, estimator)
    rows = []
    for name, chunk in _name_chunks(chunks, chunk_size, times, every):
        with hold_warnings(ShiftWarning):  # the table says it
            batch: Estimate = estimator.estimate(chunk, level=level)
        low, high = _make_band(normal, batch.n_samples, band_level)
        alert = "below" if batch.mean < low else "above" if batch.mean > high else "none"
        row = (name, batch.n_samples, batch.mean, batch.low, batch.high, low, high, alert)
        rows.append((*row, *_judge_chunk(batch, chunk, estimator, level)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _judge_chunk(batch: Estimate, chunk: Any, estimator: Any, level: float) -> tuple[Any, ...]:
    """Return the verdict on a chunk, and what it rests on."""
    test, missing = batch.shift, (np.nan, np.nan, np.nan)
    if test is None:
        return NOT_TESTED, np.nan, "", *missing
    if not test.found:
        return AS_BEFORE, test.auc, "", *missing
    moved = ", ".join(test.moved.index[:N_MOVED])
    try:
        found: Estimate = estimator.estimate(chunk, level=level, shift="weighted")
    except NotEstimableError:
        return NOT_TRUSTED, test.auc, moved, *missing
    verdict = CHANGED if found.low <= batch.mean <= found.high else NOT_TRUSTED
    return verdict, test.auc, moved, found.mean, found.low, found.high


def _name_chunks(
    chunks: Any, chunk_size: int | None, times: Any, every: Any
) -> Iterator[tuple[Any, Any]]:
    if chunk_size is not None and times is not None:
        raise InputError(
            "`chunk_size` and `times` must not both be given: chunks are cut by rows or by time."
        )
    if chunk_size is not None:
        return _cut_by_rows(chunks, chunk_size)
    if times is not None:
        return _cut_by_time(chunks, times, every)
    if hasattr(chunks, "columns") or not isinstance(chunks, Iterable) or hasattr(chunks, "shape"):
        raise InputError(
            "`chunks` must be several chunks, or one batch with `chunk_size` or `times` to cut it "
            f"by, got one {type(chunks).__name__}. Write [chunk] for a single one."
        )
    return enumerate(chunks)


def _read_reference(reference: Any, estimator: Any) -> Estimate | tuple[float, float]:
    if reference is None:
        normal: Estimate | None = getattr(estimator, "reference_", None)
        if normal is None:
            raise InputError(
                "`reference` must be given for an estimator that was not fitted, got None. Pass a "
                "batch of usual instances, or limits (low, high)."
            )
        sample = getattr(
            getattr(estimator, "accuracy_estimator_", estimator), "calibration_sample_", None
        )
        if sample is not None and not sample.of_one_model:
            raise InputError(
                "`reference` must be given for a cross-fitted model, got None: the models of the "
                "folds are not the one that predicts, and a band by them would raise false alarms. "
                "Pass a batch of usual instances, or limits (low, high), or hold instances out, "
                "e.g. by cv=0.4."
            )
        return normal
    if isinstance(reference, (tuple, list)) and len(reference) == 2:
        low, high = (float(limit) for limit in reference)
        if not low <= high:
            raise InputError(
                f"`reference` must be limits (low, high) with low <= high, got {reference!r}."
            )
        return low, high
    estimate: Estimate = estimator.estimate(reference, shift="ignore")
    return estimate


def _make_band(
    normal: Estimate | tuple[float, float], n_samples: int, band_level: float
) -> tuple[float, float]:
    """Return where the mean estimate of a chunk of this size lies if nothing has changed."""
    if isinstance(normal, tuple):
        return normal
    z = float(ndtri((1 + band_level) / 2))
    margin = z * normal.spread * np.sqrt(1 / n_samples + 1 / normal.n_samples)
    return max(0.0, normal.mean - margin), min(1.0, normal.mean + margin)


def _cut_by_rows(batch: Any, chunk_size: int) -> Iterator[tuple[int, Any]]:
    """Yield (number, chunk) of `chunk_size` rows each; the last one may be shorter."""
    read_whole_number(chunk_size, "chunk_size")
    return (
        (number, _take_rows(batch, slice(first, first + chunk_size)))
        for number, first in enumerate(range(0, _count_rows(batch), int(chunk_size)))
    )


def _cut_by_time(batch: Any, times: Any, every: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (begin, chunk) for each stretch of time that has instances, earliest first."""
    import pandas as pd

    if every is None:
        raise InputError(
            "`every` must be the length of a chunk, e.g. '7D' for dates or 100 for numbers, got "
            "None."
        )
    if isinstance(times, str):
        if times not in getattr(batch, "columns", ()):
            raise InputError(
                "`times` must be one time for each row, or the name of a column of the table, got "
                f"{times!r}, which is no column."
            )
        times = batch[times]
    times = align_values(times, index_of(batch), name="times", beside="`chunks`")
    moments = pd.Series(np.asarray(times))
    n_rows = _count_rows(batch)
    if len(moments) != n_rows:
        raise InputError(
            f"`times` must have one time for each of the {n_rows} rows, got {len(moments)}."
        )
    missing = np.flatnonzero(moments.isna())
    if missing.size:
        raise InputError(
            f"`times` must have a time for each row, got none in row {missing[0]}. Fill it in, or "
            "drop that row from everything that goes with it."
        )
    if pd.api.types.is_numeric_dtype(moments):
        begins = _begins_of_numbers(moments, every)
    else:
        begins = _begins_of_dates(moments, every)
    return (
        (begin, _take_rows(batch, np.flatnonzero(begins == begin)))
        for begin in begins.sort_values().unique()
    )


def _begins_of_numbers(moments: pd.Series[Any], every: Any) -> pd.Series[Any]:
    read_number(every, "every", 0, ends="()", hint="The `times` are numbers.")
    return np.floor(moments / every) * every


def _begins_of_dates(moments: pd.Series[Any], every: Any) -> pd.Series[Any]:
    """Return when the chunk of each row begins: lengths of time are counted from the first day."""
    import pandas as pd

    try:
        dates = pd.to_datetime(moments)
    except (ValueError, TypeError) as error:
        raise InputError(f"`times` must be dates or numbers: {first_line(error)}") from error
    if dates.empty:
        return dates
    zone = dates.dt.tz
    local = dates.dt.tz_localize(None)  # days and months are those of the calendar
    edges = _edges_between(local.min(), local.max(), every)
    begins = pd.Series(edges[edges.searchsorted(local, side="right") - 1])
    if zone is None:
        return begins
    return begins.dt.tz_localize(zone, ambiguous=False, nonexistent="shift_forward")


def _edges_between(first: Any, last: Any, every: Any) -> pd.DatetimeIndex:
    """Return when chunks begin, from the last edge before `first` on."""
    import pandas as pd
    from pandas.tseries import frequencies, offsets

    day = first.normalize()
    weeks = re.fullmatch(r"(\d*)W", every) if isinstance(every, str) else None
    try:
        if weeks:
            every = f"{7 * int(weeks.group(1) or 1)}D"
        offset = frequencies.to_offset(None if isinstance(every, Real) else every)
    except (ValueError, TypeError):
        offset = None
    ends = (offsets.MonthEnd, offsets.QuarterEnd, offsets.YearEnd)
    if offset is None or offset.n < 1 or isinstance(offset, ends):
        raise InputError(
            "`every` must be a length of time where `times` are dates, such as '7D', 'W' or '12h', "
            "or a frequency by which chunks begin, such as 'MS' (first of the month) or 'W-MON' "
            f"(Mondays), got {every!r}."
        )
    start = day if isinstance(offset, (offsets.Tick, offsets.Day)) else offset.rollback(day)
    return pd.date_range(start, max(last, start), freq=offset)


def _take_rows(batch: Any, rows: Any) -> Any:
    return batch.iloc[rows] if hasattr(batch, "iloc") else batch[rows]


def _count_rows(batch: Any) -> int:
    return int(batch.shape[0]) if hasattr(batch, "shape") else len(batch)

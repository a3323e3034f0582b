"""Monitoring: the estimated accuracy of a stream that nobody labels, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.warnings import hold_warnings
from labelsure.errors import InputError, NotEstimableError, ShiftWarning
from labelsure.estimation._batch_estimates import Estimate

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
    reference: Any = None,
    level: float = 0.95,
    band_level: float = 0.997,
) -> pd.DataFrame:
    """Estimate the accuracy of each chunk of an unlabelled stream and flag unusual chunks.

    It detects covariate shift. Concept drift cannot be detected without labels.

    Parameters
    ----------
    estimator
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`.
    chunks
        The stream: chunks one after the other, each a distribution or a table, with an
        `AccuracyAwareClassifier` features X; a dict of them by name, such as
        `dict(list(X.groupby(pd.Grouper(freq="W"))))`; or one of them that is cut by `chunk_size`.
    chunk_size
        Cut the stream every so many rows.
    reference
        What is usual: a batch, or a pair of limits (low, high). None means what the estimator was
        fitted to; a cross-fitted model needs one.
    level
        Confidence level of the interval for each chunk's mean accuracy.
    band_level
        How often a chunk like the reference stays within the band; the rest are false alarms.

    Returns
    -------
    pandas.DataFrame
        One row for each chunk: `chunk` (its number or name), `n_samples`,
        `estimated` mean accuracy, its interval from `low` to `high`, the band from `band_low` to
        `band_high` for a chunk of this size, and `alert` (below, above or none). `verdict` compares
        the chunk with the labelled instances: "as before", "inputs have changed", "estimate not to
        be trusted" or "not tested"; `auc` and `moved` say how much and what. Where inputs have
        changed, `weighted`, `weighted_low` and `weighted_high` are the estimate by weighted
        labelled instances, missing where these are too few.

    See Also
    --------
    shift_test : Compare one batch with a reference.
    AccuracyAwareClassifier.monitor : The same for features.

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
    for name, chunk in _name_chunks(chunks, chunk_size):
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


def _name_chunks(chunks: Any, chunk_size: int | None) -> Iterable[tuple[Any, Any]]:
    if isinstance(chunks, Mapping):
        return chunks.items()
    if chunk_size is not None:
        read_whole_number(chunk_size, "chunk_size")
        n_rows = int(chunks.shape[0]) if hasattr(chunks, "shape") else len(chunks)
        cuts = range(0, n_rows, int(chunk_size))
        rows_of = getattr(chunks, "iloc", chunks)
        return enumerate(rows_of[first : first + chunk_size] for first in cuts)
    if hasattr(chunks, "columns") or not isinstance(chunks, Iterable) or hasattr(chunks, "shape"):
        raise InputError(
            "`chunks` must be several chunks, or one batch with `chunk_size` to cut it by, got one "
            f"{type(chunks).__name__}. Write [chunk] for a single one."
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
        if not getattr(estimator, "accuracy_estimator_", estimator)._can_compare:
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

"""Questions about calibration instances that the model may have been trained on.

What a model says of its own training instances is too good, and so is everything that rests on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from labelsure._runtime.typing import Indices
from labelsure._runtime.warnings import warn
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.rows import is_sparse
from labelsure.model._training_data import TrainingData, innermost

MOST_SHARED = 0.25
"""Share of held-out rows that are training rows as well: at most 0.11 on random splits of the nine
sets (stare)."""

MIN_DISTINCT, MOST_AMBIGUOUS = 100, 0.05
"""Distinct features, and the share of them that occur with several labelsets: copies have the
labels of their original, instances of few categories do not."""

MOST_TRAINING, MOST_HELD_OUT = 20_000, 2_000  # rows that are compared

NEARLY_PERFECT = 0.98
"""Share of labelsets that are entirely right. On new instances of the nine sets forests, trees and
logistic regressions had at most 0.66, and a forest on digits 0.96; on their own training instances
13 of 18 forests and trees had more than 0.98, and no logistic regression."""

MIN_ROWS, MIN_LABELS = 30, 3  # fewer can all be right


def is_fitted_elsewhere(estimator: Any) -> bool:
    """Return whether a model was trained on instances that nobody here has seen."""
    return isinstance(estimator, FrozenEstimator) or isinstance(
        innermost(estimator), PrecomputedProbabilities
    )


def warn_of_shared_rows(data: TrainingData, training: Indices, held_out: Indices) -> None:
    """Warn where many held-out instances are identical to training instances."""
    known = _keys(data, training[:MOST_TRAINING])
    asked = _keys(data, held_out[:MOST_HELD_OUT])
    if not known or not asked:
        return
    labels_of: defaultdict[Any, set[Any]] = defaultdict(set)
    for features, labels in known:
        labels_of[features].add(labels)
    ambiguous = np.mean([len(labels) > 1 for labels in labels_of.values()])
    if len(labels_of) < MIN_DISTINCT or ambiguous > MOST_AMBIGUOUS:
        return  # few values, as of categories: instances are alike without being copies
    shared = np.mean([labels in labels_of.get(features, ()) for features, labels in asked])
    if shared > MOST_SHARED:
        warn(
            f"{shared:.0%} of the held-out instances are identical to training instances, features "
            "and labels. Estimates and guarantees hold for instances that the model was not "
            "trained on: drop duplicates, or keep each group of them in one part by `groups` and "
            "`GroupKFold`.",
            UserWarning,
        )


def warn_of_perfection(table: ScoreTable, n_labels: int) -> None:
    """Ask whether a model that was fitted elsewhere has seen these instances."""
    if len(table) < MIN_ROWS or n_labels < MIN_LABELS:
        return
    exact = float(table.accuracy("exact", 1.0).mean())
    if exact >= NEARLY_PERFECT:
        warn(
            f"{exact:.1%} of the {len(table)} labelsets are predicted entirely right, as models do "
            "on instances that they were trained on. Was this model trained on some of them? Then "
            "estimates and guarantees are too high: calibrate with instances that it has not seen.",
            UserWarning,
        )


def _keys(data: TrainingData, rows: Indices) -> list[Any] | None:
    """Return something that is equal for identical instances; None where X has no such rows."""
    X, Y = _safe_indexing(data.X, rows), data.Y[rows]
    parts = [list(_keys_of(part)) for part in (X, Y)]
    if any(len(part) != len(rows) for part in parts):
        return None
    return list(zip(*parts, strict=True))


def _keys_of(values: Any) -> Iterator[Any]:
    if is_sparse(values):
        rows = values.tocsr()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[start:stop].tobytes(), rows.data[start:stop].tobytes()
    elif hasattr(values, "iloc"):
        from pandas.util import hash_pandas_object

        try:
            yield from hash_pandas_object(values, index=False).tolist()
        except TypeError:  # cells that cannot be hashed
            return
    elif isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        for row in np.ascontiguousarray(values):
            yield row.tobytes()
    elif isinstance(values, list) and all(isinstance(value, str) for value in values):
        yield from values

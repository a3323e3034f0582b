"""`shift_test`: whether a batch is like another one, or like what an estimator was fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelsure._runtime.storage import first_line
from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.estimation._inputs import as_score_table, keep_marginals, view_batch
from labelsure.estimation._shift_test import MIN_ROWS, ShiftTest, View, compare_views, sample_rows

CONSTANT = 1e-13
"""A column whose standard deviation is this share of its largest value varies by rounding alone."""


def shift_test(
    reference: Any,
    batch: Any,
    Y_pred: Any = None,
    *,
    X_reference: Any = None,
    X_batch: Any = None,
    random_state: int = 0,
) -> ShiftTest:
    """Test whether a batch is like a reference: as probable, as certain, with the same labels.

    Compared are the candidates, the number of predicted labels, the probability of each label and,
    where they are given, features. Two batches that are alike in all of these may still differ in
    their true labels, which nothing but labels can show.

    Parameters
    ----------
    reference
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`, for the labelled instances that
        it was fitted to; or a batch.
    batch
        A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns; with an
        `AccuracyAwareClassifier` features X.
    Y_pred
        What was predicted for the batch; None means the mode, or what the reference decides by.
    X_reference, X_batch
        Features to compare as well, numbers: two arrays, or two DataFrames with the same columns in
        any order; a row for each instance. They are standardised, so that neither their scale nor
        their offset matters. For two batches alone.
    random_state
        Seed of the halves, one of which teaches the classifier that tells both apart.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels, shift_test
    >>> rng = np.random.default_rng(0)
    >>> usual = IndependentLabels(rng.beta(0.3, 0.6, size=(900, 3)), label_names=["a", "b", "c"])
    >>> print(shift_test(usual[:600], usual[600:]))
    No sign that the batch differs from the reference (AUC 0.54, p = 0.07).
    >>> P = rng.beta([0.3, 0.3, 0.9], 0.6, size=(300, 3))
    >>> found = shift_test(usual, IndependentLabels(P, label_names=["a", "b", "c"]))
    >>> print(found)
    The batch is not like the reference (AUC 0.70, p = 3e-14). Moved most: P(c) (mean 0.597,
    was 0.315), n_predicted (mean 1.3, was 0.969), SE (mean 0.471, was 0.531).
    >>> found.moved.head(2).round(2)
                 reference  batch  distance
    column
    P(c)              0.31    0.6      0.39
    n_predicted       0.97    1.3      0.16
    """
    features: Features | None = None
    owner = getattr(reference, "accuracy_estimator_", None)
    if owner is not None:
        batch, Y_pred = reference.predict_all(batch)
        reference = owner
    if hasattr(reference, "labelled_sample"):
        if X_reference is not None or X_batch is not None:
            raise InputError(
                "`X_reference` and `X_batch` must be None where the reference is an estimator, "
                "which keeps no features. Compare two batches."
            )
        sample = reference.labelled_sample()
        if not sample.of_one_model:
            raise InputError(
                "`reference` must be an estimator whose calibration set one model has predicted, "
                "got one of cross-fitting: its models differ from the one that predicts, and the "
                "p-value would be too small. Hold instances out (cv=0.4), or compare two batches "
                "of distributions."
            )
        known, other = sample.view, reference.view(batch, Y_pred)
    else:
        if (X_reference is None) != (X_batch is None):
            raise InputError("`X_reference` and `X_batch` must be given together, got one of them.")
        (known, n_reference), (other, n_batch) = (
            _read_view(reference, None),
            _read_view(batch, Y_pred),
        )
        if X_reference is not None:
            features = Features.read(X_reference, X_batch, n_reference, n_batch)
            known, other = features.add_to(known, other)
    found = compare_views(known, other, random_state)
    if found is None:
        raise InputError(
            f"Reference and batch must have at least {MIN_ROWS} instances each to be compared, got "
            f"{len(known)} and {len(other)}."
        )
    return found if features is None else features.write_means(found)


def _read_view(source: Any, Y_pred: Any) -> tuple[View, int]:
    """Return what is compared of a batch, of a sample of its rows, and the number of all."""
    source = keep_marginals(source)
    table = as_score_table(source, None, Y_pred)
    return view_batch(source, table), len(table)


@dataclass(frozen=True)
class Features:
    """Features of both batches, column by column the same, standardised by what both have."""

    names: list[str]
    centre: Floats
    scale: Floats
    of_reference: Floats
    of_batch: Floats

    @classmethod
    def read(cls, X_reference: Any, X_batch: Any, n_reference: int, n_batch: int) -> Features:
        """Check and align the features of two batches with so many instances."""
        names, order = _align_columns(X_reference, X_batch)
        left = _read_numbers(X_reference, order, n_reference, "X_reference")
        right = _read_numbers(X_batch, order, n_batch, "X_batch")
        if left.shape[1] != right.shape[1]:
            raise InputError(
                "`X_reference` and `X_batch` must have the same columns, got "
                f"{left.shape[1]} and {right.shape[1]}."
            )
        both = np.concatenate([left, right])
        centre = left.mean(axis=0)
        scale = (both - centre).std(axis=0)
        scale[scale <= CONSTANT * np.abs(both).max(axis=0, initial=0.0)] = 1.0
        named = [f"X[{name}]" for name in (range(left.shape[1]) if names is None else names)]
        return cls(named, centre, scale, (left - centre) / scale, (right - centre) / scale)

    def add_to(self, known: View, other: View) -> tuple[View, View]:
        """Return the views of both batches with their features."""
        return (
            known.with_columns(self.names, self.of_reference[sample_rows(len(self.of_reference))]),
            other.with_columns(self.names, self.of_batch[sample_rows(len(self.of_batch))]),
        )

    def write_means(self, found: ShiftTest) -> ShiftTest:
        """Return the test with the means of features in their own units."""
        moved = found.moved.copy()
        for column in ("reference", "batch"):
            moved.loc[self.names, column] = (
                self.centre + self.scale * moved.loc[self.names, column].to_numpy()
            )
        return replace(found, moved=moved)


def _align_columns(X_reference: Any, X_batch: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the names of the columns, and the same to take from frames; None for arrays."""
    known, other = (getattr(X, "columns", None) for X in (X_reference, X_batch))
    if known is None and other is None:
        return None, None
    if known is None or other is None:
        raise InputError(
            "`X_reference` and `X_batch` must both be DataFrames or both be arrays, so that their "
            f"columns can be aligned, got {type(X_reference).__name__} and "
            f"{type(X_batch).__name__}."
        )
    missing = [name for name in known if name not in set(other)]
    added = [name for name in other if name not in set(known)]
    if missing or added:
        raise InputError(
            "`X_reference` and `X_batch` must have the same columns, got "
            f"{', '.join(map(repr, missing)) or 'none'} in the reference alone and "
            f"{', '.join(map(repr, added)) or 'none'} in the batch alone. Rename or drop these."
        )
    return list(known), list(known)


def _read_numbers(X: Any, columns: list[Any] | None, n_rows: int, name: str) -> Floats:
    if hasattr(X, "toarray"):
        raise InputError(
            f"`{name}` must be a dense array of features, got a sparse {type(X).__name__}. Compare "
            "a few components of it, e.g. those of `sklearn.decomposition.TruncatedSVD`."
        )
    try:
        values = np.asarray(X if columns is None else X[columns], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` must hold numbers: {first_line(error)}. Compare numeric columns, or encode "
            "the others."
        ) from error
    if values.ndim != 2 or len(values) != n_rows or not np.isfinite(values).all():
        raise InputError(
            f"`{name}` must have a row of finite numbers for each of the {n_rows} instances, got "
            f"shape {values.shape}."
        )
    return values

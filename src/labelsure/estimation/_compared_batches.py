"""`shift_test`: whether a batch is like another one, or like what an estimator was fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure.errors import InputError
from labelsure.estimation._inputs import as_score_table, keep_marginals, view_batch
from labelsure.estimation._shift_test import MIN_ROWS, ShiftTest, View, compare_views, sample_rows


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
        Features to compare as well, numbers: arrays, or DataFrames with the same columns; a row for
        each instance. For two batches alone.
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
        known, other = reference.labelled_sample().view, reference.view(batch, Y_pred)
    else:
        if (X_reference is None) != (X_batch is None):
            raise InputError("`X_reference` and `X_batch` must be given together, got one of them.")
        known = _read_view(reference, None, X_reference, "X_reference")
        other = _read_view(batch, Y_pred, X_batch, "X_batch")
    found = compare_views(known, other, random_state)
    if found is None:
        raise InputError(
            f"Reference and batch must have at least {MIN_ROWS} instances each to be compared, got "
            f"{len(known)} and {len(other)}."
        )
    return found


def _read_view(source: Any, Y_pred: Any, X: Any, name: str) -> View:
    """Return what is compared of a batch, with features where there are any."""
    source = keep_marginals(source)
    table = as_score_table(source, None, Y_pred)
    view = view_batch(source, table)
    if X is None:
        return view
    columns = getattr(X, "columns", None)
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(table) or not np.isfinite(values).all():
        raise InputError(
            f"`{name}` must have a row of finite numbers for each of the {len(table)} instances, "
            f"got shape {values.shape}."
        )
    names = range(values.shape[1]) if columns is None else columns
    return view.with_columns([f"X[{entry}]" for entry in names], values[sample_rows(len(table))])

"""How often a predicted labelset was the true one among the labelled instances.

A labelset that was seen often is easier to predict than one that was never seen, and the
distribution of one instance does not say which it is. The feature is log((count + 1/2) / (n + 1)),
so that a labelset that was never seen has one, too.

An instance must not be counted for itself: its own labelset is in the count just when its
prediction is right. When fitting, counts are therefore those of the other folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsure._typing import Floats, Indices, Integers, Labelsets
from labelsure.errors import InputError
from labelsure.labelsets import code_keys
from labelsure.saving import expect, is_array


@dataclass(frozen=True)
class LabelsetFrequencies:
    """The true labelsets of some instances, and how many instances have each.

    Parameters
    ----------
    labelsets
        (m, L) the distinct ones, in the order of their codes.
    counts
        (m,) instances with each.

    Examples
    --------
    >>> seen = LabelsetFrequencies.of(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int8))
    >>> seen.counts_of(np.array([[1, 0], [1, 1]], dtype=np.int8))
    array([2, 0])
    >>> seen.log_frequencies(np.array([[1, 0], [1, 1]], dtype=np.int8)).round(2)
    array([-0.47, -2.08])
    """

    labelsets: Labelsets
    counts: Integers

    @classmethod
    def of(cls, Y: Labelsets) -> LabelsetFrequencies:
        """Count the (n, L) true labelsets."""
        _, first, counts = np.unique(code_keys(Y), return_index=True, return_counts=True)
        return cls(Y[first], counts)

    def counts_of(self, Y: Labelsets) -> Integers:
        """Return how many instances had each of the (n, L) labelsets, 0 for what was not seen."""
        n_labels = self.labelsets.shape[1]
        if Y.shape[1] != n_labels:
            raise InputError(
                f"The predictions must have the {n_labels} labels that the estimator was fitted "
                f"to, got {Y.shape[1]}. Fit an estimator for these labels."
            )
        known, keys = code_keys(self.labelsets), code_keys(Y)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[places] == keys, self.counts[places], 0)

    def log_frequencies(self, Y: Labelsets) -> Floats:
        """Return the feature for each of the (n, L) labelsets."""
        return _log_frequencies(self.counts_of(Y), int(self.counts.sum()))

    def check_loaded(self, n_labels: int) -> None:
        """Raise an `InputError` if these cannot be counts of labelsets with so many labels."""
        m = len(self.counts)
        expect(
            is_array(self.labelsets, (m, n_labels)) and self.labelsets.dtype == np.int8 and m > 0,
            "the labelsets that were seen must have the labels of the estimator",
        )
        keys = code_keys(self.labelsets)
        expect(
            bool(np.isin(self.labelsets, (0, 1)).all() and (keys[1:] > keys[:-1]).all()),
            "the labelsets that were seen must be distinct and in order",
        )
        expect(
            is_array(self.counts, (m,)) and bool((self.counts >= 1).all()),
            "each labelset that was seen must have been seen at least once",
        )


def log_frequencies_in_other_folds(Y_pred: Labelsets, Y_true: Labelsets, folds: Indices) -> Floats:
    """Return the feature of labelled instances, by the truth of those in other folds, (n,).

    Parameters
    ----------
    Y_pred, Y_true
        (n, L) what was predicted, and the truth.
    folds
        (n,) the fold of each instance, from 0.
    """
    _, codes = np.unique(code_keys(np.concatenate([Y_pred, Y_true])), return_inverse=True)
    predicted, true = np.split(codes.reshape(-1), 2)
    n_codes, n_folds = int(codes.max()) + 1, int(folds.max()) + 1
    by_fold = np.bincount(folds * n_codes + true, minlength=n_folds * n_codes)
    by_fold = by_fold.reshape(n_folds, n_codes)
    others = by_fold.sum(axis=0) - by_fold
    return _log_frequencies(others[folds, predicted], others.sum(axis=1)[folds])


def _log_frequencies(counts: Integers, n_samples: int | Integers) -> Floats:
    return np.log((counts + 0.5) / (n_samples + 1))

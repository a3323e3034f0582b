"""How often a predicted labelset occurred among those that the classifier was trained on.

A labelset that was seen often is easier to predict than one that was never seen, and the
distribution of one instance does not say which it is. The feature is log((count + 1/2) / (n + 1)),
so that a labelset that was never seen has one, too.

It must be counted in the training data, or in other instances that the estimator is not fitted to:
an instance that is counted itself is in the count just when its prediction is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation.score_table import LOG_FREQUENCY, ScoreTable
from labelsure.labelsets.names import GivenLabelsets
from labelsure.labelsets.rows import (
    is_sparse,
    make_sparse,
    refuse_other_labels,
    row_keys,
    sparse_ones,
)


@dataclass(frozen=True)
class LabelsetFrequencies:
    """The labelsets of some instances, and how many instances have each.

    Parameters
    ----------
    labelsets
        (m, L) the distinct ones, in the order of their codes; of sparse rows the labels of all, one
        labelset after the other.
    counts
        (m,) instances with each.
    label_names
        One for each label; None where nobody named them.
    starts
        (m + 1,) where each labelset starts, of sparse rows; None for an array.
    n_labels
        L, of sparse rows.

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
    label_names: tuple[str, ...] | None = None
    starts: Indices | None = None
    n_labels: int | None = None

    @property
    def rows(self) -> Labelsets:
        """The distinct labelsets."""
        if self.starts is None or self.n_labels is None:
            return self.labelsets
        return sparse_ones(self.labelsets, self.starts, self.n_labels)

    @classmethod
    def of(cls, Y: Labelsets, label_names: tuple[str, ...] | None = None) -> LabelsetFrequencies:
        """Count (n, L) labelsets of at least one instance."""
        _, first, counts = np.unique(row_keys(Y), return_index=True, return_counts=True)
        counts = counts.astype(np.int64)
        if is_sparse(Y):  # plain arrays, which can be saved
            rows: Any = Y[first]
            labels, starts = (part.astype(np.int64) for part in (rows.indices, rows.indptr))
            return cls(labels, counts, label_names, starts, Y.shape[1])
        return cls(np.ascontiguousarray(Y[first]), counts, label_names)

    @classmethod
    def read(cls, Y_train: Any, dist: Any) -> LabelsetFrequencies:
        """Count the labelsets of training data, in the order of the labels of a distribution."""
        if isinstance(Y_train, cls):
            return Y_train
        names = dist.label_names if isinstance(dist, LabelsetDistribution) else None
        sparse = is_sparse(Y_train) or getattr(dist, "sparse_rows", False)
        given = GivenLabelsets.read(Y_train, "Y_train")
        rows = given.to_rows(names, beside="the distribution", sparse=sparse)
        if rows.shape[0] == 0:
            raise InputError("`Y_train` must hold at least one labelset, got none. Leave it out.")
        return cls.of(rows, names or given.label_names)

    def counts_of(self, Y: Labelsets) -> Integers:
        """Return how many instances had each of the (n, L) labelsets, 0 for what was not seen."""
        known_rows = self.rows
        if is_sparse(known_rows) != is_sparse(Y):
            known_rows, Y = make_sparse(known_rows), make_sparse(Y)
        known, keys = row_keys(known_rows), row_keys(Y)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[places] == keys, self.counts[places], 0)

    def log_frequencies(self, Y: Labelsets) -> Floats:
        """Return the feature for each of the (n, L) labelsets."""
        return np.log((self.counts_of(Y) + 0.5) / (self.counts.sum() + 1))

    def add_to(self, table: ScoreTable) -> ScoreTable:
        """Return a table with the frequencies of its decisions, where it has none."""
        if table.knows_frequencies:
            return table
        if table.decisions is None:
            raise InputError(
                f"The table must have a column {LOG_FREQUENCY!r} for an estimator that counts "
                "labelsets. Pass the distribution, or `ScoreTable.from_distribution`."
            )
        known, n_known = self.label_names, self.rows.shape[1]
        names, n_labels = table.label_names, table.decisions.shape[1]
        refuse_other_labels(names, n_labels, known, n_known, "the training data")
        return table.with_columns({LOG_FREQUENCY: self.log_frequencies(table.decisions)})

"""Estimated accuracies of the rows of a batch, and the summary from which its mean is estimated.

A summary has the sums that an estimate follows from, and the columns that a shift test compares, of
at most 2,000 random rows. Summaries of parts add up to that of the whole, so that neither files nor
streams need to be held as a whole. Each compared row draws a random key; the rows with the smallest
keys stay (bottom-k sampling), a random sample of all parts whatever their sizes are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.estimation._accuracy_model import RidgeModel
from labelsure.estimation._batch_estimates import BatchSums
from labelsure.estimation._label_estimates import EntryCounts
from labelsure.estimation._shift import MAX_ROWS, sample_rows
from labelsure.estimation.score_table import ScoreTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ComparedRows:
    """Columns that a shift test compares, of a random sample of rows.

    Parameters
    ----------
    view
        One row each; at most 2,000.
    keys
        (n,) random keys in [0, 1).
    """

    view: pd.DataFrame
    keys: Floats

    @classmethod
    def draw(cls, view: pd.DataFrame, n_all: int) -> ComparedRows:
        """Sample of `n_all` rows with random keys: the smallest ones of `n_all` uniform numbers."""
        generator = np.random.default_rng(0)
        smallest = np.sort(generator.random(max(n_all, len(view))))[: len(view)]
        return cls(view, generator.permutation(smallest))

    def __add__(self, other: ComparedRows) -> ComparedRows:
        import pandas as pd

        view = pd.concat([self.view, other.view], ignore_index=True)
        keys = np.concatenate([self.keys, other.keys])
        if len(keys) <= MAX_ROWS:
            return ComparedRows(view, keys)
        chosen = np.sort(np.argsort(keys, kind="stable")[:MAX_ROWS])
        return ComparedRows(view.iloc[chosen].reset_index(drop=True), keys[chosen])


@dataclass(frozen=True)
class BatchSummary:
    """Sums over a batch and a sample for the shift test; `+` joins the summaries of two parts.

    Parameters
    ----------
    sums
        Sums over the estimated accuracies.
    compared
        Sample for the shift test; None without one.
    entries
        Counts of labels, for micro and macro averages; None where they were not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> dist = IndependentLabels(np.random.default_rng(0).uniform(size=(900, 3)))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("exact").fit(dist[:500], Y[:500])
    >>> whole = estimator.summarise(dist[500:700]) + estimator.summarise(dist[700:])
    >>> print(estimator.estimate(whole))
    Mean exact match ... (95% interval ... to ..., n = 400; calibrated on 500 held-out rows; no
    shift detected).
    """

    sums: BatchSums
    compared: ComparedRows | None = None
    entries: EntryCounts | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.sums.n_samples

    @property
    def view(self) -> pd.DataFrame | None:
        """Columns that a shift test compares, of at most 2,000 rows; None without a sample."""
        return None if self.compared is None else self.compared.view

    def __add__(self, other: BatchSummary) -> BatchSummary:
        compared = self.compared or other.compared
        if self.compared is not None and other.compared is not None:
            compared = self.compared + other.compared
        entries = None
        if self.entries is not None and other.entries is not None:
            entries = self.entries + other.entries
        return BatchSummary(self.sums + other.sums, compared, entries)


@dataclass(frozen=True)
class RowEstimates:
    """The estimated accuracy of each row of a batch, with its score table.

    Parameters
    ----------
    table
        Score table of the batch.
    accuracy
        (n,) estimated accuracies.
    features
        (n, m) features of the model of accuracy.
    model
        The model of accuracy.
    by_label
        Whether a shift test compares the probabilities of single labels.
    """

    table: ScoreTable
    accuracy: Floats
    features: Floats
    model: RidgeModel
    by_label: bool

    def sums(self, rows: Mask | None = None) -> BatchSums:
        """Sums over the estimates of a mask of rows; None for all."""
        accuracy, features = self.accuracy, self.features
        if rows is not None:
            accuracy, features = accuracy[rows], features[rows]
        return BatchSums.of(accuracy, self.model.sum_slopes(features))

    def view(self, rows: Indices) -> pd.DataFrame:
        """Columns that a shift test compares, of the rows at some positions."""
        return self.table._view(rows, by_label=self.by_label)

    def summarise(
        self, compared: Indices | None = None, keys: Floats | None = None
    ) -> BatchSummary:
        """Summary of the batch.

        Parameters
        ----------
        compared
            Positions of the rows that a shift test compares; None draws at most 2,000.
        keys
            (n,) random keys of all rows, by which at most 2,000 of them are compared.
        """
        if keys is not None:
            chosen = np.sort(np.argsort(keys, kind="stable")[:MAX_ROWS])
            return BatchSummary(self.sums(), ComparedRows(self.view(chosen), keys[chosen]))
        n_rows = len(self.table) if compared is None else len(compared)
        if not n_rows:
            return BatchSummary(self.sums())
        rows = sample_rows(n_rows) if compared is None else compared
        return BatchSummary(self.sums(), ComparedRows.draw(self.view(rows), n_rows))

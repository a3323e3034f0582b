"""What a table shows of instances, found while all their probabilities are there anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelsure._runtime.typing import Indices
from labelsure.distributions._answers import TopLabelsets

if TYPE_CHECKING:
    from labelsure.distributions._dense import DenseDistribution


class KeptAnswers:
    """Marginals and the most probable labelsets of a batch, a few instances at a time.

    Parameters
    ----------
    n_samples, n_labels
        Of the batch.
    k
        How many of the most probable labelsets.

    Examples
    --------
    >>> from labelsure import DenseDistribution
    >>> kept = KeptAnswers(2, 1, 1)
    >>> dense = DenseDistribution([[0.9, 0.1], [0.2, 0.8]])
    >>> kept.note(np.array([1]), dense[1])
    >>> kept.is_complete
    False
    >>> kept.note(np.array([0, 1]), dense)
    >>> kept.is_complete
    True
    >>> kept.marginals
    array([[0.1],
           [0.8]])
    """

    def __init__(self, n_samples: int, n_labels: int, k: int) -> None:
        self.k = k
        self.marginals = np.empty((n_samples, n_labels))
        self._labelsets = np.empty((n_samples, k, n_labels), dtype=np.int8)
        self._logs = np.empty((n_samples, k))
        self._is_known = np.zeros(n_samples, dtype=bool)

    @property
    def is_complete(self) -> bool:
        """Whether every instance is known."""
        return bool(self._is_known.all())

    def note(self, rows: Indices, dense: DenseDistribution) -> None:
        """Keep what is asked of some instances, unless it is known already.

        Threads may do so at the same time, each with rows of its own.

        Parameters
        ----------
        rows
            Their positions in the batch.
        dense
            All their probabilities.
        """
        if self._is_known[rows].all():
            return
        best = dense.top(self.k)
        self.marginals[rows] = dense.marginals()
        self._labelsets[rows], self._logs[rows] = best.labelsets, best.logs
        self._is_known[rows] = True

    def top(self, k: int) -> TopLabelsets:
        """Return the k most probable labelsets, not more than are kept."""
        return TopLabelsets(self._labelsets[:, :k].copy(), self._logs[:, :k].copy())

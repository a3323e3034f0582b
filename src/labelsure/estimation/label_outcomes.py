"""Predictions of single labels beside the truth: what a calibration of labels is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, LabelNames, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._independent_labels import SparseIndependentLabels
from labelsure.labelsets.rows import count_labels

__all__ = ["LabelOutcomes", "calibration_marginals", "largest_marginals"]

N_LARGEST = 8  # probabilities of each instance that are compared where labels are too many

N_MARGINAL_DRAWS = 1000  # of chains with many labels: a standard error of at most 0.016


@dataclass(frozen=True)
class LabelOutcomes:
    """Predictions of each label beside the truth.

    Parameters
    ----------
    marginals
        (n, L) how probable each label was.
    Y_pred, Y_true
        (n, L) what was predicted, and the truth.
    label_names
        One for each label, or None.
    n_batches
        How many batches it was joined from, each of which another classifier may have predicted.
    """

    marginals: Floats
    Y_pred: Labelsets
    Y_true: Labelsets
    label_names: LabelNames
    n_batches: int = 1

    @classmethod
    def join(
        cls, compared: Sequence[tuple[LabelsetDistribution, Labelsets]], Y_pred: Labelsets
    ) -> LabelOutcomes:
        """Put batches below each other, each with its truth; `Y_pred` is of all of them."""
        marginals = np.concatenate([calibration_marginals(dist) for dist, _ in compared])
        truth = np.concatenate([Y_true for _, Y_true in compared])
        return cls(marginals, Y_pred, truth, compared[0][0].label_names, len(compared))


def calibration_marginals(dist: LabelsetDistribution) -> Floats:
    """Return P(y_j = 1), (n, L), to be calibrated: by draws where exact ones would take long.

    A calibration corrects what it is fitted to, the noise of draws as well, so fitting must not
    wait for all 2**L labelsets of chains. Of sparse labels, the listed ones as a sparse array.

    Parameters
    ----------
    dist
        A batch of n distributions.
    """
    if isinstance(dist, SparseIndependentLabels):
        return dist.listed_marginals()
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        dist = dist.with_engine(engine="sampled", budget=N_MARGINAL_DRAWS)
    return dist.marginals()


def largest_marginals(dist: LabelsetDistribution) -> tuple[tuple[str, ...], Floats]:
    """Return what is compared of very many labels: the largest probabilities of each instance.

    And their sum, the expected number of true labels. Each label by itself is too rare to say
    anything of a batch.

    Parameters
    ----------
    dist
        A batch of n distributions of sparse labels.

    Returns
    -------
    The names of the columns, and (n, number of columns)
    """
    assert isinstance(dist, SparseIndependentLabels)
    listed = dist.listed_marginals()
    n_listed = count_labels(listed)
    instance = np.repeat(np.arange(len(dist)), n_listed)
    order = np.lexsort((-listed.data, instance))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    values = np.zeros((len(dist), N_LARGEST + 1))
    is_large = rank < N_LARGEST
    values[instance[is_large], rank[is_large]] = listed.data[order][is_large]
    values[:, -1] = np.bincount(instance, listed.data, len(dist))
    names = tuple(f"largest probability {r + 1}" for r in range(N_LARGEST))
    return (*names, "sum of probabilities"), values

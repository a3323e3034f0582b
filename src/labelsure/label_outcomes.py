"""Predictions of single labels beside the truth: what a calibration of labels is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsure import _limits
from labelsure._typing import Floats, Labelsets
from labelsure.distributions import LabelsetDistribution

__all__ = ["LabelOutcomes", "calibration_marginals"]

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
        One for each label.
    n_batches
        How many batches it was joined from, each of which another classifier may have predicted.
    """

    marginals: Floats
    Y_pred: Labelsets
    Y_true: Labelsets
    label_names: tuple[str, ...]
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
    wait for all 2**L labelsets of chains.

    Parameters
    ----------
    dist
        A batch of n distributions.
    """
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        dist = dist.with_engine(engine="sampled", budget=N_MARGINAL_DRAWS)
    return dist.marginals()

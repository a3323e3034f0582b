"""The best labels of each size, from P(y_j = 1, |y| = s): how F1 decides. Section 5."""

from __future__ import annotations

import numpy as np

from labelsure._limits import TIE
from labelsure._typing import Floats, Labelsets
from labelsure.distributions import LabelsetDistribution


def choose_f1(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Return the best labelsets under F1, (n, L): for each size a choice of the top k."""
    sizes = np.arange(1, dist.n_labels + 1)
    worth = 2.0 / (sizes[:, np.newaxis] + sizes)  # of a true positive, for each |y| and each k
    values, chosen = choose_each_size(dist.size_marginals(), worth)
    return _best_of_sizes(dist, values, chosen, empty)


def choose_each_size(by_size: Floats, worth: Floats) -> tuple[Floats, Labelsets]:
    """Return for each k the largest sum over k labels of their mean worth, and these labels.

    Parameters
    ----------
    by_size
        (n, L, L) P(y_j = 1, |y| = s).
    worth
        (L, L) what label j adds when |y| = s and k labels are chosen.

    Returns
    -------
    (n, L) sums and (n, L, L) labelsets, k - 1 being the middle index
    """
    n_labels = worth.shape[0]
    gains = np.swapaxes(by_size @ worth, 1, 2)  # [instance, k, label]
    keys = -gains
    np.round(keys, 12, out=keys)
    order = np.argsort(keys, axis=2, kind="stable")  # on a tie the lower label
    del keys  # arrays of this size are most of the memory that a decision takes
    chosen = np.zeros(gains.shape, dtype=np.int8)
    first_k = np.tri(n_labels, dtype=np.int8)
    np.put_along_axis(chosen, order, np.broadcast_to(first_k, gains.shape), axis=2)
    return np.einsum("nkj,nkj->nk", gains, chosen), chosen


def _best_of_sizes(
    dist: LabelsetDistribution, values: Floats, chosen: Labelsets, empty: float
) -> Labelsets:
    """Return the best of the empty labelset and one labelset of each size, smallest on a tie."""
    nothing = np.zeros((len(dist), 1, dist.n_labels), dtype=np.int8)
    of_nothing = empty * np.exp(dist.log_prob(nothing[:, 0]))
    values = np.column_stack([of_nothing, values])
    size = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return np.concatenate([nothing, chosen], axis=1)[np.arange(len(dist)), size]

"""Labels ranked by their probability, and how well the true ones rank: scikit-learn's measures."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import (
    coverage_error,
    label_ranking_average_precision_score,
    label_ranking_loss,
)

from labelsure._typing import Integers
from labelsure.distributions import LabelsetDistribution, check_distribution
from labelsure.errors import InputError

RANKING_MEASURES = {
    "ranking_loss": label_ranking_loss,
    "coverage_error": coverage_error,
    "average_precision": label_ranking_average_precision_score,
}
"""Each a function of the truth and of scores. Lower is better but for the last."""


def rank_labels(dist: LabelsetDistribution) -> Integers:
    """Return the rank of each label by its probability, (n, L): 1 for the most probable one.

    Of equally probable labels the first comes first.

    Parameters
    ----------
    dist
        A batch of n distributions.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> rank_labels(IndependentLabels([[0.2, 0.9, 0.5]]))
    array([[3, 1, 2]])
    """
    marginals = check_distribution(dist).with_dense_rows().marginals()
    order = np.argsort(-marginals, axis=1, kind="stable")
    ranks = np.empty(order.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[1] + 1)[np.newaxis], axis=1)
    return ranks


def ranking_measures(dist: LabelsetDistribution, Y_true: Any) -> dict[str, float]:
    """Return how well the probabilities of labels rank the true ones before the others.

    Parameters
    ----------
    dist
        A batch of n distributions of at least two labels.
    Y_true
        (n, L) the truth, as for `labelsure.accuracy`.

    Returns
    -------
    dict
        `ranking_loss`, the mean share of pairs of a true and another label in the wrong order;
        `coverage_error`, how many labels have to be taken, in the mean, to have all true ones;
        `average_precision`, the mean share of true labels among those ranked as high as a true
        one. These are scikit-learn's, which say what instances without true labels count.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> ranking_measures(IndependentLabels([[0.2, 0.9, 0.5]]), [[0, 0, 1]])
    {'ranking_loss': 0.5, 'coverage_error': 2.0, 'average_precision': 0.5}
    """
    dist = check_distribution(dist).with_dense_rows()
    true = dist.align(Y_true, "Y_true")
    if dist.n_labels < 2 or len(dist) == 0:
        raise InputError(
            "A ranking needs at least two labels and one instance, got "
            f"{dist.n_labels} and {len(dist)}."
        )
    scores = dist.marginals()
    return {name: float(measure(true, scores)) for name, measure in RANKING_MEASURES.items()}

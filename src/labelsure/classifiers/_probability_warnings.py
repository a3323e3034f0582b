"""Warnings of probabilities that look like something else: constant, hard, a softmax, logits."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np
from numpy.typing import NDArray

from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import ROUNDING, clip_certain
from labelsure.errors import warn
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import list_some

N_LOGITS = 20
"""From so many logits within [0, 1] on there is a warning: 0 of 516 batches of 30 rows had it."""


MIN_HARD_ROWS = 10
"""Rows that must all be 0 or 1 before a batch counts as predicted labels."""


class ProbabilityWarning(UserWarning):
    """Probabilities look wrong: constant, all 0 or 1, a softmax, logits, or in another order.

    See Also
    --------
    as_distribution : Reads probabilities and raises this warning.
    PrecomputedProbabilities : The same as an estimator.

    Examples
    --------
    >>> import warnings
    >>> import labelsure as ls
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ls.ProbabilityWarning)
    ...     dist = ls.as_distribution([[0.0, 1.0]] * 3)
    """


def warn_of_suspect_marginals(dist: IndependentLabels, *, by_model: bool = False) -> None:
    """Warn of labels that are 0 or 1 in every row, of predicted labels and of a softmax."""
    p = dist.marginals()
    if len(p) < 2:
        return
    is_certain = np.isin(clip_certain(p), clip_certain(np.array([0.0, 1.0])))
    is_constant = is_certain[0] & (p == p[0]).all(axis=0)
    if dist.n_labels > 2 and rows_sum_to_one(p):
        _warn_of_softmax(dist.n_labels)
    if len(p) >= MIN_HARD_ROWS and is_certain.all() and not (by_model or is_constant.all()):
        warn(
            "Every probability is 0 or 1, as predicted labels are. Pass the output of "
            "`predict_proba`, or several votes for each instance (`LabelsetTable.from_samples`).",
            ProbabilityWarning,
        )
    if is_constant.any():
        _warn_of_constant_labels(dist, np.flatnonzero(is_constant).tolist())


def warn_of_single_classes(dist: LabelsetDistribution, classes: Sequence[Sized]) -> None:
    """Warn of labels that had a single class in training."""
    labels = [label for label, known in enumerate(classes) if len(known) == 1]
    if labels:
        _warn_of_constant_labels(dist, labels)


def _warn_of_constant_labels(dist: LabelsetDistribution, labels: Sequence[int]) -> None:
    """Warn that some labels have the probability 0 or 1 whatever the instance."""
    names = list_some(show_names(dist.label_names, labels))
    warn(
        f"The probability of {names} is 0 or 1, to seven digits, in every row. The label had a "
        "single class in training, or columns are in another order: check them, or drop the label.",
        ProbabilityWarning,
    )


def warn_of_likely_probabilities(logits: object) -> None:
    """Warn of logits that all lie within [0, 1], as those of no model do that has seen labels."""
    values = np.asarray(logits)
    if values.size >= N_LOGITS and values.min() >= 0 and values.max() <= 1:
        warn(
            f"All {values.size} logits lie within [0, 1]. If they are probabilities, pass "
            'kind="marginal".',
            ProbabilityWarning,
        )


def _warn_of_softmax(n_labels: int) -> None:
    is_power = n_labels & (n_labels - 1) == 0
    joint = ' If they are those of all labelsets, pass kind="joint".' if is_power else ""
    warn(
        "Each row of probabilities sums to one, as a softmax over exclusive classes does, but is "
        "read as P(y_j = 1) of each label. Train one sigmoid output per label. If each instance "
        f"has exactly one label, use `LabelsetTable([np.eye({n_labels}, dtype=int)] * len(P), "
        f"P)`.{joint}",
        ProbabilityWarning,
    )


def rows_sum_to_one(probabilities: NDArray[np.generic]) -> bool:
    sums = probabilities.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - 1) <= ROUNDING).all())

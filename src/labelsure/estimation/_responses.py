"""How an accuracy is modelled: which counts are the response, and what the rates amount to.

Every response is a count for each of several classes, whose rates sum to one, and every accuracy
is a quotient of two sums of rates. `docs/algorithms.md`, section 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labelsure._typing import Floats
from labelsure.errors import InputError
from labelsure.metrics import EXACT, F1, HAMMING, JACCARD, Counts, Metric


@dataclass(frozen=True)
class Response:
    """A response with K classes and the accuracy that follows from their rates.

    Parameters
    ----------
    name
        What the fitted model remembers.
    targets
        Takes the four counts and the (n,) accuracies, returns (n, K) counts, which may be
        fractions.
    numerator, denominator
        The accuracy is (numerator @ rates) / (denominator @ rates).
    n_free
        How many classes have a linear predictor of their own; that of the others is 0.
    """

    name: str
    targets: Callable[[Counts, Floats], Floats]
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    n_free: int

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.numerator)

    def accuracy(self, rates: Floats) -> Floats:
        """Return the accuracy that (n, K) rates amount to."""
        return (rates @ self.numerator) / (rates @ self.denominator)

    def slopes(self, rates: Floats) -> Floats:
        """Return (n, n_free) derivatives of the accuracy by each linear predictor."""
        below = (rates @ self.denominator)[:, np.newaxis]
        value = self.accuracy(rates)[:, np.newaxis]
        by_class = rates * (np.array(self.numerator) - value * np.array(self.denominator)) / below
        return by_class[:, : self.n_free]


def _shares(counts: Counts, values: Floats) -> Floats:
    return np.column_stack([values, 1 - values])


def _labels(counts: Counts, values: Floats) -> Floats:
    tp, fp, fn, tn = counts
    return np.column_stack([tp + tn, fp + fn]).astype(np.float64)


def _four_counts(counts: Counts, values: Floats) -> Floats:
    return np.column_stack(counts).astype(np.float64)


FRACTIONAL = Response("fractional", _shares, (1, 0), (1, 1), n_free=1)
BINOMIAL = Response("binomial", _labels, (1, 0), (1, 1), n_free=1)
JACCARD_RATES = Response("jaccard rates", _four_counts, (1, 0, 0, 0), (1, 1, 1, 0), n_free=4)
F1_RATES = Response("f1 rates", _four_counts, (2, 0, 0, 0), (2, 1, 1, 0), n_free=4)

RESPONSES = {r.name: r for r in (FRACTIONAL, BINOMIAL, JACCARD_RATES, F1_RATES)}

_PAPER = {EXACT: FRACTIONAL, HAMMING: BINOMIAL, JACCARD: JACCARD_RATES, F1: F1_RATES}
_OURS = {HAMMING: BINOMIAL}


def response_of(metric: Metric, paper: bool) -> Response:
    """Return how a metric is modelled: by the paper, or by the realised value itself."""
    if not paper:
        return _OURS.get(metric, FRACTIONAL)
    if metric not in _PAPER:
        raise InputError(
            f"`paper=True` needs a metric that the paper's models cover, one of "
            f"{', '.join(m.name for m in _PAPER)}, got {metric.name!r}. Leave `paper` at False."
        )
    return _PAPER[metric]


def check_values(values: Floats, metric: Metric) -> Floats:
    """Return accuracies that lie in [0, 1], as every model needs them, or say which do not."""
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise InputError(
            f"The metric {metric.name!r} must have values in [0, 1] to be estimated, got "
            f"{values[outside][0]:g}. Rescale it."
        )
    return values

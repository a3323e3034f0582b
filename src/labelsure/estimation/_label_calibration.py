"""How probable labels are by what labelled instances say, and what a batch is then worth.

The model: the logit of a label's probability is a line in the logit of what the classifier says,
plus a term if the label is predicted, plus a term for how frequent the classifier takes the label
to be, plus an offset of this label where it is predicted and another where it is not. The four
shared coefficients are nearly free; offsets are normal with a common variance, which is estimated
(so that a rare label, of which little is known, goes by the others).

Logits are rounded to a tenth. Then all that matters of a batch is how many instances each label
has at each of them, predicted or not: a table whose size does not depend on the batch, from which
the fit and the draws are cheap. The rounding changes a probability by at most 0.0125.

What is uncertain, and drawn: the coefficients, by a bootstrap over the labelled instances (one
Newton step for each replicate, with offsets' prior means drawn as well, so that a label of which
nothing is known stays uncertain), and the truth. Labels of one instance are not independent; how
much that widens an average over labels is measured on the residuals of the labelled instances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Floats, Indices, Integers, LabelNames, Labelsets, Mask
from labelsure.estimation.label_metrics import LABEL_METRICS, LabelCounts, check_label_metric
from labelsure.estimation.label_outcomes import LabelOutcomes

STEP = 0.1  # to which logits are rounded
N_STEPS = 90  # on either side of 0: beyond 9, a probability of 0.0001, nothing is distinguished
LOGITS: Floats = np.arange(-N_STEPS, N_STEPS + 1, dtype=np.float64) * STEP

START = np.array([0.0, 1.0, 0.0, 0.0])  # the classifier is right
CERTAINTY = np.array([0.01, 1.0, 1.0, 1.0])
"""Of the start: as if one such label had been seen, of the intercept a hundredth of one, without
which labels that are all true would have no maximum."""
OFFSET_VARIANCE = 0.25  # believed of the offsets before any is seen, with the weight of one

N_REPLICATES = 200
N_TRUTHS = 2  # drawn for each replicate
MAX_STEPS = 200
TOLERANCE = 1e-3  # of coefficients and of the relative change of the offsets' variance
LARGEST_STEP = 2.0


@dataclass(frozen=True)
class Cells:
    """Entries of a batch that are alike: one label, predicted or not, at one logit.

    Parameters
    ----------
    logits
        (m,) of each cell.
    groups
        (m,) which offset it has, rising: the number of its label, plus L where it is predicted.
    counts
        (m,) how many entries it has, at least one.
    places
        (n, L) in which cell each entry is.
    """

    logits: Floats
    groups: Indices
    counts: Floats
    places: Indices

    @classmethod
    def of_batch(cls, marginals: Floats, Y_pred: Labelsets) -> Cells:
        """Round the logits of a batch and count."""
        n_labels = marginals.shape[1]
        groups = np.arange(n_labels) + n_labels * Y_pred.astype(np.intp)
        at = groups * len(LOGITS) + _round_logits(marginals)
        counts = np.bincount(at.ravel(), minlength=2 * n_labels * len(LOGITS))
        used = np.flatnonzero(counts)
        numbers = np.empty(len(counts), dtype=np.intp)
        numbers[used] = np.arange(len(used))
        logits = LOGITS[used % len(LOGITS)]
        return cls(logits, used // len(LOGITS), counts[used].astype(np.float64), numbers[at])

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return int(self.places.shape[1])

    def is_predicted(self) -> Mask:
        """Return whether the label is predicted in each cell, (m,)."""
        return self.groups >= self.n_labels

    def sum_by_group(self, values: Floats | Integers) -> Floats:
        """Return the sum of (m,) values over the cells of each offset, (2 L,)."""
        return np.bincount(self.groups, values, 2 * self.n_labels).astype(np.float64, copy=False)

    def make_columns(self, frequencies: Floats) -> Floats:
        """Return what the shared coefficients are multiplied by in each cell, (4, m)."""
        of_label = frequencies[self.groups % self.n_labels]
        return np.stack([np.ones(len(self.logits)), self.logits, self.is_predicted(), of_label])


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of the log-posterior, in which offsets meet nothing but shared ones.

    Parameters
    ----------
    shared
        (4, 4).
    mixed
        (4, 2 L).
    offsets
        (2 L,) the diagonal.
    """

    shared: Floats
    mixed: Floats
    offsets: Floats

    def solve(self, of_shared: Floats, of_offsets: Floats) -> tuple[Floats, Floats]:
        """Return the Newton steps for gradients (4, ...) and (2 L, ...)."""
        scaled = self.mixed / self.offsets
        left = self.shared - scaled @ self.mixed.T
        shared = np.asarray(np.linalg.solve(left, of_shared - scaled @ of_offsets), np.float64)
        return shared, ((of_offsets - self.mixed.T @ shared).T / self.offsets).T


@dataclass(frozen=True)
class Maximum:
    """Coefficients at the maximum of the posterior.

    Parameters
    ----------
    shared
        (4,) intercept, slope, predicted, frequency.
    offsets
        (2 L,) of each label where it is not predicted, then where it is.
    curvature
        There.
    variance
        Of the offsets.
    """

    shared: Floats
    offsets: Floats
    curvature: Curvature
    variance: float


@dataclass(frozen=True)
class LabelCalibration:
    """A fitted model of the labels, with replicates that say how far it can be trusted.

    Parameters
    ----------
    label_names
        One for each label, or None.
    frequencies
        (L,) logits of the mean probability that the classifier gave each label.
    shared, offsets
        Replicates of the coefficients, (replicates, 4) and (replicates, 2 L): offsets of each label
        where it is not predicted, then where it is.
    dispersions
        By name of the average: how much the labels of one instance, which are not independent,
        widen its variance.
    """

    label_names: LabelNames
    frequencies: Floats
    shared: Floats
    offsets: Floats
    dispersions: dict[str, float]

    @classmethod
    def fit(cls, outcomes: LabelOutcomes, random_state: int | None) -> LabelCalibration:
        """Fit to predictions whose truth is known.

        Parameters
        ----------
        outcomes
            Probabilities, predictions and truth of each label of n instances.
        random_state
            Seed of the bootstrap.
        """
        generator = np.random.default_rng(random_state)
        n_samples, n_labels = outcomes.Y_true.shape
        cells = Cells.of_batch(outcomes.marginals, outcomes.Y_pred)
        frequencies = LOGITS[_round_logits(outcomes.marginals.mean(axis=0))]
        columns = cells.make_columns(frequencies)
        is_true = outcomes.Y_true.ravel() == 1
        n_true = np.bincount(cells.places.ravel()[is_true], minlength=len(cells.counts))
        found = _maximise(cells, columns, n_true)
        probabilities = _cell_probabilities(found.shared, found.offsets, columns, cells.groups)
        weights = _weigh_labels(cells, probabilities)
        # Replicates: how often each instance is chosen beyond once moves the gradient from 0.
        each = np.full(n_samples, 1 / n_samples)
        extra = generator.multinomial(n_samples, each, N_REPLICATES) - 1.0
        of_offsets = generator.normal(0, found.variance**-0.5, (N_REPLICATES, 2 * n_labels))
        of_shared = np.zeros((N_REPLICATES, len(START)))
        squares = np.zeros(len(LABEL_METRICS))
        for rows in cut_rows(n_samples, 64 * n_labels, _limits.DECISION_BYTES):
            places = cells.places[rows]
            residuals = outcomes.Y_true[rows] - probabilities[places]
            where_predicted = residuals * (outcomes.Y_pred[rows] == 1)
            scores = [  # the residuals times each of the columns
                residuals.sum(axis=1),
                (residuals * cells.logits[places]).sum(axis=1),
                where_predicted.sum(axis=1),
                residuals @ frequencies,
            ]
            of_shared += extra[:, rows] @ np.stack(scores, axis=1)
            by_group = np.hstack([residuals - where_predicted, where_predicted])
            of_offsets += extra[:, rows] @ by_group
            squares += ((by_group @ weights.T) ** 2).sum(axis=0)
        shared, offsets = found.curvature.solve(of_shared.T, of_offsets.T)
        alone = weights**2 @ cells.sum_by_group(cells.counts * probabilities * (1 - probabilities))
        # At least 1: residuals of the instances that were fitted to are a little too small.
        ratios = np.maximum(np.divide(squares, alone, out=np.ones(len(alone)), where=alone > 0), 1)
        return cls(
            outcomes.label_names,
            frequencies,
            found.shared + shared.T,
            found.offsets + offsets.T,
            dict(zip(LABEL_METRICS, map(float, ratios), strict=True)),
        )

    def draw(
        self, marginals: Floats, Y_pred: Labelsets, random_state: int | None
    ) -> tuple[LabelCounts, LabelCounts]:
        """Draw coefficients and truths of a batch; return its counts, and those expected.

        Parameters
        ----------
        marginals, Y_pred
            (n, L) how probable each label is, and what is predicted.
        random_state
            Seed of the draws.
        """
        generator = np.random.default_rng(random_state)
        cells = Cells.of_batch(marginals, Y_pred)
        columns, counts = cells.make_columns(self.frequencies), cells.counts.astype(np.int64)
        drawn = np.empty((N_REPLICATES * N_TRUTHS, 2 * cells.n_labels))
        expected = np.empty_like(drawn)
        for k in range(len(drawn)):
            shared, offsets = self.shared[k // N_TRUTHS], self.offsets[k // N_TRUTHS]
            probabilities = _cell_probabilities(shared, offsets, columns, cells.groups)
            drawn[k] = cells.sum_by_group(generator.binomial(counts, probabilities))
            expected[k] = cells.sum_by_group(counts * probabilities)
        n_predicted = cells.sum_by_group(cells.counts)[cells.n_labels :]
        return _split_counts(drawn, n_predicted), _split_counts(expected, n_predicted)

    def widen(self, metric: str, drawn: Floats, expected: Floats) -> Floats:
        """Return draws of an average whose chance in the truth is as wide as it was measured."""
        chance = drawn - expected
        factor = self.dispersions[metric] ** 0.5
        return np.clip(drawn + (factor - 1) * (chance - chance.mean()), 0.0, 1.0)


def _round_logits(probabilities: Floats) -> Indices:
    """Return the number of the logit in `LOGITS` that is nearest."""
    rounded = np.rint(logit(probabilities) / STEP)  # infinite for 0 and 1
    return np.clip(rounded, -N_STEPS, N_STEPS).astype(np.intp) + N_STEPS


def _cell_probabilities(
    shared: Floats, offsets: Floats, columns: Floats, groups: Indices
) -> Floats:
    """Return how probable a label is in each cell, (m,)."""
    probabilities: Floats = expit(shared @ columns + offsets[groups])
    return probabilities


def _split_counts(by_group: Floats, n_predicted: Floats) -> LabelCounts:
    """Return the counts of labels from those where they are not predicted, then where they are."""
    n_labels = len(n_predicted)
    tp = by_group[..., n_labels:]
    return LabelCounts(tp, by_group[..., :n_labels] + tp, n_predicted)


def _maximise(cells: Cells, columns: Floats, n_true: Indices) -> Maximum:
    """Find coefficients by Newton's method, and the variance of the offsets on the way.

    The variance becomes the mean square of the offsets, with what is uncertain of each: a step of
    expectation-maximisation.
    """
    shared, offsets, variance = START, np.zeros(2 * cells.n_labels), OFFSET_VARIANCE
    for _ in range(MAX_STEPS):
        probabilities = _cell_probabilities(shared, offsets, columns, cells.groups)
        residuals = n_true - cells.counts * probabilities
        weights = cells.counts * probabilities * (1 - probabilities)
        curvature = Curvature(
            (columns * weights) @ columns.T + np.diag(CERTAINTY),
            np.stack([cells.sum_by_group(column) for column in columns * weights]),
            cells.sum_by_group(weights) + 1 / variance,
        )
        step, offset_step = curvature.solve(
            columns @ residuals - CERTAINTY * (shared - START),
            cells.sum_by_group(residuals) - offsets / variance,
        )
        largest = max(np.abs(step).max(), np.abs(offset_step).max(), TOLERANCE / 2)
        shortened = min(1.0, LARGEST_STEP / largest)
        shared, offsets = shared + shortened * step, offsets + shortened * offset_step
        squares = (offsets**2 + 1 / curvature.offsets).sum()
        before, variance = variance, float((OFFSET_VARIANCE + squares) / (1 + len(offsets)))
        if largest < TOLERANCE and abs(variance / before - 1) < TOLERANCE:
            break
    return Maximum(shared, offsets, curvature, variance)


def _weigh_labels(cells: Cells, probabilities: Floats) -> Floats:
    """Return how much each average gains by one more true label, (averages, 2 L).

    Those of labels that are not predicted come first, then those of labels that are.
    """
    n_predicted = cells.sum_by_group(cells.counts)[cells.n_labels :]
    expected = _split_counts(cells.sum_by_group(cells.counts * probabilities), n_predicted)
    is_predicted = np.array([[0.0], [1.0]])
    weights = []
    for metric in LABEL_METRICS:
        average, measure = check_label_metric(metric)
        tp, n_true, n_predicted = expected.tp, expected.n_true, expected.n_predicted
        if average == "micro":
            tp, n_true, n_predicted = (x.sum(keepdims=True) for x in (tp, n_true, n_predicted))
        below = measure.denominator(n_predicted, n_true)
        value = measure.values(tp, n_predicted, n_true, empty=0.0)
        gains = measure.tp_weight * is_predicted - measure.counts_true * value
        slopes = np.divide(gains, len(tp) * below, out=np.zeros_like(gains), where=below > 0)
        weights.append(np.broadcast_to(slopes, (2, cells.n_labels)).ravel())
    return np.stack(weights)

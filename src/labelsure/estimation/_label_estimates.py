"""Precision, recall and F1 of each label in a batch, their micro and macro averages, and intervals.

All of them are quotients of three counts of a label: predicted, true, and true positive. The number
predicted is known; the truth is drawn.

A logistic regression recalibrates the labels (`LabelCalibration`): the logit of a label's
probability is linear in the logit of the classifier's probability, plus a term if the label is
predicted, plus a term for the logit of the label's mean probability, plus an offset of this
label where it is predicted and another where it is not. The four shared coefficients are nearly
free; a ridge penalty draws offsets to 0, so that a rare label, of which little is known, goes by
the others.

Logits are rounded to a tenth. Then the number of rows with each logit, by label and predicted or
not, is sufficient: a table whose size does not depend on the batch. The rounding changes a
probability by at most 0.0125. Uncertain, and drawn, are the coefficients, by a bootstrap over the
labelled rows (one Newton step for each replicate, with prior means drawn as well), and the truth.
Labels of one row are not independent; the resulting variance of an average over labels is measured
on the residuals of the labelled rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack, vstack
from scipy.sparse.linalg import splu
from scipy.special import expit, logit, ndtri, stdtrit
from sklearn.linear_model import LogisticRegression

from labelsure._runtime.notebook import ColumnResult, count
from labelsure._runtime.typing import (
    Floats,
    Indices,
    Integers,
    LabelNames,
    Labelsets,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import DRAWN, Estimate
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.label_names import check_same_labels, show_names
from labelsure.metrics.clusters import design_effect, sum_by_cluster
from labelsure.metrics.registry import check_level


@dataclass(frozen=True)
class Measure:
    """A quotient of the counts of a label, or of all labels together.

    Its value is tp_weight * tp / (counts_predicted * n_predicted + counts_true * n_true).

    Parameters
    ----------
    tp_weight
        Factor of the true positives in the numerator.
    counts_predicted, counts_true
        Whether the number predicted, and the number true, are in the denominator.
    """

    tp_weight: float
    counts_predicted: bool
    counts_true: bool

    def denominator(self, n_predicted: Floats, n_true: Floats) -> Floats:
        """Denominator of the quotient."""
        denominator: Floats = self.counts_predicted * n_predicted + self.counts_true * n_true
        return denominator

    def values(self, tp: Floats, n_predicted: Floats, n_true: Floats, empty: float) -> Floats:
        """Quotient of each entry; `empty` for 0/0."""
        denominator = self.denominator(n_predicted, n_true) + np.zeros_like(tp, dtype=np.float64)
        is_defined = denominator > 0
        quotient = self.tp_weight * np.asarray(tp) / np.where(is_defined, denominator, 1.0)
        return np.where(is_defined, quotient, empty)


MEASURES: dict[str, Measure] = {
    "precision": Measure(1.0, counts_predicted=True, counts_true=False),
    "recall": Measure(1.0, counts_predicted=False, counts_true=True),
    "f1": Measure(2.0, counts_predicted=True, counts_true=True),
}
"""The measures of one label."""

LABEL_METRICS: tuple[str, ...] = tuple(
    f"{average}-{measure}" for average in ("micro", "macro") for measure in MEASURES
)
"""Measures of a batch: micro, of the counts of all labels together; macro, the mean over labels."""


def check_label_metric(metric: object) -> tuple[str, Measure]:
    """Kind of average, micro or macro, and measure by the name of a label metric."""
    if metric not in LABEL_METRICS:
        raise unknown_name("label metric", str(metric), LABEL_METRICS)
    average, _, measure = metric.partition("-")
    return average, MEASURES[measure]


@dataclass(frozen=True, eq=False, repr=False)
class LabelEstimates(ColumnResult):
    """Precision, recall and F1 of each label in a batch, with intervals.

    Parameters
    ----------
    label
        Names of the labels.
    n_predicted
        (L,) how often each label is predicted.
    n_true, n_true_low, n_true_high
        (L,) how often each label is true: estimate and interval.
    precision, precision_low, precision_high, recall, recall_low, recall_high, f1, f1_low, f1_high
        (L,) estimates and intervals.
    """

    label: tuple[str, ...]
    n_predicted: Integers
    n_true: Floats
    n_true_low: Floats
    n_true_high: Floats
    precision: Floats
    precision_low: Floats
    precision_high: Floats
    recall: Floats
    recall_low: Floats
    recall_high: Floats
    f1: Floats
    f1_low: Floats
    f1_high: Floats

    _index = "label"

    def __str__(self) -> str:
        mean = float(np.mean(self.f1))
        return f"Estimated F1 of {count(len(self.label), 'label')}, {mean:.3f} on average."


@dataclass(frozen=True)
class LabelCounts:
    """True positives, true and predicted entries of each label.

    Parameters
    ----------
    tp, n_true
        (..., L) true positives and true entries; a leading axis may be one of draws.
    n_predicted
        (L,) predicted entries.

    Examples
    --------
    >>> counts = LabelCounts(np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    >>> counts.of_labels(MEASURES["recall"], empty=1.0)
    array([0.5, 0. ])
    >>> counts.of_batch("micro-recall", empty=1.0)
    array(0.333...)
    """

    tp: Floats
    n_true: Floats
    n_predicted: Floats

    def of_labels(self, measure: Measure, empty: float) -> Floats:
        """Measure of each label, (..., L)."""
        return measure.values(self.tp, self.n_predicted, self.n_true, empty)

    def of_batch(self, metric: str, empty: float) -> Floats:
        """Micro or macro average of a measure, (...)."""
        average, measure = check_label_metric(metric)
        if average == "macro":
            return self.of_labels(measure, empty).mean(axis=-1)
        tp, n_true = self.tp.sum(axis=-1), self.n_true.sum(axis=-1)
        return measure.values(tp, self.n_predicted.sum(), n_true, empty)


STEP = 0.1  # of rounded logits
N_STEPS = 90  # on either side of 0; logits are clipped to 9, a probability of 0.0001
LOGITS: Floats = np.arange(-N_STEPS, N_STEPS + 1, dtype=np.float64) * STEP

SHARED, OFFSET = 10.0, 1.0
"""Prior standard deviations of shared coefficients and of offsets."""

PSEUDO_ENTRIES = 0.1
"""Pseudo-counts of true and of false entries, spread over all entries of the labelled rows: rows
without a single error do not prove that there are none."""

N_SHARED = 4
WIDE = 0.975  # probability of the quantiles by which Student's is compared with the normal
N_REPLICATES = 200
N_TRUTHS = 2  # drawn for each replicate


@dataclass(frozen=True)
class Cells:
    """Entries of a batch grouped by label, predicted or not, and rounded logit.

    Parameters
    ----------
    logits
        (m,) rounded logit of each cell.
    groups
        (m,) index of its offset, ascending: its label, plus L where the label is predicted.
    counts
        (m,) number of its entries, at least one.
    cell_of
        (n, L) cell of each entry.
    """

    logits: Floats
    groups: Indices
    counts: Floats
    cell_of: Indices

    @classmethod
    def of_batch(cls, marginals: Floats, Y_pred: Labelsets) -> Cells:
        """Cells of the entries of a batch."""
        at = _entry_indices(marginals, Y_pred)
        counts = np.bincount(at.ravel(), minlength=2 * marginals.shape[1] * len(LOGITS))
        return cls.of_counts(counts, at)

    @classmethod
    def of_counts(cls, counts: Integers, at: Indices) -> Cells:
        """Cells of a full table of counts, (2 L * logits,), of which `at` is the entries' index."""
        used = np.flatnonzero(counts)
        numbers = np.empty(len(counts), dtype=np.intp)
        numbers[used] = np.arange(len(used))
        logits = LOGITS[used % len(LOGITS)]
        return cls(logits, used // len(LOGITS), counts[used].astype(np.float64), numbers[at])

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return int(self.cell_of.shape[1])

    def sum_by_group(self, values: Floats | Integers) -> Floats:
        """Sum of (m,) values over the cells of each group, (2 L,)."""
        return np.bincount(self.groups, values, 2 * self.n_labels).astype(np.float64, copy=False)

    def make_design(self, frequencies: Floats) -> csr_array:
        """Sparse design matrix, (m, 4 + 2 L), with columns scaled by prior standard deviations."""
        n_cells = len(self.logits)
        of_label = frequencies[self.groups % self.n_labels]
        predicted = self.groups >= self.n_labels
        shared = np.column_stack([np.ones(n_cells), self.logits, predicted, of_label])
        entries = np.ones(n_cells), self.groups, np.arange(n_cells + 1)
        ones = csr_array(entries, shape=(n_cells, 2 * self.n_labels))
        return hstack([csr_array(SHARED * shared), OFFSET * ones], format="csr")


@dataclass(frozen=True)
class EntryCounts:
    """Number of entries by label, predicted or not, and rounded logit; parts of a batch add up.

    Parameters
    ----------
    counts
        (2 L * logits,) entries by label, predicted or not, and logit.
    n_rows
        Number of rows.
    label_names
        One for each label, or None.
    """

    counts: Integers
    n_rows: int
    label_names: LabelNames

    @classmethod
    def of_table(cls, table: ScoreTable) -> EntryCounts:
        """Count the entries of a table that knows its labels."""
        at = _entry_indices(table.marginals, np.asarray(table.decisions))
        size = 2 * table.marginals.shape[1] * len(LOGITS)
        return cls(np.bincount(at.ravel(), minlength=size), len(table), table.label_names)

    def __len__(self) -> int:
        return self.n_rows

    def __add__(self, other: EntryCounts) -> EntryCounts:
        n_rows = self.n_rows + other.n_rows
        return EntryCounts(self.counts + other.counts, n_rows, self.label_names)

    def __sub__(self, other: EntryCounts) -> EntryCounts:
        n_rows = self.n_rows - other.n_rows
        return EntryCounts(self.counts - other.counts, n_rows, self.label_names)

    @property
    def cells(self) -> Cells:
        """Cells, without `cell_of` of single entries."""
        n_labels = len(self.counts) // (2 * len(LOGITS))
        return Cells.of_counts(self.counts, np.empty((0, n_labels), dtype=np.intp))


@dataclass(frozen=True)
class LabelCalibration:
    """Recalibration of the labels: a logistic regression with bootstrap replicates.

    Parameters
    ----------
    label_names
        One for each label, or None.
    frequencies
        (L,) logits of the mean probability that the classifier gave each label.
    coefficients
        (replicates, 4 + 2 L) intercept, slope, predicted, frequency, then the offsets of each label
        where it is not predicted and where it is, all divided by their standard deviations.
    dispersions
        By name of the average: its variance relative to that of independent labels, at least 1.
    design_effects
        (L,) variance of a label's counts relative to that of independent rows.
    """

    label_names: LabelNames
    frequencies: Floats
    coefficients: Floats
    dispersions: dict[str, float]
    design_effects: Floats

    @classmethod
    def fit(
        cls, table: ScoreTable, random_state: int | None, clusters: Indices | None = None
    ) -> LabelCalibration:
        """Calibration of a table with truth; the seed is that of the bootstrap over clusters."""
        generator = make_generator(random_state)
        marginals, Y_true = table.marginals, np.asarray(table.truth)
        n_labels = Y_true.shape[1]
        cells = Cells.of_batch(marginals, np.asarray(table.decisions))
        frequencies = LOGITS[_logit_indices(marginals.mean(axis=0))]
        design = cells.make_design(frequencies)
        n_true = np.bincount(cells.cell_of[Y_true == 1], minlength=len(cells.counts))
        model = LogisticRegression(fit_intercept=False, tol=1e-6, max_iter=1000)
        is_true = np.repeat([1, 0], len(n_true))
        weights = np.concatenate([n_true, cells.counts - n_true])
        weights = weights + PSEUDO_ENTRIES * np.tile(cells.counts, 2) / cells.counts.sum()
        model.fit(vstack([design] * 2), is_true, weights)
        probabilities = expit(design @ model.coef_[0])
        variances = cells.counts * probabilities * (1 - probabilities)
        # Bootstrap counts minus 1 are the weights of the scores in the gradient of a replicate.
        residuals = Y_true - probabilities[cells.cell_of]
        starts = np.arange(0, residuals.size + 1, n_labels)
        scores = csr_array((residuals.ravel(), cells.cell_of.ravel(), starts)) @ design
        clusters = np.arange(len(Y_true)) if clusters is None else clusters
        scores = sum_by_cluster(scores, clusters)
        design_effects = np.array([design_effect(column, clusters) for column in residuals.T])
        n_drawn = scores.shape[0]
        resampled = generator.multinomial(n_drawn, np.full(n_drawn, 1 / n_drawn), N_REPLICATES)
        gradients = (
            generator.normal(size=(scores.shape[1], N_REPLICATES)) + scores.T @ (resampled - 1).T
        )
        hessian = design.T @ diags_array(variances) @ design + eye_array(len(gradients))
        steps = splu(hessian.tocsc()).solve(gradients).T
        # Few rows or clusters: widened by the ratio of Student's to normal quantiles.
        steps *= stdtrit(max(n_drawn - 1, 1), WIDE) / ndtri(WIDE)
        derivatives = _average_derivatives(cells, probabilities)
        squares = ((scores[:, N_SHARED:] / OFFSET @ derivatives.T) ** 2).sum(axis=0)
        independent = derivatives**2 @ cells.sum_by_group(variances)
        # At least 1: residuals of the fit are a little too small.
        ratios = np.maximum(
            np.divide(squares, independent, out=np.ones(len(independent)), where=independent > 0), 1
        )
        dispersions = dict(zip(LABEL_METRICS, map(float, ratios), strict=True))
        return cls(table.label_names, frequencies, model.coef_ + steps, dispersions, design_effects)


@dataclass(frozen=True)
class LabelBatch:
    """A batch whose label counts are estimated.

    Parameters
    ----------
    calibration
        Model of the labels.
    table
        Rows whose truth is drawn, or counts of their entries.
    labelled
        Rows whose truth is known, if any.
    """

    calibration: LabelCalibration
    table: ScoreTable | EntryCounts
    labelled: ScoreTable | None = None

    def __len__(self) -> int:
        return len(self.table) + (0 if self.labelled is None else len(self.labelled))

    def draw(self, random_state: int | None) -> tuple[LabelCounts, LabelCounts]:
        """Drawn label counts, (draws, L), and their expectations given the drawn coefficients."""
        generator, table = make_generator(random_state), self.table
        entries = table if isinstance(table, EntryCounts) else EntryCounts.of_table(table)
        cells = entries.cells
        design = cells.make_design(self.calibration.frequencies)
        counts = cells.counts.astype(np.int64)
        by_replicate = np.empty((2, N_REPLICATES, N_TRUTHS, 2 * cells.n_labels))
        for k, coefficients in enumerate(self.calibration.coefficients):
            probabilities = expit(design @ coefficients)
            for truth in by_replicate[0, k]:
                truth[:] = cells.sum_by_group(generator.binomial(counts, probabilities))
            by_replicate[1, k] = cells.sum_by_group(counts * probabilities)
        drawn, expected = by_replicate.reshape(2, -1, 2 * cells.n_labels)
        n_predicted = cells.sum_by_group(cells.counts)[cells.n_labels :]
        if self.labelled is not None:
            truth, decisions = map(np.asarray, (self.labelled.truth, self.labelled.decisions))
            observed = [(truth * (decisions == value)).sum(axis=0) for value in (0, 1)]
            drawn, expected = (sums + np.concatenate(observed) for sums in (drawn, expected))
            n_predicted = n_predicted + decisions.sum(axis=0)
        return _split_counts(drawn, n_predicted), _split_counts(expected, n_predicted)

    def estimate_average(
        self, metric: str, empty: float, level: float, random_state: int | None
    ) -> Estimate:
        """Micro or macro average of the batch, with an interval."""
        check_level(level)
        drawn, expected = self.draw(random_state)
        values = drawn.of_batch(metric, empty)
        factor = self.calibration.dispersions[metric] ** 0.5
        widened = widen(values, expected.of_batch(metric, empty), factor)
        mean, low, high = map(float, _summarise(values, widened, level))
        estimate = Estimate(mean, low, high, len(self), level, float("nan"), metric)
        if self.labelled is None:
            return estimate
        n_labelled = len(self.labelled)
        return replace(estimate, n_labelled=n_labelled, basis=DRAWN.format(n_labelled))

    def estimate_labels(
        self, empty: float, level: float, random_state: int | None
    ) -> LabelEstimates:
        """Counts and measures of each label, with intervals."""
        check_level(level)
        drawn, expected = self.draw(random_state)
        n_predicted, factor = drawn.n_predicted, self.calibration.design_effects**0.5
        draws = {"n_true": widen(drawn.n_true, expected.n_true, factor, most=len(self))}
        for name, measure in MEASURES.items():
            values, means = (counts.of_labels(measure, empty) for counts in (drawn, expected))
            draws[name] = widen(values, means, factor)
        columns: dict[str, Floats] = {}
        for name, values in draws.items():
            mean, low, high = _summarise(values, values, level)
            columns |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        names = tuple(show_names(self.table.label_names, len(n_predicted)))
        return LabelEstimates(names, n_predicted.astype(np.int64), **columns)


def _summarise(drawn: Floats, widened: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Mean of draws, (draws, ...), and lower and upper quantiles of widened draws.

    The interval is extended to the mean where a few large draws raise it above the quantile.
    """
    mean = drawn.mean(axis=0)
    low, high = np.quantile(widened, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def widen(drawn: Floats, expected: Floats, factor: float | Floats, most: float = 1.0) -> Floats:
    """Draws, (draws, ...), with deviations from their expectations multiplied by a factor."""
    deviations = drawn - expected
    return np.clip(drawn + (factor - 1) * (deviations - deviations.mean(axis=0)), 0.0, most)


def _entry_indices(marginals: Floats, Y_pred: Labelsets) -> Indices:
    """Index of each entry, (n, L), in the full table of counts, (2 L * logits,)."""
    n_labels = marginals.shape[1]
    groups = np.arange(n_labels) + n_labels * Y_pred.astype(np.intp)
    return groups * len(LOGITS) + _logit_indices(marginals)


def _logit_indices(probabilities: Floats) -> Indices:
    """Index in `LOGITS` of the nearest logit."""
    rounded = np.rint(logit(probabilities) / STEP)  # infinite for 0 and 1
    return np.clip(rounded, -N_STEPS, N_STEPS).astype(np.intp) + N_STEPS


def _split_counts(by_group: Floats, n_predicted: Floats) -> LabelCounts:
    """Label counts from true entries, (..., 2 L): false negatives first, then true positives."""
    n_labels = len(n_predicted)
    tp = by_group[..., n_labels:]
    return LabelCounts(tp, by_group[..., :n_labels] + tp, n_predicted)


def _average_derivatives(cells: Cells, probabilities: Floats) -> Floats:
    """Gradient of each average by the number of true entries, (averages, 2 L).

    The first L columns are for entries that are not predicted, the others for predicted ones.
    """
    n_predicted = cells.sum_by_group(cells.counts)[cells.n_labels :]
    expected = _split_counts(cells.sum_by_group(cells.counts * probabilities), n_predicted)
    is_predicted = np.array([[0.0], [1.0]])
    derivatives = []
    for metric in LABEL_METRICS:
        average, measure = check_label_metric(metric)
        tp, n_true, n_predicted = expected.tp, expected.n_true, expected.n_predicted
        if average == "micro":
            tp, n_true, n_predicted = (x.sum(keepdims=True) for x in (tp, n_true, n_predicted))
        denominator = measure.denominator(n_predicted, n_true)
        value = measure.values(tp, n_predicted, n_true, empty=0.0)
        numerators = measure.tp_weight * is_predicted - measure.counts_true * value
        slopes = np.divide(
            numerators, len(tp) * denominator, out=np.zeros_like(numerators), where=denominator > 0
        )
        derivatives.append(np.broadcast_to(slopes, (2, cells.n_labels)).ravel())
    return np.stack(derivatives)


def check_labels_are_known(dist: object, calibration: LabelCalibration | None) -> LabelCalibration:
    """Calibration of the labels of a distribution. Raises InputError where there is none."""
    if not isinstance(dist, LabelsetDistribution):
        raise InputError(
            "`dist` must be a LabelsetDistribution to estimate single labels, got "
            f"{type(dist).__name__}. Pass the distribution."
        )
    if dist.sparse_rows:
        raise InputError(
            f"`dist` must not be sparse to estimate single labels, got {dist.n_labels} labels. "
            "Select some of them, or fit and estimate with `IndependentLabels(dist.marginals())` "
            "if they are few."
        )
    if calibration is None:
        raise InputError(
            "The estimator must be fitted to a LabelsetDistribution to estimate single labels, "
            "not to a score table. Call `fit(dist, Y_true)`."
        )
    if len(dist) == 0:
        raise InputError("A batch must hold at least one row, got none.")
    own_names, n_own = calibration.label_names, len(calibration.frequencies)
    check_same_labels(dist.label_names, dist.n_labels, own_names, n_own, "the fitted estimator")
    return calibration

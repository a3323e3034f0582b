"""`LabelsetRegion`: conformal prediction sets of labels and of labelsets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.notebook import SentenceMixin
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets, LabelsetsLike, Mask
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._constrained import constrain
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.distributions._sparse_labels import with_dense_rows
from labelsure.errors import InputError
from labelsure.labelsets.label_names import check_same_labels
from labelsure.labelsets.names import ParsedLabelsets
from labelsure.labelsets.reading import OPEN
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.clusters import first_rows, read_clusters
from labelsure.metrics.mean_tests import ROUNDING
from labelsure.metrics.partial import PartialLabelsets
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95  # of the interval of the coverage that the message states


def rank_for_coverage(n_samples: int, coverage: float) -> int:
    """Rank of the conformal quantile, from 1: the smallest k with k / (n + 1) >= `coverage`.

    The rank of a new score among n + 1 is uniform, so that it is at most the k-th smallest of the n
    others with probability k / (n + 1). A rank above n means that no score is large enough.

    Examples
    --------
    >>> rank_for_coverage(99, 0.9), rank_for_coverage(5, 0.9)
    (90, 6)
    """
    return math.ceil((n_samples + 1) * coverage - ROUNDING)


def threshold_for_coverage(values: Floats, coverage: float) -> float:
    """Lower conformal quantile: new values are at least this with probability `coverage`.

    It is -inf if there are too few values.

    Examples
    --------
    >>> threshold_for_coverage(np.arange(99.0), 0.9)
    9.0
    """
    rank = rank_for_coverage(len(values), coverage)  # from the largest
    return float(np.sort(values)[len(values) - rank]) if rank <= len(values) else -math.inf


def coverage_interval(n_samples: int, coverage: float, level: float) -> tuple[float, float]:
    """Interval of the coverage conditional on the calibration set.

    Over calibration sets, the coverage of new rows has a Beta distribution, whatever the model.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_interval(999, 0.9, 0.95)]
    [0.881, 0.918]
    """
    rank = rank_for_coverage(n_samples, coverage)
    if rank > n_samples:
        return 1.0, 1.0
    tail = (1 - level) / 2
    low, high = betaincinv(rank, n_samples + 1 - rank, [tail, 1 - tail])
    return float(low), float(high)


def threshold_for_recall(values: Floats, recall: float) -> float:
    """Highest threshold whose mean recall is at least `recall` (conformal risk control).

    A true label is missed where its value is below the threshold. The share of a row's true labels
    that is missed is a loss in [0, 1], monotone in the threshold. Its mean over new rows is at most
    1 - recall if n / (n + 1) times its mean over n labelled rows plus 1 / (n + 1) is (Angelopoulos
    and others).

    Examples
    --------
    >>> threshold_for_recall(np.array([[0.2, 0.6], [0.9, np.nan]] + [[np.nan] * 2] * 7), 0.85)
    0.6
    """
    max_missed = (len(values) + 1) * (1 - recall) - 1 + ROUNDING
    if max_missed < 0:
        return -math.inf
    is_true = ~np.isnan(values)
    weights = np.broadcast_to(1 / np.maximum(is_true.sum(axis=1, keepdims=True), 1), values.shape)
    true_values = values[is_true]
    order = np.argsort(true_values, kind="stable")
    true_values, missed = true_values[order], np.cumsum(weights[is_true][order])
    is_last = np.append(true_values[1:] != true_values[:-1], True)  # ties are missed together
    is_last = is_last[: len(true_values)]
    exceeds = is_last & (missed > max_missed)
    return float(true_values[np.argmax(exceeds)]) if exceeds.any() else math.inf


SLACK = 16 * _limits.TIE
"""Tolerance of thresholds: probabilities are computed in different ways. A labelset within it is in
the region, which only raises the coverage."""

FEW = 64  # labelsets: larger regions leave all labels open
MAX_COUNTED = 1000  # labelsets of a row that are listed to count them
LARGEST_EXPONENT = 1023  # of a power of 2 without overflow
LEAST_LOG = -700.0  # log of a probability without underflow
FIRST_LISTED = 16  # each further round lists four times as many


@dataclass(frozen=True, eq=False, repr=False)
class ListedLabelsets:
    """The labelsets of regions, each row's most probable ones first.

    Parameters
    ----------
    labelsets
        Ragged rows with their probabilities as weights.
    is_complete
        (n,) whether these are all labelsets of the region; otherwise there are at least as many.
    """

    labelsets: WeightedLabelsets
    is_complete: Mask

    def __len__(self) -> int:
        return len(self.labelsets)

    def __repr__(self) -> str:
        n_listed = len(self.labelsets.weights)
        return f"{type(self).__name__}(n_samples={len(self)}, n_labelsets={n_listed})"

    def of(self, row: int) -> tuple[Labelsets, Floats]:
        """Labelsets of one row, (k, L), and their probabilities, (k,)."""
        starts = self.labelsets.starts
        block = slice(starts[row], starts[row + 1])
        return self.labelsets.rows[block], self.labelsets.weights[block]


@dataclass(frozen=True, eq=False, repr=False)
class RegionLabelsets(PartialLabelsets):
    """Certain and possible labels of each row, and the labelsets of its region.

    What `LabelsetRegion.predict` returns: everything of `labelsure.PartialLabelsets`, and how many
    labelsets there are. With score="labels" these are all combinations of the open labels. With
    score="probability" they can be listed; a label is then certain if it is in all of them, and all
    labels are open where there are more than 64, or none.

    Parameters
    ----------
    values, label_names, index, gap
        As for `PartialLabelsets`.
    log_thresholds
        (n,) with score="probability": the region holds the labelsets with at least this
        log-probability; -inf for all of them.
    source
        The distributions, of which labelsets are listed or counted when they are asked for.

    Examples
    --------
    >>> import labelsure as ls
    >>> dist = ls.IndependentLabels([[0.9, 0.4, 0.1]], ["cat", "dog", "owl"])
    >>> truth = [[1, 0, 0]] * 5 + [[1, 1, 0]] * 4
    >>> region = ls.LabelsetRegion(coverage=0.9).fit(dist[[0] * 9], truth)
    >>> answer = region.predict(dist)
    >>> answer.certain, answer.possible, answer.n_labelsets
    ([('cat',)], [('cat', 'dog')], array([2.]))
    """

    log_thresholds: Floats | None = None
    source: LabelsetDistribution | None = None

    def list_labelsets(self, max_labelsets: int = 1000) -> ListedLabelsets:
        """Labelsets of each region, the most probable ones first.

        Parameters
        ----------
        max_labelsets
            Of a row at most. A region can hold billions: then these are its most probable
            ones, and `is_complete` says so.
        """
        limit = read_whole_number(max_labelsets, "max_labelsets")
        if self.source is None or self.log_thresholds is None:
            raise InputError(
                "Labelsets can be listed for regions by probability only, got a region of single "
                "labels. Use LabelsetRegion(coverage, score='probability')."
            )
        return _list_down_to(self.source, self.log_thresholds, limit)

    @cached_property
    def _counts(self) -> tuple[Floats, Mask]:
        """Number of labelsets of each region, (n,), and whether it is exact, (n,)."""
        if self.source is None or self.log_thresholds is None:
            exponents = np.minimum(self.n_open, LARGEST_EXPONENT)
            return np.exp2(exponents), exponents == self.n_open
        if self.n_labels > _limits.CHEAP_DENSE_LABELS:
            listed = self.list_labelsets(MAX_COUNTED)
            return listed.labelsets.lengths.astype(np.float64), listed.is_complete
        numbers = np.empty(len(self))
        for rows in _limits.cut_rows(len(self), 8 * 2**self.n_labels, _limits.DECISION_BYTES):
            with np.errstate(divide="ignore"):
                logs = np.log(self.source[rows].probabilities())
            numbers[rows] = (logs >= self.log_thresholds[rows, np.newaxis]).sum(axis=1)
        return numbers, np.ones(len(self), dtype=bool)

    @property
    def n_labelsets(self) -> Floats:
        """How many labelsets are in each region, (n,); at least, where `is_counted` is False."""
        return self._counts[0]

    @property
    def is_counted(self) -> Mask:
        """Whether all labelsets of the region were counted, (n,): beyond 1,000 they may not be."""
        return self._counts[1]

    def contains(self, Y: LabelsetsLike) -> Mask:
        """Whether a labelset is in the region of its row, (n,): the mean is the coverage.

        Parameters
        ----------
        Y
            One labelset for each row, as for `align`.
        """
        if self.source is None or self.log_thresholds is None:
            return self.agrees(Y)
        return np.asarray(self.source.log_prob(self.align(Y)) >= self.log_thresholds)

    def to_frame(self, *, sep: str | None = None, count: bool = True) -> pd.DataFrame:
        """Table of the names of certain, possible and open labels, one row each.

        Parameters
        ----------
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.
        count
            Whether to count the labelsets: `n_labelsets`, at least so many where `is_counted` is
            False.
        """
        table = super().to_frame(sep=sep)
        if count:
            table["n_labelsets"], table["is_counted"] = self._counts
        return table


def _list_down_to(
    source: LabelsetDistribution, log_thresholds: Floats, limit: int
) -> ListedLabelsets:
    """Labelsets at or above the thresholds, at most `limit` of each row.

    Each round lists four times as many of the rows that are not complete.
    """
    n_samples, n_all = len(source), 2**source.n_labels
    max_listed = min(limit + 1, n_all)  # one more shows whether the list is complete
    rows: list[Labelsets] = [np.empty((0, source.n_labels), dtype=np.int8)]
    weights: list[Floats] = [np.empty(0)]
    instance: list[Indices] = [np.empty(0, dtype=np.intp)]
    is_complete = np.zeros(n_samples, dtype=bool)
    active, k = np.flatnonzero(log_thresholds < np.inf), min(FIRST_LISTED, max_listed)
    is_complete[log_thresholds == np.inf] = True
    while active.size:
        best = source[active].top(k)
        inside = best.logs >= log_thresholds[active, np.newaxis]
        # Complete: all labelsets that are not listed are below the threshold.
        complete = best.log_high[:, -1] < log_thresholds[active]
        complete &= log_thresholds[active] > LEAST_LOG
        complete |= (k == n_all) & (n_all <= limit)
        is_complete[active] = complete
        done = complete | (k >= max_listed)
        inside[:, limit:] = False
        for i in np.flatnonzero(done):
            rows.append(best.labelsets[i][inside[i]])
            weights.append(best.probabilities[i][inside[i]])
            instance.append(np.full(int(inside[i].sum()), active[i]))
        active, k = active[~done], min(4 * k, max_listed)
    listed = WeightedLabelsets.merge(
        np.concatenate(rows), np.concatenate(weights), np.concatenate(instance), n_samples
    )
    return ListedLabelsets(listed, is_complete)


def _close_labels(source: LabelsetDistribution, log_thresholds: Floats) -> Labelsets:
    """Labels that all (1) or none (0) of the labelsets of a region have, others open, (n, L)."""
    values = np.full((len(source), source.n_labels), OPEN, dtype=np.int8)
    listed = _list_down_to(source, log_thresholds, FEW)
    for i in np.flatnonzero(listed.is_complete & (listed.labelsets.lengths > 0)):
        rows, _ = listed.of(int(i))
        values[i] = np.where(rows.min(axis=0) == rows.max(axis=0), rows[0], OPEN)
    return values


@dataclass(frozen=True)
class RegionRows:
    """Checked calibration rows of a region.

    Parameters
    ----------
    source
        Distributions of the rows.
    scores
        (n,) or (n, L) conformity scores: at least the threshold where the truth is in the region.
    clusters
        (n,) numbers of clusters.
    label_names
        Names of labels, None without names.
    """

    source: LabelsetDistribution
    scores: Floats
    clusters: Indices
    label_names: LabelNames

    described_as = "the distribution"

    @property
    def index(self) -> pd.Index | None:
        """Names of the rows."""
        return self.source.index

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Indices) -> RegionRows:
        taken = self.source[rows], self.scores[rows], self.clusters[rows]
        return RegionRows(*taken, self.label_names)


SCORES = ("labels", "probability")
N_SIZED = 200  # calibration rows whose regions are measured for the message
INDEPENDENT_SHARE = 0.03
"""Weight of independent labels in mixtures with votes, under which labelsets without a vote are
impossible. The coverage holds for any weight; sizes of regions hardly depend on it."""


def mix_votes(votes: LabelsetTable, share: float) -> SmoothedTable:
    """Mixture of (1 - share) times the votes and `share` times independent labels.

    The independent labels have marginals (1 - share) * marginals of the votes + share / 2, so that
    labels without a vote are possible. Rules of the votes restrict them.
    """
    marginals = (1 - share) * votes.marginals() + share / 2
    independent: LabelsetDistribution = IndependentLabels(marginals, votes.label_names)
    if votes.rules is not None:
        independent = constrain(independent, votes.rules)
    return SmoothedTable(votes, independent, share)


class LabelsetRegion(SentenceMixin, Savable, BaseEstimator):  # type: ignore[misc]
    """Conformal prediction sets: labels that are certain and possible, with a stated coverage.

    With a `coverage`, labels are closed (certain or excluded) where they can be, so that with at
    least that probability all closed labels of a new row are right, whatever the model: a poor
    one leaves more labels open. With a `recall`, the possible labels hold on average at least that
    share of the true ones.

    The calibration set must be new to the model, kept for this alone, and of the same population as
    new rows. The guarantee is marginal: it holds on average over new rows and calibration sets, not
    for every kind of row.

    Parameters
    ----------
    coverage
        The probability with which a region holds the true labelset.
    recall
        Instead of a coverage: the mean share of true labels among the possible ones.
    score
        With a coverage: "labels" closes a label whose other value is improbable, which leaves the
        fewest labels open; "probability" holds all labelsets above one probability, which are the
        fewest labelsets, and lists them.

    Attributes
    ----------
    threshold_
        The least probability of a value of a label that is not excluded, or with "probability" the
        least log-probability of a labelset.
    n_samples_
        Size of the calibration set.
    message_
        Guarantee and mean size of regions, in a sentence.

    See Also
    --------
    AcceptPolicy : Accept whole predictions with an accuracy guarantee.
    ByGroup : A region for each group, such as a language.
    decide : Abstain on single labels by cost, without a guarantee.
    PartialLabelsets : Certain, possible and open labels.

    Notes
    -----
    Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world; Angelopoulos, Bates,
    Fisch, Lei and Schuster (2024), Conformal risk control, arXiv:2208.02814.

    Examples
    --------
    >>> import labelsure as ls
    >>> data, _ = ls.make_labelsets(900, 4, noise=0.1, random_state=0)
    >>> model = ls.BinaryRelevance(random_state=0).fit(data.X[:300], data.Y[:300])
    >>> dist = model.predict_distribution(data.X[300:])
    >>> region = LabelsetRegion(coverage=0.9).fit(dist[:300], data.Y[300:600])
    >>> answer = region.predict(dist[300:])
    >>> answer.certain[3], answer.open[3]
    (('y0', 'y2'), ('y1', 'y3'))
    >>> print(f"{answer.contains(data.Y[600:]).mean():.2f}")
    0.90
    """

    def __init__(
        self,
        coverage: float | None = None,
        recall: float | None = None,
        *,
        score: str = "labels",
    ) -> None:
        self.coverage = coverage
        self.recall = recall
        self.score = score

    def fit(
        self,
        dist: LabelsetDistribution,
        Y_true: LabelsetsLike,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Find the thresholds on a calibration set.

        Parameters
        ----------
        dist
            Distributions of rows that are new to the model that made them.
        Y_true
            (n, L) true labelsets.
        clusters
            (n,) the cluster of each, where rows depend on each other (ten photos of one event).
            One random row of each cluster is used, and the guarantee holds for a random row of a
            new cluster.
        """
        return self._fit_rows(self._read_rows(dist, Y_true, clusters))

    def _read_rows(
        self, dist: LabelsetDistribution, Y_true: LabelsetsLike, clusters: ArrayLike | None
    ) -> RegionRows:
        self.check_parameters()
        source = self._read_distribution(dist)
        truth = source._align_truth(Y_true)
        if len(truth) == 0:
            raise InputError("A region needs at least one labelled row, got none.")
        label_names = source.label_names
        if label_names is None and not isinstance(Y_true, np.ndarray):
            label_names = ParsedLabelsets.read(Y_true, "Y_true").label_names
        codes = np.arange(len(source))
        if clusters is not None:
            codes = read_clusters(clusters, source.index, len(source), "the distribution")
        return RegionRows(source, self._conformity_scores(source, truth), codes, label_names)

    def _fit_rows(self, rows: RegionRows) -> Self:
        """Fit to one random row of each cluster."""
        order = np.random.default_rng(0).permutation(len(rows))
        rows = rows[np.sort(order[first_rows(rows.clusters[order], 1)])]
        self.label_names_, self.n_labels_ = rows.label_names, rows.source.n_labels
        self.scores_, self.n_samples_ = rows.scores, len(rows)
        self.threshold_ = self._threshold(rows.scores)
        guarantee = self._describe_guarantee(self.threshold_, len(rows))
        self.message_ = f"{guarantee} {self._describe_size(rows.source)}"
        return self

    def predict(
        self, dist: LabelsetDistribution, *, coverage: float | None = None
    ) -> RegionLabelsets:
        """Certain and possible labels of each row.

        Parameters
        ----------
        dist
            Distributions made as those that it was fitted to.
        coverage
            Another coverage than that of the region, from the same calibration set.
        """
        check_is_fitted(self)
        source = self._read_batch(dist, coverage)
        return self._make_region(
            source, np.full(len(source), self._threshold(self.scores_, coverage))
        )

    def _read_batch(
        self, dist: LabelsetDistribution, coverage: float | None
    ) -> LabelsetDistribution:
        """Checked distributions of new rows. Raises InputError for other labels."""
        source = self._read_distribution(dist)
        check_same_labels(
            source.label_names,
            source.n_labels,
            self.label_names_,
            self.n_labels_,
            "the fitted region",
        )
        if coverage is not None:
            read_number(coverage, "coverage", 0, 1, ends="()")
            if self.coverage is None:
                raise InputError(
                    f"`coverage` must be None for a region with a recall, got {coverage!r}. Fit a "
                    "region with a coverage."
                )
        return source

    def _make_region(self, source: LabelsetDistribution, thresholds: Floats) -> RegionLabelsets:
        """Regions of a batch from a threshold for each row, (n,)."""
        named = source.label_names or self.label_names_, source.index
        if self.score == "probability":
            size = np.abs(np.where(np.isfinite(thresholds), thresholds, 0.0))
            logs = thresholds - SLACK * (1 + size)
            return RegionLabelsets(
                _close_labels(source, logs), *named, log_thresholds=logs, source=source
            )
        marginals, least = source.marginals(), thresholds[:, np.newaxis] - SLACK
        can_be_true = marginals >= least
        is_recall = self.recall is not None  # which makes no label certain
        can_be_false = (1 - marginals >= least) | is_recall
        values = np.where(can_be_false & can_be_true, OPEN, can_be_true)
        return RegionLabelsets(values.astype(np.int8), *named)

    def check_parameters(self) -> None:
        """Raise an `InputError` if the region cannot be fitted with these parameters."""
        if (self.coverage is None) == (self.recall is None):
            raise InputError(
                f"Either `coverage` or `recall` must be given, got coverage={self.coverage!r} and "
                f"recall={self.recall!r}."
            )
        for name in ("coverage", "recall"):
            if getattr(self, name) is not None:
                read_number(getattr(self, name), name, 0, 1, ends="()")
        scores = SCORES if self.recall is None else SCORES[:1]
        quantity = "coverage" if self.recall is None else "recall"
        read_choice(self.score, f"score for a {quantity}", scores)

    def _read_distribution(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        dist = with_dense_rows(check_distribution(dist))
        if dist._lists_labelsets and self.score == "probability":
            return mix_votes(cast(LabelsetTable, dist), INDEPENDENT_SHARE)._with_index(dist.index)
        return dist

    def _conformity_scores(self, source: LabelsetDistribution, truth: Labelsets) -> Floats:
        """Conformity scores of the truth, (n,); (n, L) for a recall, NaN for absent labels."""
        if self.score == "probability":
            return source.log_prob(truth)
        marginals = source.marginals()
        if self.recall is not None:
            return np.where(truth == 1, marginals, np.nan)
        return np.where(truth == 1, marginals, 1 - marginals).min(axis=1)

    def _threshold(self, scores: Floats, coverage: float | None = None) -> float:
        if self.recall is not None:
            return threshold_for_recall(scores, self.recall)
        threshold = threshold_for_coverage(scores, float(coverage or self.coverage or 0))
        return threshold if self.score == "probability" else min(threshold, 0.5)

    def _describe_size(self, source: LabelsetDistribution) -> str:
        """Mean size of regions on calibration rows, with advice where they are large."""
        regions = self.predict(source[:N_SIZED])
        if self.recall is not None:
            return f"On average {regions.is_possible.sum(axis=1).mean():.1f} labels are possible."
        n_open, n_labels = float(regions.n_open.mean()), self.n_labels_
        if self.score == "labels":
            sentence = f"On average {n_open:.1f} of {n_labels} labels are open."
            if 2 * n_open <= n_labels:
                return sentence
            return (
                f"{sentence} That is most of them, because all closed labels must be right at "
                "once: `recall=` asks for less, and so does a lower coverage."
            )
        mean = float(regions.n_labelsets.mean())
        at_least = "" if regions.is_counted.all() else "at least "
        sentence = f"On average regions hold {at_least}{mean:,.1f} labelsets."
        if mean <= FEW or not source._is_independent:
            return sentence
        return (
            f"{sentence} They are large because labels are independent given the input here: "
            'chains, or RecalibratedClassifier(method="dependence"), make them smaller.'
        )

    def _describe_guarantee(self, threshold: float, n_samples: int) -> str:
        kind = "recall" if self.coverage is None else "coverage"
        value = float(getattr(self, kind))
        rows = f"calibration set, n = {n_samples:,}"
        if threshold == -math.inf and rank_for_coverage(n_samples, value) > n_samples:
            needed = math.ceil(value / (1 - value) - ROUNDING)
            return (
                f"{n_samples} calibration rows are too few for a {kind} of {value:g}: all labels "
                f"are open. Label at least {needed}."
            )
        if self.recall is not None:
            return f"The possible labels hold {value:.1%} of the true ones on average ({rows})."
        event = "All closed labels of a row are right"
        if self.score == "probability":
            event = "Regions hold the true labelset"
        low, high = coverage_interval(n_samples, value, LEVEL)
        return (
            f"{event} with probability {value:g} or more ({rows}: between {low:.3f} and {high:.3f} "
            f"at {LEVEL:.0%} confidence)."
        )

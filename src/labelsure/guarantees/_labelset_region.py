"""`LabelsetRegion`: conformal prediction sets of labelsets, and of labels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.notebook import ShownBySentence
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask
from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.errors import InputError
from labelsure.guarantees._policy import (
    FAMILIES,
    check_groups,
    check_known_groups,
    fit_by_group,
)
from labelsure.labelsets.names import GivenLabelsets
from labelsure.labelsets.rows import OPEN, refuse_other_labels
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.mean_tests import MEAN_TESTS
from labelsure.metrics.partial import PartialLabelsets
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-9  # of a product such as 10 * 0.9, which is not quite a whole number


def rank_for_coverage(n_samples: int, coverage: float) -> int:
    """Return which of the sorted scores covers a new one with probability `coverage`.

    A new score is as likely to be of any rank among n + 1, so that it is at most the k-th smallest
    of the n others with probability k / (n + 1). Above n no score is large enough.

    Examples
    --------
    >>> rank_for_coverage(99, 0.9), rank_for_coverage(5, 0.9)
    (90, 6)
    """
    return math.ceil((n_samples + 1) * coverage - ROUNDING)


def quantile_for_coverage(scores: Floats, coverage: float) -> float:
    """Return what a new score is at most with probability `coverage`; infinite if none will do.

    Examples
    --------
    >>> quantile_for_coverage(np.arange(99.0), 0.9)
    89.0
    """
    rank = rank_for_coverage(len(scores), coverage)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def coverage_interval(n_samples: int, coverage: float, level: float) -> tuple[float, float]:
    """Return between which coverages the one that these instances lead to lies.

    Over new instances, the coverage is a random number: it depends on the labelled instances and
    has a Beta distribution, whatever the model.

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


def threshold_for_recall(values: Floats, weights: Floats, n_samples: int, recall: float) -> float:
    """Return the highest threshold at which few enough true labels are missed.

    A true label is missed where its value is below the threshold. The share of an instance's true
    labels that is missed is a loss between 0 and 1 that only rises with the threshold, so that its
    mean over new instances is at most 1 - recall if, over n labelled ones, n / (n + 1) times their
    mean plus 1 / (n + 1) is (conformal risk control, Angelopoulos and others).

    Parameters
    ----------
    values
        (m,) one for each true label of each labelled instance.
    weights
        (m,) 1 over the number of true labels of that instance.
    n_samples
        The number of labelled instances, those without true labels included: they miss none.
    recall
        The mean share of true labels to find.

    Examples
    --------
    >>> threshold_for_recall(np.array([0.2, 0.6, 0.9]), np.array([0.5, 0.5, 1.0]), 9, 0.85)
    0.6
    """
    most = (n_samples + 1) * (1 - recall) - 1 + ROUNDING
    if most < 0:
        return -math.inf
    order = np.argsort(values, kind="stable")
    missed = np.cumsum(weights[order])  # by thresholds above this value, ties not yet together
    last = np.append(values[order][1:] != values[order][:-1], True)[: len(values)]
    too_many = last & (missed > most)
    return float(values[order][np.argmax(too_many)]) if too_many.any() else math.inf


def threshold_for_precision(
    certainties: Floats, truth: Labelsets, precision: float, level: float
) -> float:
    """Return the lowest threshold whose labels are proved to be right often enough.

    For each threshold, the instances that have a label with at least that certainty are a sample of
    those that will have one, and the share of these labels that is true is their outcome.
    Thresholds are tested as `AcceptPolicy` does it.

    Parameters
    ----------
    certainties
        (n, L) numbers in [0, 1], instances in an order that has nothing to do with the outcomes.
    truth
        (n, L)
    precision
        The mean share of certain labels that shall be right.
    level
        The probability with which it is.

    Returns
    -------
    The threshold; infinite if none is proved
    """
    family, test = FAMILIES["sequences"], MEAN_TESTS["bounded"]
    grid = family.grid()
    single = family.single_level(grid, precision, 1 - level)

    def p_value(i: int) -> float:
        chosen = certainties >= grid[i]
        n_chosen = chosen.sum(axis=1)
        some = n_chosen > 0
        outcomes = (chosen & (truth == 1)).sum(axis=1)[some] / n_chosen[some]
        return test.p_value(outcomes, precision, single)

    passed = family.passed(p_value, grid, precision, 1 - level)
    return float(grid[np.argmax(passed)]) if passed.any() else math.inf


SLACK = 16 * _limits.TIE
"""Log-probabilities that differ by less are equal: they are computed in different ways. Where it
matters a labelset is in the region, which only raises the coverage."""


KEY_DIGITS = 9  # of the log-probability of no label, by which draws of an instance are seeded


class RegionScore(ABC):
    """A way to score the labelsets of an instance."""

    @abstractmethod
    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return the score of one labelset for each instance, (n,)."""

    @abstractmethod
    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the least log-probability of a labelset whose score is at most the quantile, (n,).

        -inf where all labelsets are in the region, inf where none is.
        """


class ProbabilityScore(RegionScore):
    """-log P(y): regions of all labelsets that are probable enough, small where one stands out."""

    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return -log P(y)."""
        return -source.log_prob(Y)

    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the negative of the quantiles."""
        return lower_by_rounding(-quantiles)


class MassScore(RegionScore):
    """The mass of all labelsets that are more probable: regions large where nothing stands out.

    Labelsets that are equally probable are in the region together: a random share of their mass
    would make it smaller, and would have to be drawn for each instance by itself, also where
    instances come one at a time. The masses are exact where all labelsets can be written out, and
    otherwise shares among draws, which are seeded by the distribution of the instance itself.

    Parameters
    ----------
    n_draws
        For each instance, where not all labelsets can be written out.
    """

    def __init__(self, n_draws: int = 500) -> None:
        self.n_draws = n_draws

    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return the mass above."""
        scores = np.empty(len(source))
        for rows, logs, weights in self._ranked(source, seed):
            own = source[rows].log_prob(Y[rows])[:, np.newaxis]
            scores[rows] = np.where(logs > own + _slack(own), weights, 0.0).sum(axis=1)
        return scores

    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the probability down to which the mass above stays in bounds."""
        thresholds = np.empty(len(source))
        for rows, logs, weights in self._ranked(source, seed):
            order = np.argsort(-logs, axis=1, kind="stable")
            logs = np.take_along_axis(logs, order, axis=1)
            weights = np.take_along_axis(np.broadcast_to(weights, logs.shape), order, axis=1)
            found = _last_within(logs, weights, quantiles[rows])
            if not _is_written_out(source.n_labels):  # what was not drawn may be less probable
                found[weights.sum(axis=1) <= quantiles[rows]] = -np.inf
            thresholds[rows] = found
        return thresholds

    def _ranked(
        self, source: LabelsetDistribution, seed: int | None
    ) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield some instances at a time, with log-probabilities and the weight of each."""
        if _is_written_out(source.n_labels):
            bytes_each = 8 * 2**source.n_labels
            for rows in _limits.cut_rows(len(source), bytes_each, _limits.DECISION_BYTES):
                P = source[rows].probabilities()
                with np.errstate(divide="ignore"):
                    yield rows, np.log(P), P
            return
        bytes_each = self.n_draws * source.n_labels
        for rows in _limits.cut_rows(len(source), bytes_each, _limits.DECISION_BYTES):
            some = source[rows]
            empty = np.zeros((len(some), source.n_labels), dtype=np.int8)
            keys = [crc32(np.round(own, KEY_DIGITS).tobytes()) for own in some.log_prob(empty)]
            generators = [np.random.default_rng([seed or 0, key]) for key in keys]
            draws = np.concatenate(
                [some[i].sample(self.n_draws, rng) for i, rng in enumerate(generators)]
            )
            logs = np.stack([some.log_prob(draws[:, i]) for i in range(self.n_draws)], axis=1)
            yield rows, logs, np.full(logs.shape, 1 / self.n_draws)


def _is_written_out(n_labels: int) -> bool:
    return n_labels <= _limits.CHEAP_DENSE_LABELS


def _last_within(logs: Floats, weights: Floats, quantiles: Floats) -> Floats:
    """Return the least log-probability above which the mass is at most the quantile.

    Parameters
    ----------
    logs, weights
        (n, k) of what labelsets are compared with, the most probable first.
    quantiles
        (n,) the most that a score may be, not below 0.
    """
    is_first = np.ones(logs.shape, dtype=bool)  # of those that are equally probable
    is_first[:, 1:] = logs[:, 1:] < logs[:, :-1] - _slack(logs[:, :-1])
    before = np.cumsum(weights, axis=1) - weights
    above = np.maximum.accumulate(np.where(is_first, before, 0.0), axis=1)
    last = (above <= quantiles[:, np.newaxis]).sum(axis=1) - 1
    return lower_by_rounding(np.take_along_axis(logs, last[:, np.newaxis], axis=1)[:, 0])


def lower_by_rounding(logs: Floats) -> Floats:
    """Return thresholds that also let in what is equal but for rounding."""
    return np.asarray(logs - _slack(logs))


def _slack(logs: Floats) -> Floats:
    """Return how far others may be off to be equal to these; nothing is near what is impossible."""
    return np.where(np.isfinite(logs), SLACK * (1 + np.abs(logs)), 0.0)


SCORES: dict[str, RegionScore] = {"probability": ProbabilityScore(), "mass": MassScore()}
"""The scores that have a name."""


COUNTED = 1000  # labelsets of an instance that are counted one by one where there is no other way
LEAST_LOG = -700.0  # of a probability that is a number above 0
FIRST_SEEN = 64  # labelsets among which a likely one is found
FIRST_LISTED = 16  # each further round lists four times as many


@dataclass(frozen=True, eq=False, repr=False)
class ListedLabelsets:
    """The labelsets of regions, each instance's most probable ones first.

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
        listed = len(self.labelsets.weights)
        return f"{type(self).__name__}(n_samples={len(self)}, n_labelsets={listed})"

    def of(self, row: int) -> tuple[Labelsets, Floats]:
        """Return the labelsets of one instance, (k, L), and their probabilities, (k,)."""
        starts = self.labelsets.starts
        some = slice(starts[row], starts[row + 1])
        return self.labelsets.rows[some], self.labelsets.weights[some]


@dataclass(frozen=True, eq=False, repr=False)
class RegionLabelsets(PartialLabelsets):
    """Certain and possible labels of each instance, and the region that they come from.

    What `LabelsetRegion.predict` returns. A label is certain if it is in all labelsets of the
    region and possible if it is in one of them. Of a region without labelsets no label is certain
    and all are possible. Everything of `labelsure.PartialLabelsets` is here, too.

    Parameters
    ----------
    values, label_names, index, gap
        As for `PartialLabelsets`.
    log_thresholds
        (n,) the region holds the labelsets with at least this log-probability: -inf for all of
        them, inf for none.
    is_empty
        (n,) whether no labelset is in the region.
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
    ([('cat',)], [('cat', 'dog')], array([2]))
    """

    log_thresholds: Floats = field(default_factory=lambda: np.empty(0))
    is_empty: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    source: LabelsetDistribution | None = None

    def list_labelsets(self, max_labelsets: int = 1000) -> ListedLabelsets:
        """Return the labelsets of each region, the most probable ones first.

        Parameters
        ----------
        max_labelsets
            Of an instance at most. A region can hold billions: then these are its most probable
            ones, and `is_complete` says so.
        """
        limit = read_whole_number(max_labelsets, "max_labelsets")
        if self.source is None:
            raise InputError(
                "The labelsets of a region must come from probabilities of labelsets, got a region "
                "of single labels (score='marginal'). Use score='probability'."
            )
        return _list_down_to(self.source, self.log_thresholds, limit)

    @cached_property
    def _counts(self) -> tuple[Integers, Mask]:
        n_labels = self.n_labels
        if self.source is not None and n_labels <= _limits.CHEAP_DENSE_LABELS:
            numbers = np.zeros(len(self), dtype=np.int64)
            for rows in _limits.cut_rows(len(self), 8 * 2**n_labels, _limits.DECISION_BYTES):
                with np.errstate(divide="ignore"):
                    logs = np.log(self.source[rows].probabilities())
                numbers[rows] = (logs >= self.log_thresholds[rows, np.newaxis]).sum(axis=1)
            return numbers, np.ones(len(self), dtype=bool)
        listed = self.list_labelsets(COUNTED)
        return listed.labelsets.lengths.astype(np.int64), listed.is_complete

    @property
    def n_labelsets(self) -> Integers:
        """How many labelsets are in each region, (n,); at least, where `is_counted` is False."""
        return self._counts[0]

    @property
    def is_counted(self) -> Mask:
        """Whether all labelsets of the region were counted, (n,): beyond 1,000 they may not be."""
        return self._counts[1]

    def contains(self, Y: Any) -> Mask:
        """Say whether a labelset is in the region of its instance, (n,): the mean is the coverage.

        Parameters
        ----------
        Y
            One labelset for each instance, as for `align`.
        """
        if self.source is None:
            return self.agrees(Y)
        return np.asarray(self.source.log_prob(self.align(Y)) >= self.log_thresholds)

    def to_frame(self, *, sep: str | None = None, count: bool = True) -> pd.DataFrame:
        """Return the names of certain, possible and open labels as a table, a row an instance.

        Parameters
        ----------
        sep
            What stands between names of labels, e.g. ";" for CSV; None for tuples of names.
        count
            Whether to count the labelsets: `n_labelsets`, at least so many where `is_counted` is
            False.
        """
        table = super().to_frame(sep=sep)
        table["is_empty"] = self.is_empty
        if count and self.source is not None:
            table["n_labelsets"], table["is_counted"] = self._counts
        return table


def mark_labels(source: LabelsetDistribution, log_thresholds: Floats) -> tuple[Labelsets, Mask]:
    """Return which labels are in all or in some labelsets of each region, and which has none.

    What cannot be ruled out within the budget of an engine counts as possible, never as certain.

    Parameters
    ----------
    source
        The distributions.
    log_thresholds
        (n,) the least log-probability of what is in the region.
    """
    values = np.full((len(source), source.n_labels), OPEN, dtype=np.int8)
    is_empty = log_thresholds == np.inf
    is_known = np.isinf(log_thresholds) | _find_open(source, log_thresholds)
    for rows in _alike(log_thresholds, np.flatnonzero(~is_known)):
        least = float(min(log_thresholds[rows].min(), 0.0))
        high = source[rows]._max_marginals(least).high
        reached = high >= log_thresholds[rows, np.newaxis, np.newaxis]
        without, having = reached[:, :, 0], reached[:, :, 1]
        values[rows] = np.where(without & having, OPEN, having)
        is_empty[rows] = ~(without | having).any(axis=1)
    values[is_empty] = OPEN
    return values, is_empty


def _find_open(source: LabelsetDistribution, log_thresholds: Floats) -> Mask:
    """Say of which instances one likely labelset shows that all labels are open, (n,).

    It is in the region, and so is each labelset that differs from it in a single label. Then there
    is no need of a search, which takes longest just where probabilities are flat.
    """
    is_open = np.zeros(len(source), dtype=bool)
    if not isinstance(source, ChainMixture) or source.n_labels <= _limits.CHEAP_DENSE_LABELS:
        return is_open
    likely = source.with_engine(engine="certified", budget=FIRST_SEEN).mode()
    rows = np.flatnonzero(source.log_prob(likely) >= log_thresholds)
    for j in range(source.n_labels):
        flipped = likely[rows]
        flipped[:, j] ^= 1
        rows = rows[source[rows].log_prob(flipped) >= log_thresholds[rows]]
    is_open[rows] = True
    return is_open


def _alike(log_thresholds: Floats, rows: Indices) -> list[Indices]:
    """Cut these instances into groups with thresholds within a factor of about e.

    One search serves a group: it goes down to the lowest threshold there.
    """
    steps = np.floor(log_thresholds[rows])
    return [rows[steps == step] for step in np.unique(steps)]


def _list_down_to(
    source: LabelsetDistribution, log_thresholds: Floats, limit: int
) -> ListedLabelsets:
    """List the most probable labelsets, more and more of them, until all in the region are seen."""
    n_samples, most = len(source), 2**source.n_labels
    enough = min(limit + 1, most)  # one more says whether these are all
    rows: list[Labelsets] = [np.empty((0, source.n_labels), dtype=np.int8)]
    weights: list[Floats] = [np.empty(0)]
    instance: list[Indices] = [np.empty(0, dtype=np.intp)]
    is_complete = np.zeros(n_samples, dtype=bool)
    active, k = np.flatnonzero(log_thresholds < np.inf), min(FIRST_LISTED, enough)
    is_complete[log_thresholds == np.inf] = True
    while active.size:
        best = source[active].top(k)
        inside = best.logs >= log_thresholds[active, np.newaxis]
        # Nothing that is not listed can be in the region.
        closed = best.log_high[:, -1] < log_thresholds[active]
        closed &= log_thresholds[active] > LEAST_LOG
        closed |= (k == most) & (most <= limit)
        is_complete[active] = closed
        done = closed | (k >= enough)
        inside[:, limit:] = False
        for i in np.flatnonzero(done):
            rows.append(best.labelsets[i][inside[i]])
            weights.append(best.probabilities[i][inside[i]])
            instance.append(np.full(int(inside[i].sum()), active[i]))
        active, k = active[~done], min(4 * k, enough)
    listed = WeightedLabelsets.merge(
        np.concatenate(rows), np.concatenate(weights), np.concatenate(instance), n_samples
    )
    return ListedLabelsets(listed, is_complete)


def say_coverage(coverage: float, n_samples: int, level: float) -> str:
    """Say what holds of regions with a coverage.

    Parameters
    ----------
    coverage
        That was asked for.
    n_samples
        The number of labelled instances.
    level
        Of the interval that is said.
    """
    if rank_for_coverage(n_samples, coverage) > n_samples:
        needed = math.ceil(coverage / (1 - coverage) - ROUNDING)
        return (
            f"{n_samples} labelled instances are too few for a coverage of {coverage:.1%}: all "
            f"labelsets are in the region. Label at least {needed}."
        )
    low, high = coverage_interval(n_samples, coverage, level)
    return (
        f"Regions hold the true labelset with probability {coverage:g} or more; given these "
        f"{n_samples:,} labelled instances, between {low:.3f} and {high:.3f} with probability "
        f"{level:g}."
    )


def say_recall(recall: float, quantile: float, n_samples: int) -> str:
    """Say what holds of possible labels with a recall, without the full stop.

    Parameters
    ----------
    recall
        That was asked for.
    quantile
        The threshold: -inf if there are too few labelled instances.
    n_samples
        The number of labelled instances.
    """
    if quantile == -math.inf:
        few = f"{n_samples} labelled instances are too few for a recall of {recall:.1%}"
        return f"{few}: all labels are possible"
    return (
        f"The possible labels hold {recall:.1%} of the true ones on average ({n_samples:,} "
        "labelled instances)"
    )


def say_precision(precision: float, certain_from: float, level: float) -> str:
    """Say what holds of certain labels.

    Parameters
    ----------
    precision
        That was asked for.
    certain_from
        The threshold: inf if none is proved.
    level
        The probability with which it holds.
    """
    if certain_from == math.inf:
        return f"no label is certain: a precision of {precision:.1%} cannot be shown"
    return (
        f"of the certain labels of an instance at least {precision:.1%} are right, averaged over "
        f"instances that have any, with probability {level:g}"
    )


MARGINAL = "marginal"
"""The score of single labels: their probability. It goes with a recall only."""

ALL = "all"  # the name of the only group where there are no groups


def mix_votes(votes: LabelsetTable, share: float) -> SmoothedTable:
    """Return (1 - share) times the votes plus `share` times independent labels.

    These have the marginals of the votes, drawn to 1/2 by the same share: a label that nobody voted
    for is not impossible either.
    """
    drawn = (1 - share) * votes.marginals() + share / 2
    return SmoothedTable(votes, IndependentLabels(drawn, votes.label_names), share)


class LabelsetRegion(ShownBySentence, Savable, BaseEstimator):  # type: ignore[misc]
    """Sets of labelsets with a stated coverage, or sets of labels with a stated recall.

    With a `coverage`, the region of a new instance holds its true labelset with at least that
    probability, whatever the model: a poor one has large regions. What is said of an instance are
    the labels that all labelsets of its region have (certain), those that some have (possible), and
    how many labelsets there are. With a `recall`, the possible labels hold on average at least that
    share of the true ones; with a `precision` beside it, labels are certain if they are proved to
    be right often enough, as `AcceptPolicy` proves it.

    The labelled instances must be new to the model, kept for this alone, and of the same kind as
    what comes. What is stated holds on average over new instances and over labelled ones; it does
    not hold for every single kind of instance. See `docs/howto/prediction_sets.md`.

    Parameters
    ----------
    coverage
        The probability with which a region holds the true labelset.
    recall
        Instead of a coverage: the mean share of true labels among the possible ones.
    precision
        Beside a recall: the mean share of the certain labels that is true, over instances that have
        any. Without it no label is certain.
    score
        "probability" (regions hold all labelsets above one probability), "mass" (all labelsets
        above one share of the mass, which gives more alike coverage for easy and hard instances),
        or, with a recall, "marginal" (labels above one probability).
    level
        The probability, over labelled instances, with which the precision is reached.
    independent_share
        What is mixed into votes (`LabelsetTable`), for which labelsets that nobody voted for are
        impossible. Any number in (0, 1) keeps the coverage; it decides how large regions are. It
        must not be chosen on the labelled instances.
    random_state
        Seed of draws, and of the order in which a precision is tested.

    Attributes
    ----------
    quantile_
        The score up to which labelsets are in the region, with a coverage; the least value of a
        possible label, with a recall. With groups a dict.
    certain_from_
        The probability from which on a label is certain, with a precision; infinite if none is.
        With groups a dict.
    n_samples_
        The number of labelled instances. With groups a dict.
    message_
        What holds, in a sentence.

    Examples
    --------
    >>> import labelsure as ls
    >>> data, _ = ls.make_labelsets(900, 4, noise=0.1, random_state=0)
    >>> model = ls.BinaryRelevance(random_state=0).fit(data.X[:300], data.Y[:300])
    >>> dist = model.predict_distribution(data.X[300:])
    >>> region = LabelsetRegion(coverage=0.9).fit(dist[:300], data.Y[300:600])
    >>> answer = region.predict(dist[300:])
    >>> answer.certain[0], answer.possible[0]
    ((), ('y0',))
    >>> print(f"{answer.contains(data.Y[600:]).mean():.2f}")
    0.89
    """

    def __init__(
        self,
        coverage: float | None = None,
        recall: float | None = None,
        *,
        precision: float | None = None,
        score: str = "probability",
        level: float = 0.95,
        independent_share: float = 0.03,
        random_state: int | None = 0,
    ) -> None:
        self.coverage = coverage
        self.recall = recall
        self.precision = precision
        self.score = score
        self.level = level
        self.independent_share = independent_share
        self.random_state = random_state

    def fit(self, dist: LabelsetDistribution, Y: Any, groups: ArrayLike | None = None) -> Self:
        """Find the thresholds on labelled instances.

        Parameters
        ----------
        dist
            Distributions of instances that are new to the model that made them.
        Y
            What is true of them.
        groups
            (n,) the group of each, e.g. a language. Each group gets a threshold of its own, and
            what is stated holds in each group by itself.
        """
        self.check_parameters()
        dist = check_distribution(dist)._with_dense_rows()
        source = self._source(dist)
        truth = dist.align(Y)
        if len(truth) == 0:
            raise InputError("A region needs at least one labelled instance, got none.")
        names = np.full(len(dist), ALL)
        if groups is not None:
            names = check_groups(groups, dist.index, len(dist), "the distribution")
        columns = None if isinstance(Y, np.ndarray) else GivenLabelsets.read(Y, "Y").label_names
        self.label_names_, self.n_labels_ = dist.label_names or columns, dist.n_labels
        kept = self._keep(source, truth)

        def shuffle(rows: Indices) -> dict[str, Any]:  # for the tests of a precision
            order = np.random.default_rng(self.random_state).permutation(rows)
            return {key: values[order] for key, values in kept.items()}

        self.calibration_ = fit_by_group(names, shuffle)
        self.has_groups_ = groups is not None
        self._set_thresholds()
        return self

    def predict(
        self, dist: LabelsetDistribution, groups: ArrayLike | None = None
    ) -> RegionLabelsets:
        """Return the certain and the possible labels of each instance.

        Labelsets are not listed for that: `RegionLabelsets.list_labelsets` does so on request.

        Parameters
        ----------
        dist
            Distributions made as those that it was fitted to.
        groups
            (n,) the group of each, if it was fitted with groups.
        """
        check_is_fitted(self)
        dist = check_distribution(dist)._with_dense_rows()
        source = self._source(dist)
        refuse_other_labels(
            dist.label_names, dist.n_labels, self.label_names_, self.n_labels_, "the fitted region"
        )
        known = self.calibration_ if self.has_groups_ else None
        names = check_known_groups(groups, known, dist.index, len(dist), "the distribution")
        thresholds = _for_each(self.quantile_, names, len(dist))
        if self.coverage is not None:
            return self._predict_covered(source, thresholds)
        return self._predict_found(
            source, thresholds, _for_each(self.certain_from_, names, len(dist))
        )

    def _predict_covered(self, source: LabelsetDistribution, quantiles: Floats) -> RegionLabelsets:
        logs = SCORES[self.score].log_thresholds(source, quantiles, self.random_state)
        logs[np.isinf(quantiles)] = -np.inf
        values, is_empty = mark_labels(source, logs)
        return self._answer(values, source, logs, is_empty, source)

    def _predict_found(
        self, source: LabelsetDistribution, thresholds: Floats, certain_from: Floats
    ) -> RegionLabelsets:
        marginals = source.marginals() if self._uses_marginals else np.zeros((len(source), 1))
        is_certain = (marginals >= certain_from[:, np.newaxis]) & (self.precision is not None)
        if self.score == MARGINAL:
            is_possible, listed = marginals >= thresholds[:, np.newaxis], None
        else:
            thresholds = lower_by_rounding(thresholds)
            marked, is_empty = mark_labels(source, thresholds)
            # Of a region without labelsets no label is possible: so its misses were counted.
            is_possible, listed = (marked != 0) & ~is_empty[:, np.newaxis], source
        values = np.where(is_certain, 1, np.where(is_possible, OPEN, 0)).astype(np.int8)
        nothing = np.zeros(len(source), dtype=bool)
        return self._answer(values, source, thresholds, nothing, listed)

    def _answer(
        self,
        values: Labelsets,
        source: LabelsetDistribution,
        logs: Floats,
        is_empty: Any,
        listed: LabelsetDistribution | None,
    ) -> RegionLabelsets:
        return RegionLabelsets(
            values,
            source.label_names or self.label_names_,
            source.index,
            log_thresholds=logs,
            is_empty=is_empty,
            source=listed,
        )

    def check_parameters(self) -> None:
        """Raise an `InputError` if the region cannot be fitted with these parameters."""
        if (self.coverage is None) == (self.recall is None):
            raise InputError(
                "`coverage` or `recall` must be given, and not both, got "
                f"coverage={self.coverage!r} and recall={self.recall!r}. A coverage is the "
                "probability that the region holds the true labelset, a recall the share of true "
                "labels among the possible ones."
            )
        for name in ("coverage", "recall", "precision"):
            if getattr(self, name) is not None:
                read_number(getattr(self, name), name, 0, 1, ends="()")
        for name in ("level", "independent_share"):
            read_number(getattr(self, name), name, 0, 1, ends="()")
        known = SCORES if self.recall is None else ("probability", MARGINAL)
        read_choice(self.score, f"score for a {self._goal}", known)
        if self.precision is not None and self.recall is None:
            raise InputError(
                f"`precision` must stand beside a `recall`, got precision={self.precision!r} and "
                "no recall. The certain labels of a region with a coverage are those that all its "
                "labelsets have."
            )

    @property
    def _goal(self) -> str:
        return "coverage" if self.recall is None else "recall"

    @property
    def _uses_marginals(self) -> bool:
        return self.score == MARGINAL or self.precision is not None

    def _source(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        if isinstance(dist, LabelsetTable) and self.score != MARGINAL:
            return mix_votes(dist, self.independent_share)
        return dist

    def _keep(self, source: LabelsetDistribution, truth: Labelsets) -> dict[str, Any]:
        """Return what thresholds follow from, one entry for each instance."""
        if self.coverage is not None:
            return {"scores": SCORES[self.score].score(source, truth, self.random_state)}
        kept: dict[str, Any] = {"truth": truth}
        if self._uses_marginals:
            kept["marginals"] = source.marginals()
        if self.score != MARGINAL:
            kept["maxima"] = source._max_marginals().high[:, :, 1]
        return kept

    def _set_thresholds(self) -> None:
        """Work out everything that follows from what is kept of the labelled instances."""
        parts = self.calibration_.items()
        quantiles = {name: self._threshold(kept) for name, kept in parts}
        certain_from = {name: self._certain(kept) for name, kept in parts}
        sizes = {name: len(next(iter(kept.values()))) for name, kept in parts}
        said = {name: self._say(quantiles[name], certain_from[name], sizes[name]) for name in sizes}
        self.quantile_ = self._by_group(quantiles)
        self.certain_from_ = self._by_group(certain_from)
        self.n_samples_ = self._by_group(sizes)
        self.message_ = "\n".join(
            f"Group {name!r}: {text}" if self.has_groups_ else text for name, text in said.items()
        )

    def _by_group(self, values: dict[str, Any]) -> Any:
        return values if self.has_groups_ else values[ALL]

    def _threshold(self, kept: dict[str, Any]) -> float:
        if self.coverage is not None:
            return quantile_for_coverage(kept["scores"], self.coverage)
        values = kept["marginals" if self.score == MARGINAL else "maxima"]
        is_true = kept["truth"] == 1
        weights = 1 / np.maximum(is_true.sum(axis=1), 1)
        return threshold_for_recall(
            values[is_true],
            np.broadcast_to(weights[:, np.newaxis], is_true.shape)[is_true],
            len(is_true),
            float(self.recall or 0),
        )

    def _certain(self, kept: dict[str, Any]) -> float:
        if self.precision is None:
            return math.inf
        return threshold_for_precision(kept["marginals"], kept["truth"], self.precision, self.level)

    def _say(self, quantile: float, certain_from: float, n_samples: int) -> str:
        if self.recall is None:
            return say_coverage(float(self.coverage or 0), n_samples, self.level)
        said = say_recall(self.recall, quantile, n_samples)
        if self.precision is None:
            return f"{said}."
        return f"{said}; {say_precision(self.precision, certain_from, self.level)}."


def _for_each(values: Any, names: NDArray[np.str_] | None, n_samples: int) -> Floats:
    """Return the value of each instance: that of its group, or the only one."""
    if names is None:
        return np.full(n_samples, values, dtype=np.float64)
    return np.array([values[name] for name in names], dtype=np.float64)

"""Decisions: the expected accuracy of a labelset, and the labelset that maximises it.

Exact match takes the mode, Hamming decides each label by its marginal, F1 takes the best labels of
each size. Jaccard goes by a transform of all labelsets or, where these are too many, by a local
search with a certified gap. Any other metric compares all pairs of labelsets. The derivations are
in `docs/understand/mathematics.md`, "The best labelset".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_number
from labelsure._runtime.limits import TIE, check_size, cut_rows
from labelsure._runtime.typing import Floats, Indices, Labelsets, LabelsetsLike, Mask
from labelsure.distributions._answers import (
    Best,
    Expected,
    Optimum,
    Support,
    join_answers,
    with_flips,
)
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._sparse_labels import listed_marginals, with_dense_rows
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets.lists import name_rows
from labelsure.labelsets.names import NamedLabelsets
from labelsure.labelsets.reading import OPEN
from labelsure.metrics.partial import PartialLabelsets
from labelsure.metrics.registry import (
    EXACT,
    F1,
    HAMMING,
    JACCARD,
    Metric,
    MetricLike,
    check_empty,
    get_metric,
)

if TYPE_CHECKING:
    import pandas as pd

N_PROPOSALS = 64
"""Number of most probable valid labelsets that can replace a decision that breaks a rule."""

Decided = tuple[Labelsets, Floats]
"""Labelsets (n, L), and upper bounds of their regret in expected accuracy (gaps), (n,)."""


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(NamedLabelsets):
    """Decided labelsets, taken wherever labelsets are: `numpy.asarray`, `accuracy`, `Y_pred=`.

    Parameters
    ----------
    labelsets
        (n, L) zeros and ones; sparse where the distribution has sparse labels.
    label_names, index
        Those of the distribution; None where it has none.
    gap
        (n,) upper bounds of each decision's regret in expected accuracy.
    abstentions
        Partial labelsets where `decide` may abstain on single labels, else None.

    Examples
    --------
    >>> from labelsure import IndependentLabels, accuracy, decide
    >>> best = decide(IndependentLabels([[0.9, 0.4]], ["cat", "dog"]), "f1")
    >>> best.to_frame()
       labels  gap
    0  (cat,)  0.0
    >>> accuracy([[1, 1]], best, "f1").round(3)
    array([0.667])
    """

    gap: Floats | None = None
    abstentions: PartialLabelsets | None = None

    def to_frame(self, *, sep: str | None = None) -> pd.DataFrame:
        """Table of names of the labels, gap and open labels, one row per instance.

        Parameters
        ----------
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.
        """
        frame = super().to_frame(sep=sep).assign(gap=self.gap)
        if self.abstentions is not None:
            frame["open"] = name_rows(self.abstentions.is_open, self.label_names, sep)
        return frame


def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: LabelsetsLike = None,
    *,
    metric: MetricLike,
    empty: float = 1.0,
) -> Expected:
    """Expected accuracy of labelsets under the classifier's own distribution.

    Parameters
    ----------
    dist
        A batch of n distributions.
    Y_pred
        (n, L) zeros and ones; None means the mode.
    metric
        "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of
        (tp, fp, fn, tn).
    empty
        The Jaccard and F1 of two empty labelsets.

    Returns
    -------
    Expected
        `value`, and the bounds `low` and `high`, each (n,), which are the value itself where it is
        exact; `method` names how each was computed. It is an array of the values where one is
        expected.

    See Also
    --------
    decide : The labelset that maximises it.
    AccuracyEstimator : The same, calibrated on labelled rows.
    accuracy : Actual accuracy, once the truth is known.

    Notes
    -----
    Expected F1 of independent labels: Ye, Chai, Lee and Chieu (2012), Optimizing F-measures: a tale
    of two approaches, ICML, arXiv:1206.4625. The plug-in estimate is as good as the distribution:
    an overconfident classifier overestimates its accuracy.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> expected_accuracy(IndependentLabels([[0.9, 0.2]]), metric="hamming").value
    array([0.85])
    """
    dist = check_distribution(dist)
    return dist.expected(metric, dist.mode() if Y_pred is None else Y_pred, empty=empty)


def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = 1.0,
    open_cost: float | None = None,
    skeptical: bool = False,
) -> Decisions:
    """Labelset with the highest expected accuracy for each instance.

    With `open_cost` or `skeptical`, under Hamming, `abstentions` says which single labels to leave
    open (partial abstention): `docs/howto/prediction_sets.md` says when to take which.

    Parameters
    ----------
    dist
        A batch of n distributions.
    metric
        "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn). A function needs
        all pairs of labelsets and so at most 12 labels.
    empty
        The Jaccard and F1 of two empty labelsets.
    open_cost
        Under Hamming: leave a label open if it would be wrong with a probability above this cost,
        min(p, 1 - p) > `open_cost`. A wrong label costs 1, an open label `open_cost`, both over L.
    skeptical
        Under Hamming, for mixtures: decide the labels whose probability is above 0.5 under every
        member, or below 0.5 under every member, and leave the others open.

    Returns
    -------
    Decisions
        `labelsets`, `gap`, `abstentions`, `label_names` and `index`; an array of the labelsets
        where one is expected.

    See Also
    --------
    expected_accuracy : Expected accuracy of labelsets that you chose.
    LabelThresholds : Thresholds on single labels instead.
    AccuracyAwareClassifier : Predicts by this rule by default.

    Notes
    -----
    The `gap` is 0 where the decision is exact, which it is but for the Jaccard of more labels than
    a dense array holds, and for chains that the certified engine computes or that have more labels
    than can be enumerated. Jaccard then goes by a search that evaluates a limited number of
    labelsets: the answer is the same on every machine. The bound is certain, but for Hamming where
    marginals come from draws: there it is a 95% bound, from intervals that hold for all labels of
    an instance together.

    The F1 optimum is exact for any joint: Dembczyński, Waegeman, Cheng and Hüllermeier (2011), An
    exact algorithm for F-measure maximization, NIPS. For independent labels see Ye, Chai, Lee and
    Chieu (2012), Optimizing F-measures: a tale of two approaches, ICML, arXiv:1206.4625.

    Examples
    --------
    >>> from labelsure import DenseDistribution
    >>> dist = DenseDistribution([[0.0, 0.25, 0.25, 1 / 6, 1 / 3, 0.0, 0.0, 0.0]])
    >>> decide(dist, "exact").labelsets, decide(dist, "jaccard").labelsets
    (array([[0, 0, 1]], dtype=int8), array([[1, 1, 0]], dtype=int8))
    >>> decide(dist, "hamming", open_cost=0.4).abstentions.to_frame()
      certain    possible   open  gap
    0      ()  (y0, y1)  (y0, y1)  0.0
    """
    metric, empty, dist = get_metric(metric), check_empty(empty), check_distribution(dist)
    abstentions = None
    if open_cost is not None or skeptical:
        if open_cost is not None and skeptical:
            raise InputError(
                "`decide` must be given only one of `open_cost` and `skeptical`, got both."
            )
        if metric != HAMMING:
            raise InputError(
                f"`metric` must be 'hamming' with `open_cost` or `skeptical`, got {metric.name!r}. "
                "Leave these out for other metrics."
            )
        dense = with_dense_rows(dist)
        abstentions = (
            _keep_agreed_labels(dense)
            if open_cost is None
            else _open_uncertain_labels(dense, read_number(open_cost, "open_cost", 0, ends="[)"))
        )
    labelsets, gap = _replace_invalid(dist, metric, empty, _decide_with_gaps(dist, metric, empty))
    return Decisions(labelsets, dist.label_names, dist.index, gap, abstentions)


def _replace_invalid(
    dist: LabelsetDistribution, metric: Metric, empty: float, decided: Decided
) -> Decided:
    """Decisions in which the best of the most probable valid labelsets replaces an invalid one.

    Under F1 and Jaccard a labelset that hedges between exclusive labels can be best. Its expected
    accuracy bounds that of every valid one, and so the gap.
    """
    labelsets, gaps = decided
    rules = dist.rules
    if rules is None or dist.sparse_rows:
        return decided
    broken = np.flatnonzero(~rules.is_valid(labelsets))
    if not broken.size:
        return decided
    invalid = dist[broken]
    proposals = invalid.top(min(N_PROPOSALS, 2**dist.n_labels)).labelsets
    guesses = np.concatenate([labelsets[broken, np.newaxis], proposals], axis=1)
    values = invalid._expected([metric], guesses, empty)[0].value
    values[:, 1:][
        ~rules.is_valid(proposals.reshape(-1, dist.n_labels)).reshape(proposals.shape[:2])
    ] = -np.inf
    best = 1 + (values[:, 1:] >= values[:, 1:].max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    at = np.arange(len(broken)), best
    labelsets[broken] = guesses[at]
    gaps[broken] += np.maximum(values[:, 0] - values[at], 0.0)
    return labelsets, gaps


def _open_uncertain_labels(dist: LabelsetDistribution, open_cost: float) -> PartialLabelsets:
    """Partial labelsets that leave a label open if its error probability is above the cost."""
    bounds = dist.marginal_bounds()
    p = bounds.value
    is_open = np.minimum(p, 1 - p) > open_cost + TIE
    values = np.where(is_open, OPEN, p > 0.5 + TIE).astype(np.int8)

    def regret(p: Floats) -> Floats:
        loss = np.where(is_open, open_cost, np.where(values == 1, 1 - p, p))
        return loss - np.minimum(np.minimum(p, 1 - p), open_cost)

    # The regret of a label is convex in its probability, so largest at an end of the interval.
    gap = np.maximum(regret(bounds.low), regret(bounds.high)).mean(axis=1)
    return PartialLabelsets(values, dist.label_names, dist.index, gap=gap)


def _keep_agreed_labels(dist: LabelsetDistribution) -> PartialLabelsets:
    """Partial labelsets that decide a label if all members have it on one side of 0.5."""
    if not dist._members:
        raise InputError(
            "`skeptical` needs a mixture, whose members can disagree, such as an ensemble of "
            f"chains, got {type(dist).__name__}. Use `open_cost` to abstain on labels of any "
            "distribution."
        )
    is_set, is_absent = (np.ones((len(dist), dist.n_labels), dtype=bool) for _ in range(2))
    for member in dist._members:
        bounds = member.marginal_bounds()
        is_set &= bounds.low > 0.5 + TIE
        is_absent &= bounds.high < 0.5 - TIE
    values = np.where(is_set, 1, np.where(is_absent, 0, OPEN)).astype(np.int8)
    return PartialLabelsets(values, dist.label_names, dist.index)


def _decide_with_gaps(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    """Optimum by the distribution's own solver, or else by the rule of the metric."""
    return join_answers(
        (rows, _decide_by(source, metric, empty)) for rows, source in dist._best(metric, empty)
    )


def _decide_by(source: Best, metric: Metric, empty: float) -> Decided:
    if isinstance(source, Optimum):
        return source.labelsets, source.gaps
    if isinstance(source, Support):
        return _SUPPORT_RULES.get(metric, _decide_by_table)(source, metric, empty)
    if source.sparse_rows or metric not in RULES:
        return RULES.get(metric, _refuse)(source, metric, empty)
    # In blocks of instances whose work arrays fit.
    blocks = cut_rows(len(source), 8 * source.n_labels**2, _limits.DECISION_BYTES)
    decide_block, positions = RULES[metric], np.arange(len(source))
    decided = [(positions[rows], decide_block(source[rows], metric, empty)) for rows in blocks]
    return join_answers(decided) if decided else decide_block(source, metric, empty)


# One rule for each metric.

Rule = Callable[[LabelsetDistribution, Metric, float], Decided]


def _take_mode(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    return dist.mode(), np.zeros(len(dist))


def _take_majority(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    if dist.sparse_rows:
        return (listed_marginals(dist) > 0.5 + TIE).astype(np.int8), np.zeros(len(dist))
    return _decide_each_label(dist.marginal_bounds())


def _decide_each_label(marginals: Expected) -> Decided:
    """Labels with p > 0.5 and the gap: at most |1 - 2p| at the far end of the interval of p."""
    decisions = (marginals.value > 0.5 + TIE).astype(np.int8)
    regret = np.where(decisions == 1, 1 - 2 * marginals.low, 2 * marginals.high - 1)
    # A tie within rounding is no loss where a probability is exact, also that of a single label.
    is_exact = marginals.is_exact[:, np.newaxis] | (marginals.low == marginals.high)
    return decisions, np.where(is_exact, 0.0, np.maximum(regret, 0.0)).mean(axis=1)


def _choose_by_size(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    return _choose_f1(dist, empty), np.zeros(len(dist))


def _refuse(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    raise TooLargeError(
        f"The best labelset under the metric {metric.name!r} can be found for at most "
        f"{_limits.ALL_PAIRS_LABELS} labels, got {dist.n_labels}. Compare labelsets of your "
        "own with `expected_accuracy`."
    )


# Decisions from a support: unseen labelsets widen the gap.

SupportRule = Callable[[Support, Metric, float], Decided]


def _decide_by_table(support: Support, metric: Metric, empty: float) -> Decided:
    """Decision of the table, with a gap that adds the metric's range on the unseen mass.

    The two masses may sum to slightly more than one; no gap is wider than the metric's range.
    """
    decisions, gaps = _decide_with_gaps(support.table, metric, empty)
    width = metric.range_width(support.table.n_labels, empty=empty)
    return decisions, np.minimum(support.seen_mass * gaps + support.unseen_mass * width, width)


def _take_table_mode(support: Support, metric: Metric, empty: float) -> Decided:
    """Mode of the table; its gap is the largest excess probability of an unseen labelset."""
    decisions = support.table.mode()
    mode_probability = support.seen_mass * np.exp(support.table.log_prob(decisions))
    return decisions, np.maximum(support.largest_unseen - mode_probability, 0.0)


def _take_support_majority(support: Support, metric: Metric, empty: float) -> Decided:
    """Decision by marginals, whose simultaneous intervals make the gap a 95% bound with draws."""
    assert support.marginals is not None  # which Hamming asks for
    return _decide_each_label(support.marginals)


_SUPPORT_RULES: dict[Metric, SupportRule] = {
    EXACT: _take_table_mode,
    HAMMING: _take_support_majority,
}
"""Rules with gaps below the whole range of the metric on the unseen mass."""


# F1: P(y_j = 1, |y| = s) gives the best labels of each size.


def _choose_f1(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Labelsets with the highest expected F1, (n, L): the best of the top k labels over all k."""
    by_size = _size_marginals(dist)
    sizes = np.arange(1, dist.n_labels + 1)
    hit_gain = 2.0 / (sizes[:, np.newaxis] + sizes)  # of a true positive, for each |y| and each k
    values, chosen = _choose_each_size(by_size, hit_gain)
    return _best_of_sizes(dist, values, chosen, empty)


def _size_marginals(dist: LabelsetDistribution) -> Floats:
    """P(y_j = 1, |y| = s), (n, L, L). Raises TooLargeError if it does not fit into memory."""
    check_size(
        8 * len(dist) * dist.n_labels**2,
        f"P(y_j = 1 and |y| = s) of {len(dist)} instances with {dist.n_labels} labels",
        "Decide under another metric, or between your own proposals with `expected_accuracy`.",
    )
    return dist._size_marginals()


def _choose_each_size(by_size: Floats, hit_gain: Floats) -> tuple[Floats, Labelsets]:
    """Largest sum of mean gains over k labels for each k, (n, L), and these labels, (n, L, L).

    by_size[i, j, s - 1] is P(y_j = 1, |y| = s), hit_gain[s - 1, k - 1] the gain of a true positive
    when |y| = s and k labels are chosen. The middle index of the labelsets is k - 1.
    """
    n_labels = hit_gain.shape[0]
    gains = np.swapaxes(by_size @ hit_gain, 1, 2)  # [instance, k, label]
    keys = -gains
    np.round(keys, 12, out=keys)
    order = np.argsort(keys, axis=2, kind="stable")  # on a tie the lower label
    del keys  # arrays of this size take most of the memory of a decision
    chosen = np.zeros(gains.shape, dtype=np.int8)
    first_k = np.tri(n_labels, dtype=np.int8)
    np.put_along_axis(chosen, order, np.broadcast_to(first_k, gains.shape), axis=2)
    return np.einsum("nkj,nkj->nk", gains, chosen), chosen


def _best_of_sizes(
    dist: LabelsetDistribution, values: Floats, chosen: Labelsets, empty: float
) -> Labelsets:
    """Best of the empty labelset and one labelset of each size, (n, L); smallest on a tie."""
    empty_set = np.zeros((len(dist), 1, dist.n_labels), dtype=np.int8)
    empty_value = empty * np.exp(dist.log_prob(empty_set[:, 0]))
    values = np.column_stack([empty_value, values])
    size = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return np.concatenate([empty_set, chosen], axis=1)[np.arange(len(dist)), size]


# Jaccard beyond what a dense array holds: a local search, and a bound on the optimum.

MAX_FLIPS = 50  # of the local search, which nearly always reaches a local optimum sooner


def _search_jaccard(dist: LabelsetDistribution, metric: Metric, empty: float) -> Decided:
    """Labelsets of high expected Jaccard, (n, L), and their gaps, (n,).

    |y or p| is at least max(|y|, |p|), so sums of gains of single labels bound the expected Jaccard
    of every prediction of a size from above. Their maximisers are also good first guesses; the
    best guess is then improved by flipping labels and by exchanging one for another, as long as
    `_limits.SEARCHED_LABELS` allows. The bounds hold however early that ends.
    """
    by_size = _size_marginals(dist)
    sizes = np.arange(1, dist.n_labels + 1)
    bounds, upper_bound_argmax = _choose_each_size(
        by_size, 1.0 / np.maximum(sizes[:, np.newaxis], sizes)
    )
    covariances = dist._covariance_sums()
    if covariances is not None:
        bounds = np.minimum(bounds, _bound_by_covariances(dist.marginals(), covariances))
    by_marginal = _choose_each_size(by_size, np.ones((dist.n_labels, dist.n_labels)))[1]
    empty_set = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
    singles = np.stack([empty_set, dist.mode(), _choose_f1(dist, empty)], axis=1)
    search = _Search(dist, empty)
    search.evaluate(np.arange(len(dist)), singles)
    search.try_sizes(bounds, np.stack([upper_bound_argmax, by_marginal], axis=2))
    bound = bounds.max(axis=1)  # of all but the empty labelset, which was evaluated
    open_rows = np.flatnonzero(bound > search.value + TIE)
    search.flip_while_better(open_rows)
    search.flip_while_better(search.exchange_once(open_rows))
    return search.best, np.maximum(bound - search.value, 0.0)


class _Search:
    """A local search: the best labelset of each instance so far, and the evaluations left."""

    def __init__(self, dist: LabelsetDistribution, empty: float) -> None:
        self._dist, self._empty = dist, empty
        self.best = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
        self.value = np.full(len(dist), -np.inf)  # expected Jaccard of the best
        n_evaluated = _limits.SEARCHED_LABELS // dist.n_labels
        self.n_left = np.full(len(dist), n_evaluated)  # labelsets that may still be evaluated

    def evaluate(self, rows: Indices, guesses: Labelsets) -> Floats:
        """Expected Jaccard of (r, g, L) guesses, (r, g); improvements become the best labelsets."""
        self.n_left[rows] -= guesses.shape[1]
        values = self._dist._take(rows)._expected([JACCARD], guesses, self._empty)[0].value
        first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        at = np.arange(len(rows)), first
        better = values[at] > self.value[rows] + TIE
        self.best[rows[better]] = guesses[at][better]
        self.value[rows[better]] = values[at][better]
        return values

    def try_sizes(self, bounds: Floats, guesses: Labelsets) -> None:
        """Evaluate the guesses of each size, (n, L, g, L), where its bound leaves room for a gain.

        Sizes with the highest bound come first, and half of the evaluations are kept for flips.
        """
        order = np.argsort(-bounds, axis=1, kind="stable")
        reserve = self.n_left // 2 + guesses.shape[2]
        for size in order.T:
            may_gain = bounds[np.arange(len(bounds)), size] > self.value + TIE
            rows = np.flatnonzero(may_gain & (self.n_left >= reserve))
            if not rows.size:  # nor in later sizes: bounds fall, values rise
                return
            self.evaluate(rows, guesses[rows, size[rows]])

    def flip_while_better(self, rows: Indices) -> None:
        """Steepest ascent over single flips, at most `MAX_FLIPS` of them."""
        for _ in range(MAX_FLIPS):
            rows = rows[self._is_affordable(rows)]
            if not rows.size:
                return
            before = self.value[rows]
            self.evaluate(rows, with_flips(self.best[rows]))
            rows = rows[self.value[rows] > before]

    def exchange_once(self, rows: Indices) -> Indices:
        """Rows improved by an exchange: take each label out in turn, add the best other label.

        Labels without which the labelset has the highest value come first.
        """
        rows = rows[self._is_affordable(rows)]
        if not rows.size:
            return rows
        start, before = self.best[rows], self.value[rows]
        value_without = np.where(start == 1, self.evaluate(rows, with_flips(start))[:, 1:], -np.inf)
        order = np.argsort(-value_without, axis=1, kind="stable")
        for removed in order.T[: start.sum(axis=1).max()]:
            has_label = start[np.arange(len(rows)), removed] == 1
            at = np.flatnonzero(has_label & self._is_affordable(rows))
            if at.size:
                reduced = start[at]
                reduced[np.arange(len(at)), removed[at]] = 0
                self.evaluate(rows[at], with_flips(reduced))
        return rows[self.value[rows] > before]

    def _is_affordable(self, rows: Indices) -> Mask:
        """Whether rows have evaluations left for a labelset and all its flips, (r,)."""
        return self.n_left[rows] > self._dist.n_labels


def _bound_by_covariances(marginals: Floats, covariances: Floats) -> Floats:
    """Upper bound on the expected Jaccard of any k labels, for each k, (n, L).

    With d missed labels, and c = k + E[d], tp / (k + d) is at most
    tp / c - tp (d - E[d]) / c**2 + ((d - E[d]) / c)**2. The mean of the last two is a sum of
    covariances, at most that of the `covariances` of the labels left out, over c**2.
    """
    k = np.arange(1, marginals.shape[1] + 1)
    max_hits = np.cumsum(-np.sort(-marginals, axis=1), axis=1)
    min_c = k + marginals.sum(axis=1, keepdims=True) - max_hits
    c = min_c[:, :, np.newaxis]
    gains = marginals[:, np.newaxis] / c - covariances[:, np.newaxis] / c**2
    largest_sums = np.cumsum(-np.sort(-gains, axis=2), axis=2)
    chosen = np.take_along_axis(largest_sums, (k - 1)[np.newaxis, :, np.newaxis], axis=2)[..., 0]
    return chosen + covariances.sum(axis=1, keepdims=True) / min_c**2


RULES: dict[Metric, Rule] = {
    EXACT: _take_mode,
    HAMMING: _take_majority,
    F1: _choose_by_size,
    JACCARD: _search_jaccard,
}
"""Rule of each metric, for distributions without a solver of their own."""

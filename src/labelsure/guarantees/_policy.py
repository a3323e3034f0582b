"""Selective prediction: `AcceptPolicy` with an accuracy guarantee, `accept_curve` without one."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.notebook import ColumnResult, SentenceMixin, count, make_html
from labelsure._runtime.plots import plot_accept_curve
from labelsure._runtime.typing import Floats, Indices, Integers, Mask
from labelsure.errors import InputError, warn
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import align_rows, read_vector
from labelsure.labelsets.reading import OPEN
from labelsure.metrics.clusters import (
    cluster_outcomes,
    first_rows,
    number_clusters,
    read_clusters,
)
from labelsure.metrics.mean_tests import MEAN_TESTS, N_TARGETS, ROUNDING, MeanTest, wilson_interval
from labelsure.metrics.partial import PartialLabelsets
from labelsure.metrics.registry import check_level
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def read_scored(score: object, accuracy: object) -> tuple[Floats, Floats]:
    """Scores and as many accuracies in [0, 1], (n,) each."""
    scores = read_vector(score, "score")
    accuracies = read_vector(
        accuracy,
        "accuracy",
        n_samples=len(scores),
        low=0,
        high=1,
        index=index_of(score),
        beside="`score`",
    )
    return scores, accuracies


def check_grid(grid: object) -> Floats:
    """Distinct thresholds in ascending order, (k,). Raises InputError."""
    thresholds = np.unique(np.asarray(grid, dtype=np.float64))
    if thresholds.ndim != 1 or thresholds.size == 0 or not np.isfinite(thresholds).all():
        raise InputError(
            f"`grid` must be a list of finite thresholds, got {grid!r}. None takes thresholds on "
            "[0, 1]."
        )
    return thresholds


def count_share(n_samples: int, share: float) -> int:
    """Smallest number of rows that is at least a share of all.

    Examples
    --------
    >>> count_share(100, 0.55), count_share(100, 0.551)
    (55, 56)
    """
    return math.ceil(n_samples * share - ROUNDING)


def open_referred(accepted: Mask, score: ArrayLike, answers: PartialLabelsets) -> PartialLabelsets:
    """Answers with all labels open where the score is not accepted."""
    if len(accepted) != len(answers):
        raise InputError(
            f"`score` must have one entry for each of the {len(answers)} answers, got "
            f"{len(accepted)}."
        )
    order = align_rows(index_of(score), answers.index, name="score", beside="the answers")
    accepted = accepted if order is None else accepted[order]
    values = np.where(accepted[:, np.newaxis], answers.values, OPEN)
    return replace(answers, values=values)


START_SHARES = {0.0: 0.9, 0.4: 0.1}
"""Share of the error of each sequence of tests, by its start s, at target + s (1 - target).
Chosen with `benchmarks.acceptance_starts`: two equal shares at 0 and 0.25 accept less."""

GRID = np.round(np.arange(100) / 100, 12)
"""Thresholds for estimated accuracies, the same for all data."""


def start_levels(grid: Floats, target: float, error: float) -> Floats:
    """Level of the sequence of tests that starts at each threshold, (k,); 0 where none starts.

    The levels sum up to the error.
    """
    levels = np.zeros(len(grid))
    for part, share in START_SHARES.items():
        start = int(np.searchsorted(grid, round(target + (1 - target) * part, 12)))
        levels[min(start, len(grid) - 1)] += share * error
    return levels


def fallback_procedure(p_value: Callable[[int, float], float], levels: Floats) -> Mask:
    """Rejected hypotheses, (k,), with a familywise error of at most the sum of the levels.

    Sequences go down from each start, threshold by threshold until one fails. The level of a
    rejected hypothesis is inherited by the next one, and added to that of the next start (Wiens and
    Dmitrienko, 2005). As scores estimate accuracy, thresholds from the target on pass if
    estimates are calibrated. A finer grid costs nothing.

    `p_value(i, level)` may use the level of the preceding start, which is fixed beforehand.
    """
    rejected = np.zeros(len(levels), dtype=bool)
    inherited = start_level = 0.0
    for i in range(len(levels) - 1, -1, -1):
        start_level = levels[i] or start_level
        level = levels[i] + inherited
        rejected[i] = level > 0 and p_value(i, start_level) <= level
        inherited = level if rejected[i] else 0.0
    return rejected


N_BOOTSTRAP, MIN_PASSED = 50, 0.9  # refits of a policy, and the share that must pass
LOWER_CONFIDENCES = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)

N_SHARES = 10  # thresholds of a path


@dataclass(frozen=True)
class ScoredRows:
    """Calibration rows of a policy, with the test of the mean accuracy of accepted ones.

    Parameters
    ----------
    scores, accuracies
        (n,) each.
    clusters
        (n,) numbers of clusters; None for independent rows.
    test
        Test of independent outcomes: of rows, or of clusters.
    size
        Largest number of rows in a cluster.
    index
        Names of the rows, None without names.
    """

    scores: Floats
    accuracies: Floats
    clusters: Indices | None
    test: MeanTest
    size: int = 1
    index: pd.Index | None = None

    described_as = "`score`"

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: Indices) -> ScoredRows:
        clusters = None if self.clusters is None else self.clusters[rows]
        return ScoredRows(self.scores[rows], self.accuracies[rows], clusters, self.test, self.size)

    @property
    def n_draws(self) -> int:
        """Number of independent draws: of rows, or of clusters."""
        return len(self.scores if self.clusters is None else np.unique(self.clusters))

    def p_value(self, threshold: float, target: float, error: float) -> float:
        """P-value of "mean accuracy of scores of at least the threshold is at most the target"."""
        return self._p_value(self.scores >= threshold, target, error)

    def bound(self, rows: Mask, error: float) -> float:
        """Lower confidence bound of the mean accuracy of a mask of rows, a multiple of 0.001."""
        if self.clusters is None:
            return self.test.lower_bound(self.accuracies[rows], error)
        targets = np.arange(1, N_TARGETS) / N_TARGETS
        failed = (k for k, t in enumerate(targets) if self._p_value(rows, t, error) > error)
        return next(failed, N_TARGETS - 1) / N_TARGETS

    def _p_value(self, rows: Mask, target: float, error: float) -> float:
        values = self.accuracies[rows]
        if self.clusters is None:
            return self.test.p_value(values, target, error)
        outcomes = cluster_outcomes(values, self.clusters[rows], target, self.size)
        p_value = self.test.p_value(outcomes, target, error)
        # If clusters are all right or all wrong, n right ones have probability target^n.
        is_perfect = values.min(initial=1.0) == 1
        return max(p_value, target ** len(outcomes)) if is_perfect else p_value

    def resample(self, rng: np.random.Generator) -> ScoredRows:
        """Bootstrap sample of the rows, or of the clusters."""
        n = self.n_draws
        drawn = rng.integers(n, size=n)
        if self.clusters is None:
            return self[drawn]
        rows = [np.flatnonzero(self.clusters == cluster) for cluster in drawn]
        codes = np.repeat(np.arange(n), list(map(len, rows)))
        return replace(self[np.concatenate(rows)], clusters=codes)


class TargetWarning(UserWarning):
    """No threshold reaches the target on the calibration set: the policy accepts nothing.

    The message names the highest target within reach.

    See Also
    --------
    AcceptPolicy : Raises this warning in `fit`.
    AcceptPolicy.path : Bounds at ten thresholds, to choose from.
    """


class AcceptPolicy(SentenceMixin, Savable, BaseEstimator):  # type: ignore[misc]
    """Accept predictions whose score reaches a threshold, with an accuracy guarantee.

    With a `target`, the policy chooses the lowest threshold that passes a test: with probability at
    least `confidence` over the calibration set, accepted predictions have a mean accuracy of at
    least `target`, in expectation over new rows of the same population (not in every batch).
    With a `share` it accepts that share, and `bound_` is a lower confidence bound on their mean
    accuracy.

    Neither the classifier nor the score may have been fitted to the calibration set.

    Parameters
    ----------
    target
        Mean accuracy that accepted predictions must reach, in (0, 1). Give `target` or `share`.
    confidence
        Probability, over the draw of the calibration set, that the guarantee holds.
    outcome
        "bounded" for accuracies anywhere in [0, 1]; "binary" for exact match, where an exact
        test needs fewer rows.
    grid
        The thresholds to consider, fixed before any accuracy is seen. None means hundredths, tested
        from the target on downwards, as suits estimated accuracies. Scores of another kind need a
        grid of their own, of few thresholds: each of them gets an equal part of the error.
    share
        Share of predictions to accept, in (0, 1], instead of a target.
    guarantee
        "exact" for tests that hold for every distribution of accuracies; "approximate" for
        Student's t, which accepts more with few rows and is not proved. It needs 30 accepted rows;
        exact match keeps the binomial test.
    max_cluster_size
        With `clusters`: rows of a cluster that count at most, here and in the guarantee; of larger
        clusters so many random ones. Fix it before you look at these rows, at about the size of
        large clusters: rows beyond are lost, and a size that few clusters have costs power.
    random_state
        Seed of the order in which the test for "bounded" sees the accuracies. They must not
        come in an order that depends on the scores, so they are shuffled.

    Attributes
    ----------
    threshold_
        Accept scores of at least this; infinite if no threshold passes.
    share_
        Share of the calibration set that the policy accepts.
    bound_
        Lower confidence bound on the mean accuracy of accepted predictions; equal to the target
        where there is one, NaN if no threshold passes.
    message_
        The result in one sentence.

    See Also
    --------
    AccuracyAwareClassifier : Fits a classifier, the score and a policy together.
    ByGroup : A policy for each group, such as a language.
    accept_curve : Accuracy against the share accepted, without a guarantee.
    LabelsetRegion : Conformal prediction sets instead of accepting or referring.

    Notes
    -----
    Each threshold is a hypothesis, "the mean accuracy above it is below the target", and multiple
    testing keeps the familywise error below 1 - `confidence`: Angelopoulos, Bates, Candès, Jordan
    and Lei (2021), Learn then test, arXiv:2110.01052. Bounded metrics use a betting test:
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal
    of the Royal Statistical Society B 86, arXiv:2010.09686. Exact match uses the binomial tail.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=2000)
    >>> accuracy = (rng.uniform(size=2000) < score).astype(float)
    >>> policy = AcceptPolicy(target=0.8, outcome="binary").fit(score, accuracy)
    >>> print(f"{policy.threshold_:.2f}, accepting {policy.share_:.0%}")
    0.63, accepting 37%
    >>> policy.accept([0.5, 0.9])
    array([False,  True])

    Accept 80% of predictions and bound their accuracy:

    >>> policy = AcceptPolicy(share=0.8, outcome="binary").fit(score, accuracy)
    >>> print(f"{policy.threshold_:.2f}, with a mean accuracy of at least {policy.bound_:.2f}")
    0.19, with a mean accuracy of at least 0.58
    """

    _shown = ("threshold_", "share_", "bound_", "n_samples_")

    def __init__(
        self,
        target: float | None = None,
        *,
        share: float | None = None,
        confidence: float = 0.95,
        outcome: str = "bounded",
        grid: ArrayLike | None = None,
        guarantee: str = "exact",
        max_cluster_size: int = 1,
        random_state: int | None = 0,
    ) -> None:
        self.target = target
        self.confidence = confidence
        self.outcome = outcome
        self.grid = grid
        self.share = share
        self.guarantee = guarantee
        self.max_cluster_size = max_cluster_size
        self.random_state = random_state

    def fit(
        self, score: ArrayLike, accuracy: ArrayLike, *, clusters: ArrayLike | None = None
    ) -> Self:
        """Find the threshold on labelled rows.

        Parameters
        ----------
        score
            (n,) e.g. estimated accuracies, by a model that has not seen these rows.
        accuracy
            (n,) accuracies that came out, in [0, 1].
        clusters
            (n,) the cluster of each, where rows depend on each other (ten photos of one event);
            None: rows are independent.
        """
        self._fit_rows(self._read_rows(score, accuracy, clusters))
        if not self.reached_:
            warn(self.message_, TargetWarning)
        return self

    def _read_rows(
        self, score: ArrayLike, accuracy: ArrayLike, clusters: ArrayLike | None
    ) -> ScoredRows:
        self.check_parameters()
        scores, values = read_scored(score, accuracy)
        test = MEAN_TESTS[self.guarantee][self.outcome]
        test.check(values)
        index, codes = index_of(score), None
        if clusters is not None:
            codes = read_clusters(clusters, index, len(scores), "`score`")
        return ScoredRows(scores, values, codes, test, index=index)

    def accept(self, score: ArrayLike) -> Mask:
        """Predictions to accept, (n,); none if the target was not reached.

        Parameters
        ----------
        score
            (n,) made as those that it was fitted to.
        """
        check_is_fitted(self)
        return read_vector(score, "score") >= self.threshold_

    def accept_labels(self, score: ArrayLike, answers: PartialLabelsets) -> PartialLabelsets:
        """Answers with all labels open where the score is not accepted.

        The guarantee is then for the accuracy of the decided labels: fit to
        `answers.accuracy(Y_true, metric)`.

        Parameters
        ----------
        score
            (n,) of the answers, made as those that it was fitted to.
        answers
            As `labelsure.decide` returns them with `open_cost`.

        Examples
        --------
        >>> from labelsure import PartialLabelsets
        >>> policy = AcceptPolicy(share=0.5).fit([0.9, 0.2] * 50, [1, 0] * 50)
        >>> policy.accept_labels([0.3, 0.9], PartialLabelsets([[1, -1], [0, -1]])).values
        array([[-1, -1],
               [ 0, -1]], dtype=int8)
        """
        return open_referred(self.accept(score), score, answers)

    @property
    def reached_(self) -> bool:
        """Whether some threshold is proved to reach the target."""
        return math.isfinite(self.threshold_)

    def path(self) -> AcceptPath:
        """Thresholds with lower bounds that hold together: choose any row after looking.

        Without a `grid` the thresholds accept the most confident 10%, 20%, ..., 100% of the
        calibration set, or fewer where scores are tied; with clusters, of which order statistics
        prove nothing, they are 0.9, 0.8, ..., 0. Each bound is a test at an equal part of
        the error (Bonferroni), so that with probability `confidence` over the calibration set all
        of them hold at once. Thresholds between the rows carry no bound.

        Returns
        -------
        AcceptPath
            Arrays with one entry for each threshold, and `to_frame`.

        Notes
        -----
        A threshold at an order statistic of the scores accepts scores strictly above it. Given the
        order statistic, the rows above are an independent sample of what lies above it.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> score = rng.uniform(size=2000)
        >>> accuracy = (rng.uniform(size=2000) < score).astype(float)
        >>> policy = AcceptPolicy(target=0.8, outcome="binary").fit(score, accuracy)
        >>> policy.path().to_frame().round(2).iloc[[1, 4, 9]]
           threshold  share  mean  bound
        1        0.8    0.2  0.93   0.89
        4        0.5    0.5  0.75   0.72
        9       -inf    1.0  0.50   0.47
        """
        check_is_fitted(self)
        if self.n_samples_ == 0:
            raise InputError("A path needs at least one labelled row, got none.")
        if self.grid is not None:
            thresholds = check_grid(self.grid)[::-1]
        elif self.clusters_ is not None:
            thresholds = np.arange(N_SHARES)[::-1] / N_SHARES
        else:
            ranked = np.sort(self.scores_)[::-1]
            ranks = self.n_samples_ * np.arange(1, N_SHARES) // N_SHARES
            thresholds = np.append(np.nextafter(ranked[ranks], np.inf), -np.inf)
        error, calibration = (1 - self.confidence) / len(thresholds), self._calibration
        thresholds = np.unique(thresholds)[::-1]
        masks = [self.scores_ >= threshold for threshold in thresholds]
        values = [self.accuracies_[mask] for mask in masks]
        return AcceptPath(
            thresholds,
            np.array([mask.mean() for mask in masks]),
            np.array([accepted.mean() if accepted.size else np.nan for accepted in values]),
            np.array([calibration.bound(mask, error) for mask in masks]),
        )

    def check_parameters(self) -> None:
        """Raise an `InputError` if the policy cannot be fitted with these parameters."""
        if (self.target is None) == (self.share is None):
            raise InputError(
                "Either `target` or `share` must be given, not both, got "
                f"target={self.target!r} and share={self.share!r}."
            )
        read_number(self.confidence, "confidence", 0, 1, ends="()")
        if self.target is not None:
            read_number(self.target, "target", 0, 1, ends="()")
        else:
            read_number(self.share, "share", 0, 1, ends="(]")
        read_choice(self.guarantee, "guarantee", MEAN_TESTS)
        read_choice(self.outcome, "outcome", MEAN_TESTS["exact"])
        read_whole_number(self.max_cluster_size, "max_cluster_size")

    @property
    def _calibration(self) -> ScoredRows:
        """Calibration rows with the test of their mean."""
        tests = MEAN_TESTS[self.guarantee]
        if self.clusters_ is None:
            return ScoredRows(self.scores_, self.accuracies_, None, tests[self.outcome])
        test, size = tests["bounded"], self.cluster_size_
        return ScoredRows(self.scores_, self.accuracies_, self.clusters_, test, size)

    def _fit_rows(self, rows: ScoredRows) -> Self:
        """Fit to shuffled rows: bounds need an order that depends on the number of rows alone."""
        scores, accuracies, clusters = rows.scores, rows.accuracies, rows.clusters
        order = np.random.default_rng(self.random_state).permutation(len(rows))
        self.clusters_: Indices | None = None
        if clusters is not None and len(order):
            largest = int(np.bincount(clusters).max())
            # Student's test needs no bound on the size of clusters.
            max_size = self.max_cluster_size if self.guarantee == "exact" else largest
            order = order[first_rows(clusters[order], max_size)]
            self.cluster_size_ = max_size
            if max_size > 1:  # one row of each cluster is independent of the others
                self.clusters_ = number_clusters(clusters[order])
        self.scores_, self.accuracies_ = scores[order], accuracies[order]
        self.n_samples_ = len(order)
        choose = self._choose_for_target if self.share is None else self._choose_for_share
        self.threshold_, self.share_, self.bound_, self.message_ = choose()
        return self

    def _choose_for_share(self) -> tuple[float, float, float, str]:
        """Highest threshold that accepts at least the share, share accepted, bound and message.

        The threshold is an order statistic, the score of one row. Given it, rows above are a random
        sample of new rows above; the row itself is not, as it was chosen for its score. Where
        further rows are tied at the threshold, only scores strictly above are accepted, as the
        number of tied rows among the accepted would depend on the number above. Scores that are
        tied at the maximum are all accepted.
        """
        scores, n = self.scores_, self.n_samples_
        if n == 0:
            raise InputError("A share needs at least one labelled row, got none.")
        if self.clusters_ is not None:
            raise InputError(
                "`share` needs independent rows, whose order statistics have a known distribution, "
                "got clusters. Use a target, or one row of each cluster (`max_cluster_size=1`)."
            )
        last = int(np.argsort(-scores, kind="stable")[count_share(n, self.share) - 1])  # type: ignore[arg-type]
        threshold = float(scores[last])
        is_tied, is_above = scores == threshold, scores > threshold
        is_sample, note = is_tied | is_above, ""
        share = float(is_sample.mean())
        is_sample[last] = False
        if is_tied.sum() > 1 and is_above.any():
            note = f" Those tied at {threshold:g} ({is_tied.mean():.1%}) are referred."
            threshold = float(np.nextafter(threshold, np.inf))
            is_sample, share = is_above, float(is_above.mean())
        bound = self._calibration.bound(is_sample, 1 - self.confidence)
        message = (
            f"Accept scores of {threshold:g} or more: {share:.1%} of predictions are accepted, and "
            f"their mean accuracy is {self._at_least} {bound:.3f} at {100 * self.confidence:g}% "
            f"confidence ({self._describe_rows()}).{note}"
        )
        return threshold, share, bound, message

    def _choose_for_target(self) -> tuple[float, float, float, str]:
        """Lowest threshold proved to reach the target, share accepted, bound and message."""
        target: float = self.target  # type: ignore[assignment]  # checked by `check_parameters`
        grid, levels = self._place_tests(target, 1 - self.confidence)
        calibration = self._calibration

        def p_value(i: int, level: float) -> float:
            return calibration.p_value(grid[i], target, level)

        passed = fallback_procedure(p_value, levels)
        level = f"{100 * self.confidence:g}% confidence"
        rows = f"({self._describe_rows()})"
        if not passed.any():
            message = f"No threshold reaches a mean accuracy of {target:g} at {level} {rows}."
            return math.inf, 0.0, math.nan, f"{message} {self._advise(target)}"
        threshold = float(grid[np.argmax(passed)])
        share = float((self.scores_ >= threshold).mean())
        message = (
            f"Accept scores of {threshold:g} or more: the mean accuracy of accepted predictions is "
            f"{self._at_least} {target:g} at {level} {rows}. "
            f"{share:.1%} of predictions are accepted."
        )
        return threshold, share, target, message

    @property
    def _at_least(self) -> str:
        return "at least" if self.guarantee == "exact" else "approximately at least"

    def _describe_rows(self) -> str:
        rows = f"calibration set, n = {self.n_samples_:,}"
        if self.clusters_ is None:
            return rows
        most = count(self.cluster_size_, "row")
        return f"{rows} in {self._calibration.n_draws:,} clusters, which count with up to {most}"

    def _place_tests(self, target: float, error: float) -> tuple[Floats, Floats]:
        """Thresholds, and the levels of the sequences of tests that start there, (k,) each."""
        if self.grid is None:
            return GRID, start_levels(GRID, target, error)
        grid = check_grid(self.grid)
        return grid, np.full(len(grid), error / len(grid))

    def _advise(self, target: float) -> str:
        """Lower targets and confidences that 90% of bootstrap refits reach, as a sentence."""
        calibration = self._calibration
        if self.clusters_ is not None and self.n_samples_:
            perfect = replace(calibration, accuracies=np.ones(self.n_samples_))
            if perfect.p_value(-np.inf, target, 1 - self.confidence) > 1 - self.confidence:
                return (
                    "Too few clusters: perfect accuracy on all of their rows would not show it. "
                    "Label rows of more clusters."
                )

        def is_reached(target: float, confidence: float) -> bool:
            """Whether enough bootstrap samples pass the test at one of the starts."""
            grid, levels = self._place_tests(target, 1 - confidence)
            starts = [pair for pair in zip(grid, levels, strict=True) if pair[1]]
            rng, n_reached = np.random.default_rng(0), 0
            for _ in range(N_BOOTSTRAP if self.n_samples_ else 0):
                drawn = calibration.resample(rng)
                n_reached += any(drawn.p_value(start, target, e) <= e for start, e in starts)
            return n_reached >= MIN_PASSED * N_BOOTSTRAP

        hundredths = range(1, math.ceil(100 * target - 1e-9))
        own = self.confidence
        highest = bisect_left(hundredths, True, key=lambda k: not is_reached(k / 100, own))
        lower = (level for level in LOWER_CONFIDENCES if level < own)
        level = next((level for level in lower if is_reached(target, level)), None)
        reached = [f"{highest / 100:g} at {100 * own:g}% confidence"] if highest else []
        reached += [f"{target:g} at {100 * level:g}% confidence"] if level else []
        if not reached:
            return "No lower target or confidence is within reach: label more rows."
        return (
            f"Within reach: {', or '.join(reached)}. Fit this to new rows, or choose a threshold "
            "from `path()`."
        )


@dataclass(frozen=True, eq=False, repr=False)
class AcceptPath(ColumnResult):
    """Thresholds of a policy with lower bounds that hold together: choose any after looking.

    Parameters
    ----------
    threshold
        (k,) thresholds, the highest first: accept scores of at least this.
    share
        (k,) share of the calibration set that each accepts.
    mean
        (k,) mean accuracy of these rows; missing without rows.
    bound
        (k,) lower confidence bound on the mean accuracy of new predictions that it accepts.
    """

    threshold: Floats
    share: Floats
    mean: Floats
    bound: Floats

    def __str__(self) -> str:
        best = int(np.argmax(self.bound))
        return (
            f"{count(len(self.threshold), 'threshold')} with lower bounds that hold together; the "
            f"highest is {self.bound[best]:.3f}, with {self.share[best]:.1%} accepted."
        )


N_SHOWN = 10  # rows in a notebook, from the first to the last


@dataclass(frozen=True, eq=False, repr=False)
class AcceptCurve(ColumnResult):
    """Accuracy-rejection curve: mean accuracy of accepted predictions by their share.

    Parameters
    ----------
    threshold
        (k,) distinct scores, the highest first: accept scores of at least this.
    n_accepted, share
        (k,) number and share of the rows that each accepts.
    accuracy, spread
        (k,) mean and standard deviation of the accuracies of accepted rows.
    areas
        (k,) mean of the curve up to each share.

    Examples
    --------
    >>> from labelsure import accept_curve
    >>> curve = accept_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
    >>> round(curve.area, 3)
    0.708
    """

    threshold: Floats
    n_accepted: Integers
    share: Floats
    accuracy: Floats
    spread: Floats
    areas: Floats

    @property
    def area(self) -> float:
        """The area under the whole curve: the higher, the better the order; NaN if it is empty."""
        return float(self.areas[-1]) if len(self.areas) else float("nan")

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Interval of each mean accuracy, (low, high), (k,) each.

        Each interval holds for its own row, not for the whole curve at once.

        Parameters
        ----------
        level
            Confidence level (Wilson's interval with the variance of the accuracies).
        """
        return wilson_interval(self.accuracy, self.spread, self.n_accepted, check_level(level))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        target: float | None = None,
        label: str | None = None,
        level: float = 0.95,
    ) -> Axes:
        """Draw the mean accuracy of the accepted against their share, with its uncertainty.

        At the left end few are accepted: the band around the curve is wide there, and the stretch
        with fewer than 30 is hatched.

        Parameters
        ----------
        ax
            Where to draw; several curves can share it. None makes a new figure.
        target
            Mean accuracy to mark, with the share that reaches it on these rows. It is no guarantee:
            `AcceptPolicy` gives one.
        label
            For the legend; None shows the area under the curve.
        level
            Confidence level of the band, at each point by itself.
        """
        shown = f"area {self.area:.3f}" if len(self.areas) else "nothing to accept"
        return plot_accept_curve(
            self.to_frame(),
            self.interval(level),
            label=shown if label is None else label,
            interval_label=f"{level:.0%} interval of the mean",
            target=target,
            ax=ax,
        )

    def __str__(self) -> str:
        if not len(self.areas):
            return "An acceptance curve of no rows."
        n_samples = count(int(self.n_accepted[-1]), "row")
        return f"Area under the acceptance curve {self.area:.3f} ({n_samples})."

    def _repr_html_(self) -> str:
        if not len(self.areas):
            return make_html(str(self))
        shown = np.linspace(0, len(self.areas) - 1, N_SHOWN).round().astype(int)
        return make_html(str(self), self.to_frame().iloc[np.unique(shown)])


def accept_curve(score: ArrayLike, accuracy: ArrayLike) -> AcceptCurve:
    """Compute the accuracy-rejection curve: mean accuracy against the share accepted.

    Predictions with equal scores cannot be told apart and are accepted together: one row for each
    distinct score. The curve is a step function: a row counts with the mean accuracy of the
    smallest accepted set that it is in.

    Parameters
    ----------
    score
        (n,) any confidence, larger being surer.
    accuracy
        (n,) accuracies in [0, 1].

    Returns
    -------
    AcceptCurve
        Arrays with one entry for each distinct score, the `area` under the curve, `to_frame` and
        `plot`.

    See Also
    --------
    AcceptPolicy : A threshold with a guarantee.
    reliability : Estimated against actual accuracy.

    Notes
    -----
    Also called accuracy-rejection or risk-coverage curve: El-Yaniv and Wiener (2010), On the
    foundations of noise-free selective classification, Journal of Machine Learning Research 11.

    Examples
    --------
    >>> accept_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]).to_frame().round(3)
       threshold  n_accepted  share  accuracy  spread  areas
    0        0.9           1   0.25     1.000   0.000  1.000
    1        0.5           3   0.75     0.667   0.471  0.778
    2        0.1           4   1.00     0.500   0.500  0.708
    """
    score, accuracy = read_scored(score, accuracy)
    order = np.argsort(-score, kind="stable")
    ranked, total = score[order], np.cumsum(accuracy[order])
    squares = np.cumsum(accuracy[order] ** 2)
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(score)])
    n_accepted = last + 1
    means = total[last] / n_accepted
    variances = np.maximum(squares[last] / n_accepted - means**2, 0.0)  # rounding goes below 0
    sizes = np.diff(n_accepted, prepend=0)
    return AcceptCurve(
        threshold=ranked[last],
        n_accepted=n_accepted,
        share=n_accepted / max(len(score), 1),
        accuracy=means,
        spread=np.sqrt(variances),
        areas=np.cumsum(sizes * means) / n_accepted,
    )

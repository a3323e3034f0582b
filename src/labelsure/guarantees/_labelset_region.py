"""`LabelsetRegion`: sets of labelsets that hold the truth as often as was asked for."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.notebook import ShownBySentence
from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.errors import InputError, unknown_name
from labelsure.guarantees._conformal_ranks import (
    quantile_for_coverage,
    threshold_for_precision,
    threshold_for_recall,
)
from labelsure.guarantees._region_answers import RegionLabelsets, mark_labels
from labelsure.guarantees._region_scores import SCORES, lower_by_rounding
from labelsure.guarantees._region_sentences import say_coverage, say_precision, say_recall
from labelsure.guarantees._scores import check_groups, check_share
from labelsure.labelsets.codes import OPEN
from labelsure.labelsets.names import GivenLabelsets
from labelsure.labelsets.rows import refuse_other_labels
from labelsure.saving._savable import Savable

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
    not hold for every single kind of instance. `docs/which_answer.md` says it in plain words.

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
        names = self._group_names(groups, dist)
        columns = None if isinstance(Y, np.ndarray) else GivenLabelsets.read(Y, "Y").label_names
        self.label_names_, self.n_labels_ = dist.label_names or columns, dist.n_labels
        kept = self._keep(source, truth)
        self.calibration_ = {}
        for name in np.unique(names).tolist():
            own = np.flatnonzero(names == name)
            shuffled = np.random.default_rng(self.random_state).permutation(own)  # for the tests
            self.calibration_[name] = {key: values[shuffled] for key, values in kept.items()}
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
        names = self._known_groups(groups, dist)
        thresholds = self._for_each(self.quantile_, names)
        if self.coverage is not None:
            return self._predict_covered(source, thresholds)
        return self._predict_found(source, thresholds, self._for_each(self.certain_from_, names))

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
                check_share(name, getattr(self, name))
        check_share("level", self.level)
        check_share("independent_share", self.independent_share)
        known = SCORES if self.recall is None else ("probability", MARGINAL)
        if self.score not in known:
            raise unknown_name(f"score for a {self._goal}", self.score, known)
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

    def _group_names(self, groups: Any, dist: LabelsetDistribution) -> NDArray[np.str_]:
        if groups is None:
            return np.full(len(dist), ALL)
        return check_groups(groups, dist.index, len(dist), "the distribution")

    def _known_groups(self, groups: Any, dist: LabelsetDistribution) -> NDArray[np.str_]:
        if (groups is not None) != self.has_groups_:
            raise InputError(
                "`groups` must be given to `predict` just as to `fit`, got "
                f"{'none' if groups is None else 'some'} here and "
                f"{'some' if self.has_groups_ else 'none'} there."
            )
        names = self._group_names(groups, dist)
        unknown = sorted(set(names.tolist()) - set(self.calibration_))
        if unknown:
            raise InputError(
                f"`groups` must be among those that the region was fitted to, got {unknown[0]!r}. "
                f"It knows {', '.join(repr(name) for name in list(self.calibration_)[:5])}."
            )
        return names

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

    def _for_each(self, values: Any, names: NDArray[np.str_]) -> Floats:
        if not self.has_groups_:
            return np.full(len(names), values, dtype=np.float64)
        return np.array([values[name] for name in names], dtype=np.float64)

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

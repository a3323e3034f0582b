"""`Recalibration`: base class of changes of distributions that are fitted to labelled rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Floats, LabelNames, Labelsets, LabelsetsLike, Mask, Parameters
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._constrained import logits_of
from labelsure.errors import InputError, warn
from labelsure.labelsets.label_names import check_same_labels
from labelsure.labelsets.names import check_weights
from labelsure.labelsets.sparse import stack_rows
from labelsure.saving import Savable

RecalibrationLike: TypeAlias = "Recalibration | str | None"
"""A recalibration, the name of one, or none."""


N_FOLDS = 5
LEVEL = 0.95


class Part(NamedTuple):
    """A batch of distributions, the truth of its instances, and their weights if they have some."""

    dist: LabelsetDistribution
    truth: Labelsets
    weights: Floats | None = None

    def take(self, rows: Mask) -> Part:
        """Part with some of the instances."""
        if rows.all():
            return self
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.dist[rows], self.truth[rows], weights)


def join_truth(parts: Sequence[Part]) -> tuple[Labelsets, Floats | None]:
    """True labelsets of all parts, one after the other, and their weights."""
    weights = [part.weights for part in parts if part.weights is not None]
    truth = stack_rows([part.truth for part in parts])
    return truth, np.concatenate(weights) if weights else None


def join_logits(parts: Sequence[Part]) -> tuple[Floats, Labelsets, Floats | None]:
    """Finite logits of the marginals and true labelsets of all parts, (n, L), and weights, (n,)."""
    return np.concatenate([logits_of(part.dist) for part in parts]), *join_truth(parts)


def has_free_labels(dist: LabelsetDistribution) -> bool:
    """Whether labels are independent and few enough for arrays."""
    return dist._is_independent and not dist.sparse_rows


class Recalibration(Savable, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class: a change of distributions that is fitted to labelled instances.

    A subclass implements `_fit_parameters`, and `_apply`, which changes distributions by them.

    Parameters
    ----------
    gate
        Whether the recalibration is kept only if it raises the log-probability of the truth on
        held-out instances: in five-fold cross-validation, the 95% interval of the mean gain must
        lie above 0. Otherwise distributions stay unchanged.
    """

    _title = "A recalibration"
    _fitted: tuple[str, ...] = ()  # the attributes that `_fit_parameters` returns

    def __init__(self, gate: bool = True) -> None:
        self.gate = gate

    def fit(
        self, dist: LabelsetDistribution, Y: LabelsetsLike, sample_weight: object = None
    ) -> Self:
        """Fit to distributions whose truth is known.

        Parameters
        ----------
        dist
            (n) distributions of instances that the classifier was not trained on.
        Y
            (n, L) their true labelsets.
        sample_weight
            (n,) weights of the instances; None for equal ones.

        Returns
        -------
        self
        """
        return self.fit_parts([dist], [Y], None if sample_weight is None else [sample_weight])

    def fit_parts(
        self,
        dists: Sequence[LabelsetDistribution],
        Ys: Sequence[object],
        sample_weights: Sequence[object] | None = None,
    ) -> Self:
        """Fit to several batches together, such as the out-of-fold predictions of each fold.

        Parameters
        ----------
        dists
            One batch of distributions for each part.
        Ys
            Their true labelsets.
        sample_weights
            Their weights; None for equal ones.

        Returns
        -------
        self
        """
        self._check_parameters()
        weights = [None] * len(dists) if sample_weights is None else sample_weights
        self._fit_aligned([_read_part(*inputs) for inputs in zip(dists, Ys, weights, strict=True)])
        return self

    def _fit_aligned(self, parts: list[Part]) -> None:
        """Fit the parameters and measure their gain, from truths aligned with distributions."""
        self.label_names_, self.n_labels_ = common_labels(parts)
        for part in parts:
            self._check_kind(part.dist)
        parts = [part if part.weights is None else part.take(part.weights > 0) for part in parts]
        n_given = sum(len(part.dist) for part in parts)
        parts = [self._usable(part) for part in parts]
        self.n_samples_ = sum(len(part.dist) for part in parts)
        self.n_impossible_ = n_given - self.n_samples_
        self._check_sizes()
        for name, value in zip(self._fitted, self._fit_parameters(parts), strict=True):
            setattr(self, name, value)
        self._measure_gain(parts)
        self.is_kept_, self.reason_ = not self.gate or self.gain_low_ > 0, ""
        self._warn_of_parameters()

    def check_truth(self, Y: Labelsets, label_names: LabelNames) -> None:
        """Raise InputError for true labelsets that recalibrated distributions exclude."""

    def _parameters(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self._fitted)

    def reject(self, reason: str) -> None:
        """Leave distributions unchanged although the gate was passed, for a reason in words."""
        self.is_kept_, self.reason_ = False, reason

    def cross_transform(self, parts: Sequence[Part]) -> Iterator[LabelsetDistribution]:
        """Yield each part that this was fitted to, with the parameters of all other parts."""
        usable = [self._usable(part) for part in parts]
        for i, part in enumerate(parts):
            yield self._apply(part.dist, self._fit_parameters(usable[:i] + usable[i + 1 :]))

    def transform(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Recalibrated distributions; unchanged ones if the recalibration was not kept.

        Parameters
        ----------
        dist
            Distributions of the kind that was fitted.

        Returns
        -------
        LabelsetDistribution
        """
        check_is_fitted(self, "is_kept_")
        check_distribution(dist)
        fitted = f"the fitted {type(self).__name__}"
        check_same_labels(
            dist.label_names, dist.n_labels, self.label_names_, self.n_labels_, fitted
        )
        if not self.is_kept_ or len(dist) == 0:
            return dist
        self._check_kind(dist)
        return self._apply(dist, self._parameters())

    @abstractmethod
    def _fit_parameters(self, parts: list[Part]) -> tuple[object, ...]:
        """Maximum-likelihood parameters for some labelled rows."""

    @abstractmethod
    def _apply(self, dist: LabelsetDistribution, parameters: Parameters) -> LabelsetDistribution:
        """Recalibrated distributions."""

    def _log_prob(self, part: Part, parameters: Parameters) -> Floats:
        """Recalibrated log-probability of the truth, (n,)."""
        return self._apply(part.dist, parameters)._log_prob(part.truth)

    def _plain_log_prob(self, part: Part) -> Floats:
        """Log P(truth) before recalibration, (n,); rows with -inf are left out."""
        return part.dist._log_prob(part.truth)

    def _usable(self, part: Part) -> Part:
        """Part with the instances whose truth is possible and whose weight is not 0."""
        usable = np.isfinite(self._plain_log_prob(part))
        return part.take(usable if part.weights is None else usable & (part.weights > 0))

    def _check_parameters(self) -> None:
        if not isinstance(self.gate, (bool, np.bool_)):
            raise InputError(f"`gate` must be True or False, got {self.gate!r}.")

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        """Refuse a kind of distribution that cannot be recalibrated so."""

    def _warn_of_parameters(self) -> None:
        """Warn of suspect parameters."""

    def _check_sizes(self) -> None:
        if self.n_samples_ < N_FOLDS:
            raise InputError(
                f"`dist` must have at least {N_FOLDS} instances whose true labelset is possible, "
                f"got {self.n_samples_}."
            )
        if self.n_impossible_:
            warn(
                f"The true labelset of {self.n_impossible_} of "
                f"{self.n_samples_ + self.n_impossible_} instances has probability 0. These are "
                "left out, because no recalibration changes that.",
                UserWarning,
            )

    def _measure_gain(self, parts: list[Part]) -> None:
        """Set the mean gain of log P(truth) on held-out instances, and its interval."""
        fold = np.random.default_rng(0).permutation(np.arange(self.n_samples_) % N_FOLDS)
        folds = np.split(fold, np.cumsum([len(part.dist) for part in parts])[:-1])
        gains, held_out_parts = [], []
        for k in range(N_FOLDS):
            training = [part.take(fold != k) for part, fold in zip(parts, folds, strict=True)]
            parameters = self._fit_parameters(training)
            for part, fold in zip(parts, folds, strict=True):
                held_out = part.take(fold == k)
                gains.append(self._log_prob(held_out, parameters) - self._plain_log_prob(held_out))
                held_out_parts.append(held_out)
        _, weights = join_truth(held_out_parts)
        self.gain_, self.gain_low_, self.gain_high_ = mean_interval(np.concatenate(gains), weights)

    def _describe_parameters(self) -> str:
        """Parameters in words, for `str`."""
        return ""

    def __str__(self) -> str:
        check_is_fitted(self, "is_kept_")
        why = f" because {self.reason_}" if self.reason_ else ""
        kept = "kept" if self.is_kept_ else f"not kept{why}, distributions stay unchanged"
        reason = "" if self.gate else ", whatever it gains"
        left_out = f", {self.n_impossible_} left out" if self.n_impossible_ else ""
        return (
            f"{self._title}{self._describe_parameters()}: {kept}{reason}. Mean gain in the truth's "
            f"log-probability on held-out rows: {self.gain_:+z.4f} (95% interval "
            f"{self.gain_low_:+z.4f} to {self.gain_high_:+z.4f}, "
            f"n = {self.n_samples_:,}{left_out})."
        )


def _read_part(dist: LabelsetDistribution, Y: LabelsetsLike, sample_weight: object) -> Part:
    """Distributions with their truth and weights, aligned."""
    truth = check_distribution(dist)._align_truth(Y, "Y")
    if sample_weight is None:
        return Part(dist, truth)
    return Part(dist, truth, check_weights(sample_weight, len(dist), dist.index))


def common_labels(parts: list[Part]) -> tuple[LabelNames, int]:
    """Names and number of the labels. Raises InputError where batches differ."""
    if not parts:
        raise InputError("`dists` must hold at least one batch of distributions, got none.")
    first = parts[0].dist
    for part in parts:
        check_same_labels(
            part.dist.label_names,
            part.dist.n_labels,
            first.label_names,
            first.n_labels,
            "the first batch",
        )
    return first.label_names, first.n_labels


def mean_interval(values: Floats, weights: Floats | None = None) -> tuple[float, float, float]:
    """Mean and the ends of its 95% interval, by Student's t.

    Examples
    --------
    >>> mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    (2.5, 0.445..., 4.554...)
    """
    mean = float(np.average(values, weights=weights))
    if weights is None:
        error = float(values.std(ddof=1)) / len(values) ** 0.5
    else:
        squares = float(((weights * (values - mean)) ** 2).sum()) * len(values) / (len(values) - 1)
        error = squares**0.5 / float(weights.sum())
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * error
    return mean, mean - half, mean + half

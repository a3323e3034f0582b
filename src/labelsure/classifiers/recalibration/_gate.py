"""`Recalibration`: what all kinds share, fitting and the gate that keeps only what helps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Floats, LabelNames, Labelsets, Mask
from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.errors import InputError
from labelsure.labelsets.names import check_weights
from labelsure.labelsets.rows import refuse_other_labels, stack_rows
from labelsure.saving import Savable

N_FOLDS = 5
LEVEL = 0.95


class Part(NamedTuple):
    """A batch of distributions, the truth of its instances, and their weights if they have some."""

    dist: LabelsetDistribution
    truth: Labelsets
    weights: Floats | None = None

    def take(self, rows: Mask) -> Part:
        """Return some of the instances."""
        if rows.all():
            return self
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.dist[rows], self.truth[rows], weights)

    def log_prob(self) -> Floats:
        """Return the log-probability of the truth."""
        return self.dist.log_prob(self.truth)


def join_truth(parts: Sequence[Part]) -> tuple[Labelsets, Floats | None]:
    """Return the truth of all instances, one part after the other, and their weights."""
    weights = [part.weights for part in parts if part.weights is not None]
    truth = stack_rows([part.truth for part in parts])
    return truth, np.concatenate(weights) if weights else None


class Recalibration(Savable, BaseEstimator, ABC):  # type: ignore[misc]
    """A change of distributions, fitted to some whose truth is known.

    A kind says how it learns (`_learn`), what it then does to distributions (`_apply`) and what it
    keeps of what was learned (`_keep`).

    Parameters
    ----------
    gate
        Whether what was learned is kept only if it raises the log-probability of the truth on
        instances that it was not learned from: by five folds, the 95 % interval of the mean gain
        being above 0. Otherwise distributions stay as they are.
    """

    _title = "A recalibration"

    def __init__(self, gate: bool = True) -> None:
        self.gate = gate

    def fit(self, dist: LabelsetDistribution, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from distributions whose truth is known.

        Parameters
        ----------
        dist
            A batch of n distributions, by a model that has not seen these instances.
        Y
            Their truth, (n, L), in any form that `dist.align` takes.
        sample_weight
            (n,) weights of the instances. A weight of 0 is as if the instance was not there.
        """
        return self.fit_parts([dist], [Y], None if sample_weight is None else [sample_weight])

    def fit_parts(
        self,
        dists: Sequence[LabelsetDistribution],
        Ys: Sequence[Any],
        sample_weights: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from several batches together, such as those of the folds of a cross-validation.

        Parameters
        ----------
        dists
            Batches of distributions over the same labels.
        Ys
            The truth of each batch.
        sample_weights
            The weights of the instances of each batch.
        """
        self._check_parameters()
        parts = [Part(check_distribution(d), d.align(Y)) for d, Y in zip(dists, Ys, strict=True)]
        self.label_names_, self.n_labels_ = _common_labels(parts)
        self._check_kinds(parts)
        if sample_weights is not None:
            parts = _weigh(parts, sample_weights)
        plain = [part.log_prob() for part in parts]
        parts = [part.take(np.isfinite(logs)) for part, logs in zip(parts, plain, strict=True)]
        self.n_samples_ = sum(len(part.dist) for part in parts)
        self.n_impossible_ = sum(map(len, plain)) - self.n_samples_
        self._check_sizes()
        learned = self._learn(parts)
        self._measure_gain(parts)
        self.is_kept_ = not self.gate or self._passes()
        self._keep(learned)
        return self

    def transform(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Return recalibrated distributions: the same ones, if what was learned is not kept.

        Parameters
        ----------
        dist
            A batch of distributions over the labels that it was fitted to.
        """
        check_is_fitted(self, "is_kept_")
        check_distribution(dist)
        fitted = f"the fitted {type(self).__name__}"
        refuse_other_labels(
            dist.label_names, dist.n_labels, self.label_names_, self.n_labels_, fitted
        )
        return self._apply(dist, self._kept()) if self.is_kept_ else dist

    @abstractmethod
    def _learn(self, parts: list[Part]) -> Any:
        """Return what some instances teach."""

    @abstractmethod
    def _apply(self, dist: LabelsetDistribution, learned: Any) -> LabelsetDistribution:
        """Return distributions as what was learned has them."""

    @abstractmethod
    def _keep(self, learned: Any) -> None:
        """Set the attributes for what was learned from all instances; `is_kept_` is set."""

    @abstractmethod
    def _kept(self) -> Any:
        """Return what was learned, for `_apply`."""

    def _log_prob(self, part: Part, learned: Any) -> Floats:
        """Return the recalibrated log-probability of the truth."""
        return self._apply(part.dist, learned).log_prob(part.truth)

    def _check_parameters(self) -> None:
        if not isinstance(self.gate, (bool, np.bool_)):
            raise InputError(f"`gate` must be True or False, got {self.gate!r}.")

    def _check_kinds(self, parts: list[Part]) -> None:
        """Refuse kinds of distributions that cannot be recalibrated so."""

    def _check_sizes(self) -> None:
        if self.n_samples_ < N_FOLDS:
            raise InputError(
                f"`dist` must have at least {N_FOLDS} instances, one for each fold, whose truth "
                f"has a probability above 0, got {self.n_samples_}. Fit to more instances."
            )
        if self.n_impossible_:
            warnings.warn(
                f"The truth of {self.n_impossible_} of {self.n_samples_ + self.n_impossible_} "
                "instances has probability 0, which no recalibration changes: they are left out. "
                "Distributions that leave every labelset possible can learn from all.",
                UserWarning,
                stacklevel=4,
            )

    def _measure_gain(self, parts: list[Part]) -> None:
        """Set the mean gain of log P(truth) on instances not learned from, and its interval."""
        fold = np.random.default_rng(0).permutation(np.arange(self.n_samples_) % N_FOLDS)
        folds = np.split(fold, np.cumsum([len(part.dist) for part in parts])[:-1])
        gains, judged = [], []
        for k in range(N_FOLDS):
            learned = self._learn([p.take(f != k) for p, f in zip(parts, folds, strict=True)])
            for part, mine in zip(parts, folds, strict=True):
                held_out = part.take(mine == k)
                gains.append(self._log_prob(held_out, learned) - held_out.log_prob())
                judged.append(held_out)
        _, weights = join_truth(judged)
        found = mean_interval(np.concatenate(gains), weights)
        self.gain_, self.gain_low_, self.gain_high_ = found

    def _passes(self) -> bool:
        """Return whether the gain on held-out instances lets the change pass."""
        return self.gain_low_ > 0

    def _describe_learned(self) -> str:
        """Return what was learned, in words."""
        return ""

    def __str__(self) -> str:
        check_is_fitted(self, "is_kept_")
        kept = "kept" if self.is_kept_ else "not kept, distributions stay as they are"
        reason = "" if self.gate else ", whatever it gains"
        left_out = f", {self.n_impossible_} left out" if self.n_impossible_ else ""
        return (
            f"{self._title}{self._describe_learned()}: {kept}{reason}. The truth's mean "
            f"log-probability gains {self.gain_:+.4f} on instances not learned from, 95 % interval "
            f"{self.gain_low_:+.4f} to {self.gain_high_:+.4f} ({self.n_samples_} instances"
            f"{left_out})."
        )


def mean_interval(values: Floats, weights: Floats | None = None) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % interval, by Student's t.

    Parameters
    ----------
    values
        (n,)
    weights
        (n,) above 0. What each value adds to the mean is taken as drawn with it: fewer values that
        count make a wider interval.

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
    half = n_standard_errors(len(values)) * error
    return mean, mean - half, mean + half


def n_standard_errors(n_values: int) -> float:
    """Return how many standard errors the end of the interval is from the mean."""
    return float(stdtrit(n_values - 1, (1 + LEVEL) / 2))


def _weigh(parts: list[Part], sample_weights: Sequence[Any]) -> list[Part]:
    """Return the parts with their weights, without instances that have none."""
    checked = []
    for part, given in zip(parts, sample_weights, strict=True):
        weights = check_weights(given, len(part.dist), part.dist.index)
        checked.append(part._replace(weights=weights).take(weights > 0))
    return checked


def _common_labels(parts: list[Part]) -> tuple[LabelNames, int]:
    """Return the names and the number of the labels, which all batches must share."""
    if not parts:
        raise InputError("`dists` must hold at least one batch of distributions, got none.")
    first = parts[0].dist
    for part in parts:
        refuse_other_labels(
            part.dist.label_names,
            part.dist.n_labels,
            first.label_names,
            first.n_labels,
            "the first batch",
        )
    return first.label_names, first.n_labels

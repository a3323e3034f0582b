"""`LabelsetTable`: a few labelsets with their probabilities, the rest having none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from labelsure._kernels.threads import for_rows
from labelsure._kernels.weighted_labelsets import jaccard_rows
from labelsure._runtime.typing import Floats, Indices, Labelsets, LabelsetsLike, Names, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    Summary,
    TopLabelsets,
    Votes,
    each_guess,
)
from labelsure.distributions._base import SIMPLE, LabelsetDistribution
from labelsure.distributions._probabilities import as_floats, check_row_sums
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.answers import are_answers, read_answers
from labelsure.labelsets.codes import codes_of
from labelsure.labelsets.foreign import refuse_masked
from labelsure.labelsets.reading import read_rows
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.registry import JACCARD, Metric

# Entropy estimators: labelsets weighted by how often each was drawn, and the draws an instance.


def _plugin(counts: WeightedLabelsets, size: int) -> Floats:
    shares = counts.weights / size
    return counts.sum(-shares * np.log(shares))


def _miller_madow(counts: WeightedLabelsets, size: int) -> Floats:
    """Plug-in estimate plus the first term of its bias: half a degree of freedom a draw."""
    return _plugin(counts, size) + (counts.lengths - 1) / (2 * size)


def _grassberger(counts: WeightedLabelsets, size: int) -> Floats:
    """Plug-in with G(n_i) for log n_i: its bias falls exponentially with n_i (Grassberger 2003)."""
    n = counts.weights
    sign = np.where(n % 2 == 0, 0.5, -0.5)
    G = digamma(n) + sign * (digamma((n + 1) / 2) - digamma(n / 2))
    return np.log(size) - counts.sum(n * G) / size


def _chao_shen(counts: WeightedLabelsets, size: int) -> Floats:
    """Horvitz-Thompson sum over shares shrunk to the estimated coverage (Chao and Shen 2003)."""
    n_singletons = counts.sum((counts.weights == 1).astype(np.float64))
    # With singletons only the coverage would be 0 and the estimate infinite.
    coverage = 1 - np.where(n_singletons == size, size - 1.0, n_singletons) / size
    p = coverage[counts.instance] * counts.weights / size
    with np.errstate(divide="ignore"):  # p = 1: log1p(-1) is -inf, its exp 0
        seen = -np.expm1(size * np.log1p(-p))
    return counts.sum(-p * np.log(p) / seen)


ENTROPY_ESTIMATORS: dict[str, Callable[[WeightedLabelsets, int], Floats]] = {
    "plugin": _plugin,
    "miller_madow": _miller_madow,
    "grassberger": _grassberger,
    "chao_shen": _chao_shen,
}
"""All estimators by name. A new one is a function and an entry here."""


def check_estimator(estimator: str, size: int) -> str:
    """Name of an entropy estimator. Raises InputError if unknown or if `size` draws are too few."""
    if estimator not in ENTROPY_ESTIMATORS:
        raise unknown_name("entropy estimator", estimator, ENTROPY_ESTIMATORS)
    if estimator != "plugin" and size < 2:
        raise InputError(
            f"The entropy estimator {estimator!r} needs at least two draws of each instance, got "
            f'{size}. Draw more, or use entropy="plugin".'
        )
    return estimator


def estimate_profile(
    plain: Profile, counts: WeightedLabelsets, size: int, estimator: str
) -> Profile:
    """Profile with entropy and collision by the estimator, whose name is its `method`."""
    method = np.full(len(plain), estimator)
    if estimator == "plugin":
        return replace(plain, method=method)
    most = plain.n_bits * np.log(2)
    # Unbiased: the share of pairs of draws that are equal.
    equal_pairs = counts.sum(counts.weights * (counts.weights - 1)) / (size * (size - 1))
    return replace(
        plain,
        entropy=np.clip(ENTROPY_ESTIMATORS[estimator](counts, size), 0.0, most),
        log_collision=np.maximum(log(equal_pairs), -most),
        method=method,
    )


class LabelsetTable(LabelsetDistribution):
    """Distributions with few possible labelsets: votes of a forest, beams, sampled answers.

    Parameters
    ----------
    labelsets
        A list with one (k_i, L) array for each instance, or one (n, k, L) array. A labelset that
        is there twice counts with the sum of its probabilities.
    probabilities
        A list of (k_i,) arrays, or one (n, k) array.
    label_names
        One for each label.
    normalise
        Divide the probabilities of each instance by their sum instead of refusing those that do
        not sum to one.

    See Also
    --------
    DenseDistribution : All 2**L probabilities.
    as_distribution : Make a distribution from a model or from probabilities.

    Examples
    --------
    >>> dist = LabelsetTable([[[1, 0], [1, 1]]], [[0.25, 0.75]])
    >>> dist.mode()
    array([[1, 1]], dtype=int8)
    >>> dist.marginals()
    array([[1.  , 0.75]])
    """

    _lists_labelsets = True

    _estimator = ""  # of the entropy, where the table was made from draws
    _n_votes: Floats | None = None  # (n,) how many votes each instance has, where it has votes

    def __init__(
        self,
        labelsets: LabelsetsLike,
        probabilities: ArrayLike,
        label_names: Names = None,
        *,
        normalise: bool = False,
    ) -> None:
        rows, weights, lengths = _flatten(labelsets, probabilities)
        super().__init__(len(lengths), rows.shape[1], label_names)
        instance = np.repeat(np.arange(len(lengths)), lengths)
        totals = np.bincount(instance, weights, minlength=len(self)).astype(np.float64)
        n_bad = np.bincount(instance[~(weights >= 0)], minlength=len(self))
        check_row_sums(totals, n_bad, weights.dtype, normalise=normalise)
        shares = weights / totals[instance] if normalise else weights
        self._seen = self._known = WeightedLabelsets.merge(rows, shares, instance, len(self))

    @classmethod
    def from_weighted(
        cls,
        seen: WeightedLabelsets,
        label_names: Names = None,
        known: WeightedLabelsets | None = None,
    ) -> Self:
        """Table of labelsets whose weights are known to be probabilities.

        Parameters
        ----------
        seen
            The labelsets of each instance; one that has none counts as the empty labelset in
            `mode` and `top`, with probability 0.
        label_names
            One for each label.
        known
            Those of which the probability itself is known, where the weights of others are their
            shares of draws: `log_prob`, `mode` and `top` then go by these alone. None: all.

        Examples
        --------
        >>> seen = WeightedLabelsets.merge([[1, 0], [0, 1]], [3, 1], [0, 0]).normalise()
        >>> LabelsetTable.from_weighted(seen).marginals()
        array([[0.75, 0.25]])
        """
        new = cls.__new__(cls)
        LabelsetDistribution.__init__(new, len(seen), seen.n_labels, label_names)
        new._seen, new._known = seen, seen if known is None else known
        return new

    @classmethod
    def from_samples(
        cls,
        samples: LabelsetsLike,
        label_names: Names = None,
        *,
        entropy: str = "plugin",
        unknown: str = "drop",
    ) -> Self:
        """Table of the relative frequencies of drawn labelsets, or of votes.

        Parameters
        ----------
        samples
            - (n, size, L) zeros and ones: for each instance `size` draws or votes. A row of NaN is
              a vote not cast;
            - or for each instance a list of answers, of which instances may have different numbers.
              An answer is a list of label names, JSON text of one, or a dict
              ``{"labels": [...], "weight": w}``. None, and text that is no JSON list, is a vote
              not cast: a warning says how many there are.
        label_names
            One for each label. None takes all names that answers list, sorted.
        entropy
            Estimator of the entropy of the distribution that was drawn from: "plugin" takes the
            shares as they are, which is too low on average; "miller_madow", "grassberger" and
            "chao_shen" correct for that, and the collision is then the share of equal pairs of
            draws, which is unbiased. The profile's `method` is this name. Everything else always
            goes by the shares.
        unknown
            Treatment of names in answers that are not in `label_names`: "refuse" them, "drop"
            them with a warning that counts them, or "keep" them as further labels.

        Examples
        --------
        >>> votes = [[[1, 0], [1, 0], [0, 0], [1, 0]]]
        >>> LabelsetTable.from_samples(votes).top(2).probabilities
        array([[0.75, 0.25]])
        >>> LabelsetTable.from_samples(votes, entropy="miller_madow").profile().collision
        array([0.5])
        >>> first = [["urgent", "billing"], '["billing", "urgent"]', ["billing"]]
        >>> answers = [first, [[], ["login"]]]
        >>> dist = LabelsetTable.from_samples(answers, ["billing", "login", "urgent"])
        >>> dist.marginals().round(2)
        array([[1.  , 0.  , 0.67],
               [0.  , 0.5 , 0.  ]])
        """
        refuse_masked(samples, "samples")
        if are_answers(samples):
            rows, weights, instance, names = read_answers(samples, label_names, unknown)
            new = cls._from_votes(rows, weights, instance, len(samples), names)
        else:
            array = as_floats(samples, "samples")
            if array.ndim != 3 or 0 in array.shape[1:]:
                raise InputError(
                    "`samples` must have shape (n_samples, size, n_labels) with at least one draw "
                    f"and one label, got shape {array.shape}. Draws of one instance are `[draws]`."
                )
            instance, place = np.nonzero(~np.isnan(array).all(axis=2))
            rows = read_rows(array[instance, place], "samples", sparse=False)
            new = cls._from_votes(rows, np.ones(len(rows)), instance, len(array), label_names)
        sizes = np.asarray(new._n_votes)
        new._estimator = check_estimator(entropy, int(sizes.min()) if len(sizes) else 2)
        if entropy != "plugin" and (sizes != sizes[:1]).any():
            raise InputError(
                f"The entropy estimator {entropy!r} needs the same number of draws for every "
                f'instance, got {sizes.min():g} to {sizes.max():g}. Use entropy="plugin".'
            )
        return new

    @classmethod
    def _from_votes(
        cls,
        rows: Labelsets,
        weights: Floats,
        instance: Indices,
        n_samples: int,
        label_names: Names,
    ) -> Self:
        """Table of the shares of votes, with Kish's effective number of votes."""
        totals = np.bincount(instance, weights, minlength=n_samples)
        if not totals.all():
            raise InputError(
                f"Each instance must have at least one vote, row {totals.argmin()} has none. Drop "
                "that row, or write zeros for an empty labelset."
            )
        merged = WeightedLabelsets.merge(rows, weights / totals[instance], instance, n_samples)
        new = cls.from_weighted(merged, label_names)
        new._n_votes = totals**2 / np.bincount(instance, weights**2, minlength=n_samples)
        return new

    @property
    def labelsets(self) -> WeightedLabelsets:
        """The labelsets of each instance with their probabilities, as ragged rows."""
        return self._seen

    def _take(self, rows: Rows) -> Self:
        seen = self._seen.take(rows)
        known = seen if self._known is self._seen else self._known.take(rows)
        new = self.from_weighted(seen, self.label_names, known)
        new._estimator = self._estimator
        new._n_votes = None if self._n_votes is None else self._n_votes[rows]
        return new

    def _marginals(self) -> Expected:
        return Expected.exactly(np.minimum(self._seen.marginals(), 1.0))

    def _log_prob(self, Y: Labelsets) -> Floats:
        same = (self._known.rows == Y[self._known.instance]).all(axis=1)
        return log(self._known.sum(self._known.weights * same))

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        best = self._top(2)
        weights = self._seen.weights
        profile = Profile.from_values(
            best.probabilities[:, 0],
            best.probabilities[:, 1],
            np.maximum(self._seen.sum(-weights * np.log(weights)), 0.0),
            self._seen.sum(weights**2),
            self.n_labels,
        )
        if self._estimator and self._n_votes is not None:
            size = int(self._n_votes.max(initial=1))
            counts = replace(self._seen, weights=np.rint(weights * size))
            profile = estimate_profile(profile, counts, size, self._estimator)
        return self._summarise(profile, best.labelsets[:, 0], metrics, empty)

    @property
    def _votes(self) -> Votes | None:  # type: ignore[override]
        return None if self._n_votes is None else Votes(self, self._n_votes)

    def _top(self, k: int) -> TopLabelsets:
        labelsets, probabilities = self._known.top(k)
        return TopLabelsets(labelsets, log(probabilities))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        instance, starts = self._seen.instance, self._seen.starts[:, np.newaxis]
        # Instance i owns the stretch from i to i + 1 of one long running sum.
        running = np.cumsum(self._seen.weights)
        before = np.append(0.0, running)[self._seen.starts]
        running = running - before[instance] + instance
        uniforms = generator.random((len(self), size)) + np.arange(len(self))[:, np.newaxis]
        drawn = np.searchsorted(running, uniforms, side="right")
        # A sum a hair below one must not hand the last draws to the next instance.
        return self._seen.rows[np.clip(drawn, starts[:-1], starts[1:] - 1)]

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        return [self._expect(metric, guesses, empty) for metric in metrics]

    def _expect(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric in SIMPLE:
            return self._simple(metric, guesses)
        if metric == JACCARD:
            values = np.empty(np.shape(guesses)[:2])
            arrays = (self._seen.rows, self._seen.weights, self._seen.starts)
            for_rows(jaccard_rows, len(self), *arrays, guesses, empty, into=[values])
            return Expected.exactly(values)
        columns = [expect_over(self._seen, metric, Y, empty) for Y in each_guess(guesses)]
        return Expected.exactly(np.stack(columns, axis=1))

    def _size_marginals(self) -> Floats:
        by_size = np.zeros((len(self), self.n_labels, self.n_labels))
        rows, sizes = self._seen.rows, self._seen.rows.sum(axis=1)
        some = sizes > 0
        instance, last = self._seen.instance[some, np.newaxis], sizes[some, np.newaxis] - 1
        added = self._seen.weights[some, np.newaxis] * rows[some]
        np.add.at(by_size, (instance, np.arange(self.n_labels), last), added)
        return by_size

    def _temper(self, temperature: float) -> Self:
        """Temper the shares; counts of draws, and with them the entropy estimator, are dropped."""
        seen = self._seen
        raised = np.exp(self._logs_below_largest() / temperature)
        merged = WeightedLabelsets.merge(seen.rows, raised, seen.instance, len(seen))
        return self.from_weighted(merged.normalise(), self.label_names)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        logs = self._logs_below_largest()
        of_truth = self._log_prob(Y) - self._log_largest()
        return lambda temperature: (
            of_truth / temperature - np.log(self._seen.sum(np.exp(logs / temperature)))
        )

    def _log_largest(self) -> Floats:
        weights = self._seen.weights
        return np.log(weights[np.minimum(self._seen.starts[:-1], len(weights) - 1)])

    def _logs_below_largest(self) -> Floats:
        return np.log(self._seen.weights) - self._log_largest()[self._seen.instance]

    def _probabilities(self) -> Floats:
        P = np.zeros((len(self), 2**self.n_labels))
        P[self._seen.instance, codes_of(self._seen.rows)] = self._seen.weights
        return P


def expect_over(seen: WeightedLabelsets, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
    """Sum over an instance's labelsets of weight times accuracy of Y_pred, (n,)."""
    return seen.sum(seen.weights * metric.values(*seen.counts(Y_pred), empty=empty))


def _flatten(
    labelsets: LabelsetsLike, probabilities: ArrayLike
) -> tuple[Labelsets, NDArray[np.floating[Any]], Indices]:
    """All labelsets below each other, their weights, and their numbers by instance."""
    labelsets = _by_instance(labelsets, "labelsets")
    weights_of = _by_instance(probabilities, "probabilities")
    if len(labelsets) != len(weights_of):
        raise InputError(
            "`labelsets` and `probabilities` must have one entry for each instance, got "
            f"{len(labelsets)} and {len(weights_of)}."
        )
    blocks, weights = [], []
    n_labels = None
    for i, (block, weight) in enumerate(zip(labelsets, weights_of, strict=True)):
        rows = read_rows(block, f"labelsets[{i}]", n_labels=n_labels, sparse=False)
        n_labels = rows.shape[1]
        values = as_floats(weight, f"probabilities[{i}]")
        if values.shape != (len(rows),) or len(rows) == 0:
            raise InputError(
                f"`probabilities[{i}]` must have one value for each of the {len(rows)} labelsets "
                f"of instance {i}, at least one, got shape {values.shape}."
            )
        blocks.append(rows)
        weights.append(values)
    if not blocks:
        shape = np.shape(labelsets)
        if len(shape) != 3 or shape[2] == 0:
            raise InputError(
                "`labelsets` without instances must be an array of shape (0, k, n_labels), got "
                f"shape {shape}."
            )
        return np.empty((0, shape[2]), dtype=np.int8), np.empty(0), np.empty(0, dtype=np.intp)
    lengths = np.array([len(block) for block in blocks], dtype=np.intp)
    return np.concatenate(blocks), np.concatenate(weights), lengths


def _by_instance(values: Any, name: str) -> Any:
    """Sequence with one entry for each instance; a DataFrame becomes an array."""
    values = np.asarray(values) if hasattr(values, "columns") else values
    try:
        len(values)
    except TypeError as error:
        raise InputError(
            f"`{name}` must be a list with one array for each instance, or one array, "
            f"got {type(values).__name__}."
        ) from error
    return values

"""What distributions are asked, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.distributions.candidates import Profile
from labelsure.labelsets.rows import stack_rows
from labelsure.metrics.registry import EXACT, HAMMING, Metric

if TYPE_CHECKING:
    from labelsure.distributions._bridge import LabelsetDistribution

PRIMITIVES: dict[str, tuple[str, ...]] = {
    "__getitem__": ("_take",),
    "marginals": ("_marginals",),
    "marginal_bounds": ("_marginal_bounds",),
    "log_prob": ("_log_prob",),
    "sample": ("_sample",),
    "top": ("_top",),
    "mode": ("_mode",),
    "profile": ("_summary",),
    "summary": ("_summary",),
    "max_marginals": ("_max_marginals",),
    "expected": ("_expected", "_expected_of_guesses", "_expected_by_counts"),
    "size_marginals": ("_size_marginals",),
    "covariance_sums": ("_covariance_sums",),
    "probabilities": ("_probabilities",),
    "best": ("_best",),
    "best_with_gap": ("_best_with_gap",),
    "support": ("_support",),
    "members": ("_members",),
    "temper": ("_temper",),
    "tempered_log_prob": ("_tempered_log_prob",),
    "with_engine": ("_with_engine",),
    "with_dense_rows": ("_with_dense_rows",),
    "keep_top": ("_keep_top",),
}
"""Each public question and the primitives that answer it. A new kind implements the abstract ones,
and those with a default where it has a better way."""


@dataclass(frozen=True)
class TopLabelsets:
    """The k most probable labelsets of each instance, most probable first.

    Parameters
    ----------
    labelsets
        (n, k, L) zeros and ones; of equally probable ones the lowest code comes first. Those of
        sparse labels are not an array, but also have those of one rank at `[:, rank]`.
    logs
        (n, k) their log-probabilities, which are numbers also where probabilities are too small.
    log_high
        (n, k) no labelset that is really of this rank is more probable: equal to `logs` wherever
        the ranking is certain, as it always is but for enumerations cut short.
    """

    labelsets: Labelsets
    logs: Floats
    log_high: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        if self.log_high.size == 0:
            object.__setattr__(self, "log_high", self.logs)

    @property
    def probabilities(self) -> Floats:
        """(n, k), 0 where they are too small for a number."""
        return np.exp(self.logs)

    @property
    def high(self) -> Floats:
        """(n, k) no labelset that is really of this rank is more probable."""
        return np.exp(self.log_high)


@dataclass(frozen=True)
class MaxMarginals:
    """How probable a labelset can be at most when the value of one label is given.

    Parameters
    ----------
    logs
        (n, L, 2) for each label and its value, 0 or 1, the log-probability of the most probable
        labelset that has it, as far as labelsets are known; -inf where there is none.
    high
        (n, L, 2) no labelset with that value is more probable: equal to `logs` wherever these are
        exact, as they always are but for enumerations cut short.
    """

    logs: Floats
    high: Floats

    @classmethod
    def exactly(cls, logs: Floats) -> MaxMarginals:
        """Wrap exact values."""
        return cls(logs, logs)

    @classmethod
    def assemble(cls, parts: Sequence[tuple[Indices, MaxMarginals]], n_labels: int) -> MaxMarginals:
        """Put together what answers for some rows each."""
        n_samples = sum(len(rows) for rows, _ in parts)
        logs, high = (np.empty((n_samples, n_labels, 2)) for _ in range(2))
        for rows, found in parts:
            logs[rows], high[rows] = found.logs, found.high
        return cls(logs, high)


@dataclass(frozen=True)
class Expected:
    """Expected accuracies, or other means, with bounds: the values themselves where exact.

    Parameters
    ----------
    value
        (n,) one for each instance; or (n, g), one for each of g guesses, or of g labels.
    low, high
        Bounds of the same shape.
    """

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def exactly(cls, value: Floats) -> Expected:
        """Wrap exact values."""
        return cls(value, value, value)

    @classmethod
    def stack(cls, columns: Sequence[Expected]) -> Expected:
        """Put the values of g guesses, (n,) each, beside each other: (n, g)."""
        names = ("value", "low", "high")
        arrays = [np.stack([getattr(one, name) for one in columns], axis=1) for name in names]
        return cls(*arrays)


def expect_exact(dist: LabelsetDistribution, Y_pred: Labelsets) -> Floats:
    """Return the expected exact match: the probability of the prediction."""
    return np.exp(dist._log_prob(Y_pred))


def expect_hamming(dist: LabelsetDistribution, Y_pred: Labelsets) -> Floats:
    """Return the expected Hamming accuracy: the mean probability that a label is right."""
    marginals = dist._marginals()
    return np.where(Y_pred == 1, marginals, 1 - marginals).mean(axis=1)


EXPECTATIONS: dict[Metric, Callable[[LabelsetDistribution, Labelsets], Floats]] = {
    EXACT: expect_exact,
    HAMMING: expect_hamming,
}
"""Metrics whose expectation every kind has from simpler answers than the counts."""


@dataclass(frozen=True)
class Support:
    """The labelsets that are known of some instances, and what all the others have at most.

    Parameters
    ----------
    table
        The known labelsets with their probabilities, divided by the sum of these; or with draws
        that stand for the others.
    seen_mass
        (n,) what differences within the table count for: that sum, or 1 with draws.
    unseen_mass
        (n,) the most that can be elsewhere than the table says: what all others have together,
        twice with draws, which are themselves elsewhere then.
    largest_unseen
        (n,) the most that a single labelset that was not enumerated can have.
    marginal_bounds
        Returns P(y_j = 1) with bounds, which are simultaneous 95% intervals with draws.
    """

    table: LabelsetDistribution
    seen_mass: Floats
    unseen_mass: Floats
    largest_unseen: Floats
    marginal_bounds: Callable[[], Expected]


@dataclass(frozen=True)
class Summary:
    """Profile, mode and the mode's expected accuracies, from one sweep over the distribution.

    Parameters
    ----------
    profile
        The four numbers.
    mode
        (n, L) most probable labelsets.
    expected
        For each metric's name the (n,) expected accuracies of the mode.
    expected_low, expected_high
        Bounds of the same; the same values where they are exact.
    """

    profile: Profile
    mode: Labelsets
    expected: dict[str, Floats]
    expected_low: dict[str, Floats] = field(default_factory=dict, repr=False)
    expected_high: dict[str, Floats] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("expected_low", "expected_high"):
            if not getattr(self, name):
                object.__setattr__(self, name, self.expected)

    @classmethod
    def of_mode(cls, profile: Profile, mode: Labelsets, expected: dict[str, Expected]) -> Summary:
        """Put together what was found for the mode, by the names of the metrics."""
        return cls(
            profile,
            mode,
            {name: found.value for name, found in expected.items()},
            {name: found.low for name, found in expected.items()},
            {name: found.high for name, found in expected.items()},
        )

    @classmethod
    def of_nothing(cls, metrics: Sequence[Metric], n_labels: int) -> Summary:
        """Return the summary of a batch without instances."""
        mode = np.empty((0, n_labels), dtype=np.int8)
        expected = {metric.name: np.empty(0) for metric in metrics}
        return cls(Profile.concatenate([], n_labels), mode, expected)

    @classmethod
    def assemble(cls, parts: Sequence[tuple[Indices, Summary]]) -> Summary:
        """Put summaries of some rows each, themselves in order, together in the order of rows."""
        if len(parts) == 1:
            return parts[0][1]
        order = np.argsort(np.concatenate([rows for rows, _ in parts]))
        summaries = [summary for _, summary in parts]

        def joined(name: str) -> dict[str, Floats]:
            columns = [getattr(summary, name) for summary in summaries]
            return {
                metric: np.concatenate([values[metric] for values in columns])[order]
                for metric in columns[0]
            }

        profiles = [summary.profile for summary in summaries]
        return cls(
            Profile.concatenate(profiles, profiles[0].n_labels)[order],
            stack_rows([summary.mode for summary in summaries])[order],
            joined("expected"),
            joined("expected_low"),
            joined("expected_high"),
        )


class View(Protocol):
    """What answers for some instances of a batch: all labelsets, the likely ones, or draws."""

    def profile(self) -> Profile:
        """Return the four numbers."""

    def mode(self) -> Labelsets:
        """Return the most probable labelsets, as far as they are known, (n, L)."""

    def top(self, k: int) -> TopLabelsets:
        """Return the k most probable labelsets, as far as they are known."""

    def marginal_bounds(self) -> Expected:
        """Return P(y_j = 1) and its bounds, each (n, L)."""

    def max_marginals(self) -> MaxMarginals:
        """Return how probable a labelset can be when one label's value is given."""

    def expected(self, metric: Metric, Y_pred: Labelsets, *, empty: float) -> Expected:
        """Return the expected accuracy of given labelsets with bounds."""

    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Return profile, mode and the mode's expected accuracies."""
        mode = self.mode()
        expected = {metric.name: self.expected(metric, mode, empty=empty) for metric in metrics}
        return Summary.of_mode(self.profile(), mode, expected)

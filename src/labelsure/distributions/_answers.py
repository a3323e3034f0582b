"""What distributions answer: profiles, expected accuracies with bounds, the best labelsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelsure._typing import Floats, Indices, Labelsets

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution
    from labelsure.metrics import Metric


FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")
NOTES = ("method", "entropy_error", "collision_error")


def log(values: ArrayLike) -> Floats:
    """Return the natural logarithm, -inf for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


@dataclass(frozen=True)
class Profile:
    """What the candidates need to know of n distributions; every field has shape (n,).

    Parameters
    ----------
    log_top
        Log of the largest probability.
    log_runner_up
        Log of the second largest, of another labelset; equal to `log_top` on a tie.
    entropy
        Shannon entropy in nats.
    log_collision
        Log of the sum of squared probabilities: two draws are the same labelset.
    n_labels
        Log2 of the number of outcomes. A distribution over K outcomes that are no labelsets has
        log2(K) here.
    method
        The engine that gave each row: "exact" unless it says otherwise.
    bounds
        Two profiles that enclose every field; None where the fields are exact.
    entropy_error, collision_error
        Standard errors of the entropy and of the collision; 0 unless they were sampled.
    """

    log_top: Floats
    log_runner_up: Floats
    entropy: Floats
    log_collision: Floats
    n_labels: float
    method: NDArray[np.str_] = field(default_factory=lambda: np.empty(0, dtype=np.str_))
    bounds: tuple[Profile, Profile] | None = field(default=None, repr=False)
    entropy_error: Floats = field(default_factory=lambda: np.empty(0))
    collision_error: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        defaults = {
            "method": np.full(len(self), "exact"),
            "entropy_error": np.zeros(len(self)),
            "collision_error": np.zeros(len(self)),
        }
        for name, values in defaults.items():
            if getattr(self, name).size == 0:
                object.__setattr__(self, name, values)

    @classmethod
    def from_values(
        cls,
        top: ArrayLike,
        runner_up: ArrayLike,
        entropy: ArrayLike,
        collision: ArrayLike,
        n_labels: float,
    ) -> Profile:
        """Build an exact profile from plain values instead of logs."""
        entropy = np.asarray(entropy, dtype=np.float64)
        return cls(log(top), log(runner_up), entropy, log(collision), n_labels)

    @classmethod
    def concatenate(cls, profiles: Sequence[Profile], n_labels: float) -> Profile:
        """Put the rows of several profiles below each other."""
        if not profiles:
            return cls.from_values([], [], [], [], n_labels)
        bounds = None
        if any(profile.bounds is not None for profile in profiles):
            bounds = (
                cls.concatenate([profile.low for profile in profiles], n_labels),
                cls.concatenate([profile.high for profile in profiles], n_labels),
            )
        columns = {
            name: np.concatenate([getattr(profile, name) for profile in profiles])
            for name in (*FIELDS, *NOTES)
        }
        return cls(**columns, n_labels=n_labels, bounds=bounds)

    def __getitem__(self, rows: Any) -> Profile:
        """Return some rows: a slice, indices or a mask."""
        bounds = None if self.bounds is None else (self.bounds[0][rows], self.bounds[1][rows])
        columns = {name: getattr(self, name)[rows] for name in (*FIELDS, *NOTES)}
        return Profile(**columns, n_labels=self.n_labels, bounds=bounds)

    @property
    def top(self) -> Floats:
        """The largest probability."""
        return np.exp(self.log_top)

    @property
    def runner_up(self) -> Floats:
        """The second largest probability."""
        return np.exp(self.log_runner_up)

    @property
    def collision(self) -> Floats:
        """The sum of squared probabilities."""
        return np.exp(self.log_collision)

    @property
    def low(self) -> Profile:
        """Lower bounds of every field; the profile itself where it is exact."""
        return self if self.bounds is None else self.bounds[0]

    @property
    def high(self) -> Profile:
        """Upper bounds of every field; the profile itself where it is exact."""
        return self if self.bounds is None else self.bounds[1]

    def __len__(self) -> int:
        return len(self.log_top)

    def to_frame(self) -> pd.DataFrame:
        """Return the profile as a DataFrame: top, runner_up, entropy, collision, logs, method."""
        import pandas as pd

        names = ("top", "runner_up", "entropy", "collision", "log_top", "log_runner_up")
        columns = {name: getattr(self, name) for name in (*names, "log_collision")}
        return pd.DataFrame({**columns, "method": self.method})


@dataclass(frozen=True)
class TopLabelsets:
    """The k most probable labelsets of each instance, most probable first.

    Parameters
    ----------
    labelsets
        (n, k, L) zeros and ones; of equally probable ones the lowest code comes first.
    probabilities
        (n, k)
    high
        (n, k) no labelset that is really of this rank is more probable: equal to `probabilities`
        wherever the ranking is certain, as it always is but for enumerations cut short.
    """

    labelsets: Labelsets
    probabilities: Floats
    high: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        if self.high.size == 0:
            object.__setattr__(self, "high", self.probabilities)


@dataclass(frozen=True)
class Expected:
    """Expected accuracies with bounds, which are the values themselves where these are exact.

    Parameters
    ----------
    value
        (n,) one for each instance; or (n, g), one for each of g guesses.
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


@dataclass(frozen=True)
class Support:
    """The labelsets that are known of some instances, and what all the others have at most.

    Parameters
    ----------
    table
        The known labelsets with their probabilities, divided by the sum of these.
    seen_mass
        (n,) that sum.
    unseen_mass
        (n,) the most that all others can have together.
    largest_unseen
        (n,) the most that a single other one can have.
    """

    table: LabelsetDistribution
    seen_mass: Floats
    unseen_mass: Floats
    largest_unseen: Floats


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
            np.concatenate([summary.mode for summary in summaries])[order],
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

    def marginals(self) -> Floats:
        """Return P(y_j = 1), (n, L)."""

    def expected(self, metric: Metric, Y_pred: Labelsets, *, empty: float) -> Expected:
        """Return the expected accuracy of given labelsets with bounds."""

    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Return profile, mode and the mode's expected accuracies."""
        mode = self.mode()
        expected = {metric.name: self.expected(metric, mode, empty=empty) for metric in metrics}
        return Summary.of_mode(self.profile(), mode, expected)

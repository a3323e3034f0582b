"""Questions to distributions, types of the answers, and the interface of approximations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from labelsure._runtime.typing import Floats, Indices, Labelsets, Mask
from labelsure.distributions.candidates import Profile
from labelsure.labelsets.sparse import is_sparse, stack_rows
from labelsure.metrics.registry import Metric

if TYPE_CHECKING:
    from labelsure.distributions._base import LabelsetDistribution
    from labelsure.distributions._labelset_table import LabelsetTable


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
class Expected:
    """Expected accuracies, or other means, with bounds; `numpy.asarray` gives the values.

    Parameters
    ----------
    value
        (n,) one for each instance; or (n, g), one for each of g guesses, or of g labels.
    low, high
        Bounds of the same shape: the values themselves where these are exact.
    method
        (n,) method of each instance: "exact"; "certified", the bounds are guaranteed;
        "sampled" or "certified+sampled", they are 95% intervals.

    Examples
    --------
    >>> from labelsure import IndependentLabels, expected_accuracy
    >>> found = expected_accuracy(IndependentLabels([[0.9, 0.2]]), metric="hamming")
    >>> found.value, found.low, found.high, found.method
    (array([0.85]), array([0.85]), array([0.85]), array(['exact'], dtype='<U5'))
    """

    value: Floats
    low: Floats
    high: Floats
    method: NDArray[np.str_] = field(default_factory=lambda: np.empty(0, dtype=np.str_))

    def __post_init__(self) -> None:
        if self.method.size == 0:
            object.__setattr__(self, "method", np.full(len(self.value), "certified"))

    @classmethod
    def exactly(cls, value: Floats) -> Expected:
        """Exact values, whose bounds are the values themselves."""
        return cls(value, value, value, np.full(len(value), "exact"))

    @property
    def is_exact(self) -> Mask:
        """Whether the values of an instance are exact, (n,)."""
        return self.method == "exact"

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        """The values."""
        return np.array(self.value, dtype=dtype, copy=copy)

    def of_first_guess(self) -> Expected:
        """Expected accuracies of the first guess, (n,)."""
        return Expected(self.value[:, 0], self.low[:, 0], self.high[:, 0], self.method)


Guesses = Labelsets | list[Labelsets]
"""Several labelsets for each instance: (n, g, L) zeros and ones, or a list of g sparse arrays."""


def as_guesses(Y: Labelsets) -> Guesses:
    """One labelset for each instance as the only guess."""
    return [Y] if is_sparse(Y) else Y[:, np.newaxis]


def each_guess(guesses: Guesses) -> Iterable[Labelsets]:
    """The first guess of all instances, then the second, ... each a contiguous array."""
    if isinstance(guesses, list):
        return guesses
    return np.ascontiguousarray(np.swapaxes(guesses, 0, 1))


def expected_hamming(p: Floats, guesses: Guesses) -> Floats:
    """Mean share of right labels of each guess, (n, g), by P(y_j = 1)."""
    agreement = [np.where(Y == 1, p, 1 - p).mean(axis=1) for Y in each_guess(guesses)]
    return np.stack(agreement, axis=1)


def with_flips(Y: Labelsets) -> Labelsets:
    """Each labelset, followed by the same with one label flipped, (n, 1 + L, L).

    Examples
    --------
    >>> with_flips(np.array([[0, 1]], dtype=np.int8))
    array([[[0, 1],
            [1, 1],
            [0, 0]]], dtype=int8)
    """
    n_labels = Y.shape[1]
    change = np.concatenate([np.zeros((1, n_labels)), np.eye(n_labels)]).astype(np.int8)
    return Y[:, np.newaxis] ^ change


def are_flips(guesses: Labelsets) -> bool:
    """Whether (n, g, L) guesses are `with_flips` of the first of each instance."""
    _, n_guesses, n_labels = guesses.shape
    return n_guesses == n_labels + 1 and np.array_equal(guesses, with_flips(guesses[:, 0]))


T = TypeVar("T")


def join_answers(parts: Iterable[tuple[Indices, T]]) -> T:
    """Concatenation of answers for some rows each, all of one type, in the order of the rows."""
    rows, answers = zip(*parts, strict=True)
    if len(answers) == 1:
        return cast(T, answers[0])
    return cast(T, _join(answers, np.argsort(np.concatenate(rows))))


def _join(answers: Sequence[Any], order: Indices) -> Any:
    first = answers[0]
    if isinstance(first, np.ndarray) or is_sparse(first):
        return stack_rows(answers)[order]
    if isinstance(first, Profile):
        return Profile.concatenate(answers, first.n_bits)[order]
    if isinstance(first, (tuple, list)):
        return type(first)(_join(column, order) for column in zip(*answers, strict=True))
    if isinstance(first, dict):
        return {key: _join([answer[key] for answer in answers], order) for key in first}
    names = [field_.name for field_ in fields(first)]
    columns = ([getattr(answer, name) for answer in answers] for name in names)
    return type(first)(*(_join(column, order) for column in columns))


@dataclass(frozen=True)
class Optimum:
    """Labelsets of the highest expected accuracy.

    Parameters
    ----------
    labelsets
        (n, L), the lowest code on a tie.
    gaps
        (n,) upper bound on their regret in expected accuracy.
    """

    labelsets: Labelsets
    gaps: Floats


@dataclass(frozen=True)
class Support:
    """Known labelsets of some instances, with upper bounds on the probability of all others.

    Parameters
    ----------
    table
        The known labelsets with their probabilities, divided by the sum of these; or with draws
        that stand for the others.
    seen_mass
        (n,) weight of differences within the table: that sum, or 1 with draws.
    unseen_mass
        (n,) upper bound on the probability that the table misplaces: the sum of all others, twice
        that with draws, which may be misplaced themselves.
    largest_unseen
        (n,) upper bound on the probability of a single labelset that was not enumerated.
    marginals
        P(y_j = 1) with bounds, which are simultaneous 95% intervals with draws; for Hamming alone.
    """

    table: LabelsetDistribution
    seen_mass: Floats
    unseen_mass: Floats
    largest_unseen: Floats
    marginals: Expected | None = None


Known: TypeAlias = "Support | LabelsetDistribution"
"""Input of a decision rule: the labelsets that are known, or a whole distribution."""

Best: TypeAlias = "Optimum | Known"
"""Best labelsets of some instances, or the input of their decision rule."""


@dataclass(frozen=True)
class Votes:
    """Votes for labelsets, alone or beside a probability of each label from another source.

    Parameters
    ----------
    table
        A `LabelsetTable` of the shares of the votes.
    n_votes
        (n,) number of votes.
    prior
        (n, L) P(y_j = 1) of the other source; None where there is none.
    """

    table: LabelsetTable
    n_votes: Floats
    prior: Floats | None = None


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
        For each metric's name the expected accuracies of the mode, (n,) with bounds.
    """

    profile: Profile
    mode: Labelsets
    expected: dict[str, Expected]


@dataclass(frozen=True)
class Question:
    """Question about all instances, by which an engine decides how far it goes.

    Parameters
    ----------
    about
        Which of the five answers of an `Approximation`.
    metrics, empty
        Metrics of expected accuracies or of the decision; accuracy of two empty labelsets.
    guesses
        (n, g, L) labelsets whose expected accuracies are asked for.
    k
        Number of most probable labelsets.
    """

    about: Literal["summary", "top", "marginals", "expected", "decision"]
    metrics: Sequence[Metric] = ()
    empty: float = 1.0
    guesses: Guesses | None = None
    k: int = 1


class Approximation(ABC):
    """Answers about some instances, exact or with bounds.

    It is a block of all 2**L probabilities (`DenseBlock`) or of all valid labelsets (`ListBlock`),
    enumerated labelsets with bounds on all others (`Enumeration`), or draws beside them
    (`Sampled`).
    """

    @abstractmethod
    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and expected accuracies of the mode."""

    @abstractmethod
    def top(self, k: int) -> TopLabelsets:
        """K most probable labelsets."""

    @abstractmethod
    def marginals(self) -> Expected:
        """P(y_j = 1), (n, L)."""

    @abstractmethod
    def expected(self, metrics: Sequence[Metric], guesses: Guesses, empty: float) -> list[Expected]:
        """Means of each metric for guesses (n, g, L), one result a metric."""

    @abstractmethod
    def best(self, metric: Metric, empty: float) -> Best:
        """Labelsets of the highest expected accuracy, or the input of its decision rule."""

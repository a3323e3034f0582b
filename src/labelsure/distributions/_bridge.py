"""`LabelsetDistribution`: the bridge between what makes distributions and what uses them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Self, Unpack

import numpy as np

from labelsure._limits import MAX_ARRAY_BYTES, check_size
from labelsure._typing import Floats, Labelsets, RandomState, Rows
from labelsure.distributions._answers import Expected, Profile, Summary, TopLabelsets
from labelsure.distributions._engines import Engine, EngineSettings
from labelsure.errors import InputError
from labelsure.labelsets import check_label_names, check_labelsets
from labelsure.metrics import EXACT, HAMMING, JACCARD, Metric, MetricLike, check_empty, get_metric


class PartialTable(Protocol):
    """Some labelsets of each instance, and what all the others have at most."""

    @property
    def table(self) -> LabelsetDistribution:
        """The labelsets that were seen; their probabilities need not sum to one."""

    @property
    def given_seen(self) -> LabelsetDistribution:
        """The same, divided by their sum: what decisions, which assume a sum of one, can ask."""

    @property
    def unseen_mass(self) -> Floats:
        """The most that all others can have together, (n,)."""

    @property
    def largest_unseen(self) -> Floats:
        """The most that a single other one can have, (n,)."""


class LabelsetDistribution(ABC):
    """A batch of n distributions P(Y|x) over the 2**L labelsets of L labels.

    Each kind answers the same questions in its own best way. Public methods check what they are
    given and ask the underscored ones, which a new kind implements.

    Parameters
    ----------
    n_samples, n_labels
        The size of the batch and the number of labels.
    label_names
        One for each label; y0, y1, ... where there are none.
    """

    def __init__(
        self, n_samples: int, n_labels: int, label_names: Iterable[Any] | None = None
    ) -> None:
        self._n_samples = n_samples
        self._n_labels = n_labels
        self._label_names = check_label_names(label_names, n_labels)

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return self._n_samples

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self._n_labels

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the columns."""
        return self._label_names

    def __len__(self) -> int:
        return self._n_samples

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={self._n_samples}, n_labels={self._n_labels})"

    def __getitem__(self, rows: Any) -> Self:
        """Return the distributions of some rows: an index, a slice, indices or a mask."""
        if isinstance(rows, (int, np.integer)):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"Row {rows} is out of range for {len(self)} instances.")
            first = int(rows) % len(self)
            return self._take(slice(first, first + 1))
        if isinstance(rows, slice):
            return self._take(rows)
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        if chosen.ndim > 1:
            raise IndexError(
                f"Rows must be an index, a slice, indices or a mask, got {chosen.ndim} axes."
            )
        return self._take(chosen)

    def marginals(self) -> Floats:
        """Return P(y_j = 1), shape (n, L)."""
        return self._marginals()

    def log_prob(self, Y: Any) -> Floats:
        """Return the log-probability of one labelset for each instance, shape (n,).

        Parameters
        ----------
        Y
            (n, L) zeros and ones.
        """
        return self._log_prob(self._check_labelsets(Y, "Y"))

    def mode(self) -> Labelsets:
        """Return the most probable labelsets, (n, L); on a tie the lowest code."""
        return self._profile_and_mode()[1]

    def profile(self, **settings: Unpack[EngineSettings]) -> Profile:
        """Return the four numbers that give all candidates.

        Parameters
        ----------
        **settings
            engine, tolerance, mass, budget: how a `ChainMixture` computes and when it stops, see
            `labelsure.distributions.Engine`. The other kinds are always exact.
        """
        return self._told(settings)._profile_and_mode()[0]

    def with_engine(self, **settings: Unpack[EngineSettings]) -> Self:
        """Return the same distributions, computed in another way.

        Parameters
        ----------
        **settings
            As for `profile`. They hold for every question that the new object is asked.
        """
        return self._told(settings)

    def top(self, k: int) -> TopLabelsets:
        """Return the k most probable labelsets of each instance.

        Parameters
        ----------
        k
            From 1 to 2**L. Beyond the support of a distribution they have probability 0.
        """
        if not isinstance(k, (int, np.integer)) or k < 1 or k > 2**self.n_labels:
            raise InputError(
                f"`k` must be a whole number from 1 to 2**{self.n_labels}, got {k!r}. "
                "There are no more labelsets than that."
            )
        check_size(
            len(self) * int(k) * (self.n_labels + 8),
            f"The `k` most probable labelsets of {len(self)} instances",
            "Ask for fewer, or for fewer instances (`dist[:10]`).",
        )
        return self._top(int(k))

    def sample(self, size: int, random_state: RandomState = None) -> Labelsets:
        """Draw labelsets, shape (n, size, L).

        Parameters
        ----------
        size
            How many for each instance.
        random_state
            Seed, generator or None; the same seed gives the same draws on any number of threads.
        """
        if not isinstance(size, (int, np.integer)) or size < 0:
            raise InputError(f"`size` must be a whole number >= 0, got {size!r}.")
        check_size(
            len(self) * int(size) * self.n_labels,
            f"`size` draws of {len(self)} instances",
            "Draw fewer, or for fewer instances (`dist[:10]`) at a time.",
        )
        return self._sample(int(size), make_generator(random_state))

    def expected(self, metric: MetricLike, Y_pred: Any, *, empty: float = 1.0) -> Floats:
        """Return the expected accuracy of given labelsets under the distribution, (n,).

        `labelsure.expected_accuracy` is the function for users.
        """
        return self.expected_with_bounds(metric, Y_pred, empty=empty).value

    def expected_with_bounds(
        self,
        metric: MetricLike,
        Y_pred: Any,
        *,
        empty: float = 1.0,
        **settings: Unpack[EngineSettings],
    ) -> Expected:
        """Return the expected accuracy of given labelsets and bounds on it.

        `labelsure.expected_accuracy` is the function for users; for the engine see `profile`.
        """
        rows = self._check_labelsets(Y_pred, "Y_pred")
        told = self._told(settings)
        return told._bounded(get_metric(metric), rows, check_empty(empty))

    def optimum(self, metric: MetricLike, *, empty: float = 1.0) -> Labelsets | None:
        """Return the labelsets with the highest expected accuracy, where this kind has a way.

        `labelsure.decide` is the function for users: it also knows the ways that all kinds share.
        """
        return self._optimum(get_metric(metric), check_empty(empty))

    def summary(
        self,
        metrics: Sequence[MetricLike] = ("exact", "hamming", "jaccard"),
        empty: float = 1.0,
        **settings: Unpack[EngineSettings],
    ) -> Summary:
        """Return profile, mode and the mode's expected accuracies in one sweep.

        Parameters
        ----------
        metrics
            Names or functions.
        empty
            The Jaccard and F1 of two empty labelsets.
        **settings
            Of the engine, see `profile`.
        """
        if isinstance(metrics, str):
            raise InputError(
                f"`metrics` must be a sequence of metrics, got {metrics!r}. Write [{metrics!r}]."
            )
        chosen = [get_metric(metric) for metric in metrics]
        names = [metric.name for metric in dict.fromkeys(chosen)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                f"`metrics` must have distinct names, got two called {twice!r}. Name them: "
                "`Metric(name, function)` of `labelsure.metrics`."
            )
        return self._told(settings)._summary(chosen, check_empty(empty))

    def size_marginals(self) -> Floats:
        """Return P(y_j = 1 and |y| = s) as an (n, L, L) array, s - 1 being the last index."""
        check_size(
            len(self) * 8 * self.n_labels**2,
            f"P(y_j = 1 and |y| = s) of {len(self)} instances with {self.n_labels} labels",
            "Ask for fewer instances (`dist[:10]`) at a time.",
        )
        return self._size_marginals()

    def probabilities(self, max_bytes: int = MAX_ARRAY_BYTES) -> Floats:
        """Return all probabilities, (n, 2**L) in the order of the codes, where they fit.

        Parameters
        ----------
        max_bytes
            Larger arrays are refused before anything is allocated.
        """
        check_size(
            max(len(self), 1) * 8 * 2**self.n_labels,  # no array has that many columns, even empty
            f"All 2**{self.n_labels} probabilities of {len(self)} instances",
            "Use `marginals`, `log_prob`, `top`, `sample` or `profile`, which need no such array, "
            "fewer instances (`dist[:10]`), or a larger `max_bytes`.",
            max_bytes,
        )
        return self._probabilities()

    # What a kind answers. Arguments are checked, labelsets are int8 arrays of the right shape.

    @abstractmethod
    def _take(self, rows: Rows) -> Self: ...

    @abstractmethod
    def _marginals(self) -> Floats: ...

    @abstractmethod
    def _log_prob(self, Y: Labelsets) -> Floats: ...

    @abstractmethod
    def _profile_and_mode(self) -> tuple[Profile, Labelsets]: ...

    @abstractmethod
    def _top(self, k: int) -> TopLabelsets: ...

    @abstractmethod
    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets: ...

    @abstractmethod
    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        """Return the expectation of any function of (tp, fp, fn, tn)."""

    @abstractmethod
    def _size_marginals(self) -> Floats: ...

    @abstractmethod
    def _probabilities(self) -> Floats: ...

    def _optimum(self, metric: Metric, empty: float) -> Labelsets | None:
        return None

    def _told(self, settings: EngineSettings) -> Self:
        """Return the distribution with other settings of its engine; most kinds have none."""
        Engine().told(settings)  # wrong settings are wrong for all kinds
        return self

    def jaccard_of_guesses(self, guesses: Labelsets, *, empty: float = 1.0) -> Floats:
        """Return the expected Jaccard of g labelsets for each instance: (n, g, L) to (n, g)."""
        return self._jaccard_of_guesses(np.ascontiguousarray(guesses), check_empty(empty))

    def jaccard_of_flips(self, Y_pred: Labelsets, *, empty: float = 1.0) -> Floats:
        """Return the expected Jaccard of each labelset with one label flipped, (n, L)."""
        return self._jaccard_of_flips(self._check_labelsets(Y_pred, "Y_pred"), check_empty(empty))

    def _jaccard_of_guesses(self, guesses: Labelsets, empty: float) -> Floats:
        columns = [self._expected(JACCARD, guess, empty) for guess in np.swapaxes(guesses, 0, 1)]
        return np.column_stack(columns)

    def _jaccard_of_flips(self, Y_pred: Labelsets, empty: float) -> Floats:
        flips = Y_pred[:, np.newaxis, :] ^ np.eye(self.n_labels, dtype=np.int8)
        return self._jaccard_of_guesses(flips, empty)

    def _bounded(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        return Expected.exactly(self._expected(metric, Y_pred, empty))

    @property
    def decision_bytes(self) -> int:
        """About how much memory a decision takes for each instance, beyond 2**L arrays."""
        return 8 * self.n_labels**2

    def partial_table(self) -> PartialTable | None:
        """Return the labelsets that decisions have to go by, where they cannot see all.

        None where the distribution itself can be asked everything.
        """
        return None

    def _expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        if metric in _EXPECTATIONS:
            return _EXPECTATIONS[metric](self, Y_pred)
        return self._expected_by_counts(metric, Y_pred, empty)

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        profile, mode = self._profile_and_mode()
        expected = {metric.name: self._expected(metric, mode, empty) for metric in metrics}
        return Summary(profile, mode, expected)

    def _check_labelsets(self, Y: Any, name: str) -> Labelsets:
        return check_labelsets(Y, name=name, n_samples=len(self), n_labels=self.n_labels)


def _point_probability(dist: LabelsetDistribution, Y_pred: Labelsets) -> Floats:
    return np.exp(dist._log_prob(Y_pred))


def _mean_agreement(dist: LabelsetDistribution, Y_pred: Labelsets) -> Floats:
    marginals = dist._marginals()
    return np.where(Y_pred == 1, marginals, 1 - marginals).mean(axis=1)


_EXPECTATIONS: dict[Metric, Callable[[LabelsetDistribution, Labelsets], Floats]] = {
    EXACT: _point_probability,
    HAMMING: _mean_agreement,
}
"""Metrics whose expectation every kind has from simpler answers than the counts."""


def make_generator(random_state: RandomState) -> np.random.Generator:
    """Return a numpy generator for any random state that people pass, or say what is wrong with it.

    Examples
    --------
    >>> make_generator(0).integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`random_state` must be a whole number >= 0, a numpy generator or None, "
            f"got {random_state!r}."
        ) from error

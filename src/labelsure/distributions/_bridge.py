"""`LabelsetDistribution`: the bridge between what makes distributions and what uses them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import MAX_ARRAY_BYTES
from labelsure._runtime.typing import (
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    Names,
    RandomState,
    Rows,
)
from labelsure.distributions import _probabilities as arguments
from labelsure.distributions._answers import (
    EXPECTATIONS,
    Expected,
    MaxMarginals,
    Summary,
    Support,
    TopLabelsets,
)
from labelsure.distributions._engines import DEFAULT_ENGINE, EngineSettings
from labelsure.distributions._instance_table import ShownInstances
from labelsure.distributions.candidates import Profile
from labelsure.errors import InputError
from labelsure.labelsets.names import align_labelsets, align_rows, pick_rows, wrong_index
from labelsure.labelsets.rows import (
    check_guesses,
    check_label_names,
    count_axes,
    refuse_other_labels,
)
from labelsure.metrics.registry import Metric, MetricLike, check_empty, check_metrics, get_metric

if TYPE_CHECKING:
    import pandas as pd


class LabelsetDistribution(ShownInstances, ABC):
    """A batch of n distributions P(Y|x) over the 2**L labelsets of L labels.

    Each kind answers the same questions in its own best way. Public methods check their arguments
    and ask the underscored ones, which a new kind implements: `PRIMITIVES` lists both.

    Parameters
    ----------
    n_samples, n_labels
        The size of the batch and the number of labels.
    label_names
        One for each label; None where they have none.
    """

    sparse_rows = False  # whether labelsets are rows of a `scipy.sparse.csr_array`

    def __init__(self, n_samples: int, n_labels: int, label_names: Names = None) -> None:
        self._n_samples = n_samples
        self._n_labels = n_labels
        self.labelset_bytes = n_labels  # about how much memory one takes
        self._label_names = check_label_names(label_names, n_labels)
        self._index: pd.Index | None = None

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return self._n_samples

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self._n_labels

    @property
    def label_names(self) -> LabelNames:
        """The names of the labels, in the order of the columns; None where they have none."""
        return self._label_names

    @property
    def index(self) -> pd.Index | None:
        """The names of the rows, of a DataFrame that they come from; None where they have none."""
        return self._index

    def with_index(self, index: pd.Index | None) -> Self:
        """Return the same distributions with names for their rows; None takes them away."""
        if index is not None and len(index) != len(self):
            raise wrong_index(index, len(self))
        new = copy(self)
        new._index = index
        return new

    def __len__(self) -> int:
        return self._n_samples

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={self._n_samples}, n_labels={self._n_labels})"

    def __getitem__(self, rows: Any) -> Self:
        """Return the distributions of some rows: an index, a slice, indices or a mask."""
        taken = pick_rows(rows, len(self), self._index)
        new = self._take(taken)
        new._index = None if self._index is None else self._index[taken]
        return new

    def align(self, Y: Any, name: str = "Y") -> Labelsets:
        """Return labelsets in the order of these labels and instances, or refuse them.

        Parameters
        ----------
        Y, name
            (n, L) zeros and ones, also sparse, or label names for each instance; what the caller
            calls it. The columns of a DataFrame are compared by name, its rows by index, an array
            by position.
        """
        return align_labelsets(
            Y,
            name=name,
            n_samples=len(self),
            n_labels=self.n_labels,
            label_names=self.label_names,
            index=self.index,
            sparse=self.sparse_rows,
        )

    def marginals(self) -> Floats:
        """Return P(y_j = 1), shape (n, L)."""
        return self._marginals()

    def marginal_bounds(self) -> Expected:
        """Return P(y_j = 1) and its bounds, each (n, L).

        Where they come from draws, all labels of an instance are within them with 95% confidence.
        """
        return self._marginal_bounds()

    def log_prob(self, Y: Any) -> Floats:
        """Return the log-probability of one labelset, (n, L), for each instance, shape (n,)."""
        return self._log_prob(self.align(Y, "Y"))

    def mode(self) -> Labelsets:
        """Return the most probable labelsets, (n, L); on a tie the lowest code."""
        return self._mode()

    def profile(self, **settings: Unpack[EngineSettings]) -> Profile:
        """Return the four numbers that give all candidates.

        Parameters
        ----------
        **settings
            engine, tolerance, mass, budget: how a `ChainMixture` computes and when it stops, see
            `labelsure.distributions.Engine`. The other kinds are always exact.
        """
        return self.with_engine(**settings)._summary([], 1.0).profile

    def with_engine(self, **settings: Unpack[EngineSettings]) -> Self:
        """Return the same distributions, computed in another way: settings as for `profile`."""
        return self._with_engine(settings)

    def with_dense_rows(self) -> LabelsetDistribution:
        """Return the same with arrays as labelsets, or refuse where these would be too large."""
        return self._with_dense_rows()

    def keep_top(self, k: int) -> Self:
        """Return the same distributions, which keep what a table shows of them.

        Where every question makes all probabilities anew, as in a `ChainMixture` of few labels, the
        first one also finds the marginals and the k most probable labelsets.
        """
        return self._keep_top(arguments.check_number_of_best(k, self))

    def top(self, k: int) -> TopLabelsets:
        """Return the k most probable labelsets of each instance.

        Parameters
        ----------
        k
            From 1 to 2**L. Beyond the support of a distribution they have probability 0.
        """
        return self._top(arguments.check_number_of_best(k, self))

    def sample(self, size: int, random_state: RandomState = None) -> Labelsets:
        """Draw labelsets, shape (n, size, L).

        Parameters
        ----------
        size, random_state
            How many for each instance; seed, generator or None. The same seed gives the same draws
            on any number of threads.
        """
        size = arguments.check_number_of_draws(size, self)
        generator = arguments.make_generator(random_state)
        n_each = max(1, _limits.UNIFORM_NUMBERS // self.n_labels)  # labelsets at a time
        if self.sparse_rows or len(self) * size <= n_each:
            return self._sample(size, generator)
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        n_rows = max(1, n_each // size)
        for first in range(0, len(self), n_rows):
            some, mine = self._take(slice(first, first + n_rows)), draws[first : first + n_rows]
            for done in range(0, size, n_each):
                target = mine[:, done : done + n_each]
                target[:] = some._sample(target.shape[1], generator)
        return draws

    def expected(self, metric: MetricLike, Y_pred: Any, *, empty: float = 1.0) -> Expected:
        """Return the expected accuracy of given labelsets under the distribution, with bounds.

        `labelsure.expected_accuracy` is the function for users.

        Parameters
        ----------
        metric
            A name or a function of (tp, fp, fn, tn).
        Y_pred
            (n, L) zeros and ones; or (n, g, L), g guesses for each instance.
        empty
            The Jaccard and F1 of two empty labelsets.

        Returns
        -------
        Values and bounds of shape (n,), or (n, g)
        """
        metric, empty = get_metric(metric), check_empty(empty)
        if count_axes(Y_pred) == 3:
            shape = {"n_samples": len(self), "n_labels": self.n_labels}
            guesses = check_guesses(Y_pred, name="Y_pred", **shape, sparse=self.sparse_rows)
            return self._expected_of_guesses(metric, guesses, empty)
        return self._expected(metric, self.align(Y_pred, "Y_pred"), empty)

    def max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        """Return the largest probability of a labelset in which a label has a value: (n, L, 2).

        `labelsure.LabelsetRegion` finds the certain and the possible labels by it.

        Parameters
        ----------
        log_at_least
            The log of a probability; what is less probable need not be told apart, so that a
            `ChainMixture` can stop its search there.
        """
        return self._max_marginals(arguments.check_log_probability(log_at_least))

    def best(self, metric: MetricLike, *, empty: float = 1.0) -> Labelsets | None:
        """Return the labelsets with the highest expected accuracy, where this kind has its own way.

        `labelsure.decide` is the function for users: it also knows the ways that all kinds share.

        Parameters
        ----------
        metric, empty
            As for `expected`.

        Returns
        -------
        (n, L) labelsets, on a tie the lowest code; None where there is no such way
        """
        return self._best(get_metric(metric), check_empty(empty))

    def best_with_gap(
        self, metric: MetricLike, *, empty: float = 1.0
    ) -> tuple[Labelsets, Floats] | None:
        """Return the same, and by how much each is below the best possible at most, (n,)."""
        return self._best_with_gap(get_metric(metric), check_empty(empty))

    def support(self) -> Iterator[tuple[Indices, Support]] | None:
        """Return the labelsets that decisions have to go by, where this kind cannot see all.

        None where the distribution itself can be asked everything; otherwise some instances at a
        time, each with what is known of them.
        """
        return self._support()

    def members(self) -> list[LabelsetDistribution] | None:
        """Return the distributions whose mixture this is, each a batch of the same instances.

        None for other kinds. `decide` with `skeptical=True` asks what all of them agree on.
        """
        return self._members()

    def temper(self, temperature: float) -> LabelsetDistribution:
        """Return these distributions with another temperature: logits are divided by it.

        A temperature divides what a kind is made of. `IndependentLabels`: the logit of each label.
        `ChainMixture`, `TrellisDistribution`: the logit of each label given those before it.
        `DenseDistribution`, `LabelsetTable`: the log-probabilities of labelsets, which are then
        normalised, so that labelsets keep their order. Mixtures and `SmoothedTable`: those of all
        parts, whose weights stay. `labelsure.TemperatureScaling` fits it.

        Parameters
        ----------
        temperature
            Above 0. Above 1 distributions become flatter, below 1 sharper; 1 changes nothing.

        Examples
        --------
        >>> from labelsure import IndependentLabels
        >>> IndependentLabels([[0.9, 0.2]]).temper(2).marginals()
        array([[0.75      , 0.33333333]])
        """
        temperature = arguments.check_temperature(temperature)
        return self if temperature == 1 else self._temper(temperature).with_index(self._index)

    def tempered_log_prob(self, Y: Any) -> Callable[[float], Floats]:
        """Return the log-probability of one labelset for each instance, by temperature.

        Parameters
        ----------
        Y
            (n, L) labelsets.

        Returns
        -------
        A function: of the temperature t, it returns ``self.temper(t).log_prob(Y)``, (n,)
        """
        return self._tempered_log_prob(self.align(Y, "Y"))

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
        chosen = check_metrics(metrics)
        return self.with_engine(**settings)._summary(chosen, check_empty(empty))

    def size_marginals(self) -> Floats:
        """Return P(y_j = 1 and |y| = s) as an (n, L, L) array, s - 1 being the last index."""
        arguments.check_by_size(len(self), self.n_labels)
        return self._size_marginals()

    def covariance_sums(self) -> Floats | None:
        """Return each label's sum over i of |Cov(y_i, y_j)|, (n, L); None where there is no way."""
        return self._covariance_sums()

    def probabilities(self, max_bytes: int = MAX_ARRAY_BYTES) -> Floats:
        """Return all probabilities, (n, 2**L) in the order of the codes; at most `max_bytes`."""
        arguments.check_all_probabilities(len(self), self.n_labels, max_bytes)
        return self._probabilities()

    # What a kind answers. Arguments are checked, labelsets are int8 arrays of the right shape.
    @abstractmethod
    def _take(self, rows: Rows) -> Self: ...

    @abstractmethod
    def _marginals(self) -> Floats: ...

    @abstractmethod
    def _log_prob(self, Y: Labelsets) -> Floats: ...

    @abstractmethod
    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets: ...

    @abstractmethod
    def _top(self, k: int) -> TopLabelsets: ...

    @abstractmethod
    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        """Return profile, mode and the mode's expected accuracies under these metrics."""

    @abstractmethod
    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        """Return the expectation of any function of (tp, fp, fn, tn)."""

    @abstractmethod
    def _size_marginals(self) -> Floats: ...

    @abstractmethod
    def _probabilities(self) -> Floats: ...

    @abstractmethod
    def _max_marginals(self, log_at_least: float) -> MaxMarginals: ...

    @abstractmethod
    def _temper(self, temperature: float) -> LabelsetDistribution: ...

    # What has a default, for kinds that have no better way.

    def _marginal_bounds(self) -> Expected:
        return Expected.exactly(self._marginals())

    def _mode(self) -> Labelsets:
        return self._summary([], 1.0).mode

    def _expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        if metric in EXPECTATIONS:
            return Expected.exactly(EXPECTATIONS[metric](self, Y_pred))
        return Expected.exactly(self._expected_by_counts(metric, Y_pred, empty))

    def _expected_of_guesses(self, metric: Metric, guesses: Labelsets, empty: float) -> Expected:
        columns = np.ascontiguousarray(np.swapaxes(guesses, 0, 1))
        return Expected.stack([self._expected(metric, Y_pred, empty) for Y_pred in columns])

    def _best(self, metric: Metric, empty: float) -> Labelsets | None:
        return None

    def _best_with_gap(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        best = self._best(metric, empty)
        return None if best is None else (best, np.zeros(len(self)))

    def _covariance_sums(self) -> Floats | None:
        return None

    def _support(self) -> Iterator[tuple[Indices, Support]] | None:
        return None

    def _members(self) -> list[LabelsetDistribution] | None:
        return None

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        return lambda temperature: self._temper(temperature)._log_prob(Y)

    def _with_engine(self, settings: EngineSettings) -> Self:
        if settings:
            DEFAULT_ENGINE.replace(settings)  # wrong settings are wrong for all kinds
        return self

    def _with_dense_rows(self) -> LabelsetDistribution:
        return self

    def _keep_top(self, k: int) -> Self:
        return self


def align_parts(parts: list[Any], name: str) -> list[Any]:
    """Return distributions with the rows of the first; refuse other labels than its own."""
    first, aligned = parts[0], []
    for part in parts:
        refuse_other_labels(
            part.label_names, part.n_labels, first.label_names, first.n_labels, "the first part"
        )
        order = align_rows(part.index, first.index, name=name, beside="the first part")
        aligned.append(part if order is None else part[order])
    return aligned


def log_prob_of_logits(logits: Floats) -> Floats:
    """Return the log-probability of labels that are all right, by their logits, (..., L)."""
    # Vectorised exp and log take a fifth of logaddexp's time; the error is 1e-16 a label.
    return (np.minimum(logits, 0.0) - np.log(1 + np.exp(-np.abs(logits)))).sum(axis=-1)


def check_distribution(dist: Any) -> LabelsetDistribution:
    """Return the argument if it is a distribution over labelsets, or say how to make one."""
    if not isinstance(dist, LabelsetDistribution):
        raise InputError(
            f"`dist` must be a LabelsetDistribution, got {type(dist).__name__}. "
            "Wrap probabilities with `as_distribution`."
        )
    return dist

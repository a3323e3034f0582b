"""`LabelsetDistribution`: abstract base class of labelset distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.limits import MAX_ARRAY_BYTES, check_size
from labelsure._runtime.notebook import count, list_names, make_html
from labelsure._runtime.typing import (
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    Names,
    RandomState,
    Rows,
)
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    Known,
    Summary,
    TopLabelsets,
    Votes,
    as_guesses,
    each_guess,
)
from labelsure.distributions._instance_table import plot_instance, tabulate_modes
from labelsure.distributions._probabilities import make_generator
from labelsure.distributions.candidates import Profile, check_candidates, confidence_of_profile
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.label_rules import LabelRules
from labelsure.labelsets.names import align_labelsets, pick_rows, wrong_index
from labelsure.labelsets.rows import (
    check_label_names,
    count_axes,
    read_guesses,
)
from labelsure.metrics.registry import EXACT, HAMMING, Metric, MetricLike, check_empty, get_metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ENGINES = ("auto", "dense", "certified", "sampled")


class EngineSettings(TypedDict, total=False):
    """What constructors and `with_engine` can set; see `Engine`, whose `name` is `engine` here."""

    engine: str
    tolerance: float
    sampled_tolerance: float
    mass: float | None
    budget: int
    keep_top: int


@dataclass(frozen=True)
class Engine:
    """How to compute, and when to stop.

    Parameters
    ----------
    name
        - "dense": all 2**L probabilities, exact;
        - "certified": the likely labelsets one by one, with guaranteed bounds on all the rest;
        - "sampled": unbiased estimates with 95% intervals;
        - "auto": dense up to 14 labels; beyond, a short search, and draws where that does not do.
          Up to 16 labels all probabilities replace the draws of linear base learners, up to 18 for
          candidates and decisions but under Jaccard, which need most draws.
    tolerance
        How wide the guaranteed interval of a normalised candidate, or of an expected accuracy, may
        be.
    sampled_tolerance
        How wide a 95% interval may be: draws are made until it is as narrow, or the budget is used
        up. The min-entropy has guaranteed intervals only.
    mass
        The certified engine also stops once labelsets of this probability together were seen.
    budget
        Labelsets that are looked at for each instance at most: enumerated by "certified", drawn by
        "sampled", which takes at most half as many again for the collision; all of these together
        by "auto" beyond 14 labels.
    keep_top
        Dense computation keeps so many of the most probable labelsets, and the marginals, from the
        first question on, so that a table which shows them needs no second sweep.
    """

    name: str = "auto"
    tolerance: float = 1e-3
    sampled_tolerance: float = 5e-3
    mass: float | None = None
    budget: int = 20_000
    keep_top: int = 0

    def __post_init__(self) -> None:
        read_choice(self.name, "engine", ENGINES)
        read_number(self.tolerance, "tolerance", 0, 1)
        read_number(self.sampled_tolerance, "sampled_tolerance", 0, 1)
        if self.mass is not None:
            read_number(self.mass, "mass", 0, 1)
        read_whole_number(self.budget, "budget", 0)
        read_whole_number(self.keep_top, "keep_top", 0)

    def replace(self, settings: EngineSettings) -> Engine:
        """Return the engine with some of its settings replaced."""
        unknown = [name for name in settings if name not in EngineSettings.__annotations__]
        if unknown:
            raise unknown_name("setting", unknown[0], EngineSettings.__annotations__)
        given: dict[str, Any] = {**settings}
        return replace(self, name=given.pop("engine", self.name), **given)


DEFAULT_ENGINE = Engine()
"""What computes where nobody asks for another."""

SIMPLE = (EXACT, HAMMING)
"""Metrics whose expectation follows from log-probabilities or marginals."""


class LabelsetDistribution(ABC):
    """A batch of n distributions P(Y|x) over the 2**L labelsets of L labels.

    Each kind answers the same questions in its own best way. Public methods check their arguments
    and ask the underscored ones, the primitives, which a new kind implements.

    Parameters
    ----------
    n_samples, n_labels
        The size of the batch and the number of labels.
    label_names
        One for each label; None where they have none.

    See Also
    --------
    as_distribution : Make one from a model or from probabilities.
    IndependentLabels : Labels that are independent given x.
    DenseDistribution : All 2**L probabilities.
    LabelsetTable : Some labelsets with their probabilities.

    Examples
    --------
    >>> from labelsure import IndependentLabels, LabelsetDistribution
    >>> dist = IndependentLabels([[0.9, 0.2], [0.4, 0.7]], label_names=["cat", "dog"])
    >>> isinstance(dist, LabelsetDistribution), len(dist)
    (True, 2)
    >>> dist.mode()
    array([[1, 0],
           [0, 1]], dtype=int8)
    >>> dist[1:].top(2).probabilities.round(2)
    array([[0.42, 0.28]])
    """

    sparse_rows = False  # whether labelsets are rows of a `scipy.sparse.csr_array`
    _is_independent = False  # whether labels are independent given x
    _has_conditionals = False  # whether it is made of P(y_j = 1) given earlier labels, and x
    _has_engines = False  # whether `with_engine` changes how it is computed
    _lists_labelsets = False  # whether all labelsets but those listed have probability 0
    _floor = 0.0  # probability of each label that is not listed, where labelsets are sparse

    def __init__(self, n_samples: int, n_labels: int, label_names: Names = None) -> None:
        self._n_samples = n_samples
        self._n_labels = n_labels
        self.labelset_bytes = n_labels  # about how much memory one takes
        self._label_names = check_label_names(label_names, n_labels)
        self._index: pd.Index | None = None
        self._rules: LabelRules | None = None

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

    @property
    def rules(self) -> LabelRules | None:
        """Rules that every possible labelset obeys; None where there are none."""
        return self._rules

    def _with_index(self, index: pd.Index | None) -> Self:
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

    def _repr_html_(self) -> str:
        sizes = f"{count(len(self), 'instance')}, {count(self.n_labels, 'label')}"
        names = "" if self.label_names is None else f" ({list_names(self.label_names)})"
        return make_html(f"{type(self).__name__}: {sizes}{names}.")

    def __getitem__(self, rows: Any) -> Self:
        """Return the distributions of some rows: an index, a slice, indices or a mask."""
        taken = pick_rows(rows, len(self), self._index)
        new = self._take(taken)
        new._index = None if self._index is None else self._index[taken]
        new._rules = self._rules
        return new

    def align(self, Y: Any, name: str = "Y") -> Labelsets:
        """Return labelsets in the order of these labels and instances, or refuse them.

        Parameters
        ----------
        Y
            (n, L) zeros and ones, also sparse, or a list of label names for each instance. The
            columns of a DataFrame are matched by name, its rows by index; an array is matched by
            position.
        name
            Name of `Y` in error messages.

        Returns
        -------
        numpy.ndarray or scipy.sparse.csr_array of shape (n, L)
            Zeros and ones.
        """
        return align_labelsets(Y, self, name=name, sparse=self.sparse_rows)

    def marginals(self) -> Floats:
        """Return the probability of each label.

        Returns
        -------
        numpy.ndarray of shape (n, L)
            P(y_j = 1).
        """
        return self._marginals()

    def marginal_bounds(self) -> Expected:
        """Return the probability of each label with bounds.

        Returns
        -------
        Expected
            `value`, `low` and `high`, each (n, L). Where marginals come from draws, all labels of
            an instance lie within the bounds with 95% confidence; elsewhere the bounds are the
            value.
        """
        return self._marginal_bounds()

    def log_prob(self, Y: Any) -> Floats:
        """Return the log-probability of one labelset for each instance.

        Parameters
        ----------
        Y
            (n, L) labelsets, in any form that `align` takes.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Natural logarithms; minus infinity for impossible labelsets.
        """
        return self._log_prob(self.align(Y, "Y"))

    def mode(self) -> Labelsets:
        """Return the most probable labelset of each instance; on a tie the lowest code.

        Returns
        -------
        numpy.ndarray or scipy.sparse.csr_array of shape (n, L)
            Zeros and ones.
        """
        return self._mode()

    def profile(self) -> Profile:
        """Return the four numbers that all confidence candidates are computed from.

        Returns
        -------
        Profile
            Log-probabilities of the two most probable labelsets, Shannon entropy and log-collision
            probability, each (n,), with bounds in `low` and `high`.
        """
        return self._profile_and_mode()[0]

    def with_engine(self, **settings: Unpack[EngineSettings]) -> Self:
        """Return the same distributions with other settings of inference.

        Only a `ChainMixture` has engines; all other kinds are always exact.

        Parameters
        ----------
        engine
            "auto", "dense" (all 2**L probabilities), "certified" (enumeration with bounds) or
            "sampled".
        tolerance
            Width of a certified interval at which the search stops.
        sampled_tolerance
            Width of a 95% sampling interval at which drawing stops.
        mass
            Also stop once labelsets of this total probability were found; None for no such stop.
        budget
            Labelsets examined per instance at most.
        """
        new = self._with_engine(settings)
        new._rules = self._rules
        return new

    def top(self, k: int) -> TopLabelsets:
        """Return the k most probable labelsets of each instance.

        Parameters
        ----------
        k
            From 1 to 2**L. Beyond the support of a distribution labelsets have probability 0.

        Returns
        -------
        TopLabelsets
            `labelsets`, (n, k, L), and their `probabilities`, (n, k).
        """
        read_whole_number(k, "k", most=2 ** min(self.n_labels, 62))
        check_size(
            len(self) * int(k) * (self.labelset_bytes + 8),
            f"The `k` most probable labelsets of {len(self)} instances",
            "Ask for fewer, or for fewer instances (`dist[:10]`).",
        )
        return self._top(int(k))

    def sample(self, size: int, random_state: RandomState = None) -> Labelsets:
        """Draw labelsets.

        Parameters
        ----------
        size
            Number of draws for each instance.
        random_state
            Seed, generator or None. The same seed gives the same draws on any number of threads.

        Returns
        -------
        numpy.ndarray of shape (n, size, L)
            Zeros and ones.
        """
        read_whole_number(size, "size", 0)
        check_size(
            len(self) * int(size) * self.labelset_bytes,
            f"`size` draws of {len(self)} instances",
            "Draw fewer, or for fewer instances (`dist[:10]`) at a time.",
        )
        size, generator = int(size), make_generator(random_state)
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
        """Return the expected accuracy of given labelsets, with bounds.

        `labelsure.expected_accuracy` is the usual way to call it.

        Parameters
        ----------
        metric
            "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of
            (tp, fp, fn, tn).
        Y_pred
            (n, L) zeros and ones, or (n, g, L): g guesses for each instance.
        empty
            Value of Jaccard and F1 for two empty labelsets.

        Returns
        -------
        Expected
            `value`, `low` and `high`, each (n,), or (n, g) for guesses.
        """
        metric, empty = get_metric(metric), check_empty(empty)
        if count_axes(Y_pred) != 3:
            guesses = as_guesses(self.align(Y_pred, "Y_pred"))
            return self._expected(metric, guesses, empty).of_first_guess()
        shape = len(self), self.n_labels
        given = read_guesses(Y_pred, "Y_pred", *shape, sparse=self.sparse_rows)
        return self._expected(metric, given, empty)

    def temper(self, temperature: float) -> LabelsetDistribution:
        """Return these distributions with their logits divided by a temperature.

        Parameters
        ----------
        temperature
            Positive. Above 1 distributions become flatter, below 1 sharper; 1 changes nothing.

        Returns
        -------
        LabelsetDistribution
            A new batch.

        See Also
        --------
        TemperatureScaling : Fits the temperature.

        Notes
        -----
        What is divided depends on the kind: the logit of each label (`IndependentLabels`),
        the logit of each label given its predecessors (`ChainMixture`, `TrellisDistribution`), or
        the log-probability of each labelset, normalised again (`DenseDistribution`,
        `LabelsetTable`). Mixtures and `SmoothedTable` temper all their parts and keep the weights.

        Examples
        --------
        >>> from labelsure import IndependentLabels
        >>> IndependentLabels([[0.9, 0.2]]).temper(2).marginals()
        array([[0.75      , 0.33333333]])
        """
        read_number(temperature, "temperature", 0, ends="()", hint="1 changes nothing.")
        if temperature == 1:
            return self
        tempered = self._temper(float(temperature))._with_index(self._index)
        tempered._rules = self._rules
        return tempered

    def probabilities(self, max_bytes: int = MAX_ARRAY_BYTES) -> Floats:
        """Return the probabilities of all labelsets.

        Parameters
        ----------
        max_bytes
            Largest size of the array; a larger one is refused (`TooLargeError`).

        Returns
        -------
        numpy.ndarray of shape (n, 2**L)
            In the order of the codes: label j is bit j.
        """
        check_size(
            max(len(self), 1) * 8 * 2**self.n_labels,  # no array has that many columns, even empty
            f"All 2**{self.n_labels} probabilities of {len(self)} instances",
            "Use `marginals`, `log_prob`, `top`, `sample` or `profile`, which need no such array, "
            "fewer instances (`dist[:10]`), or a larger `max_bytes`.",
            max_bytes,
        )
        return self._probabilities()

    def to_frame(
        self,
        k: int = 3,
        *,
        candidates: str | Sequence[str] | None = None,
        probabilities: bool | None = None,
        sep: str | None = None,
    ) -> pd.DataFrame:
        """Return the most probable labelset of each instance and its confidence as a table.

        Parameters
        ----------
        k
            Number of most probable labelsets to add as columns.
        candidates
            Names of confidence candidates to add; None for the seven of the paper, [] for none.
        probabilities
            Whether to add a column for each label; None means yes, except for sparse labels.
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.

        Returns
        -------
        pandas.DataFrame
            One row per instance, with the index of the distribution.
        """
        if probabilities is None:
            probabilities = not self.sparse_rows
        return tabulate_modes(self, candidates, k=k, probabilities=probabilities, sep=sep)

    def plot(self, row: int = 0, k: int = 10, *, ax: Axes | None = None) -> Axes:
        """Draw the most probable labelsets of one instance as bars.

        Parameters
        ----------
        row
            Position of the instance.
        k
            Number of labelsets.
        ax
            Axes to draw into; None for a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_instance(self, row, k, ax)

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
    def _profile_and_mode(self) -> tuple[Profile, Labelsets]: ...

    @abstractmethod
    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        """Return the expected accuracy of each guess, (n, g): here under `SIMPLE` metrics alone."""
        if metric == EXACT:
            values = [np.exp(self._log_prob(Y)) for Y in each_guess(guesses)]
        else:
            p = self._marginals()
            values = [np.where(Y == 1, p, 1 - p).mean(axis=1) for Y in each_guess(guesses)]
        return Expected.exactly(np.stack(values, axis=1))

    @abstractmethod
    def _size_marginals(self) -> Floats:
        """Return P(y_j = 1 and |y| = s) as an (n, L, L) array, s - 1 being the last index."""

    @abstractmethod
    def _probabilities(self) -> Floats: ...

    @abstractmethod
    def _temper(self, temperature: float) -> LabelsetDistribution: ...

    # What has a default, for kinds that have no better way.

    def _mode(self) -> Labelsets:
        return self._profile_and_mode()[1]

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Return profile, mode and the mode's expected accuracies."""
        profile, mode = self._profile_and_mode()
        guesses = as_guesses(mode)
        found = self._expected_each(metrics, guesses, empty)
        expected = {m.name: one.of_first_guess() for m, one in zip(metrics, found, strict=True)}
        return Summary(profile, mode, expected)

    def _expected_each(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        """Return the expected accuracies under several metrics, which chains find together."""
        return [self._expected(metric, guesses, empty) for metric in metrics]

    def _marginal_bounds(self) -> Expected:
        return Expected.exactly(self._marginals())

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        """Return the labelsets with the highest expected accuracy; None where there is no own way.

        Beside them stands by how much each is below the best possible at most, (n,).
        """
        return None

    def _covariance_sums(self) -> Floats | None:
        """Return each label's sum over i of |Cov(y_i, y_j)|, (n, L); None where there is no way."""
        return None

    def _support(self, metric: Metric) -> Iterator[tuple[Indices, Known]] | None:
        """Return what decisions go by, some instances at a time; None for the distribution."""
        return None

    def _listed_marginals(self) -> Any:
        """Return P(y_j = 1), (n, L); where labelsets are sparse, the listed ones, sparse."""
        return self._marginals()

    def _votes(self) -> Votes | None:
        """Return the votes that the distribution was made of; None where there are none."""
        return None

    def _members(self) -> list[LabelsetDistribution] | None:
        """Return the distributions whose mixture this is; None for other kinds."""
        return None

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        """Return the log-probability of one labelset for each instance, by temperature."""
        return lambda temperature: self._temper(temperature)._log_prob(Y)

    def _with_engine(self, settings: EngineSettings) -> Self:
        if settings:
            DEFAULT_ENGINE.replace(settings)  # wrong settings are wrong for all kinds
        return self

    def _with_dense_rows(self) -> LabelsetDistribution:
        """Return the same with arrays as labelsets, or refuse where these would be too large."""
        return self


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


def confidence(
    dist: LabelsetDistribution,
    candidates: str | Sequence[str] | None = None,
    bounds: bool = False,
    raw: bool = False,
) -> pd.DataFrame:
    """Compute the confidence candidates of each distribution.

    Parameters
    ----------
    dist
        A batch of distributions.
    candidates
        Names out of HP, TG, SE, CE, ME, GI, CS (None: these seven) and ESS.
    bounds
        Add columns such as HP_low and HP_high: equal to HP where the engine was exact.
    raw
        Return the statistics before they are scaled to [0, 1]: largest probability (HP), Shannon,
        collision and min-entropy in nats (SE, CE, ME), Gini impurity (GI) and chi-squared distance
        from uniform (CS). Of SE, CE, ME and GI, large values then mean uncertain.

    Returns
    -------
    pandas.DataFrame
        One row per instance, one column per candidate, with the index of the distribution.

    See Also
    --------
    AccuracyEstimator : Turn candidates into calibrated estimates.
    expected_accuracy : Expected value of a metric, in place of a candidate.

    Notes
    -----
    The candidates are highest probability (HP), top gap (TG), Shannon entropy (SE), collision
    entropy (CE), min-entropy (ME), Gini impurity (GI) and chi-squared (CS), each scaled to [0, 1]
    with 1 for certainty: Park and Read, Estimating multi-label accuracy using labelset
    distributions.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> confidence(IndependentLabels([[0.9, 0.2], [0.5, 0.5]]), ["HP", "SE"]).round(3)
          HP     SE
    0  0.627  0.405
    1  0.000  0.000
    """
    check_distribution(dist)
    check_candidates(candidates)  # before the profile, which may take a while
    table = confidence_of_profile(dist.profile(), candidates, bounds=bounds, raw=raw)
    return table if dist.index is None else table.set_axis(dist.index)

"""`LabelsetDistribution`: abstract base class of labelset distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from labelsure._kernels.threads import n_threads
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_number, read_whole_number
from labelsure._runtime.limits import MAX_ARRAY_BYTES, check_size
from labelsure._runtime.notebook import count, list_names, make_html
from labelsure._runtime.typing import (
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    LabelsetsLike,
    Names,
    RandomState,
    Rows,
    RowsLike,
)
from labelsure.distributions._answers import (
    Approximation,
    Best,
    Expected,
    Guesses,
    Question,
    Summary,
    TopLabelsets,
    Votes,
    as_guesses,
    each_guess,
    expected_hamming,
    join_answers,
)
from labelsure.distributions._dense_block import (
    JOINT_BYTES,
    DenseBlock,
    has_dense_best,
    temper_probabilities,
)
from labelsure.distributions._engine_settings import DEFAULT_ENGINE, EngineSettings
from labelsure.distributions._instance_table import plot_instance, tabulate_modes
from labelsure.distributions._probabilities import make_generator
from labelsure.distributions.candidates import Profile, check_candidates, confidence_of_profile
from labelsure.errors import InputError
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.foreign import count_axes
from labelsure.labelsets.label_names import check_label_names
from labelsure.labelsets.label_rules import LabelRules
from labelsure.labelsets.names import align_labelsets, pick_rows, wrong_index
from labelsure.labelsets.reading import read_guesses
from labelsure.labelsets.sparse import make_sparse
from labelsure.metrics.registry import EXACT, HAMMING, Metric, MetricLike, check_empty, get_metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIMPLE = (EXACT, HAMMING)
"""Metrics whose expectation follows from log-probabilities or marginals."""


class LabelsetDistribution(ABC):
    """A batch of n distributions P(Y|x) over the 2**L labelsets of L labels.

    Public methods check their arguments and call the underscored ones, the primitives, which a
    subclass implements: two of them, and others where it has a faster algorithm.

    Parameters
    ----------
    n_samples, n_labels
        Size of the batch and number of labels.
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
    _is_dense = False  # whether everything is computed from all 2**L probabilities
    _has_engines = False  # whether `with_engine` changes the algorithm
    _can_enumerate = False  # whether engine="certified" is one of these
    _lists_labelsets = False  # whether all labelsets but those listed have probability 0
    _votes: Votes | None = None  # votes that it was made of
    _members: Sequence[LabelsetDistribution] = ()  # distributions whose mixture it is
    _floor = 0.0  # probability of each label that is not listed, where labelsets are sparse

    def __init__(self, n_samples: int, n_labels: int, label_names: Names = None) -> None:
        self._n_samples = n_samples
        self._n_labels = n_labels
        self.labelset_bytes = n_labels  # approximate memory of one
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
        """The same distributions with row names; None removes them."""
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

    def __getitem__(self, rows: RowsLike) -> Self:
        """Distributions of some rows: an index, a slice, indices or a mask."""
        taken = pick_rows(rows, len(self), self._index)
        new = self._take(taken)
        new._index = None if self._index is None else self._index[taken]
        new._rules = self._rules
        return new

    def align(self, Y: LabelsetsLike, name: str = "Y") -> Labelsets:
        """Labelsets in the order of these labels and instances.

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

    def _align_truth(self, Y: LabelsetsLike, name: str = "Y_true") -> Labelsets:
        """True labelsets, aligned. Raises InputError if one breaks a rule."""
        truth = self.align(Y, name)
        if self.rules is not None:
            self.rules.refuse_broken(truth, name, self.index)
        return truth

    def marginals(self) -> Floats:
        """Probability of each label.

        Returns
        -------
        numpy.ndarray of shape (n, L)
            P(y_j = 1).
        """
        return self._marginals().value

    def marginal_bounds(self) -> Expected:
        """Probability of each label with bounds.

        Returns
        -------
        Expected
            `value`, `low` and `high`, each (n, L). Where marginals come from draws, all labels of
            an instance lie within the bounds with 95% confidence; elsewhere the bounds are the
            value.
        """
        return self._marginals()

    def log_prob(self, Y: LabelsetsLike) -> Floats:
        """Log-probability of one labelset for each instance.

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
        """Most probable labelset of each instance; on a tie the lowest code.

        Returns
        -------
        numpy.ndarray or scipy.sparse.csr_array of shape (n, L)
            Zeros and ones.
        """
        return self._mode()

    def profile(self) -> Profile:
        """The four numbers that all confidence candidates are computed from.

        Returns
        -------
        Profile
            Log-probabilities of the two most probable labelsets, Shannon entropy and log-collision
            probability, each (n,), with bounds in `low` and `high`.
        """
        return self._summary([], 1.0).profile

    def with_engine(self, **settings: Unpack[EngineSettings]) -> Self:
        """The same distributions with other settings of inference.

        Only a `ChainMixture` has engines; all other distributions are always exact.

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
        DEFAULT_ENGINE.replace(settings)  # also checks them for distributions without engines
        return self

    def top(self, k: int) -> TopLabelsets:
        """The k most probable labelsets of each instance.

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
        """Random labelsets of each instance.

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

    def expected(
        self, metric: MetricLike, Y_pred: LabelsetsLike, *, empty: float = 1.0
    ) -> Expected:
        """Expected accuracy of given labelsets, with bounds.

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
            return self._expected([metric], guesses, empty)[0].of_first_guess()
        shape = len(self), self.n_labels
        given = read_guesses(Y_pred, "Y_pred", *shape, sparse=self.sparse_rows)
        return self._expected([metric], given, empty)[0]

    def temper(self, temperature: float) -> LabelsetDistribution:
        """These distributions with their logits divided by a temperature.

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
        """Probabilities of all labelsets.

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
        """Most probable labelset of each instance and its confidence as a table.

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
        """Bar chart of the most probable labelsets of one instance.

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

    # Primitives. Arguments are checked, labelsets are int8 arrays of the right shape. A subclass
    # needs `_take`, and `_log_prob` or `_probabilities`; all else has a default.

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        base = LabelsetDistribution
        if cls._log_prob is base._log_prob and cls._probabilities is base._probabilities:
            raise TypeError(f"{cls.__name__} must implement `_log_prob` or `_probabilities`.")

    @abstractmethod
    def _take(self, rows: Rows) -> Self: ...

    def _probabilities(self) -> Floats:
        codes = np.tile(np.arange(2**self.n_labels), len(self))
        rows = np.repeat(np.arange(len(self)), 2**self.n_labels)
        logs = self._take(rows)._log_prob(from_codes(codes, self.n_labels))
        return np.exp(logs).reshape(len(self), -1)

    def _log_prob(self, Y: Labelsets) -> Floats:
        return join_answers((rows, block.log_prob(Y[rows])) for rows, block in self._dense_blocks())

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size))
        return join_answers(
            (rows, block.sample(uniforms[rows])) for rows, block in self._dense_blocks()
        )

    def _temper(self, temperature: float) -> LabelsetDistribution:
        return TemperedJoint(self, temperature)

    def _size_marginals(self) -> Floats:
        """P(y_j = 1 and |y| = s) as an (n, L, L) array, s - 1 being the last index."""
        return join_answers((rows, block.size_marginals()) for rows, block in self._dense_blocks())

    def _covariance_sums(self) -> Floats | None:
        """Sums of absolute covariances with each label, (n, L); None where not available."""
        return None

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and the mode's expected accuracies, in one sweep."""
        views = self._views(Question("summary", metrics, empty))
        return join_answers((rows, view.summary(metrics, empty)) for rows, view in views)

    def _mode(self) -> Labelsets:
        return self._top(1).labelsets[:, 0]

    def _top(self, k: int) -> TopLabelsets:
        views = self._views(Question("top", k=k))
        return join_answers((rows, view.top(k)) for rows, view in views)

    def _marginals(self) -> Expected:
        views = self._views(Question("marginals"))
        return join_answers((rows, view.marginals()) for rows, view in views)

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        """Means of each metric for guesses, (n, g); exact match by log-probabilities."""
        others, found = [metric for metric in metrics if metric != EXACT], {}
        if others:
            given: Any = guesses
            views = self._views(Question("expected", others, empty, guesses))
            answers = ((rows, view.expected(others, given[rows], empty)) for rows, view in views)
            found = dict(zip(others, join_answers(answers), strict=True))
        if EXACT in metrics:
            found[EXACT] = self._simple(EXACT, guesses)
        return [found[metric] for metric in metrics]

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Labelsets of the highest expected accuracy, or inputs of its rule, block by block."""
        is_dense = self._is_dense or self.n_labels <= _limits.CHEAP_DENSE_LABELS
        if not is_dense or not has_dense_best(metric, self.n_labels):
            yield np.arange(len(self)), self
            return
        for rows, block in self._dense_blocks():
            best = block.best(metric, empty)
            if self.sparse_rows:
                best = replace(best, labelsets=make_sparse(best.labelsets))
            yield rows, best

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        """Log-probability of one labelset for each instance, by temperature."""
        return lambda temperature: self._temper(temperature)._log_prob(Y)

    # Defaults by blocks of all probabilities.

    def _views(self, question: Question) -> Iterator[tuple[Indices, Approximation]]:
        """Blocks of instances, each with the approximation that answers the question about them."""
        return self._dense_blocks()

    def _dense_blocks(self) -> Iterator[tuple[Indices, DenseBlock]]:
        """All probabilities, of as many instances at a time as stay in the processor's cache."""
        n_samples, n_labels = self._n_samples, self._n_labels
        n_bytes = JOINT_BYTES << n_labels
        content = f"All 2**{n_labels} labelsets of an instance"
        check_size(n_bytes, content, "Ask for `log_prob` or `sample`.", _limits.DENSE_WORK_BYTES)
        n_joints = min(n_threads(), _limits.DENSE_WORK_BYTES // n_bytes)
        n_each = max(n_joints, _limits.CACHED_JOINT_BYTES >> (n_labels + 3))
        # One array for all: memory that the system gives anew is as slow as filling it.
        P = np.empty((min(n_each, n_samples), 2**n_labels))
        for first in range(0, max(n_samples, 1), n_each):
            rows = np.arange(first, min(first + n_each, n_samples))
            self._write(rows, P[: len(rows)])
            yield rows, DenseBlock(P[: len(rows)])

    def _write(self, rows: Indices, P: Floats) -> None:
        """Write all probabilities of some instances to P, (len(rows), 2**L)."""
        P[:] = self._take(rows)._probabilities()

    def _summarise(
        self, profile: Profile, mode: Labelsets, metrics: Sequence[Metric], empty: float
    ) -> Summary:
        """Profile and mode with the mode's expected accuracies."""
        found = self._expected(metrics, as_guesses(mode), empty) if metrics else []
        expected = {m.name: one.of_first_guess() for m, one in zip(metrics, found, strict=True)}
        return Summary(profile, mode, expected)

    def _simple(self, metric: Metric, guesses: Guesses) -> Expected:
        """Mean exact match or Hamming of each guess, (n, g)."""
        if metric == HAMMING:
            return Expected.exactly(expected_hamming(self._marginals().value, guesses))
        logs = [self._log_prob(Y) for Y in each_guess(guesses)]
        return Expected.exactly(np.exp(np.stack(logs, axis=1)))


class TemperedJoint(LabelsetDistribution):
    """Any joint distribution whose probabilities are raised to 1 / temperature and normalised."""

    def __init__(self, source: LabelsetDistribution, temperature: float) -> None:
        super().__init__(len(source), source.n_labels, source.label_names)
        self._source, self._temperature = source, temperature

    def _take(self, rows: Rows) -> TemperedJoint:
        return TemperedJoint(self._source._take(rows), self._temperature)

    def _probabilities(self) -> Floats:
        return temper_probabilities(self._source._probabilities(), self._temperature)


def check_distribution(dist: object) -> LabelsetDistribution:
    """The argument. Raises InputError if it is no distribution over labelsets."""
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
    """Confidence candidates of each distribution.

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

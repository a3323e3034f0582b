"""The score table: one row for each prediction, the input of all analyses and estimates.

The table is made from a distribution, with the columns of `COLUMNS`, which
`docs/reference/score_table.md` lists too. Its methods give candidates, the accuracy and the
expected accuracy of the decisions, the probability and the truth of each label. Estimators,
shift tests, policies, reports and studies read predictions from it; a column is added here alone.

Expected accuracies are stored for `empty` = 0, beside the probability of the empty labelset. For
any other `empty` the expected accuracy of a decision is the stored one, plus `empty` times that
probability where the decision is empty and the metric is 0/0 there. So one table serves every value
of `empty`. No other module uses this rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime import limits as _limits
from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.typing import (
    Array,
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    LabelsetsLike,
    Rows,
    RowsLike,
)
from labelsure.distributions._answers import as_guesses
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._sparse_labels import listed_marginals
from labelsure.distributions.candidates import FIELDS, Profile, get_candidate
from labelsure.errors import InputError
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.lists import to_text
from labelsure.labelsets.sparse import count_labels, no_labels, stack_rows
from labelsure.metrics.registry import (
    COUNTS,
    METRICS,
    Counts,
    Metric,
    MetricLike,
    check_metrics,
    counts,
    get_metric,
)

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "classifier", "repeat"]
"""Key columns of a study's cell: one classifier on one split of one data set. A list, as pandas
groups rows by."""

PROFILE_COLUMNS = (
    *("method", "top", "runner_up", "entropy", "collision"),
    *("log_top", "log_runner_up", "log_collision"),
)
"""Columns with the fields of a profile, under the same names."""

COLUMNS = (
    *(*CELL, "instance", "n_labels", "decision", "n_predicted", "log_frequency"),
    *PROFILE_COLUMNS,
    *("tp", "fp", "fn", "tn", "p_empty"),
)
"""Columns in the order in which they are written, before those of each metric."""

LOG_FREQUENCY = "log_frequency"

ESTIMATED = "estimated_accuracy"
"""Column of out-of-fold estimates of a calibration set."""

TRUTH_KEY = "truth_key"
"""Column of hashes of true labelsets, by which the rows of two calibration sets are paired."""

DECISION_RULE = "decision_rule"
"""Key of the decision rule in the `attrs` of a frame."""

MIX = ("HP", "TG", "SE", "CE", "ME", "CS")
"""The paper's candidates, which estimators and shift tests see together."""

MAX_LABELS = 64
"""Labels whose probabilities a calibration set keeps for shift tests, the most probable ones: a
model file has them for each of its rows."""

MAX_JOINT_ROWS = 2000  # of a batch whose marginals are computed along with the profile

N_LARGEST = 8  # probabilities of each row that are compared where labels are too many
LARGEST = (*(f"largest probability {r + 1}" for r in range(N_LARGEST)), "sum of probabilities")

CACHED = ("_profiles", "_marginals")  # attributes that follow from the others

N_MARGINAL_DRAWS = 1000  # of chains with many labels: a standard error of at most 0.016


class ScoreTable:
    """Predictions with candidates, expected accuracies and, if known, counts against the truth.

    Parameters
    ----------
    frame
        A DataFrame with columns of `labelsure.estimation.score_table.COLUMNS`; each is missed only
        when it is needed. A distribution becomes a table by `from_distribution`.

    See Also
    --------
    AccuracyEstimator : Can be fitted to one.
    confidence : The candidates alone.

    Examples
    --------
    >>> from labelsure import IndependentLabels, ScoreTable
    >>> dist = IndependentLabels([[0.9, 0.2], [0.1, 0.1]])
    >>> table = ScoreTable.from_distribution(dist, [[1, 1], [0, 0]], metrics=["jaccard"])
    >>> table.accuracy("jaccard", empty=1.0)
    array([0.5, 1. ])
    >>> table.expected("jaccard", empty=1.0).round(2)
    array([0.81, 0.81])
    >>> table.to_frame()[["decision", "top", "tp", "expected_jaccard", "p_empty"]].round(2)
      decision   top  tp  expected_jaccard  p_empty
    0       10  0.72   1              0.81     0.08
    1       00  0.81   0              0.00     0.81
    """

    decisions: Labelsets | None = None
    decision_rule: str | None = None
    label_names: LabelNames = None
    index: pd.Index | None = None
    truth: Labelsets | None = None
    clusters: Indices | None = None
    """Number of the cluster of dependent rows that each row is of, (n,); None: independent rows."""
    of_one_model: bool = True
    """Whether one classifier made all predictions. Those of several, as of cross-fitting, are told
    apart by the probabilities of their labels, in yeast with an AUC of 0.64."""
    trained_on: str = "fewer"
    """Share of the rows that models of cross-fitting were trained on, in words."""
    compared: tuple[str, ...] = ()
    """Names of label columns for shift tests, of a table without a distribution."""
    _compared_as: ScoreTable | None = None
    """The same rows as the final model predicts them, for shift tests; None: as they are here."""
    _dists: tuple[LabelsetDistribution, ...] = ()
    _marginals: Floats | None = None

    def __init__(self, frame: pd.DataFrame) -> None:
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                "`dist` must be a LabelsetDistribution or a DataFrame with the columns of a score "
                f"table, got {type(frame).__name__}. Wrap probabilities with `as_distribution`."
            )
        self._columns = {str(name): values.to_numpy() for name, values in frame.items()}
        self._n_rows = len(frame)
        self.index, self.decision_rule = frame.index, frame.attrs.get(DECISION_RULE)

    @classmethod
    def _make(
        cls, columns: dict[str, NDArray[np.generic]], n_rows: int, **attributes: object
    ) -> Self:
        new = cls.__new__(cls)
        vars(new).update(attributes, _columns=columns, _n_rows=n_rows)
        return new

    @classmethod
    def from_distribution(
        cls,
        dist: LabelsetDistribution,
        Y_true: LabelsetsLike = None,
        Y_pred: LabelsetsLike = None,
        *,
        metrics: Sequence[MetricLike] | None = None,
        decision_rule: str | None = None,
    ) -> Self:
        """Score table of a batch of predictions.

        Parameters
        ----------
        dist
            A batch of n distributions.
        Y_true
            (n, L) the truth, for everything that compares with it.
        Y_pred
            (n, L) the decisions; None means the mode.
        metrics
            Those whose expected accuracies will be asked for; None means all that have a name.
        decision_rule
            How the decisions were made: accuracies of decisions made otherwise are refused; None
            means "mode" where they are the mode, and "given" otherwise.
        """
        chosen = check_metrics(list(METRICS) if metrics is None else metrics)
        decisions = None if Y_pred is None else dist.align(Y_pred, "Y_pred")
        truth = None if Y_true is None else dist._align_truth(Y_true)
        return cls._of_aligned(dist, truth, decisions, chosen, decision_rule)

    @classmethod
    def _of_aligned(
        cls,
        dist: LabelsetDistribution,
        Y_true: Labelsets | None,
        Y_pred: Labelsets | None,
        metrics: Sequence[Metric],
        decision_rule: str | None,
    ) -> Self:
        """Table of predictions whose arguments are checked and in the order of the batch."""
        summary = dist._summary([] if Y_pred is not None else metrics, 0.0)
        decisions = summary.mode if Y_pred is None else Y_pred
        columns: dict[str, Array] = {
            name: getattr(summary.profile, name) for name in PROFILE_COLUMNS
        }
        columns["n_labels"] = np.full(len(dist), dist.n_labels)
        if Y_true is None:
            columns["n_predicted"] = count_labels(decisions)
        else:
            columns |= dict(zip(COUNTS, counts(Y_true, decisions), strict=True))
        if metrics:
            columns["p_empty"] = np.exp(dist._log_prob(no_labels(decisions)))
        if Y_pred is None:
            expected = [summary.expected[metric.name] for metric in metrics]
        else:
            first_guesses = dist._expected(metrics, as_guesses(decisions), 0.0)
            expected = [expectation.of_first_guess() for expectation in first_guesses]
        for metric, expectation in zip(metrics, expected, strict=True):
            columns[f"expected_{metric.name}"] = expectation.value
        return cls._make(
            columns,
            len(dist),
            decisions=decisions,
            decision_rule=decision_rule or ("mode" if Y_pred is None else "given"),
            label_names=dist.label_names,
            index=dist.index,
            truth=Y_true,
            _dists=(dist,),
        )

    @classmethod
    def _read(
        cls,
        source: Any,
        Y_true: LabelsetsLike = None,
        Y_pred: LabelsetsLike = None,
        metrics: Sequence[MetricLike] = (),
    ) -> ScoreTable:
        """Score table of a distribution or a DataFrame; a table stays as it is."""
        if isinstance(source, LabelsetDistribution):
            return cls.from_distribution(source, Y_true, Y_pred, metrics=metrics)
        table = source if isinstance(source, ScoreTable) else cls(source)
        for name, argument in (("Y_pred", Y_pred), ("Y_true", Y_true)):
            if argument is not None:
                raise InputError(
                    f"`{name}` must be None with a table, which has its own decisions and their "
                    f"tp, fp, fn and tn, got {type(argument).__name__}. Pass the distribution "
                    "instead."
                )
        return table

    @classmethod
    def concatenate(cls, tables: Sequence[Self], *, of_one_model: bool = False) -> Self:
        """Put the rows of tables below each other.

        Parameters
        ----------
        tables
            Tables that `from_distribution` made with the same settings.
        of_one_model
            Whether one classifier made all predictions, so that batches can be compared with them.

        Returns
        -------
        ScoreTable
        """

        def join(values: list[Any]) -> Any:
            return None if values[0] is None else stack_rows(values)

        first, rules = tables[0], {table.decision_rule for table in tables}
        new = cls._make(
            {
                name: np.concatenate([table._columns[name] for table in tables])
                for name in first._columns
            },
            sum(map(len, tables)),
            decisions=join([table.decisions for table in tables]),
            truth=join([table.truth for table in tables]),
            clusters=join([table.clusters for table in tables]),
            decision_rule=rules.pop() if len(rules) == 1 else "given",
            label_names=first.label_names,
            of_one_model=of_one_model or len(tables) == 1,
            _dists=tuple(dist for table in tables for dist in table._dists),
        )
        if all(table._marginals is not None for table in tables):
            new._marginals = np.concatenate([table.marginals for table in tables])
        return new

    def with_truth(self, truth: Labelsets) -> Self:
        """Table with the truth of its rows, and their counts."""
        assert self.decisions is not None  # of a distribution
        columns = dict(zip(COUNTS, counts(truth, self.decisions), strict=True))
        new = self.with_columns(columns)
        new.truth = truth
        return new

    def replace_joint(self, source: LabelsetDistribution) -> None:
        """Keep the marginals; replace the dense joint by the distribution it was made from."""
        self._marginals, self._dists = self.marginals, (source,)

    def with_columns(self, added: dict[str, Any]) -> Self:
        """Table with more columns, by name."""
        new = copy(self)
        new._columns = self._columns | {name: np.asarray(added[name]) for name in added}
        new._marginals = self._marginals
        return new

    def _keep(self, estimated: Floats) -> ScoreTable:
        """Table for storage in a fitted estimator: numeric columns alone.

        Parameters
        ----------
        estimated
            (n,) out-of-fold estimates.
        """
        columns = {
            name: values for name, values in self._columns.items() if values.dtype.kind in "biuf"
        }
        if self.truth is not None:
            factors = np.random.default_rng(0).integers(1 << 32, size=self.truth.shape[1])
            columns[TRUTH_KEY] = self.truth.astype(np.int64) @ factors
        label_columns, compared_as = self._label_columns(most=MAX_LABELS), self._compared_as
        return self._make(
            columns | label_columns | {ESTIMATED: estimated},
            len(self),
            decision_rule=self.decision_rule,
            clusters=self.clusters,
            of_one_model=self.of_one_model,
            trained_on=self.trained_on,
            compared=tuple(label_columns),
            _compared_as=None if compared_as is None else compared_as._keep(estimated),
        )

    def __getitem__(self, rows: RowsLike) -> Self:
        """Selected rows, of a table of at most one distribution."""
        new = copy(self)
        new._columns = {name: values[rows] for name, values in self._columns.items()}
        new._n_rows = len(np.arange(len(self))[rows])
        new._dists = tuple(dist[rows] for dist in self._dists)
        for name in ("decisions", "truth", "clusters", "index", "_marginals"):
            values = getattr(self, name)
            setattr(new, name, None if values is None else values[rows])
        return new

    def __getstate__(self) -> dict[str, object]:
        """Attributes without cached ones."""
        return {name: value for name, value in vars(self).items() if name not in CACHED}

    def __len__(self) -> int:
        return self._n_rows

    def _repr_html_(self) -> str:
        sentence = f"A score table of {count(len(self), 'prediction')}."
        return make_html(sentence, self.to_frame().head(N_ROWS))

    def to_frame(self) -> pd.DataFrame:
        """DataFrame with the columns in the order of `COLUMNS`."""
        import pandas as pd

        columns: dict[str, Any] = dict(self._columns)
        if self.decisions is not None:
            columns["decision"] = to_text(self.decisions)
        first = [name for name in COLUMNS if name in columns]
        others = [name for name in columns if name not in COLUMNS]
        frame = pd.DataFrame({name: columns[name] for name in [*first, *others]}, self.index)
        frame.attrs[DECISION_RULE] = self.decision_rule
        return frame

    def candidate(self, name: str) -> Floats:
        """Confidence candidate of each row, (n,).

        Parameters
        ----------
        name
            HP, TG, SE, CE, ME, GI or CS.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Values in [0, 1].
        """
        return self._from_profiles(get_candidate(name).function)

    def candidate_up_to_scale(self, name: str) -> Floats:
        """Candidate on a scale on which rows differ, also with very many labels, (n,).

        Parameters
        ----------
        name
            HP, TG, SE, CE, ME, GI or CS.

        Returns
        -------
        numpy.ndarray of shape (n,)
        """
        return self._from_profiles(get_candidate(name).values_up_to_scale)

    def ranks(self, name: str) -> Floats:
        """Values that order the rows as a candidate does, without ties by rounding, (n,).

        Parameters
        ----------
        name
            HP, TG, SE, CE, ME, GI or CS.

        Returns
        -------
        numpy.ndarray of shape (n,)
        """
        return self._from_profiles(get_candidate(name).ranks)

    def n_predicted(self) -> Floats:
        """Number of labels in each decision, (n,)."""
        if "n_predicted" in self._columns:
            return self._column("n_predicted")
        return self._column("tp") + self._column("fp")

    @property
    def knows_frequencies(self) -> bool:
        """Whether there is a column of log-frequencies of decisions in the training data."""
        return LOG_FREQUENCY in self._columns

    @property
    def knows_labels(self) -> bool:
        """Whether the table has marginals and truth of each label; never of sparse labels."""
        return self.truth is not None and not self._dists[0].sparse_rows

    @property
    def distribution(self) -> LabelsetDistribution:
        """The distribution that the table was made from, of a table of one."""
        (dist,) = self._dists
        return dist

    def _mode(self) -> Labelsets:
        """Most probable labelset of each row of a table of distributions, (n, L)."""
        return stack_rows([dist.mode() for dist in self._dists])

    @property
    def marginals(self) -> Floats:
        """P(y_j = 1) of each row, (n, L), as `calibration_marginals` has it."""
        if self._marginals is None:
            self._marginals = np.concatenate([calibration_marginals(d) for d in self._dists])
        return self._marginals

    def _label_columns(self, most: int | None = None) -> dict[str, Floats]:
        """Label columns for shift tests, (n,) each, by name: the probabilities of labels.

        `most` limits them to the most probable labels. Of sparse labels they are the largest
        probabilities of each row.
        """
        if not self._dists:
            return {name: self._columns[name] for name in self.compared}
        if self._dists[0].sparse_rows:
            values = np.concatenate([largest_marginals(dist) for dist in self._dists])
            return dict(zip(LARGEST, values.T.astype(np.float32), strict=True))
        values = self.marginals
        labels = np.sort(np.argsort(-values.mean(axis=0), kind="stable")[:most])
        names = show_names(self.label_names, labels.tolist())
        columns = values[:, labels].T.astype(np.float32)
        return {f"P({name})": column for name, column in zip(names, columns, strict=True)}

    def _view(self, rows: Indices | None = None, *, by_label: bool = True) -> pd.DataFrame:
        """Columns that a shift test compares, of rows at some positions, in single precision."""
        import pandas as pd

        if self._compared_as is not None:
            return self._compared_as._view(rows, by_label=by_label)
        if rows is not None and len(rows) < len(self):
            return self[rows]._view(by_label=by_label)
        columns = {name: self.candidate_up_to_scale(name) for name in MIX}
        columns["n_predicted"] = self.n_predicted()
        if by_label and len(self):
            columns |= self._label_columns()
        return pd.DataFrame(columns, dtype=np.float32)

    def counts(self) -> Counts:
        """(tp, fp, fn, tn) of each decision."""
        return self._counts("")

    def accuracy(self, metric: MetricLike, empty: float) -> Floats:
        """Accuracy of each decision.

        Parameters
        ----------
        metric
            Name of a metric, or a function of (tp, fp, fn, tn).
        empty
            Value of Jaccard and F1 for two empty labelsets.

        Returns
        -------
        numpy.ndarray of shape (n,)
        """
        return get_metric(metric).values(*self.counts(), empty=empty)

    def expected(self, metric: MetricLike, empty: float) -> Floats:
        """Expected accuracy of each decision under the classifier's distribution.

        Parameters
        ----------
        metric
            Name of a metric, or a function of (tp, fp, fn, tn).
        empty
            Value of Jaccard and F1 for two empty labelsets.

        Returns
        -------
        numpy.ndarray of shape (n,)
        """
        chosen = get_metric(metric)
        stored = self._column(f"expected_{chosen.name}")
        if empty == 0 or not chosen.depends_on_empty:
            return stored
        is_empty = self.n_predicted() == 0
        if not is_empty.any():
            return stored
        return np.where(is_empty, stored + empty * self._column("p_empty"), stored)

    def best_accuracy(self, metric: MetricLike, empty: float) -> Floats:
        """Accuracy of the decisions that maximise expected accuracy.

        Parameters
        ----------
        metric
            Name of a metric, or a function of (tp, fp, fn, tn).
        empty
            Value of Jaccard and F1 for two empty labelsets.

        Returns
        -------
        numpy.ndarray of shape (n,)
        """
        metric = get_metric(metric)
        return metric.values(*self._counts(f"best_{metric.name}_"), empty=empty)

    def _counts(self, prefix: str) -> Counts:
        tp, fp, fn, tn = (self._column(f"{prefix}{name}") for name in COUNTS)
        return tp, fp, fn, tn

    def _from_profiles(self, function: Callable[[Profile], Floats]) -> Floats:
        values = np.empty(len(self))
        for rows, profile in self._profiles:
            values[rows] = function(profile)
        return values

    @cached_property
    def _profiles(self) -> list[tuple[Rows, Profile]]:
        """Profiles of rows with equal numbers of labels, and the positions of these rows."""
        fields = [self._profile_column(name) for name in FIELDS]
        n_labels = self._column("n_labels")
        profiles: list[tuple[Rows, Profile]] = []
        for size in np.unique(n_labels):
            has_size = n_labels == size
            rows: Rows = slice(None) if has_size.all() else np.flatnonzero(has_size)
            log_top, log_runner_up, entropy, log_collision = (values[rows] for values in fields)
            profile = Profile(log_top, log_runner_up, entropy, log_collision, float(size))
            profiles.append((rows, profile))
        return profiles

    def _profile_column(self, name: str) -> Floats:
        linear_name = name.removeprefix("log_")
        if name in self._columns or name == linear_name:
            return self._column(name, finite=name == linear_name)
        with np.errstate(divide="ignore"):  # a runner-up of probability 0
            return np.log(self._column(linear_name))

    def _column(self, name: str, *, finite: bool = True) -> Floats:
        """Column of numbers, (n,). Raises InputError for a missing column or value."""
        if name not in self._columns:
            if name in COUNTS and self._dists:
                raise InputError(
                    "`Y_true` must be given to fit on a distribution, got None. Only a score "
                    "table with tp, fp, fn and tn contains the truth."
                )
            raise InputError(
                f"The table must have a column {name!r}, got columns "
                f"{', '.join(map(str, self._columns))}. `ScoreTable.from_distribution` makes all "
                "that are needed."
            )
        values = np.asarray(self._columns[name], dtype=np.float64)
        is_invalid = ~np.isfinite(values) if finite else np.isnan(values)
        if is_invalid.any():
            raise InputError(
                f"The table's column {name!r} must hold finite numbers, got "
                f"{values[is_invalid][0]} in row {np.flatnonzero(is_invalid)[0]}. Drop or repair "
                "such rows."
            )
        return values


def keep_marginals(source: Any) -> Any:
    """Source whose marginals are computed along with the profile, where the batch is small."""
    if not isinstance(source, LabelsetDistribution) or not source._has_engines:
        return source
    is_small = 0 < len(source) <= MAX_JOINT_ROWS
    is_small &= source.n_labels <= _limits.CHEAP_DENSE_LABELS
    return source.with_engine(keep_top=1) if is_small else source


def calibration_marginals(dist: LabelsetDistribution) -> Floats:
    """P(y_j = 1), (n, L), for calibration; Monte Carlo estimates where exact ones take 2**L steps.

    A calibration also corrects the noise of the draws that it is fitted to. Of sparse labels, the
    listed ones as a sparse array.
    """
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        dist = dist.with_engine(engine="sampled", budget=N_MARGINAL_DRAWS)
    return listed_marginals(dist)


def largest_marginals(dist: LabelsetDistribution) -> Floats:
    """Largest marginals of each row and their sum, the expected number of labels, (n, 9).

    With very many labels, each is too rare to be compared by itself.
    """
    listed = listed_marginals(dist)
    n_listed = count_labels(listed)
    instance = np.repeat(np.arange(len(dist)), n_listed)
    order = np.lexsort((-listed.data, instance))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    values = np.zeros((len(dist), N_LARGEST + 1))
    is_large = rank < N_LARGEST
    values[instance[is_large], rank[is_large]] = listed.data[order][is_large]
    values[:, -1] = np.bincount(instance, listed.data, len(dist))
    return values

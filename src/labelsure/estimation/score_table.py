"""The score table: one row for each prediction, with all that analyses and estimates use.

The table is made from a distribution, with the columns of `COLUMNS`, which
`docs/understand/score_table.md` lists too. It answers what is asked of it: candidates, the accuracy
and the expected accuracy of the decisions, the probability and the truth of each label.

Expected accuracies are stored for two empty labelsets that are worth 0, beside the probability of
the empty labelset. Whatever two empty labelsets are worth, the expected accuracy of a decision
is the stored one, plus `empty` times that probability where the decision is empty and the metric
is 0/0 there. So one table serves every value of `empty`. No other module knows this rule.
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
from labelsure._runtime.typing import Floats, LabelNames, Labelsets, Rows
from labelsure.decisions._rules import Decisions
from labelsure.distributions._answers import as_guesses
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._independent_labels import SparseIndependentLabels
from labelsure.distributions.candidates import FIELDS, Profile, get_candidate
from labelsure.errors import InputError
from labelsure.labelsets.names import NamedLabelsets, align_labelsets, align_pair, align_rows
from labelsure.labelsets.rows import (
    count_labels,
    is_sparse,
    no_labels,
    read_rows,
    refuse_other_labels,
    stack_rows,
    to_text,
)
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
"""What names a cell of a study: one classifier on one split of one data set. A list, by which
pandas groups rows."""

COLUMNS: dict[str, str] = {
    "dataset": "name of the data set, in studies",
    "classifier": "name of the classifier, in studies",
    "repeat": "number of the split, from 0, in studies",
    "instance": "row of the data set that the instance is, in studies",
    "n_labels": "number of labels; rows may differ",
    "decision": "the labelset predicted, a digit for each label; of sparse labels {their indices}",
    "n_predicted": "labels in the decision; tp + fp where the column is missing",
    "log_frequency": "logarithm of how often the decision occurred in the training data, if known",
    "method": "the engine that gave the profile",
    "top": "probability of the most probable labelset",
    "runner_up": "probability of the second most probable labelset",
    "entropy": "Shannon entropy in nats",
    "collision": "sum of the squared probabilities",
    "log_top": "logarithm of top, read instead of it where both are there",
    "log_runner_up": "logarithm of runner_up, likewise",
    "log_collision": "logarithm of collision, likewise",
    "tp": "labels predicted and true",
    "fp": "labels predicted but not true",
    "fn": "labels true but not predicted",
    "tn": "labels neither predicted nor true",
    "p_empty": "probability of the empty labelset",
}
"""Columns and what they hold, in the order in which they are written."""

PROFILE_COLUMNS = tuple(COLUMNS)[list(COLUMNS).index("method") : list(COLUMNS).index("tp")]
"""Those of a profile, by the names of its fields."""

METRIC_COLUMNS: dict[str, str] = {
    "expected_{}": "expected accuracy of the decision, two empty labelsets being worth 0",
    "best_{}_decision": "the labelset with the highest expected accuracy",
    "best_{}_gap": "how far its expected accuracy may be below the highest",
    "best_{}_tp": "labels of it that are true; likewise fp, fn and tn",
    "true_expected_{}": "the first of these under the true distribution, where data is simulated",
}
"""Columns of each metric, whose name takes the place of the braces."""

LOG_FREQUENCY = "log_frequency"

DECISION_RULE = "decision_rule"
"""Where a frame says how its decisions were made: an entry of its `attrs`."""

TRUE_P_EMPTY = "true_p_empty"
"""p_empty under the true distribution; it comes after the columns of the metrics."""

N_LARGEST = 8  # probabilities of each instance that are compared where labels are too many

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
    compared: tuple[tuple[LabelsetDistribution, Labelsets], ...] = ()
    """The distributions that the table was made from, with the truth; none of a DataFrame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                f"A score table must be made of a DataFrame, got {type(frame).__name__}. Use "
                "`ScoreTable.from_distribution` for a distribution."
            )
        columns = {str(name): values.to_numpy() for name, values in frame.items()}
        self._fill(columns, len(frame), "DataFrame")
        self.index, self.decision_rule = frame.index, frame.attrs.get(DECISION_RULE)

    def _fill(self, columns: dict[str, NDArray[Any]], n_rows: int, source: str) -> Self:
        self._columns, self._n_rows, self._source = columns, n_rows, source
        return self

    @classmethod
    def from_distribution(
        cls,
        dist: LabelsetDistribution,
        Y_true: Any = None,
        Y_pred: Any = None,
        *,
        metrics: Sequence[MetricLike] | None = None,
        decision_rule: str | None = None,
    ) -> Self:
        """Return the table of a batch of predictions.

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
            How the decisions were made, so that nobody judges one prediction by another; None
            means "mode" where they are the mode, and "given" otherwise.
        """
        chosen = check_metrics(list(METRICS) if metrics is None else metrics)
        if Y_pred is not None:
            Y_pred = dist.align(Y_pred, "Y_pred")
        if Y_true is not None:
            Y_true = dist.align(Y_true, "Y_true")
        summary = dist._summary([] if Y_pred is not None else chosen, 0.0)
        decisions = summary.mode if Y_pred is None else Y_pred
        columns = _list_profile(summary.profile) | _compare(decisions, Y_true)
        if chosen:
            columns["p_empty"] = np.exp(dist.log_prob(no_labels(decisions)))
        if Y_pred is None:
            expected = [summary.expected[metric.name] for metric in chosen]
        else:
            found = dist._expected_each(chosen, as_guesses(decisions), 0.0)
            expected = [one.of_guess(0) for one in found]
        for metric, one in zip(chosen, expected, strict=True):
            columns[f"expected_{metric.name}"] = one.value
        table = cls.__new__(cls)._fill(columns, len(dist), "distribution")
        table.decisions, table.label_names, table.index = decisions, dist.label_names, dist.index
        table.decision_rule = decision_rule or ("mode" if Y_pred is None else "given")
        table.compared = () if Y_true is None else ((dist, Y_true),)
        return table

    @classmethod
    def from_profile(cls, profile: Profile, Y_true: Any = None, Y_pred: Any = None) -> Self:
        """Return the table of profiles alone; with truth and decisions also of accuracy."""
        table = cls.__new__(cls)._fill(_list_profile(profile), len(profile), "Profile")
        table.decision_rule = "given"
        if Y_pred is not None:
            if Y_true is not None:
                Y_pred, Y_true = align_pair(Y_pred, Y_true, ("Y_pred", "Y_true"))
            table.decisions = read_rows(Y_pred, "Y_pred", n_samples=len(profile))
            table._columns |= _compare(table.decisions, Y_true)
        return table

    @classmethod
    def concatenate(cls, tables: Sequence[Self]) -> Self:
        """Put the rows of tables that `from_distribution` made alike below each other."""
        columns = {
            name: np.concatenate([table._columns[name] for table in tables])
            for name in tables[0]._columns
        }
        new = cls.__new__(cls)._fill(columns, sum(map(len, tables)), tables[0]._source)
        decisions = [table.decisions for table in tables if table.decisions is not None]
        new.decisions = stack_rows(decisions) if decisions else None
        rules = {table.decision_rule for table in tables}
        new.decision_rule = rules.pop() if len(rules) == 1 else "given"
        new.compared = tuple(pair for table in tables for pair in table.compared)
        new.label_names = tables[0].label_names
        return new

    def with_best(self, metric: MetricLike, best: Decisions, Y_true: Any) -> Self:
        """Return the table with what `decide` returned for a metric beside its own decisions."""
        prefix = f"best_{get_metric(metric).name}_"
        order = align_rows(best.index, self.index, name="best", beside="the table")
        Y_best, Y_true = self._align(best, "best"), self._align(Y_true, "Y_true")
        gap = best.gap if order is None or best.gap is None else best.gap[order]
        added: dict[str, Any] = {f"{prefix}decision": to_text(Y_best), f"{prefix}gap": gap}
        for name, values in zip(COUNTS, counts(Y_true, Y_best), strict=True):
            added[f"{prefix}{name}"] = values
        return self.with_columns(added)

    def with_true_distribution(
        self, truth: LabelsetDistribution | None, metrics: Sequence[MetricLike]
    ) -> Self:
        """Return the table with expected accuracies under the distribution that data comes from.

        Without a `truth`, because nobody knows it, these columns are there but missing.
        """
        names = [get_metric(metric).name for metric in metrics]
        added = {f"true_expected_{name}": np.full(len(self), np.nan) for name in names}
        added[TRUE_P_EMPTY] = np.full(len(self), np.nan)
        if truth is not None and self.decisions is not None:
            n_labels = self.decisions.shape[1]
            refuse_other_labels(
                truth.label_names, truth.n_labels, self.label_names, n_labels, "the table"
            )
            order = align_rows(truth.index, self.index, name="truth", beside="the table")
            truth = truth if order is None else truth[order]
            for metric, name in zip(metrics, names, strict=True):
                expected = truth.expected(metric, self.decisions, empty=0.0).value
                added[f"true_expected_{name}"] = expected
            added[TRUE_P_EMPTY] = np.exp(truth.log_prob(no_labels(self.decisions)))
        return self.with_columns(added)

    def with_columns(self, added: dict[str, Any]) -> Self:
        """Return the table with more columns, by name."""
        new = copy(self)
        new._columns = self._columns | {name: np.asarray(added[name]) for name in added}
        return new

    def _align(self, Y: Any, name: str) -> Labelsets:
        """Return labelsets in the order of the rows and labels of the table."""
        if self.decisions is None:
            raise InputError(
                f"`{name}` must go with a table that was made from a distribution, which knows its "
                "labels, got one of a DataFrame or a profile. Use `ScoreTable.from_distribution`."
            )
        batch = NamedLabelsets(self.decisions, self.label_names, self.index)
        is_listed = is_sparse(self.decisions)
        return align_labelsets(Y, batch, name=name, beside="the table", sparse=is_listed)

    def __len__(self) -> int:
        return self._n_rows

    def _repr_html_(self) -> str:
        sentence = f"A score table of {count(len(self), 'prediction')}."
        return make_html(sentence, self.to_frame().head(N_ROWS))

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame, its columns in the order of `COLUMNS`."""
        import pandas as pd

        columns: dict[str, Any] = dict(self._columns)
        if self.decisions is not None:
            columns["decision"] = to_text(self.decisions)
        first = [name for name in COLUMNS if name in columns]
        rest = [name for name in columns if name not in COLUMNS]
        frame = pd.DataFrame({name: columns[name] for name in [*first, *rest]}, self.index)
        frame.attrs[DECISION_RULE] = self.decision_rule
        return frame

    def candidate(self, name: str) -> Floats:
        """Return a candidate's value in each row, (n,), whatever its number of labels."""
        return self._from_profiles(get_candidate(name).function)

    def candidate_up_to_scale(self, name: str) -> Floats:
        """Return the same on a scale on which rows differ, also of very many labels."""
        return self._from_profiles(get_candidate(name).values_up_to_scale)

    def ranks(self, name: str) -> Floats:
        """Return what orders the rows as a candidate does, without ties by rounding, (n,)."""
        return self._from_profiles(get_candidate(name).ranks)

    def n_predicted(self) -> Floats:
        """Return the number of labels in each decision, (n,)."""
        if "n_predicted" in self._columns:
            return self._column("n_predicted")
        return self._column("tp") + self._column("fp")

    def with_frequencies(self, log_frequencies: Floats) -> Self:
        """Return the table with how often each decision occurred in the training data, (n,)."""
        return self.with_columns({LOG_FREQUENCY: log_frequencies})

    @property
    def knows_frequencies(self) -> bool:
        """Whether it says how often each decision occurred in the training data."""
        return LOG_FREQUENCY in self._columns

    def log_frequency(self) -> Floats:
        """Return the logarithm of how often each decision occurred in the training data, (n,)."""
        if not self.knows_frequencies:
            raise InputError(
                "`Y_train` must be given when fitting, or the table must have a column "
                f"{LOG_FREQUENCY!r}, for an estimator that counts labelsets, got neither."
            )
        return self._column(LOG_FREQUENCY)

    def counts(self) -> Counts:
        """Return (tp, fp, fn, tn) of each decision."""
        return self._counts("")

    @property
    def knows_labels(self) -> bool:
        """Whether `marginals` and `truth` are known: not of a DataFrame nor of sparse labels."""
        return bool(self.compared) and self.decisions is not None and not is_sparse(self.decisions)

    @cached_property
    def marginals(self) -> Floats:
        """P(y_j = 1) of each row, (n, L), as `calibration_marginals` has it."""
        return np.concatenate([calibration_marginals(dist) for dist, _ in self.compared])

    @property
    def truth(self) -> Labelsets:
        """The true labelset of each row, (n, L)."""
        return np.concatenate([Y_true for _, Y_true in self.compared])

    def accuracy(self, metric: MetricLike, empty: float) -> Floats:
        """Return the accuracy of each decision, (n,)."""
        return get_metric(metric).values(*self.counts(), empty=empty)

    def expected(self, metric: MetricLike, empty: float) -> Floats:
        """Return the expected accuracy of each decision under the classifier's distribution."""
        return self._expected(get_metric(metric), empty, "")

    def true_expected(self, metric: MetricLike, empty: float) -> Floats:
        """Return the same under the true distribution, which only simulated data has."""
        return self._expected(get_metric(metric), empty, "true_")

    def best_accuracy(self, metric: MetricLike, empty: float) -> Floats:
        """Return the accuracy of the decision with the highest expected accuracy, (n,)."""
        metric = get_metric(metric)
        return metric.values(*self._counts(f"best_{metric.name}_"), empty=empty)

    def _expected(self, metric: Metric, empty: float, prefix: str) -> Floats:
        stored = self._column(f"{prefix}expected_{metric.name}")
        if empty == 0 or not metric.depends_on_empty:
            return stored
        is_empty = self.n_predicted() == 0
        if not is_empty.any():
            return stored
        return np.where(is_empty, stored + empty * self._column(f"{prefix}p_empty"), stored)

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
        """The rows of each number of labels with their profile."""
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
        plain = name.removeprefix("log_")
        if name in self._columns or name == plain:
            return self._column(name, finite=name == plain)
        with np.errstate(divide="ignore"):  # a runner-up of probability 0
            return np.log(self._column(plain))

    def _column(self, name: str, *, finite: bool = True) -> Floats:
        if name not in self._columns:
            raise self._missing(name)
        values = np.asarray(self._columns[name], dtype=np.float64)
        bad = ~np.isfinite(values) if finite else np.isnan(values)
        if bad.any():
            raise InputError(
                f"The table's column {name!r} must hold finite numbers, got "
                f"{values[bad][0]} in row {np.flatnonzero(bad)[0]}. Drop or repair such rows."
            )
        return values

    def _missing(self, name: str) -> InputError:
        """Return the error for a column that is not there, in the words of what was passed."""
        if self._source == "DataFrame":
            return InputError(
                f"The table must have a column {name!r}, got columns "
                f"{', '.join(map(str, self._columns))}. `ScoreTable.from_distribution` makes all "
                "that are needed."
            )
        if name not in COUNTS:
            return InputError(
                "`dist` must be a LabelsetDistribution, or a table with the expected accuracies, "
                "for an estimator that uses them, got a Profile. Pass the distribution."
            )
        if self.decisions is None:
            return InputError(
                "`Y_pred` must be given with a Profile, which does not say what was predicted, "
                "got None. Pass the labelsets, or the distribution."
            )
        return InputError(
            "`Y_true` must be given to fit on a distribution, got None. Only a table with tp, fp, "
            "fn and tn brings the truth along."
        )


def _list_profile(profile: Profile) -> dict[str, NDArray[Any]]:
    """Return the columns of a profile."""
    columns: dict[str, NDArray[Any]] = {name: getattr(profile, name) for name in PROFILE_COLUMNS}
    n_labels = int(profile.n_bits) if profile.n_bits % 1 == 0 else profile.n_bits
    return columns | {"n_labels": np.full(len(profile), n_labels)}


def _compare(decisions: Labelsets, Y_true: Any) -> dict[str, NDArray[Any]]:
    """Return the counts of the decisions against the truth, or else how many labels they have."""
    if Y_true is None:
        return {"n_predicted": count_labels(decisions)}
    return dict(zip(COUNTS, counts(Y_true, decisions), strict=True))


def calibration_marginals(dist: LabelsetDistribution) -> Floats:
    """Return P(y_j = 1), (n, L), to be calibrated: by draws where exact ones would take long.

    A calibration corrects what it is fitted to, the noise of draws as well, so fitting must not
    wait for all 2**L labelsets of chains. Of sparse labels, the listed ones as a sparse array.
    """
    if isinstance(dist, SparseIndependentLabels):
        return dist.listed_marginals()
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        dist = dist.with_engine(engine="sampled", budget=N_MARGINAL_DRAWS)
    return dist.marginals()


def largest_marginals(dist: LabelsetDistribution) -> tuple[tuple[str, ...], Floats]:
    """Return what is compared of very many labels: the largest probabilities of each instance.

    And their sum, the expected number of true labels. Each label by itself is too rare to say
    anything of a batch.

    Returns
    -------
    The names of the columns, and (n, number of columns)
    """
    assert isinstance(dist, SparseIndependentLabels)
    listed = dist.listed_marginals()
    n_listed = count_labels(listed)
    instance = np.repeat(np.arange(len(dist)), n_listed)
    order = np.lexsort((-listed.data, instance))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    values = np.zeros((len(dist), N_LARGEST + 1))
    is_large = rank < N_LARGEST
    values[instance[is_large], rank[is_large]] = listed.data[order][is_large]
    values[:, -1] = np.bincount(instance, listed.data, len(dist))
    names = tuple(f"largest probability {r + 1}" for r in range(N_LARGEST))
    return (*names, "sum of probabilities"), values

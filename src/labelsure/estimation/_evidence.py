"""What is known of each prediction before the truth is: from a distribution or from a table.

A table (a DataFrame, such as the score table of a study) has one row for each prediction:

| column | what it holds |
|---|---|
| n_labels | number of labels; rows may differ |
| top, runner_up, collision | of the profile; or log_top, log_runner_up, log_collision, which win |
| entropy | of the profile, in nats |
| tp, fp, fn, tn | counts of the decision against the truth: for fitting only |
| n_predicted | labels in the decision; tp + fp where the column is missing |
| expected_exact, expected_jaccard, ... | expected accuracy of the decision **with empty = 0** |
| p_empty | probability of the empty labelset |

The last two kinds are for models that use the expected accuracy. Whatever two empty labelsets are
worth, the expected accuracy is `expected_<metric> + empty * p_empty` where the decision is empty
and the metric is 0/0 there, and `expected_<metric>` everywhere else. So one table serves every
value of `empty`. This is the only place that says so; `score_table` writes such a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._typing import Floats, Labelsets
from labelsure.candidates import CANDIDATES
from labelsure.distributions import LabelsetDistribution, Profile, Summary
from labelsure.errors import InputError
from labelsure.labelsets import check_labelsets
from labelsure.metrics import METRICS, Counts, Metric, MetricLike, counts, get_metric

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("tp", "fp", "fn", "tn")


class Evidence(ABC):
    """What is known of n predictions, asked for one column at a time."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def candidate(self, name: str) -> Floats:
        """Return one of the candidates, (n,)."""

    @abstractmethod
    def expected(self, metric: Metric, empty: float) -> Floats:
        """Return the expected accuracy of the decision under the distribution, (n,)."""

    @abstractmethod
    def n_predicted(self) -> Floats:
        """Return the number of labels in the decision, (n,)."""

    @abstractmethod
    def counts(self, Y_true: Any) -> Counts:
        """Return (tp, fp, fn, tn) of the decision."""


def as_evidence(dist: Any, Y_pred: Any = None, metric: Metric | None = None) -> Evidence:
    """Return the evidence in a distribution, a profile or a table.

    Parameters
    ----------
    dist
        A `LabelsetDistribution`, a `Profile` or a DataFrame.
    Y_pred
        The decisions; None means the mode, or what the table was made for.
    metric
        The one whose expectation will be asked for, so that one sweep answers everything.
    """
    if isinstance(dist, LabelsetDistribution):
        return _DistributionEvidence(dist, Y_pred, metric)
    if isinstance(dist, Profile):
        return _ProfileEvidence(dist, Y_pred)
    if hasattr(dist, "columns"):
        if Y_pred is not None:
            raise InputError(
                "`Y_pred` must be None with a table, which was made for decisions of its own, got "
                f"{type(Y_pred).__name__}. Pass the distribution to score other decisions."
            )
        return _TableEvidence(dist)
    raise InputError(
        "`dist` must be a LabelsetDistribution, a Profile or a DataFrame with its fields, got "
        f"{type(dist).__name__}. Wrap probabilities with `as_distribution`."
    )


class _ProfileEvidence(Evidence):
    """A profile alone, and the decisions where they are given."""

    def __init__(self, profile: Profile, Y_pred: Any) -> None:
        self.profile = profile
        self._Y_pred = None
        if Y_pred is not None:
            self._Y_pred = check_labelsets(Y_pred, name="Y_pred", n_samples=len(profile))

    @property
    def decisions(self) -> Labelsets:
        if self._Y_pred is None:
            raise InputError(
                "`Y_pred` must be given with a Profile, which does not say what was predicted, "
                "got None. Pass the labelsets, or the distribution."
            )
        return self._Y_pred

    def __len__(self) -> int:
        return len(self.profile)

    def candidate(self, name: str) -> Floats:
        return CANDIDATES[name].function(self.profile)

    def expected(self, metric: Metric, empty: float) -> Floats:
        raise InputError(
            "`dist` must be a LabelsetDistribution, or a table with the expected accuracies, for "
            "an estimator that uses them, got a Profile. Pass the distribution."
        )

    def n_predicted(self) -> Floats:
        return self.decisions.sum(axis=1).astype(np.float64)

    def counts(self, Y_true: Any) -> Counts:
        return counts(_given(Y_true), self.decisions)


class _DistributionEvidence(Evidence):
    """A distribution: the profile, the mode and its expected accuracy come from one sweep."""

    def __init__(self, dist: LabelsetDistribution, Y_pred: Any, metric: Metric | None) -> None:
        self._dist = dist
        self._metric = metric
        self._Y_pred = None
        if Y_pred is not None:
            self._Y_pred = check_labelsets(
                Y_pred, name="Y_pred", n_samples=len(dist), n_labels=dist.n_labels
            )

    @cached_property
    def _summary(self) -> Summary:
        swept = [] if self._Y_pred is not None or self._metric is None else [self._metric]
        return self._dist.summary(swept, empty=0.0)

    @property
    def decisions(self) -> Labelsets:
        return self._summary.mode if self._Y_pred is None else self._Y_pred

    def __len__(self) -> int:
        return len(self._dist)

    def candidate(self, name: str) -> Floats:
        return CANDIDATES[name].function(self._summary.profile)

    def expected(self, metric: Metric, empty: float) -> Floats:
        without = self._summary.expected.get(metric.name) if metric == self._metric else None
        if without is None:
            without = self._dist.expected(metric, self.decisions, empty=0.0)
        return _with_empty(without, metric, empty, self.n_predicted(), self.p_empty)

    def p_empty(self) -> Floats:
        nothing = np.zeros((len(self), self._dist.n_labels), dtype=np.int8)
        return np.exp(self._dist.log_prob(nothing))

    def n_predicted(self) -> Floats:
        return self.decisions.sum(axis=1).astype(np.float64)

    def counts(self, Y_true: Any) -> Counts:
        true = check_labelsets(
            _given(Y_true), name="Y_true", n_samples=len(self), n_labels=self._dist.n_labels
        )
        return counts(true, self.decisions)


class _TableEvidence(Evidence):
    """A DataFrame; the columns are described at the top of this module."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @cached_property
    def _profiles(self) -> list[tuple[Any, Profile]]:
        """Return the rows of each number of labels with their profile."""
        logs = [self._log(name) for name in ("top", "runner_up", "collision")]
        entropy, n_labels = self._column("entropy"), self._column("n_labels")
        profiles = []
        for size in np.unique(n_labels):
            rows = slice(None) if (n_labels == size).all() else np.flatnonzero(n_labels == size)
            top, runner_up, collision = (values[rows] for values in logs)
            profiles.append((rows, Profile(top, runner_up, entropy[rows], collision, float(size))))
        return profiles

    def candidate(self, name: str) -> Floats:
        values = np.empty(len(self))
        for rows, profile in self._profiles:
            values[rows] = CANDIDATES[name].function(profile)
        return values

    def expected(self, metric: Metric, empty: float) -> Floats:
        without = self._column(f"expected_{metric.name}")
        return _with_empty(
            without, metric, empty, self.n_predicted(), lambda: self._column("p_empty")
        )

    def n_predicted(self) -> Floats:
        if "n_predicted" in self._table.columns:
            return self._column("n_predicted")
        return self._column("tp") + self._column("fp")

    def counts(self, Y_true: Any) -> Counts:
        if Y_true is not None:
            raise InputError(
                "`Y_true` must be None with a table, whose tp, fp, fn and tn say how each decision "
                f"did, got {type(Y_true).__name__}. Pass the distribution to use other labels."
            )
        tp, fp, fn, tn = (self._column(name) for name in COUNTS)
        return tp, fp, fn, tn

    def _log(self, name: str) -> Floats:
        if f"log_{name}" in self._table.columns:
            return self._column(f"log_{name}", finite=False)
        with np.errstate(divide="ignore"):  # a runner-up of probability 0
            return np.log(self._column(name))

    def _column(self, name: str, *, finite: bool = True) -> Floats:
        if name not in self._table.columns:
            raise InputError(
                f"The table must have a column {name!r}, got columns "
                f"{', '.join(map(str, self._table.columns))}. `score_table` writes all that are "
                "needed."
            )
        values = self._table[name].to_numpy(dtype=np.float64)
        bad = np.isnan(values) if not finite else ~np.isfinite(values)
        if bad.any():
            raise InputError(
                f"The table's column {name!r} must hold finite numbers, got "
                f"{values[bad][0]} in row {np.flatnonzero(bad)[0]}. Drop or repair such rows."
            )
        return values


def _given(Y_true: Any) -> Any:
    if Y_true is None:
        raise InputError(
            "`Y_true` must be given to fit on a distribution, got None. Only a table with tp, fp, "
            "fn and tn brings the truth along."
        )
    return Y_true


def _with_empty(
    without: Floats, metric: Metric, empty: float, n_predicted: Floats, p_empty: Any
) -> Floats:
    """Add what an empty decision gains when the truth is empty too, if the metric is 0/0 there."""
    nothing = ([0], [0], [0], [1])
    undefined = metric.values(*nothing, empty=1.0) != metric.values(*nothing, empty=0.0)
    if not undefined[0] or empty == 0:
        return without
    is_empty = n_predicted == 0
    if not is_empty.any():
        return without
    return np.where(is_empty, without + empty * p_empty(), without)


def score_table(
    dist: LabelsetDistribution,
    Y_true: Any = None,
    Y_pred: Any = None,
    *,
    metrics: Sequence[MetricLike] = tuple(METRICS),
) -> pd.DataFrame:
    """Return one row for each prediction with all that models of accuracy use.

    Parameters
    ----------
    dist
        A batch of distributions.
    Y_true
        Adds the columns tp, fp, fn, tn.
    Y_pred
        The decisions; None means the mode.
    metrics
        Adds a column such as expected_jaccard for each: the expected accuracy of the decision
        when two empty labelsets are worth 0. With `p_empty` it gives that for any other worth.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> table = score_table(IndependentLabels([[0.9, 0.2], [0.1, 0.1]]), metrics=["jaccard"])
    >>> table[["top", "n_predicted", "expected_jaccard", "p_empty"]].round(3)
        top  n_predicted  expected_jaccard  p_empty
    0  0.72            1              0.81     0.08
    1  0.81            0              0.00     0.81
    """
    import pandas as pd

    summary = dist.summary([] if Y_pred is not None else metrics, empty=0.0)
    evidence = _DistributionEvidence(dist, summary.mode if Y_pred is None else Y_pred, None)
    profile = summary.profile
    columns: dict[str, Any] = {"n_labels": dist.n_labels}
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        columns[name] = getattr(profile, name)
    for name in ("top", "runner_up", "collision"):
        columns[name] = getattr(profile, name)
    columns["n_predicted"] = evidence.n_predicted().astype(np.int64)
    columns["p_empty"] = evidence.p_empty()
    for metric in map(get_metric, metrics):
        expected = summary.expected.get(metric.name)
        if expected is None:
            expected = dist.expected(metric, evidence.decisions, empty=0.0)
        columns[f"expected_{metric.name}"] = expected
    if Y_true is not None:
        columns |= dict(zip(COUNTS, evidence.counts(Y_true), strict=True))
    return pd.DataFrame(columns, index=pd.RangeIndex(len(dist)))

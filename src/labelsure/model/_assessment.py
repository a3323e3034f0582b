"""`Assessment`: predictions with estimated accuracies and acceptance, as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.typing import FeaturesLike, Floats, Labelsets, Mask, RowsLike
from labelsure.decisions._rules import decide
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._instance_table import make_table, plot_instance
from labelsure.estimation._batch_summary import RowEstimates
from labelsure.estimation._shift import MIN_ROWS, ShiftTest, describe_shift, sample_rows
from labelsure.guarantees._labelset_region import RegionLabelsets
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.lists import name_rows
from labelsure.metrics.partial import PartialLabelsets
from labelsure.model._fitted import Fitted
from labelsure.model._predictor import Predictions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


OUTSIDE = "input outside calibration data"
"""Reason for a row with an input outside the ranges; the column's name follows."""

BY_ROW = ("distribution", "Y_pred", "accuracy", "expected", "accepted", "reason", "region", "own")


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Predictions with estimated accuracies and acceptance: the result of `assess`.

    Parameters
    ----------
    distribution
        The distributions over labelsets, with the index of X.
    Y_pred
        (n, L) predicted labelsets.
    accuracy
        (n,) estimated accuracies.
    expected
        (n,) expected accuracies, under the distribution alone.
    accepted
        (n,) whether the policy accepts each; None without a target.
    reason
        (n,) reason for acceptance or referral, in a few words.
    region
        Certain and possible labels; None where the model shows no region.
    shift
        The `ShiftTest` of the whole batch, where there was one.
    untested
        Why the shift test was skipped; empty if it ran or was not requested.
    judged
        Rule of the judged decisions, in words.
    metric
        Title of the metric.
    own
        (n, L) labelsets of a frozen model's own `predict`; None unless they differ from the
        judged ones on calibration rows.
    """

    distribution: LabelsetDistribution
    Y_pred: Labelsets
    accuracy: Floats
    expected: Floats
    accepted: Mask | None
    reason: NDArray[np.object_]
    region: RegionLabelsets | None = None
    shift: ShiftTest | None = None
    untested: str = ""
    judged: str = ""
    metric: str = "accuracy"
    own: Labelsets | None = None

    def __len__(self) -> int:
        return len(self.accuracy)

    def __getitem__(self, rows: RowsLike) -> Assessment:
        """Assessment of some rows: an index, a slice, indices or a mask."""
        positions = np.atleast_1d(np.arange(len(self))[rows])
        of_rows = {name: value for name in BY_ROW if (value := getattr(self, name)) is not None}
        return replace(self, **{name: value[positions] for name, value in of_rows.items()})

    def leave_open(self, open_cost: float) -> PartialLabelsets:
        """Abstain on single labels: answers that leave uncertain labels open.

        Parameters
        ----------
        open_cost
            A label is left open if it would be wrong with a probability above this cost. This is
            the rule of Hamming, whatever the metric of the model.
        """
        abstentions = decide(self.distribution, "hamming", open_cost=open_cost).abstentions
        assert abstentions is not None
        return abstentions

    def to_frame(
        self,
        k: int = 3,
        *,
        probabilities: bool | None = None,
        sep: str | None = None,
        open_cost: float | None = None,
    ) -> pd.DataFrame:
        """Table with a row for each prediction (`docs/howto/tables_and_plots.md`).

        Parameters
        ----------
        k
            Number of most probable labelsets to add, at most 2**L. With 0 they are not computed.
        probabilities
            Whether to add the probability of each label: a column for each. None means yes, but for
            sparse labels.
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.
        open_cost
            Adds the decided and the open labels at this cost, see `leave_open`.
        """
        import pandas as pd

        accepted = [pd.NA] * len(self) if self.accepted is None else self.accepted
        columns = {
            "estimated_accuracy": self.accuracy,
            "expected_accuracy": self.expected,
            "accept": pd.array(accepted, dtype="boolean"),
            "reason": self.reason,
        }
        if self.own is not None:
            columns["own_predicted"] = name_rows(self.own, self.distribution.label_names, sep)
        if self.region is not None:
            names = self.region.to_frame(sep=sep, count=False)
            columns |= {name: names[name].to_numpy() for name in ("certain", "possible")}
        if open_cost is not None:
            answers = self.leave_open(open_cost).to_frame(sep=sep)
            columns["decided"] = answers["certain"].to_numpy()
            columns["open"] = answers["open"].to_numpy()
        if probabilities is None:
            probabilities = not self.distribution.sparse_rows
        table = make_table(
            self.distribution, self.Y_pred, columns, k=k, probabilities=probabilities, sep=sep
        )
        table.attrs["judged"] = self.judged
        return table

    def plot(self, row: int = 0, k: int = 10, *, ax: Axes | None = None) -> Axes:
        """Draw the most probable labelsets of one row as bars, and mark the predicted one.

        Parameters
        ----------
        row
            Position of the row.
        k
            Number of labelsets.
        ax
            Axes to draw into; None for a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_instance(self.distribution, row, k, ax, self.Y_pred)

    def __str__(self) -> str:
        if len(self) == 0:
            return "No predictions."
        n_predictions, mean = count(len(self), "prediction"), float(self.accuracy.mean())
        accepted = "no target or share was set"
        if self.accepted is not None:
            accepted = f"{int(self.accepted.sum()):,} accepted"
        sentence = f"{n_predictions}, mean estimated {self.metric} {mean:.3f}; {accepted}."
        if self.judged:
            sentence += f" Accuracy is that of {self.judged}."
        return " ".join(filter(None, (sentence, describe_shift(self.shift, self.untested))))

    def __repr__(self) -> str:
        n_accepted = None if self.accepted is None else int(self.accepted.sum())
        return f"Assessment(n_samples={len(self)}, n_accepted={n_accepted})"

    def _repr_html_(self) -> str:
        return make_html(str(self), self[:N_ROWS].to_frame(0, probabilities=False))


def assess_rows(
    fitted: Fitted,
    predictions: Predictions,
    rows: RowEstimates,
    X: FeaturesLike = None,
    *,
    tests_shift: bool = False,
) -> Assessment:
    """Assessment of a batch; X is needed for the model's own `predict` alone."""
    estimator, policy, dist = fitted.accuracy_estimator, fitted.policy, rows.table.distribution
    accepted = None if policy is None else policy.accept(rows.accuracy)
    reasons = _give_reasons(policy, accepted, len(dist))
    if predictions.outside is not None:
        referred = predictions.outside.astype(bool)
        reasons[referred] = f"{OUTSIDE}: " + predictions.outside[referred]
        accepted = None if accepted is None else accepted & ~referred
    shows_region = fitted.region is not None and fitted.shows_region
    test, untested = None, ""
    if tests_shift:
        compares = estimator.can_compare and len(dist) >= MIN_ROWS
        view = rows.view(sample_rows(len(dist))) if compares else None
        test, untested = estimator.compare_with_calibration(view)
    return Assessment(
        dist,
        cast(Labelsets, rows.table.decisions),  # the table of a distribution has them
        rows.accuracy,
        rows.table.expected(estimator.metric, estimator.empty),
        accepted,
        reasons,
        fitted.find_region().predict(dist) if shows_region else None,
        test,
        untested,
        fitted.predictor.judged,
        fitted.metric.title,
        fitted.predictor.predict_own(X) if fitted.comparison.differs and X is not None else None,
    )


def is_outside(reasons: NDArray[np.object_]) -> Mask:
    """Mask of rows that are referred for an input outside the ranges, (n,)."""
    return np.array([str(reason).startswith(OUTSIDE) for reason in reasons], dtype=bool)


def _give_reasons(
    policy: AcceptPolicy | None, accepted: Mask | None, n_samples: int
) -> NDArray[np.object_]:
    """Reason for or against each prediction, (n,), one of at most two sentences."""
    if policy is None or accepted is None:
        return np.full(n_samples, "no target or share was set", dtype=object)
    if not policy.reached_:
        sentence = f"no threshold is proved to reach the target {policy.target:g}"
        return np.full(n_samples, sentence, dtype=object)
    threshold = f"the threshold {policy.threshold_:g}"
    sentences = [
        f"estimated accuracy below {threshold}",
        f"estimated accuracy at least {threshold}",
    ]
    return np.array(sentences, dtype=object)[accepted.astype(np.intp)]

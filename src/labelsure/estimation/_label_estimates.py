"""Estimates of a batch's labels: from a calibration where there is one, else from its model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._label_calibration import LabelCalibration
from labelsure.estimation.label_metrics import (
    LabelCounts,
    draw_counts,
    expect_measures,
    label_table,
)
from labelsure.estimation.label_outcomes import calibration_marginals
from labelsure.labelsets.rows import refuse_other_labels
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    import pandas as pd

N_DRAWS = 400
"""Truths drawn for an interval: the end points of 95% are then the tenth from either side."""


@dataclass(frozen=True)
class LabelBatch:
    """What is known of the labels of a batch that nobody has labelled.

    Parameters
    ----------
    dist
        A batch of n distributions.
    Y_pred
        (n, L) what is predicted.
    calibration
        What labelled instances say of these probabilities; None means that the distributions are
        believed as they are.
    empty
        What 0/0 is worth.
    random_state
        Seed of the draws.
    """

    dist: LabelsetDistribution
    Y_pred: Labelsets
    calibration: LabelCalibration | None
    empty: float
    random_state: int | None

    @classmethod
    def read(
        cls,
        dist: LabelsetDistribution,
        Y_pred: Any,
        calibration: LabelCalibration | None,
        empty: float,
        random_state: int | None,
    ) -> Self:
        """Check that the labels are those of the calibration; no `Y_pred` means the mode."""
        if len(dist) == 0:
            raise InputError("A batch must hold at least one instance, got none.")
        if calibration is not None:
            known, n_known = calibration.label_names, len(calibration.frequencies)
            refuse_other_labels(
                dist.label_names, dist.n_labels, known, n_known, "the fitted estimator"
            )
        decisions = dist.mode() if Y_pred is None else dist.align(Y_pred, "Y_pred")
        return cls(dist, decisions, calibration, empty, random_state)

    def estimate_average(self, metric: str, level: float) -> Estimate:
        """Return the micro or macro average of a measure, with an interval."""
        check_level(level)
        drawn, expected = self._draw()
        values = widened = drawn.of_batch(metric, self.empty)
        mean = values.mean()
        if self.calibration is not None:
            widened = self.calibration.widen(metric, values, expected.of_batch(metric, self.empty))
        elif metric.startswith("macro-"):
            mean = self._expect_labels()[metric.removeprefix("macro-")].mean()
        low, high = map(float, np.quantile(widened, [(1 - level) / 2, (1 + level) / 2]))
        return Estimate(float(mean), low, high, len(self.dist), level, float("nan"), metric)

    def estimate_labels(self, level: float) -> pd.DataFrame:
        """Return the table of the labels: numbers and measures, each with an interval."""
        check_level(level)
        drawn, _ = self._draw()
        values = self._expect_labels() if self.calibration is None else {}
        return label_table(drawn, values, self.dist.label_names, empty=self.empty, level=level)

    def _draw(self) -> tuple[LabelCounts, LabelCounts]:
        """Return counts of drawn truths, and, with a calibration, those expected of each draw."""
        if self.calibration is None:
            drawn = draw_counts(self.dist, self.Y_pred, N_DRAWS, self.random_state)
            return drawn, drawn
        marginals = calibration_marginals(self.dist)
        return self.calibration.draw(marginals, self.Y_pred, self.random_state)

    def _expect_labels(self) -> dict[str, Floats]:
        """Return the numbers of each label as the distributions expect them, exactly."""
        marginals = self.dist.marginals()
        exact = expect_measures(marginals, self.Y_pred, self.empty)
        return {**exact, "n_true": marginals.sum(axis=0)}


def check_labels_are_known(
    dist: Any, calibration: LabelCalibration | None, *, learns: bool
) -> None:
    """Refuse a batch, or an estimator, that says nothing of single labels.

    Parameters
    ----------
    dist
        The batch.
    calibration
        Of the estimator.
    learns
        Whether the estimator should have one.
    """
    if not isinstance(dist, LabelsetDistribution):
        raise InputError(
            "`dist` must be a LabelsetDistribution for measures of single labels, which nothing "
            f"else tells apart, got {type(dist).__name__}. Pass the distribution."
        )
    if dist.sparse_rows:
        raise InputError(
            f"`dist` must not be sparse for measures of single labels, got {dist.n_labels} labels, "
            "most of which occur too seldom to say anything of. Select some of them, or fit and "
            "estimate with `IndependentLabels(dist.marginals())` where there are few."
        )
    if calibration is None and learns:
        raise InputError(
            "The estimator must be fitted to a LabelsetDistribution, without groups, for measures "
            "of single labels, got a table or groups when fitting. Call `fit(dist, Y_true)`."
        )

"""`Promises`: settings of estimates and guarantees, and their fit to calibration rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from sklearn.base import clone

from labelsure.errors import InputError
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.metrics.clusters import cluster_size_quantile
from labelsure.metrics.registry import MetricLike
from labelsure.model._calibration import Calibrated
from labelsure.model._fitted import Fitted, fit_accuracy_estimator
from labelsure.model._model_card import make_card

DEFAULT_COVERAGE = 0.9
"""Coverage of `predict_region` for `region=None`."""


@dataclass(frozen=True)
class Promises:
    """Metric, level, policy and prediction sets of a model, before it is fitted.

    Parameters
    ----------
    metric, empty
        Metric of the accuracy, and its value for two empty labelsets.
    confidence
        Confidence level of intervals and guarantees.
    policy
        Unfitted accept policy; None without target and share.
    region
        Unfitted region.
    shows_region
        Whether `assess` shows certain and possible labels.
    """

    metric: MetricLike
    empty: float
    confidence: float
    policy: AcceptPolicy | None
    region: LabelsetRegion
    shows_region: bool

    @property
    def needs_own_rows(self) -> bool:
        """Whether the policy needs rows of its own, new to the accuracy estimator."""
        return self.policy is not None and self.policy.guarantee == "exact"

    def fit(self, calibrated: Calibrated, log: Callable[[str], None]) -> Fitted:
        """Fitted model: accuracy estimator, policy and region on calibration rows."""
        for_estimator, for_policy = calibrated.for_estimator, calibrated.for_policy
        region = self._fit_region(calibrated)
        log(f"fitting the estimator of accuracy to {len(for_estimator):,} rows")
        estimator = fit_accuracy_estimator(
            AccuracyEstimator(self.metric, empty=self.empty),
            self.confidence,
            for_estimator,
            calibrated.training_labelsets,
        )
        if self.policy is not None:
            accuracies = for_policy.accuracy(self.metric, self.empty)
            if for_estimator.clusters is not None:
                self.policy.max_cluster_size = cluster_size_quantile(for_estimator.clusters)
            if for_policy is for_estimator:  # out-of-fold estimates
                scores = estimator.compare_estimates()[0]
            else:
                scores = estimator.predict(for_policy)
            # Rows outside are never accepted: the guarantee is for the others.
            inside, clusters = ~calibrated.is_outside, for_policy.clusters
            clusters = None if clusters is None else clusters[inside]
            self.policy.fit(scores[inside], accuracies[inside], clusters=clusters)
        return Fitted(
            calibrated.predictor,
            estimator,
            self.policy,
            region,
            self.confidence,
            self.shows_region,
            calibrated.holds_out,
            calibrated.comparison,
            make_card(calibrated, estimator, self.policy, region, self.confidence),
        )

    def _fit_region(self, calibrated: Calibrated) -> LabelsetRegion | None:
        """Fitted region; None without rows of its own, and by default for sparse labelsets."""
        rows = calibrated.for_region
        if rows is None or len(rows) == 0 or (not self.shows_region and rows.dist.sparse_rows):
            return None
        return self.region.fit(rows.dist, rows.truth, clusters=rows.clusters)


def read_region(setting: float | LabelsetRegion | None) -> LabelsetRegion:
    """Unfitted region from the parameter `region`. Raises InputError."""
    region = DEFAULT_COVERAGE if setting is None else setting
    if isinstance(region, Real) and not isinstance(region, bool):
        region = LabelsetRegion(coverage=float(region))
    if not isinstance(region, LabelsetRegion):
        raise InputError(
            f"`region` must be None, a coverage such as 0.9, or a `LabelsetRegion`, got {region!r}."
        )
    region.check_parameters()
    return clone(region)

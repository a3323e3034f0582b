"""Estimated accuracy: score table, models of accuracy, batch estimates, shift tests, monitoring.

May depend on `classifiers`, `decisions` and what is below them.
"""

from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._batch_summary import BatchSummary
from labelsure.estimation._comparison import Difference
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._label_estimates import LabelEstimates
from labelsure.estimation._label_shift import PrevalenceEstimates
from labelsure.estimation._reliability import Reliability, reliability
from labelsure.estimation._shift import ShiftTest, shift_test

__all__ = [
    "AccuracyEstimator",
    "BatchSummary",
    "Difference",
    "Estimate",
    "LabelEstimates",
    "PrevalenceEstimates",
    "Reliability",
    "ShiftTest",
    "reliability",
    "shift_test",
]

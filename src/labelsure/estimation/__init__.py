"""Estimated accuracy: score table, models of accuracy, batch estimates, shift tests, monitoring.

May depend on `classifiers`, `decisions` and what is below them.
"""

from labelsure.estimation._batch_estimates import BatchSums, Dispersion, Estimate, TrainingGain
from labelsure.estimation._calibration_sample import CalibrationSample
from labelsure.estimation._compared_batches import shift_test
from labelsure.estimation._design import RATE_METRICS, Layout
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._few_labels import few_labels_interval
from labelsure.estimation._fitted_estimator import SHIFTS, BatchSettings
from labelsure.estimation._inputs import FEATURE_SETS, GroupLevels, keep_marginals
from labelsure.estimation._label_calibration import LabelCalibration
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation._models import ACCURACY_MODELS, PluginModel, RidgeModel
from labelsure.estimation._reliability import Reliability, reliability
from labelsure.estimation._shift_test import (
    MIN_ROWS,
    ShiftTest,
    View,
    ViewSample,
    sample_rows,
    say_shift,
)

__all__ = [
    "ACCURACY_MODELS",
    "FEATURE_SETS",
    "MIN_ROWS",
    "RATE_METRICS",
    "SHIFTS",
    "AccuracyEstimator",
    "BatchSettings",
    "BatchSums",
    "CalibrationSample",
    "Dispersion",
    "Estimate",
    "GroupLevels",
    "LabelCalibration",
    "LabelsetFrequencies",
    "Layout",
    "PluginModel",
    "Reliability",
    "RidgeModel",
    "ShiftTest",
    "TrainingGain",
    "View",
    "ViewSample",
    "few_labels_interval",
    "keep_marginals",
    "reliability",
    "sample_rows",
    "say_shift",
    "shift_test",
]

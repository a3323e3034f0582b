"""Estimated accuracy: what a fitted model says a prediction is worth, and how far to trust it."""

from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._inputs import FEATURE_SETS
from labelsure.estimation._interval import Estimate
from labelsure.estimation._models import ACCURACY_MODELS
from labelsure.estimation._reliability import Reliability, reliability

__all__ = [
    "ACCURACY_MODELS",
    "FEATURE_SETS",
    "AccuracyEstimator",
    "Estimate",
    "Reliability",
    "reliability",
]

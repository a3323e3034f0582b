"""Distributions that are brought closer to what was seen: temperature, curves, dependence."""

from labelsure.classifiers.recalibration._dependence import ChainDependence
from labelsure.classifiers.recalibration._gate import Recalibration
from labelsure.classifiers.recalibration._labelwise_calibration import LabelwiseCalibration
from labelsure.classifiers.recalibration._temperature_scaling import TemperatureScaling

__all__ = [
    "RECALIBRATIONS",
    "ChainDependence",
    "LabelwiseCalibration",
    "Recalibration",
    "TemperatureScaling",
]

RECALIBRATIONS: dict[str, type[Recalibration]] = {
    "temperature": TemperatureScaling,
    "labels": LabelwiseCalibration,
}
"""By the names that `AccuracyAwareClassifier` knows them under."""

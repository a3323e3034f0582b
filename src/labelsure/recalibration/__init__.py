"""Distributions that are brought closer to what was seen: temperature, curves, dependence."""

from labelsure._storage import name_classes_publicly
from labelsure.recalibration._dependence import ChainDependence
from labelsure.recalibration._gate import Recalibration
from labelsure.recalibration._labelwise_calibration import LabelwiseCalibration
from labelsure.recalibration._temperature_scaling import TemperatureScaling

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

name_classes_publicly(__name__)

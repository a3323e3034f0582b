"""Distributions that are brought closer to what was seen: temperatures, curves, dependence."""

from labelsure._storage import name_classes_publicly
from labelsure.recalibration._dependence import ChainDependence, CopulaDependence
from labelsure.recalibration._gate import Recalibration
from labelsure.recalibration._labelwise_calibration import LabelwiseCalibration
from labelsure.recalibration._temperatures import JointTemperature, LinkTemperature

__all__ = [
    "RECALIBRATIONS",
    "ChainDependence",
    "CopulaDependence",
    "JointTemperature",
    "LabelwiseCalibration",
    "LinkTemperature",
    "Recalibration",
]

RECALIBRATIONS: dict[str, type[Recalibration]] = {
    "joint": JointTemperature,
    "links": LinkTemperature,
    "labels": LabelwiseCalibration,
}
"""By the names that `AccuracyAwareClassifier` knows them under."""

name_classes_publicly(__name__)

"""Recalibration: distributions that are fitted to labelled rows, and kept if a gate lets them pass.

One module each: the base class with its gate, five recalibrations, and the classifier that fits
one to out-of-fold predictions of any model. Formulas: `docs/understand/mathematics.md`,
"Temperature and label-wise calibration".
"""

from labelsure.classifiers.recalibration._base import Part, Recalibration, mean_interval
from labelsure.classifiers.recalibration._constrained import ConstrainedCalibration
from labelsure.classifiers.recalibration._dependence import ChainDependence
from labelsure.classifiers.recalibration._labelwise import LabelwiseCalibration
from labelsure.classifiers.recalibration._recalibrated_classifier import (
    RecalibratedClassifier,
    fit_recalibration,
)
from labelsure.classifiers.recalibration._temperature import TemperatureScaling
from labelsure.classifiers.recalibration._votes import VoteSmoothing

__all__ = [
    "ChainDependence",
    "ConstrainedCalibration",
    "LabelwiseCalibration",
    "Part",
    "RecalibratedClassifier",
    "Recalibration",
    "TemperatureScaling",
    "VoteSmoothing",
    "fit_recalibration",
    "mean_interval",
]

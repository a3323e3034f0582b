"""Classifiers that predict distributions, adapters for other libraries' models, recalibration.

May depend on `distributions`, `saving` and what is below them, not on `decisions`.
"""

from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._chain_classifiers import (
    BinaryRelevance,
    ClassifierTrellis,
    EnsembleOfClassifierChains,
    ProbabilisticClassifierChain,
)
from labelsure.classifiers._powerset_classifier import LabelPowerset
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predicted_probabilities import ProbabilityWarning
from labelsure.classifiers._predictor import LabelsetClassifier, LabelsetPredictor
from labelsure.classifiers.recalibration._constrained import ConstrainedCalibration
from labelsure.classifiers.recalibration._dependence import ChainDependence
from labelsure.classifiers.recalibration._labelwise import LabelwiseCalibration
from labelsure.classifiers.recalibration._recalibrated_classifier import RecalibratedClassifier
from labelsure.classifiers.recalibration._temperature import TemperatureScaling
from labelsure.classifiers.recalibration._votes import VoteSmoothing

__all__ = [
    "BinaryRelevance",
    "ChainDependence",
    "ClassifierTrellis",
    "ConstrainedCalibration",
    "EnsembleOfClassifierChains",
    "LabelPowerset",
    "LabelsetClassifier",
    "LabelsetPredictor",
    "LabelwiseCalibration",
    "PrecomputedProbabilities",
    "ProbabilisticClassifierChain",
    "ProbabilityWarning",
    "RecalibratedClassifier",
    "TemperatureScaling",
    "VoteSmoothing",
    "as_distribution",
]

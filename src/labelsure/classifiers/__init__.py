"""Classifiers that predict distributions over labelsets, and adapters for scikit-learn's."""

from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._binary_relevance import BinaryRelevance
from labelsure.classifiers._chain_classifiers import (
    EnsembleOfClassifierChains,
    ProbabilisticClassifierChain,
)
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import LabelsetClassifier, LabelsetPredictor
from labelsure.classifiers._probability_layouts import ProbabilityWarning
from labelsure.classifiers._trellis_classifier import ClassifierTrellis

__all__ = [
    "BinaryRelevance",
    "ClassifierTrellis",
    "EnsembleOfClassifierChains",
    "LabelsetClassifier",
    "LabelsetPredictor",
    "PrecomputedProbabilities",
    "ProbabilisticClassifierChain",
    "ProbabilityWarning",
    "as_distribution",
]

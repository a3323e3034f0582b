"""Classifiers that predict distributions over labelsets, and adapters for scikit-learn's."""

from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._base import LabelsetClassifier
from labelsure.classifiers._binary_relevance import BinaryRelevance
from labelsure.classifiers._chains import EnsembleOfClassifierChains, ProbabilisticClassifierChain
from labelsure.classifiers._trellis import ClassifierTrellis

__all__ = [
    "BinaryRelevance",
    "ClassifierTrellis",
    "EnsembleOfClassifierChains",
    "LabelsetClassifier",
    "ProbabilisticClassifierChain",
    "as_distribution",
]

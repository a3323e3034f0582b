"""`AccuracyAwareClassifier`: a classifier, its accuracy estimator and its policy as one estimator.

May depend on `guarantees` and what is below it.
"""

from labelsure.model._assessment import Assessment
from labelsure.model._aware_classifier import AccuracyAwareClassifier
from labelsure.model._model_card import ModelCard

__all__ = ["AccuracyAwareClassifier", "Assessment", "ModelCard"]

"""A classifier with its accuracy estimator and its policy, behind one scikit-learn estimator."""

from labelsure._storage import name_classes_publicly
from labelsure.accuracy_aware._assessment import Assessment
from labelsure.accuracy_aware._aware_classifier import AccuracyAwareClassifier
from labelsure.accuracy_aware._model_card import ModelCard

__all__ = ["AccuracyAwareClassifier", "Assessment", "ModelCard"]

name_classes_publicly(__name__)

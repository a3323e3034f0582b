"""A classifier with its accuracy estimator and its policy, behind one scikit-learn estimator."""

from labelsure.accuracy_aware._aware_classifier import AccuracyAwareClassifier, Assessment

__all__ = ["AccuracyAwareClassifier", "Assessment"]

"""Thresholds on the probabilities of labels, and rankings by them: the usual baselines."""

from labelsure._storage import name_classes_publicly
from labelsure.thresholds._label_ranking import (
    expected_precision_at_k,
    precision_at_k,
    rank_labels,
)
from labelsure.thresholds._label_thresholds import LabelThresholds

__all__ = [
    "LabelThresholds",
    "expected_precision_at_k",
    "precision_at_k",
    "rank_labels",
]

name_classes_publicly(__name__)

"""Thresholds on the probabilities of labels, and rankings by them: the usual baselines."""

from labelsure._storage import name_classes_publicly
from labelsure.thresholds._label_ranking import rank_labels, ranking_measures
from labelsure.thresholds._label_thresholds import LabelThresholds

__all__ = ["LabelThresholds", "rank_labels", "ranking_measures"]

name_classes_publicly(__name__)

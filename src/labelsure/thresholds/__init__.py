"""Thresholds on the probabilities of labels, and rankings by them: the usual baselines."""

from labelsure._storage import name_classes_publicly
from labelsure.thresholds._first_labels import (
    expected_precision_at_k,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
    ranking_table,
)
from labelsure.thresholds._label_ranking import rank_labels, ranking_measures
from labelsure.thresholds._label_thresholds import LabelThresholds

__all__ = [
    "LabelThresholds",
    "expected_precision_at_k",
    "label_propensities",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_scored_precision_at_k",
    "rank_labels",
    "ranking_measures",
    "ranking_table",
]

name_classes_publicly(__name__)

"""Decisions: expected accuracy, the labelset that maximises it, abstention, label rankings.

May depend on `distributions` and what is below it.
"""

from labelsure.decisions._label_ranking import (
    expected_precision_at_k,
    precision_at_k,
    rank_labels,
)
from labelsure.decisions._rules import RULES, Decisions, decide, expected_accuracy

__all__ = [
    "RULES",
    "Decisions",
    "decide",
    "expected_accuracy",
    "expected_precision_at_k",
    "precision_at_k",
    "rank_labels",
]

"""Guarantees: accept policies, conformal prediction sets of labelsets, thresholds per label.

May depend on `estimation` and what is below it.
"""

from labelsure.guarantees._by_group import ByGroup
from labelsure.guarantees._label_thresholds import LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion, ListedLabelsets, RegionLabelsets
from labelsure.guarantees._policy import (
    AcceptCurve,
    AcceptPath,
    AcceptPolicy,
    TargetWarning,
    accept_curve,
)

__all__ = [
    "AcceptCurve",
    "AcceptPath",
    "AcceptPolicy",
    "ByGroup",
    "LabelThresholds",
    "LabelsetRegion",
    "ListedLabelsets",
    "RegionLabelsets",
    "TargetWarning",
    "accept_curve",
]

"""Guarantees: accept policies, conformal prediction sets of labelsets, thresholds per label.

May depend on `estimation` and what is below it.
"""

from labelsure.guarantees._accept_curve import AcceptCurve, accept_curve
from labelsure.guarantees._label_thresholds import LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion, ListedLabelsets, RegionLabelsets
from labelsure.guarantees._policy import AcceptPolicy, TargetWarning

__all__ = [
    "AcceptCurve",
    "AcceptPolicy",
    "LabelThresholds",
    "LabelsetRegion",
    "ListedLabelsets",
    "RegionLabelsets",
    "TargetWarning",
    "accept_curve",
]

"""Selection: which predictions to accept, and what is guaranteed of those that are."""

from labelsure._storage import name_classes_publicly
from labelsure.selection._accept_curve import AcceptCurve, accept_curve
from labelsure.selection._families import FAMILIES
from labelsure.selection._policy import AcceptPolicy, TargetWarning
from labelsure.selection._scores import check_groups, check_share

__all__ = [
    "FAMILIES",
    "AcceptCurve",
    "AcceptPolicy",
    "TargetWarning",
    "accept_curve",
    "check_groups",
    "check_share",
]

name_classes_publicly(__name__)

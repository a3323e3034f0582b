"""Selection: which predictions to accept, and what is guaranteed of those that are."""

from labelsure._storage import name_classes_publicly
from labelsure.selection._accept_curve import AcceptCurve, accept_curve
from labelsure.selection._policy import AcceptPolicy, TargetWarning

__all__ = ["AcceptCurve", "AcceptPolicy", "TargetWarning", "accept_curve"]

name_classes_publicly(__name__)

"""Selection: which predictions to accept, and what is guaranteed of those that are."""

from labelsure._storage import name_classes_publicly
from labelsure.selection._policy import AcceptPolicy, TargetWarning
from labelsure.selection._thresholds import accept_curve

__all__ = ["AcceptPolicy", "TargetWarning", "accept_curve"]

name_classes_publicly(__name__)

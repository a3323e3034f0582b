"""Selection: which predictions to accept, and what is guaranteed of those that are."""

from labelsure.selection._policy import AcceptPolicy, TargetWarning
from labelsure.selection._thresholds import accept_curve

__all__ = ["AcceptPolicy", "TargetWarning", "accept_curve"]

"""Selection: which predictions to accept, and what is guaranteed of those that are."""

from labelsure.selection._curve import accept_curve
from labelsure.selection._policy import AcceptPolicy, TargetWarning

__all__ = ["AcceptPolicy", "TargetWarning", "accept_curve"]

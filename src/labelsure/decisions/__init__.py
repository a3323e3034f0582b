"""Decisions: the expected accuracy of a labelset, and the labelset that has the highest."""

from labelsure.decisions._rules import RULES, decide, expected_accuracy

__all__ = ["RULES", "decide", "expected_accuracy"]

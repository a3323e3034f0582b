"""Metrics: the accuracy of a labelset when another is true, partial answers, tests of a mean.

May depend on `labelsets` and what is below it.
"""

from labelsure.metrics.registry import METRICS, Metric, accuracy

__all__ = ["METRICS", "Metric", "accuracy"]

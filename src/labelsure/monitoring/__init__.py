"""Monitoring: the estimated accuracy of a stream that nobody labels."""

from labelsure.monitoring._chunks import monitor

__all__ = ["monitor"]

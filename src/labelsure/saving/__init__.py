"""Fitted models on disk, without pickle: one file format for everything that has a `save`.

May depend on `metrics` and what is below it.
"""

from labelsure.saving._savable import Savable, load

__all__ = ["Savable", "load"]

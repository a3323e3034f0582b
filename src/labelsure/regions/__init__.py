"""Regions: sets of labelsets that hold the truth as often as was asked for."""

from labelsure._storage import name_classes_publicly
from labelsure.regions._labelset_region import LabelsetRegion
from labelsure.regions._region_answers import ListedLabelsets, RegionLabelsets

__all__ = ["LabelsetRegion", "ListedLabelsets", "RegionLabelsets"]

name_classes_publicly(__name__)

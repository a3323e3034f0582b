"""A joint distribution over a model that says how likely each label is, and nothing else."""

from labelsure._storage import name_classes_publicly
from labelsure.dependence._dependence_layer import DependenceLayer

__all__ = ["DependenceLayer"]

name_classes_publicly(__name__)

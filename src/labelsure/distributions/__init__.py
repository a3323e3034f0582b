"""Distributions over labelsets: what classifiers make and everything else uses."""

from labelsure.distributions._arrays import as_distribution
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chains import LinearChain, PrefixChain
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._engine import Engine, EngineSettings
from labelsure.distributions._independent import IndependentLabels
from labelsure.distributions._mixture import ChainMixture
from labelsure.distributions._profile import Expected, Profile, Summary, TopLabelsets
from labelsure.distributions._table import LabelsetTable
from labelsure.distributions._trellis import TrellisDistribution

__all__ = [
    "ChainMixture",
    "DenseDistribution",
    "Engine",
    "EngineSettings",
    "Expected",
    "IndependentLabels",
    "LabelsetDistribution",
    "LabelsetTable",
    "LinearChain",
    "PrefixChain",
    "Profile",
    "Summary",
    "TopLabelsets",
    "TrellisDistribution",
    "as_distribution",
]

"""Distributions over labelsets: `LabelsetDistribution`, its subclasses, confidence candidates.

May depend on `metrics` and the layers below it, not on `saving`. Classifiers make distributions,
all other layers use them.
"""

from labelsure._kernels.threads import watch_progress
from labelsure.distributions._answers import Expected, Summary, Support, TopLabelsets
from labelsure.distributions._base import LabelsetDistribution, confidence
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain, PrefixChain
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._engine_settings import Engine
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.distributions._sparse_labels import SparseIndependentLabels, suggest_floor
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.distributions.candidates import Profile
from labelsure.distributions.constraints import LabelConstraints

__all__ = [
    "ChainMixture",
    "DenseDistribution",
    "Engine",
    "Expected",
    "IndependentLabels",
    "LabelConstraints",
    "LabelsetDistribution",
    "LabelsetTable",
    "LinearChain",
    "PrefixChain",
    "Profile",
    "SmoothedTable",
    "SparseIndependentLabels",
    "Summary",
    "Support",
    "TopLabelsets",
    "TrellisDistribution",
    "confidence",
    "suggest_floor",
    "watch_progress",
]

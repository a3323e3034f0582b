"""Distributions over labelsets: `LabelsetDistribution`, its kinds and the confidence candidates.

May depend on `metrics` and what is below it, not on `saving`. Classifiers make distributions;
every other room asks them.
"""

from labelsure._kernels.threads import watch_progress
from labelsure.distributions._answers import Expected, MaxMarginals, Summary, Support, TopLabelsets
from labelsure.distributions._arrays import as_distribution
from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.distributions._chain_links import LinearChain, PrefixChain
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._confidence import confidence
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._engines import Engine, EngineSettings
from labelsure.distributions._flips import with_flips
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._independent_mixture import IndependentMixture
from labelsure.distributions._instance_table import check_shown, make_table
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._probabilities import (
    ROUNDING,
    clip_certain,
    clip_rounding,
    make_generator,
    make_random_state,
)
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.distributions._sparse_labels import SparseIndependentLabels, suggest_floor
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.distributions.candidates import Profile

__all__ = [
    "ROUNDING",
    "ChainMixture",
    "DenseDistribution",
    "Engine",
    "EngineSettings",
    "Expected",
    "IndependentLabels",
    "IndependentMixture",
    "LabelsetDistribution",
    "LabelsetTable",
    "LinearChain",
    "MaxMarginals",
    "PrefixChain",
    "Profile",
    "SmoothedTable",
    "SparseIndependentLabels",
    "Summary",
    "Support",
    "TopLabelsets",
    "TrellisDistribution",
    "as_distribution",
    "check_distribution",
    "check_shown",
    "clip_certain",
    "clip_rounding",
    "confidence",
    "make_generator",
    "make_random_state",
    "make_table",
    "suggest_floor",
    "watch_progress",
    "with_flips",
]

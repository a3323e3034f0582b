"""The study: from a score table to every analysis of the paper, each a function of frames."""

from labelsure.study._correlations import kendall, pearson
from labelsure.study._linear import effects, fit_statistics, robustness
from labelsure.study._published import published_table

__all__ = [
    "effects",
    "fit_statistics",
    "kendall",
    "pearson",
    "published_table",
    "robustness",
]

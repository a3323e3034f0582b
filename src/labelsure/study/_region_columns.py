"""Regions in a cell: each half of the test part sets the threshold of the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure import _limits
from labelsure._typing import Indices
from labelsure.distributions import LabelsetDistribution
from labelsure.regions import LabelsetRegion
from labelsure.score_columns import REGION_COLUMNS

COVERAGE = 0.9
"""Of the regions in every study."""


def region_columns(dist: LabelsetDistribution, Y: Any) -> dict[str, Any]:
    """Return what regions say of each instance of a test part, by the names of the columns.

    No instance has a part in its own threshold: a random half sets it for the other half, and the
    reverse. The halves depend on the number of instances alone, so that classifiers compare.

    Parameters
    ----------
    dist
        Of the test part.
    Y
        The truth.
    """
    columns = {name: np.full(len(dist), np.nan) for name in REGION_COLUMNS}
    truth = dist.align(Y)
    columns["log_prob_true"] = dist.log_prob(truth)
    places = np.random.default_rng(0).permutation(len(dist))
    first, second = places[::2], places[1::2]
    for labelled, new in ((first, second), (second, first)):
        if len(labelled) and len(new):
            _fill(columns, dist, truth, labelled, new)
    return columns


def _fill(
    columns: dict[str, Any], dist: LabelsetDistribution, truth: Any, labelled: Indices, new: Indices
) -> None:
    region = LabelsetRegion(coverage=COVERAGE).fit(dist[labelled], truth[labelled])
    answer = region.predict(dist[new])
    columns["region_covers"][new] = answer.contains(truth[new])
    columns["region_agrees"][new] = answer.agrees(truth[new])
    columns["region_certain"][new] = answer.is_certain.sum(axis=1)
    columns["region_possible"][new] = answer.is_possible.sum(axis=1)
    if dist.n_labels <= _limits.CHEAP_DENSE_LABELS:
        columns["region_labelsets"][new] = answer.n_labelsets

"""`confidence`: the candidates of a batch of distributions, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.distributions._engines import EngineSettings
from labelsure.distributions.candidates import check_candidates, confidence_of_profile

if TYPE_CHECKING:
    import pandas as pd


def confidence(
    dist: LabelsetDistribution,
    candidates: str | Sequence[str] | None = None,
    bounds: bool = False,
    **settings: Unpack[EngineSettings],
) -> pd.DataFrame:
    """Return how sure the distribution is, one row for each instance, one column a candidate.

    The rows have the index of the distribution, if it has one.

    Parameters
    ----------
    dist
        A batch of distributions.
    candidates
        Names out of HP, TG, SE, CE, ME, GI, CS (None: these seven) and ESS.
    bounds
        Add columns such as HP_low and HP_high: equal to HP where the engine was exact.
    **settings
        engine, tolerance, mass, budget: how a `ChainMixture` computes, see
        `labelsure.distributions.Engine`.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> confidence(IndependentLabels([[0.9, 0.2], [0.5, 0.5]]), ["HP", "SE"]).round(3)
          HP     SE
    0  0.627  0.405
    1  0.000  0.000
    """
    check_distribution(dist)
    check_candidates(candidates)  # before the profile, which may take a while
    table = confidence_of_profile(dist.profile(**settings), candidates, bounds=bounds)
    return table if dist.index is None else table.set_axis(dist.index)

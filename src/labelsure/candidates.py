"""The seven candidates of the paper: confidence in [0, 1] from a distribution's profile.

Each is 0 on a uniform distribution and 1 on a point mass. With K outcomes, largest probability p1,
second largest p2, entropy H and collision S:

| name | candidate | formula |
|---|---|---|
| HP | high probability | (p1 - 1/K) / (1 - 1/K) |
| TG | top gap | p1 - p2 |
| SE | Shannon entropy | 1 - H / log K |
| CE | collision entropy | 1 + log S / log K |
| ME | min-entropy | 1 + log p1 / log K |
| GI | Gini impurity | (S - 1/K) / (1 - 1/K) |
| CS | chi-squared | the same as GI |
| ESS | effective sample size | 1 / S, from 1 to K: an eighth, on request; large means unsure |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from labelsure.distributions import EngineSettings, LabelsetDistribution, Profile
from labelsure.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CANDIDATES", "PAPER_CANDIDATES", "Candidate", "confidence", "confidence_of_profile"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A function of the profile.

    Parameters
    ----------
    name
        The paper's two letters.
    title
        What they stand for.
    function
        Takes a profile, returns (n,) values.
    rises_with, falls_with
        The profile's fields it depends on and how, from which bounds follow.
    """

    name: str
    title: str
    function: Callable[[Profile], Floats]
    rises_with: tuple[str, ...] = ()
    falls_with: tuple[str, ...] = ()

    def bounds(self, profile: Profile) -> tuple[Floats, Floats]:
        """Return the lowest and the highest value that the profile's bounds allow."""
        low, high = profile.low, profile.high
        least = {name: getattr(low, name) for name in self.rises_with}
        least |= {name: getattr(high, name) for name in self.falls_with}
        most = {name: getattr(high, name) for name in self.rises_with}
        most |= {name: getattr(low, name) for name in self.falls_with}
        return self.function(replace(profile, **least)), self.function(replace(profile, **most))


def _log_n_outcomes(profile: Profile) -> float:
    return float(profile.n_labels * np.log(2))


def _above_uniform(values: Floats, profile: Profile) -> Floats:
    """Rescale from [1/K, 1] to [0, 1]; 2.0**-L is exact, and 0 where 1/K underflows."""
    uniform = 2.0**-profile.n_labels
    return np.clip((values - uniform) / (1 - uniform), 0, 1)


def _high_probability(profile: Profile) -> Floats:
    return _above_uniform(profile.top, profile)


def _top_gap(profile: Profile) -> Floats:
    return np.clip(profile.top - profile.runner_up, 0, 1)


def _shannon_entropy(profile: Profile) -> Floats:
    return np.clip(1 - profile.entropy / _log_n_outcomes(profile), 0, 1)


def _collision_entropy(profile: Profile) -> Floats:
    return np.clip(1 + profile.log_collision / _log_n_outcomes(profile), 0, 1)


def _min_entropy(profile: Profile) -> Floats:
    return np.clip(1 + profile.log_top / _log_n_outcomes(profile), 0, 1)


def _gini_impurity(profile: Profile) -> Floats:
    return _above_uniform(profile.collision, profile)


def _effective_sample_size(profile: Profile) -> Floats:
    with np.errstate(over="ignore"):  # 5,000 fair coins have more than a float can hold
        return np.exp(-profile.log_collision)


_ALL = (
    Candidate("HP", "High probability", _high_probability, rises_with=("log_top",)),
    Candidate("TG", "Top gap", _top_gap, ("log_top",), falls_with=("log_runner_up",)),
    Candidate("SE", "Shannon entropy", _shannon_entropy, falls_with=("entropy",)),
    Candidate("CE", "Collision entropy", _collision_entropy, rises_with=("log_collision",)),
    Candidate("ME", "Min-entropy", _min_entropy, rises_with=("log_top",)),
    Candidate("GI", "Gini impurity", _gini_impurity, rises_with=("log_collision",)),
    Candidate("CS", "Chi-squared", _gini_impurity, rises_with=("log_collision",)),
    Candidate(
        "ESS", "Effective sample size", _effective_sample_size, falls_with=("log_collision",)
    ),
)

CANDIDATES: dict[str, Candidate] = {candidate.name: candidate for candidate in _ALL}
"""All candidates by name. A new one is a function and an entry here."""

PAPER_CANDIDATES = ("HP", "TG", "SE", "CE", "ME", "GI", "CS")


def confidence(
    dist: LabelsetDistribution,
    candidates: str | Sequence[str] | None = None,
    bounds: bool = False,
    **settings: Unpack[EngineSettings],
) -> pd.DataFrame:
    """Return how sure the distribution is, one row for each instance, one column a candidate.

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
    if not isinstance(dist, LabelsetDistribution):
        raise InputError(
            f"`dist` must be a LabelsetDistribution, got {type(dist).__name__}. "
            "Wrap probabilities with `as_distribution`."
        )
    _check_candidates(candidates)  # before the profile, which may take a while
    return confidence_of_profile(dist.profile(**settings), candidates, bounds=bounds)


def confidence_of_profile(
    profile: Profile, candidates: str | Sequence[str] | None = None, *, bounds: bool = False
) -> pd.DataFrame:
    """Return the candidates of a profile, however it was come by."""
    import pandas as pd

    columns: dict[str, Floats] = {}
    for name in _check_candidates(candidates):
        candidate = CANDIDATES[name]
        columns[name] = candidate.function(profile)
        if bounds:
            columns[f"{name}_low"], columns[f"{name}_high"] = candidate.bounds(profile)
    return pd.DataFrame(columns, index=pd.RangeIndex(len(profile)))


def _check_candidates(candidates: str | Sequence[str] | None) -> tuple[str, ...]:
    if candidates is None:
        return PAPER_CANDIDATES
    if not isinstance(candidates, Iterable):
        raise InputError(
            f"`candidates` must be a name or names out of {', '.join(CANDIDATES)}, "
            f"got {candidates!r}."
        )
    names = (candidates,) if isinstance(candidates, str) else tuple(candidates)
    for name in names:
        if not isinstance(name, str) or name not in CANDIDATES:
            raise unknown_name("candidate", name, CANDIDATES)
    return names

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

from labelsure._typing import Floats
from labelsure.distributions import (
    EngineSettings,
    LabelsetDistribution,
    Profile,
    check_distribution,
)
from labelsure.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CANDIDATES",
    "PAPER_CANDIDATES",
    "Candidate",
    "confidence",
    "confidence_of_profile",
    "get_candidate",
    "group_by_rank",
]


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
    rank_key
        Takes a profile, returns (n,) numbers in the same order as the values, but without the ties
        that rounding gives these. Candidates with one rank key rank alike. None: the values.
    sign
        How its correlation with accuracy usually compares with that of HP: higher (1), lower (-1);
        0 where nothing is known.
    rises_with, falls_with
        The profile's fields it depends on and how, from which bounds follow.
    """

    name: str
    title: str
    function: Callable[[Profile], Floats]
    rank_key: Callable[[Profile], Floats] | None = None
    sign: int = 0
    rises_with: tuple[str, ...] = ()
    falls_with: tuple[str, ...] = ()

    def ranks(self, profile: Profile) -> Floats:
        """Return numbers in the order of the values, (n,): the rank key, if there is one."""
        return (self.rank_key or self.function)(profile)

    def ranks_like(self, other: Candidate) -> bool:
        """Whether both put the instances of every profile into the same order."""
        return (self.rank_key or self.function) is (other.rank_key or other.function)

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


def _log_top(profile: Profile) -> Floats:
    return profile.log_top


def _log_collision(profile: Profile) -> Floats:
    return profile.log_collision


def _log_top_gap(profile: Profile) -> Floats:
    ratio = np.minimum(profile.log_runner_up - profile.log_top, 0.0)
    with np.errstate(divide="ignore"):  # a tie has a gap of 0
        return profile.log_top + np.log(-np.expm1(ratio))


def _negative_entropy(profile: Profile) -> Floats:
    return -profile.entropy


def _negative_log_collision(profile: Profile) -> Floats:
    return -profile.log_collision


_ALL = (
    Candidate("HP", "High Probability", _high_probability, _log_top, rises_with=("log_top",)),
    Candidate(
        "TG",
        "Top Gap",
        _top_gap,
        _log_top_gap,
        sign=-1,
        rises_with=("log_top",),
        falls_with=("log_runner_up",),
    ),
    Candidate(
        "SE",
        "Shannon Entropy",
        _shannon_entropy,
        _negative_entropy,
        sign=1,
        falls_with=("entropy",),
    ),
    Candidate(
        "CE",
        "Collision Entropy",
        _collision_entropy,
        _log_collision,
        sign=1,
        rises_with=("log_collision",),
    ),
    Candidate("ME", "Min Entropy", _min_entropy, _log_top, sign=1, rises_with=("log_top",)),
    Candidate(
        "GI", "Gini Impurity", _gini_impurity, _log_collision, sign=1, rises_with=("log_collision",)
    ),
    Candidate(
        "CS", "Chi-squared", _gini_impurity, _log_collision, sign=1, rises_with=("log_collision",)
    ),
    Candidate(
        "ESS",
        "Effective Sample Size",
        _effective_sample_size,
        _negative_log_collision,
        falls_with=("log_collision",),
    ),
)

CANDIDATES: dict[str, Candidate] = {candidate.name: candidate for candidate in _ALL}
"""All candidates by name. A new one is a function, an entry here, and a loop in the tests."""

PAPER_CANDIDATES = ("HP", "TG", "SE", "CE", "ME", "GI", "CS")


def get_candidate(name: str) -> Candidate:
    """Return the candidate of that name, or say which there are."""
    if not isinstance(name, str) or name not in CANDIDATES:
        raise unknown_name("candidate", name, CANDIDATES)
    return CANDIDATES[name]


def group_by_rank(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that rank alike, by the first of them.

    Examples
    --------
    >>> group_by_rank(["HP", "CE", "ME", "GI"])
    {'HP': ['HP', 'ME'], 'CE': ['CE', 'GI']}
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        first = next((f for f in groups if CANDIDATES[f].ranks_like(CANDIDATES[name])), name)
        groups.setdefault(first, []).append(name)
    return groups


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
    check_distribution(dist)
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
        get_candidate(name)
    return names

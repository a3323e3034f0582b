"""The profile of a distribution, and the paper's seven candidates: confidence in [0, 1] from it.

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

Before they are scaled, in the paper H with the name as its index: p1 (HP), H (SE), -log S (CE),
-log p1 (ME), 1 - S (GI) and K S - 1 (CS), with natural logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.typing import Floats, RowsLike
from labelsure.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")
"""The four numbers of a profile, from which candidates are computed."""

SCALED = ("SE", "CE", "ME")  # divided by log K; their rank key is the same without that
MANY_LABELS = 1000
NOTES = ("method", "entropy_error", "collision_error")


def log(values: ArrayLike) -> Floats:
    """Natural logarithm, -inf for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


@dataclass(frozen=True)
class Profile:
    """Four numbers of n distributions that determine all candidates, each (n,).

    Parameters
    ----------
    log_top
        Log of the largest probability.
    log_runner_up
        Log of the second largest, of another labelset; equal to `log_top` on a tie.
    entropy
        Shannon entropy in nats.
    log_collision
        Log of the sum of squared probabilities: two draws are the same labelset.
    n_bits
        Log2 of the number of outcomes K: the number of labels where outcomes are labelsets.
    method
        Method of each row: "exact", "certified", "sampled" or "certified+sampled".
    bounds
        Two profiles that enclose every field; None where the fields are exact.
    entropy_error, collision_error
        Standard errors of the entropy and of the collision; 0 unless they were sampled.
    """

    log_top: Floats
    log_runner_up: Floats
    entropy: Floats
    log_collision: Floats
    n_bits: float
    method: NDArray[np.str_] = field(default_factory=lambda: np.empty(0, dtype=np.str_))
    bounds: tuple[Profile, Profile] | None = field(default=None, repr=False)
    entropy_error: Floats = field(default_factory=lambda: np.empty(0))
    collision_error: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        n_samples = len(self.log_top)
        defaults = {
            "method": np.full(n_samples, "exact"),
            "entropy_error": np.zeros(n_samples),
            "collision_error": np.zeros(n_samples),
        }
        for name, values in defaults.items():
            if getattr(self, name).size == 0:
                object.__setattr__(self, name, values)

    @classmethod
    def from_values(
        cls,
        top: ArrayLike,
        runner_up: ArrayLike,
        entropy: ArrayLike,
        collision: ArrayLike,
        n_bits: float,
    ) -> Profile:
        """Build an exact profile from plain values instead of logs."""
        entropy = np.asarray(entropy, dtype=np.float64)
        log_top, log_runner_up, log_collision = log(np.stack([top, runner_up, collision]))
        return cls(log_top, log_runner_up, entropy, log_collision, n_bits)

    @classmethod
    def concatenate(cls, profiles: Sequence[Profile], n_bits: float) -> Profile:
        """Rows of several profiles below each other."""
        if not profiles:
            return cls.from_values([], [], [], [], n_bits)
        bounds = None
        if any(profile.bounds is not None for profile in profiles):
            bounds = (
                cls.concatenate([profile.low for profile in profiles], n_bits),
                cls.concatenate([profile.high for profile in profiles], n_bits),
            )
        columns = {
            name: np.concatenate([getattr(profile, name) for profile in profiles])
            for name in (*FIELDS, *NOTES)
        }
        return cls(**columns, n_bits=n_bits, bounds=bounds)

    def __getitem__(self, rows: RowsLike) -> Profile:
        """Some rows: a slice, indices or a mask."""
        bounds = None if self.bounds is None else (self.bounds[0][rows], self.bounds[1][rows])
        columns = {name: getattr(self, name)[rows] for name in (*FIELDS, *NOTES)}
        return Profile(**columns, n_bits=self.n_bits, bounds=bounds)

    @property
    def top(self) -> Floats:
        """The largest probability."""
        return np.exp(self.log_top)

    @property
    def runner_up(self) -> Floats:
        """The second largest probability."""
        return np.exp(self.log_runner_up)

    @property
    def collision(self) -> Floats:
        """The sum of squared probabilities."""
        return np.exp(self.log_collision)

    @property
    def low(self) -> Profile:
        """Lower bounds of every field; the profile itself where it is exact."""
        return self if self.bounds is None else self.bounds[0]

    @property
    def high(self) -> Profile:
        """Upper bounds of every field; the profile itself where it is exact."""
        return self if self.bounds is None else self.bounds[1]

    def __len__(self) -> int:
        return len(self.log_top)

    def to_frame(self) -> pd.DataFrame:
        """Profile as a DataFrame: top, runner_up, entropy, collision, logs, method."""
        import pandas as pd

        names = ("top", "runner_up", "entropy", "collision", "log_top", "log_runner_up")
        columns = {name: getattr(self, name) for name in (*names, "log_collision")}
        return pd.DataFrame({**columns, "method": self.method})

    def _repr_html_(self) -> str:
        sentence = f"Profile of {count(len(self), 'distribution')}."
        return make_html(sentence, self[:N_ROWS].to_frame())


@dataclass(frozen=True)
class Candidate:
    """A function of the profile.

    Parameters
    ----------
    name
        The paper's two letters.
    title
        Full name.
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
        """Numbers in the order of the values, (n,): the rank key, if there is one."""
        return (self.rank_key or self.function)(profile)

    def values_up_to_scale(self, profile: Profile) -> Floats:
        """Values, (n,); of very many labels but for scale and origin.

        A value divided by log K is 1 but for the last digits then, for all instances alike.
        """
        scaled = self.name in SCALED and profile.n_bits > MANY_LABELS
        return self.ranks(profile) if scaled else self.function(profile)

    def ranks_like(self, other: Candidate) -> bool:
        """Whether both put the instances of every profile into the same order."""
        return (self.rank_key or self.function) is (other.rank_key or other.function)

    def statistic(self, profile: Profile) -> Floats:
        """The paper's H, (n,): the statistic that is scaled; the value if none is."""
        return _STATISTICS.get(self.name, self.function)(profile)

    def bounds(self, profile: Profile, *, raw: bool = False) -> tuple[Floats, Floats]:
        """Lowest and highest value (or statistic) that the bounds allow, (n,) each."""
        low, high = profile.low, profile.high
        least = {name: getattr(low, name) for name in self.rises_with}
        least |= {name: getattr(high, name) for name in self.falls_with}
        most = {name: getattr(high, name) for name in self.rises_with}
        most |= {name: getattr(low, name) for name in self.falls_with}
        function = self.statistic if raw else self.function
        ends = function(replace(profile, **least)), function(replace(profile, **most))
        return np.minimum(*ends), np.maximum(*ends)  # uncertainty falls where confidence rises


def _log_n_outcomes(profile: Profile) -> float:
    return float(profile.n_bits * np.log(2))


def _above_uniform(values: Floats, profile: Profile) -> Floats:
    """Rescale from [1/K, 1] to [0, 1]; 2.0**-L is exact, and 0 where 1/K underflows."""
    uniform = 2.0**-profile.n_bits
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


def _chi_squared(profile: Profile) -> Floats:
    with np.errstate(over="ignore"):
        return np.exp2(profile.n_bits + profile.log_collision / np.log(2)) - 1


_STATISTICS: dict[str, Callable[[Profile], Floats]] = {
    "HP": lambda profile: profile.top,
    "SE": lambda profile: profile.entropy,
    "CE": lambda profile: -profile.log_collision,
    "ME": lambda profile: -profile.log_top,
    "GI": lambda profile: 1 - profile.collision,
    "CS": _chi_squared,
}
"""Where the paper has a statistic H beside the confidence C."""


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
    """Candidate of that name. Raises InputError if there is none."""
    if not isinstance(name, str) or name not in CANDIDATES:
        raise unknown_name("candidate", name, CANDIDATES)
    return CANDIDATES[name]


def full_name(name: str) -> str:
    """Title of a candidate; other names stay as they are.

    Examples
    --------
    >>> full_name("SE"), full_name("P(urgent)")
    ('Shannon entropy (SE)', 'P(urgent)')
    """
    titles = {"HP": "Highest probability", "ME": "Min-entropy", "MIX": "All together"}
    if name not in CANDIDATES and name not in titles:
        return name
    return f"{titles.get(name) or CANDIDATES[name].title.capitalize()} ({name})"


def group_by_rank(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of candidates that rank alike, by the first of them.

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


def confidence_of_profile(
    profile: Profile,
    candidates: str | Sequence[str] | None = None,
    *,
    bounds: bool = False,
    raw: bool = False,
) -> pd.DataFrame:
    """Candidates of a profile, a column each."""
    import pandas as pd

    columns: dict[str, Floats] = {}
    for name in check_candidates(candidates):
        candidate = CANDIDATES[name]
        columns[name] = (candidate.statistic if raw else candidate.function)(profile)
        if bounds:
            ends = candidate.bounds(profile, raw=raw)
            columns[f"{name}_low"], columns[f"{name}_high"] = ends
    return pd.DataFrame(columns, index=pd.RangeIndex(len(profile)))


def check_candidates(candidates: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of candidates; None: the paper's seven. Raises InputError for an unknown one."""
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

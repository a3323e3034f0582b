"""`Engine`: algorithm and stopping rules of inference in chains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.typing import Settings
from labelsure.errors import unknown_name

ENGINES = ("auto", "dense", "certified", "sampled")


class EngineSettings(TypedDict, total=False):
    """Settings of constructors and `with_engine`; see `Engine`, whose `name` is `engine` here."""

    engine: str
    tolerance: float
    sampled_tolerance: float
    mass: float | None
    budget: int
    keep_top: int


@dataclass(frozen=True)
class Engine:
    """Algorithm and stopping rules of inference in chains.

    Parameters
    ----------
    name
        - "dense": all 2**L probabilities, exact;
        - "certified": the likely labelsets one by one, with guaranteed bounds on all the rest;
        - "sampled": unbiased estimates with 95% intervals;
        - "auto": dense up to 14 labels; beyond, a short search, and draws where that does not do.
          Up to 16 labels all probabilities replace the draws of linear base learners, up to 18 for
          candidates and decisions but under Jaccard, which need most draws.
    tolerance
        How wide the guaranteed interval of a normalised candidate, or of an expected accuracy, may
        be.
    sampled_tolerance
        How wide a 95% interval may be: draws are made until it is as narrow, or the budget is used
        up. The min-entropy has guaranteed intervals only.
    mass
        The certified engine also stops once labelsets of this probability together were seen.
    budget
        Labelsets that are looked at for each instance at most: enumerated by "certified", drawn by
        "sampled", which takes at most half as many again for the collision; all of these together
        by "auto" beyond 14 labels.
    keep_top
        Dense computation keeps so many of the most probable labelsets, and the marginals, from the
        first question on, so that a table which shows them needs no second sweep.
    """

    name: str = "auto"
    tolerance: float = 1e-3
    sampled_tolerance: float = 5e-3
    mass: float | None = None
    budget: int = 20_000
    keep_top: int = 0

    def __post_init__(self) -> None:
        read_choice(self.name, "engine", ENGINES)
        read_number(self.tolerance, "tolerance", 0, 1)
        read_number(self.sampled_tolerance, "sampled_tolerance", 0, 1)
        if self.mass is not None:
            read_number(self.mass, "mass", 0, 1)
        read_whole_number(self.budget, "budget", 0)
        read_whole_number(self.keep_top, "keep_top", 0)

    def replace(self, settings: EngineSettings) -> Engine:
        """The engine with some of its settings replaced."""
        unknown = [name for name in settings if name not in EngineSettings.__annotations__]
        if unknown:
            raise unknown_name("setting", unknown[0], EngineSettings.__annotations__)
        given: Settings = {**settings}
        return replace(self, name=given.pop("engine", self.name), **given)


DEFAULT_ENGINE = Engine()
"""Engine of chains that are given no other."""

"""Engines: the ways in which a distribution of chains can be computed, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from labelsure.errors import InputError, unknown_name

ENGINES = ("auto", "dense", "certified", "sampled")


class EngineSettings(TypedDict, total=False):
    """What a single call can set; see `Engine`, whose `name` is called `engine` there."""

    engine: str
    tolerance: float
    mass: float | None
    budget: int


@dataclass(frozen=True)
class Engine:
    """How to compute, and when to stop.

    Parameters
    ----------
    name
        - "dense": all 2**L probabilities, exact;
        - "certified": the likely labelsets one by one, with guaranteed bounds on all the rest;
        - "sampled": unbiased estimates with 95% intervals;
        - "auto": the cheapest of these that meets the tolerance, enumeration and sampling together
          where none does.
    tolerance
        How wide the interval of a normalised candidate, or of an expected accuracy, may be.
    mass
        The certified engine also stops once labelsets of this probability together were seen.
    budget
        Labelsets that the certified engine enumerates, and that the sampled one draws, for each
        instance at most; the collision takes a fifth as many draws again.
    """

    name: str = "auto"
    tolerance: float = 1e-3
    mass: float | None = None
    budget: int = 20_000

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise unknown_name("engine", self.name, ENGINES)
        _check_number("tolerance", self.tolerance, 0, 1)
        if self.mass is not None:
            _check_number("mass", self.mass, 0, 1)
        if not isinstance(self.budget, (int, np.integer)) or self.budget < 0:
            raise InputError(f"`budget` must be a whole number >= 0, got {self.budget!r}.")

    def replace(self, settings: EngineSettings) -> Engine:
        """Return the engine with some of its settings replaced."""
        unknown = [name for name in settings if name not in EngineSettings.__annotations__]
        if unknown:
            raise unknown_name("setting", unknown[0], EngineSettings.__annotations__)
        return Engine(
            settings.get("engine", self.name),
            settings.get("tolerance", self.tolerance),
            settings.get("mass", self.mass),
            settings.get("budget", self.budget),
        )


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    try:
        within = low <= float(value) <= high
    except (TypeError, ValueError):
        within = False
    if not within:
        raise InputError(f"`{name}` must be a number in [{low:g}, {high:g}], got {value!r}.")


DEFAULT_ENGINE = Engine()
"""What computes where nobody asks for another."""

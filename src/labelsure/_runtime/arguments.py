"""Checks of single values that users pass: numbers, whole numbers, one of several names.

Each returns the checked value. Raises InputError, which says what must hold and what came. Vectors
with a value for each instance, and labelsets, are read by `labelsets`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

from labelsure.errors import InputError, unknown_name


def read_number(
    value: object,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    ends: str = "[]",
    hint: str = "",
) -> float:
    """Checked number in an interval; round `ends` exclude that end, also an infinite one.

    Examples
    --------
    >>> read_number(1, "share", 0, 1, ends="(]")
    1.0
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number >= low if ends[0] == "[" else number > low
        if above and (number <= high if ends[1] == "]" else number < high):
            return number
    wanted = "a number"
    if math.isfinite(low) and math.isfinite(high):
        wanted = f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    elif math.isfinite(low):
        wanted = f"a number {'>=' if ends[0] == '[' else '>'} {low:g}"
    raise InputError(f"`{name}` must be {wanted}, got {value!r}.{hint and ' '}{hint}")


def read_whole_number(
    value: object, name: str, least: int = 1, most: int | None = None, *, hint: str = ""
) -> int:
    """Checked whole number from `least` to `most`.

    Examples
    --------
    >>> read_whole_number(3, "k", most=5)
    3
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and value >= least:  # type: ignore[operator]
        number = int(value)
        if most is None or number <= most:
            return number
    wanted = f">= {least}" if most is None else f"from {least} to {most}"
    raise InputError(
        f"`{name}` must be a whole number {wanted}, got {value!r}.{hint and ' '}{hint}"
    )


def read_choice(value: object, name: str, choices: Iterable[str]) -> str:
    """Checked name out of several. Raises UnknownNameError with the most similar one.

    Examples
    --------
    >>> read_choice("f1", "metric", ["f1", "exact"])
    'f1'
    """
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    raise unknown_name(name, value, names)

"""Questions about fitted attributes: the rules that a loaded model must keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure.errors import InputError
from labelsure.sparse_rows import CountedNames


def expect(holds: bool, rule: str) -> None:
    """Raise an `InputError` with the rule if it does not hold.

    Parameters
    ----------
    holds
        Whether it does.
    rule
        What must hold, e.g. "`order_` must name every label once".
    """
    if not holds:
        raise InputError(rule)


def is_array(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of finite numbers with that shape.

    Parameters
    ----------
    value
        Anything.
    shape
        As in numpy.
    """
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "iuf"
        and value.shape == shape
        and bool(np.isfinite(value).all())
    )


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number and not below the least.

    Parameters
    ----------
    value
        Anything.
    least
        The smallest that will do.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and bool(value >= least)


def are_counted(names: Any) -> bool:
    """Whether these are the names y0, y1, ... of very many labels, and how many is a number.

    Parameters
    ----------
    names
        Anything.
    """
    return isinstance(names, CountedNames) and is_count(vars(names).get("_n_labels"))


def is_number(value: Any, least: float = -np.inf, largest: float = np.inf) -> bool:
    """Whether a value is one finite number within limits.

    Parameters
    ----------
    value
        Anything.
    least, largest
        The limits, which it may reach.
    """
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return real and bool(np.isfinite(value)) and bool(least <= value <= largest)


def are_alike(one: Any, other: Any) -> bool:
    """Whether two values are the same: numbers up to rounding, NaN like NaN, arrays by entry.

    Parameters
    ----------
    one, other
        Numbers, texts, None, arrays or lists of numbers, or dicts of such.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_alike(one[k], other[k]) for k in one)
    if any(value is None or isinstance(value, (str, dict)) for value in (one, other)):
        return type(one) is type(other) and bool(one == other)
    left, right = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if left.shape != right.shape:
        return False
    return bool(np.allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True))

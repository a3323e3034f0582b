"""Warnings that a caller can hold back, in its own thread alone.

`warnings.catch_warnings` replaces the filters of the whole process. Where two threads enter and
leave it in turn, the filters of one of them stay, and warnings may never appear again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_HELD: ContextVar[Mapping[type[Warning], list[str]]] = ContextVar(
    "held warnings", default=MappingProxyType({})
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside of this package, unless this thread holds the category."""
    held = _HELD.get().get(category)
    if held is None:
        warnings.warn(message, category, stacklevel=_level_of_caller())
    else:
        held.append(message)


@contextmanager
def hold_warnings(category: type[Warning]) -> Iterator[list[str]]:
    """Collect the messages of a category of `warn` instead of showing them."""
    messages: list[str] = []
    token = _HELD.set({**_HELD.get(), category: messages})
    try:
        yield messages
    finally:
        _HELD.reset(token)


def _level_of_caller() -> int:
    """Return how many calls up from `warn` the first is that is not of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("labelsure."):
        level, frame = level + 1, frame.f_back
    return level

"""Every error that labelsure raises on purpose.

Each message says what must hold, what came, and what to do. All of them are also a
`ValueError`, so that code which knows nothing of labelsure can still catch them.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

MAX_NAMES_LISTED = 30
"""A message lists no more known names than this: a data set may have thousands of columns."""


class LabelsureError(Exception):
    """Base of all labelsure errors."""


class InputError(LabelsureError, ValueError):
    """An argument does not have the shape, type or values that the call needs."""


class DataError(InputError):
    """A data set that is not where it should be, or whose content cannot be read."""


class RowsError(DataError):
    """Some rows of a table cannot be used; the others can.

    Parameters
    ----------
    reasons
        Why, by the row's place in the index of the table: for a file, where it stands, from 0.
    where
        What the table is, e.g. the name of the file in quotes.
    """

    def __init__(self, reasons: dict[Any, str], where: str) -> None:
        self.reasons, self.where = reasons, where
        row, reason = next(iter(reasons.items()))
        others = len(reasons) - 1
        more = f" ({others} more such row{'s' if others > 1 else ''} here)" if others else ""
        super().__init__(
            f"Row {row} of {where} (rows count from 0) cannot be used: {reason}{more}. Fix or "
            "drop it."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reasons, self.where)


class UnknownNameError(InputError):
    """A name (of a metric, a candidate, a data set, ...) that nothing is registered under."""


class NotEstimableError(LabelsureError, ValueError):
    """The labelled instances do not say how accurate this batch is: there are too few like it.

    Parameters
    ----------
    message
        Why, and what to do.
    effective_size
        How many labelled instances like these the weighted ones amount to.
    """

    def __init__(self, message: str, effective_size: float) -> None:
        super().__init__(message)
        self.effective_size = effective_size

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.effective_size)


class ShiftWarning(UserWarning):
    """A batch is not like the instances that an estimate rests on."""


class UnseenValuesWarning(UserWarning):
    """A column has values that the model does not know, or answers that cannot be counted."""


class TooLargeError(LabelsureError, ValueError):
    """The request would need more memory or time than is allowed; nothing was allocated."""


def unknown_name(what: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Build the error for a name that is not registered, with the nearest known one."""
    spelled = {k.lower(): k for k in known}
    near = get_close_matches(str(name).lower(), spelled, n=1)
    hint = f" Did you mean {spelled[near[0]]!r}?" if near else ""
    listed = list(spelled.values())[:MAX_NAMES_LISTED]
    more = f" and {len(spelled) - len(listed)} more" if len(spelled) > len(listed) else ""
    return UnknownNameError(f"Unknown {what} {name!r}.{hint} Known: {', '.join(listed)}{more}.")


def missing_extra(what: str, extra: str) -> InputError:
    """Build the error for something that needs an extra which is not installed."""
    return InputError(
        f'{what} needs packages that are not installed. Run `pip install "labelsure[{extra}]"`.'
    )

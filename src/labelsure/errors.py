"""Errors and warnings of labelsure, and how warnings are issued.

Each message says what must hold, what came, and what to do. All errors are also a `ValueError`, so
that code without an import of labelsure can still catch them. A caller can record warnings in its
own thread alone: `warnings.catch_warnings` replaces the filters of the whole process, and where
two threads enter and leave it in turn, the filters of one of them stay.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from types import FrameType, MappingProxyType
from typing import Any

MAX_NAMES_LISTED = 30
"""Maximum number of registered names in a message: a data set may have thousands of columns."""


_SECRETS = re.compile(
    # A password may have slashes; a port, which digits and a slash follow, is none. Of an address
    # that was read as a path one slash is left.
    r"(\b\w{2,}:/{1,2})(?:[^/\s'\"]*|[^/\s'\":@]*:(?!\d+/)[^\s'\"@]*)(?=@)"
    r"|([?&](?:sig|code|[^=&\s]*(?:key|secret|token|passw|pwd|signature|credential|auth|ticket|jwt"
    r"|accessid)[^=&\s]*)=)[^&\s'\"]+",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """A text in which `***` replaces users, passwords and keys of addresses.

    Examples
    --------
    >>> hide_secrets("s3://key:secret@bucket/t.csv?region=eu&session_token=12")
    's3://***@bucket/t.csv?region=eu&session_token=***'
    """
    return _SECRETS.sub(lambda match: f"{match[1] or match[2]}***", text)


class LabelsureError(Exception):
    """Base class of all errors that labelsure raises on purpose.

    See Also
    --------
    InputError : An argument has the wrong shape, type or values.
    DataError : A file or data set is missing or cannot be read.
    TooLargeError : The request needs too much memory or time.

    Examples
    --------
    >>> import labelsure as ls
    >>> try:
    ...     ls.load_dataset("emotion")
    ... except ls.LabelsureError as error:
    ...     print(error)
    Unknown data set 'emotion'. Did you mean 'emotions'? Known: ...
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(hide_secrets(str(message)))


class InputError(LabelsureError, ValueError):
    """An argument has the wrong shape, type or values.

    It is a `ValueError` as well.

    See Also
    --------
    DataError : The same for files and data sets.

    Examples
    --------
    >>> import labelsure as ls
    >>> ls.accuracy([[1, 0]], [[1, 0, 0]], "f1")
    Traceback (most recent call last):
        ...
    labelsure.errors.InputError: ...
    """


class DataError(InputError):
    """A file or data set is missing, damaged or cannot be read.

    See Also
    --------
    InputError : The same for arguments.

    Examples
    --------
    >>> import labelsure as ls
    >>> ls.load("missing.labelsure")
    Traceback (most recent call last):
        ...
    labelsure.errors.DataError: ...
    """


class RowsError(DataError):
    """Some rows of a table cannot be used; the others can.

    Parameters
    ----------
    reasons
        Why each row cannot be used, by its index; for a file, by its position from 0.
    where
        Name of the table, e.g. that of the file in quotes.
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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reasons, self.where)


class UnknownNameError(InputError):
    """Nothing is registered under this name of a metric, candidate, data set or option."""


class NotEstimableError(LabelsureError, ValueError):
    """Too few calibration rows resemble the batch: its accuracy cannot be estimated from them.

    Parameters
    ----------
    message
        Why, and what to do.
    effective_size
        Effective sample size of the importance-weighted calibration set.
    """

    def __init__(self, message: str, effective_size: float) -> None:
        super().__init__(message)
        self.effective_size = effective_size

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.effective_size)


class ShiftWarning(UserWarning):
    """A batch differs from the calibration set that its estimate rests on.

    See Also
    --------
    shift_test : The test behind this warning.
    AccuracyEstimator.estimate : Says how to handle shift.
    """


class UnseenValuesWarning(UserWarning):
    """A column has values that the model has not seen, or answers that cannot be counted."""


class TooLargeError(LabelsureError, ValueError):
    """The request needs more memory or time than is allowed; nothing was allocated.

    See Also
    --------
    SparseIndependentLabels : Very many labels at the cost of the listed ones.

    Examples
    --------
    >>> import labelsure as ls
    >>> ls.IndependentLabels([[0.5] * 60]).probabilities()
    Traceback (most recent call last):
        ...
    labelsure.errors.TooLargeError: ...
    """


def unknown_name(
    noun: str, name: object, registered: Iterable[str], where: str = ""
) -> UnknownNameError:
    """Error for a name that is not registered, with the most similar registered one."""
    name_of = {k.lower(): k for k in registered}
    near = get_close_matches(str(name).lower(), name_of, n=1)
    hint = f" Did you mean {name_of[near[0]]!r}?" if near else ""
    shown = list(name_of.values())[:MAX_NAMES_LISTED]
    more = f" and {len(name_of) - len(shown)} more" if len(name_of) > len(shown) else ""
    place = f" of {where}" if where else ""
    return UnknownNameError(
        f"Unknown {noun} {name!r}{place}.{hint} Known: {', '.join(shown)}{more}."
    )


def missing_study_extra(feature: str) -> InputError:
    """Error for a feature that needs the packages of studies."""
    return InputError(
        f'{feature} needs packages that are not installed. Run `pip install "labelsure[study]"`, '
        'or in a clone `pip install ".[study]"`.'
    )


_RECORDED: ContextVar[Mapping[type[Warning], list[str]]] = ContextVar(
    "recorded warnings", default=MappingProxyType({})
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside of this package, unless this thread records the category."""
    recorded = _RECORDED.get().get(category)
    if recorded is None:
        warnings.warn(message, category, stacklevel=_level_of_caller())
    else:
        recorded.append(message)


@contextmanager
def record_warnings(category: type[Warning]) -> Iterator[list[str]]:
    """Yield a list that collects the messages of a category of `warn`, which are not shown."""
    messages: list[str] = []
    token = _RECORDED.set({**_RECORDED.get(), category: messages})
    try:
        yield messages
    finally:
        _RECORDED.reset(token)


def _module_name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))  # code of a string may have none


def _level_of_caller() -> int:
    """Stack level, seen from `warn`, of the first caller outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _module_name(frame).startswith("labelsure."):
        level, frame = level + 1, frame.f_back
    return level

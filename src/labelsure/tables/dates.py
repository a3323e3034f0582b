"""Columns of dates: ISO 8601, or one format for the whole column; nothing is guessed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from labelsure.errors import InputError

ISO_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?\s*")
UNITS = ("s", "ms", "us", "ns")
"""Units of Unix time, which `time_format` may name."""


def read_dates(column: Any, time_format: str | None = None) -> tuple[Any, dict[int, str]]:
    """Dates of a column, and the reasons of rows without one.

    Parameters
    ----------
    column
        A Series: dates, texts or numbers.
    time_format
        None for ISO 8601, such as 2024-12-31 or 2024-12-31T10:00; a format of `strptime`; or "s",
        "ms", "us" or "ns" for Unix time.

    Returns
    -------
    dates
        (n,) dates as a Series without a time zone (UTC, where they had one); NaT for those that
        cannot be read.
    reasons
        Reason of each row without a date, by its position from 0.

    Raises
    ------
    InputError
        If no date can be read.

    Examples
    --------
    >>> import pandas as pd
    >>> dates, _ = read_dates(pd.Series(["05.03.2024", "12.03.2024"]), "%d.%m.%Y")
    >>> list(dates.dt.strftime("%B %d"))
    ['March 05', 'March 12']
    """
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        dates = pd.to_datetime(column, utc=True)
    elif time_format in UNITS:
        unit: Any = time_format
        numbers = pd.to_numeric(column, errors="coerce")
        dates = pd.to_datetime(numbers, unit=unit, errors="coerce", utc=True)
    else:
        texts = _as_texts(column)
        if time_format is None:
            texts = texts.where(texts.map(lambda text: ISO_DATE.fullmatch(str(text)) is not None))
        try:
            dates = pd.to_datetime(
                texts, format=time_format or "ISO8601", errors="coerce", utc=True
            )
        except ValueError as error:
            raise InputError(
                f"`time_format` must be a format of strptime, such as '%d.%m.%Y', got "
                f"{time_format!r} ({error})."
            ) from error
    bad = np.flatnonzero(dates.isna()).tolist()
    wanted = "an ISO 8601 date" if time_format is None else f"a date in format {time_format!r}"
    reasons = {
        int(row): f"{column.name!r} must be {wanted}, got {_show(column, row)}" for row in bad
    }
    if len(column) and len(bad) == len(column):
        raise InputError(
            f"Dates in {column.name!r} must be ISO 8601, such as 2024-12-31, or in the format that "
            f"`time_format` names, got {_show(column, 0)} in row 0 (rows count from 0). Name their "
            "format, e.g. '%d.%m.%Y' for 31.12.2024, '%Y%m%d' for 20241231, or s for Unix time in "
            "seconds."
        )
    return dates.dt.tz_localize(None), reasons


def _show(column: Any, row: int) -> str:
    value = column.iloc[row]
    return "nothing" if value is None or value != value else repr(str(value))


def _as_texts(column: Any) -> Any:
    """Values as texts; whole numbers without a point, missing values as None."""
    return column.map(
        lambda value: f"{value:.0f}" if isinstance(value, float) and value % 1 == 0 else str(value),
        na_action="ignore",
    ).astype(object)

"""Cut a batch into chunks, by rows or by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labelsure.errors import InputError


def by_rows(batch: Any, chunk_size: int) -> Iterator[tuple[int, Any]]:
    """Yield (number, chunk) of `chunk_size` rows each; the last one may be shorter."""
    if not isinstance(chunk_size, (int, np.integer)) or chunk_size < 1:
        raise InputError(f"`chunk_size` must be a whole number >= 1, got {chunk_size!r}.")
    return (
        (number, _take(batch, slice(first, first + chunk_size)))
        for number, first in enumerate(range(0, _length(batch), int(chunk_size)))
    )


def by_time(batch: Any, times: Any, every: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (begin, chunk) for each stretch of time that has instances, earliest first."""
    import pandas as pd

    if every is None:
        raise InputError(
            "`every` must be the length of a chunk, e.g. '7D' for dates or 100 for numbers, got "
            "None."
        )
    if isinstance(times, str):
        if times not in getattr(batch, "columns", ()):
            raise InputError(
                "`times` must be one time for each row, or the name of a column of the table, got "
                f"{times!r}, which is no column."
            )
        times = batch[times]
    moments = pd.Series(np.asarray(times))
    if len(moments) != _length(batch):
        raise InputError(
            f"`times` must have one time for each of the {_length(batch)} rows, got {len(moments)}."
        )
    if pd.api.types.is_numeric_dtype(moments):
        begins = np.floor(moments / every) * every
    else:
        begins = pd.to_datetime(moments).dt.floor(every)
    return ((begin, _take(batch, np.flatnonzero(begins == begin))) for begin in np.unique(begins))


def _take(batch: Any, rows: Any) -> Any:
    return batch.iloc[rows] if hasattr(batch, "iloc") else batch[rows]


def _length(batch: Any) -> int:
    return int(batch.shape[0]) if hasattr(batch, "shape") else len(batch)

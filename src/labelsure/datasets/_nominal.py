"""Nominal features as numbers: one-hot or ordinal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from labelsure._typing import Floats, Integers
from labelsure.datasets._labels import INDICATORS
from labelsure.errors import DataError, unknown_name

Column = tuple[str, Floats]

NOMINAL_ENCODINGS = ("onehot", "ordinal")


def check_nominal(nominal: str) -> str:
    """Return the name of a way to encode nominal features, or suggest the nearest."""
    if nominal not in NOMINAL_ENCODINGS:
        raise unknown_name("encoding of nominal features", nominal, NOMINAL_ENCODINGS)
    return nominal


def encode_codes(name: str, codes: Integers, values: Sequence[str], nominal: str) -> list[Column]:
    """Return the numeric columns of one nominal feature.

    Two values need a single column. Where they are 0 and 1, or false and true, it has the name of
    the feature and those numbers, in whatever order the file declares them.

    Parameters
    ----------
    name
        Of the feature.
    codes
        Positions in `values`; -1 where the value is missing, which becomes NaN.
    values
        The declared values, in their order.
    nominal
        ``"onehot"``: a column ``name=value`` for each. ``"ordinal"``: the position.
    """
    missing = codes < 0
    indicators = indicators_of(values)
    if indicators is not None:
        return [(name, np.where(missing, np.nan, indicators[codes]))]
    if nominal == "ordinal":
        return [(name, np.where(missing, np.nan, codes))]
    shown = range(1, 2) if len(values) == 2 else range(len(values))
    return [(f"{name}={values[k]}", np.where(missing, np.nan, codes == k)) for k in shown]


def indicators_of(values: Sequence[str]) -> Floats | None:
    """Return 0 or 1 for each of two values that mean no and yes, None for other values."""
    numbers = [INDICATORS.get(value.lower(), -1) for value in values]
    return np.array(numbers, dtype=np.float64) if sorted(numbers) == [0, 1] else None


def encode_frame(frame: pd.DataFrame, nominal: str) -> pd.DataFrame:
    """Return a frame with categories encoded and numbers as floats; text stays as it is."""
    columns: list[tuple[str, Any]] = []
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = [str(value) for value in column.cat.categories]
            codes = column.cat.codes.to_numpy().astype(np.int64)
            columns += encode_codes(str(name), codes, values, nominal)
        elif pd.api.types.is_numeric_dtype(column.dtype):
            columns.append((str(name), column.to_numpy(dtype=np.float64, na_value=np.nan)))
        else:
            columns.append((str(name), column))
    check_distinct([name for name, _ in columns])
    return pd.DataFrame(dict(columns), index=frame.index)


def check_distinct(names: list[str]) -> None:
    """Refuse a one-hot column that has the name of another feature."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"One-hot columns must have names of their own, but {twice!r} is there twice. Rename "
            'that feature, or pass nominal="ordinal".'
        )

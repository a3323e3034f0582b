"""Which columns are the labels, and what zeros and ones they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from labelsure._typing import Integers, Labelsets
from labelsure.errors import DataError, InputError, unknown_name

LabelChoice = int | str | Iterable[str]
"""A count (negative: from the end), names or patterns, or first20, last20, top20."""

INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""How files spell that an instance does not have a label, or has it."""

_SLICE = re.compile(r"(first|last|top)([1-9][0-9]{0,8})")


def choose_labels(
    choice: LabelChoice,
    names: Sequence[str],
    *,
    what: str,
    counts: Integers | None = None,
) -> list[int]:
    """Return the positions of the chosen names.

    Names come in the order in which they are asked for, everything else in that of `names`.

    Parameters
    ----------
    choice
        What the user asks for.
    names
        All that there are.
    what
        What a name is of, for the messages, e.g. ``"label"`` or ``"column"``.
    counts
        How often each is set; needed for ``"top20"`` only.
    """
    if isinstance(choice, (int, np.integer)) and not isinstance(choice, bool):
        return _from_one_end(int(choice), len(names), what)
    if isinstance(choice, str):
        ends = _SLICE.fullmatch(choice)
        if ends and choice not in names:
            return _slice(ends[1], int(ends[2]), len(names), what, counts)
        choice = [choice] if choice in names else [part.strip() for part in choice.split(",")]
    try:
        parts = list(choice)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(
            f"`labels` must be names, a pattern or a number of {what}s, got {choice!r}."
        ) from error
    position = {name: j for j, name in enumerate(names)}
    chosen = [j for part in parts for j in _matches(part, position, what)]
    if not chosen:
        raise InputError(f"`labels` must name at least one {what}, got {choice!r}.")
    return list(dict.fromkeys(chosen))  # a name that two patterns match is one label


def _matches(part: Any, position: dict[str, int], what: str) -> list[int]:
    if part in position:
        return [position[part]]
    found = [j for name, j in position.items() if fnmatchcase(name, str(part))]
    if not found:
        raise unknown_name(what, part, position)
    return found


def _from_one_end(count: int, n_names: int, what: str) -> list[int]:
    if count == 0 or abs(count) > n_names:
        raise InputError(
            f"`labels` must be a number from 1 to {n_names}, the number of {what}s, or its "
            f"negative to count from the end, got {count}."
        )
    return list(range(count)) if count > 0 else list(range(n_names + count, n_names))


def _slice(end: str, count: int, n_names: int, what: str, counts: Integers | None) -> list[int]:
    if end != "top":
        return _from_one_end(count if end == "first" else -count, n_names, what)
    if counts is None:
        raise InputError(
            f"`labels` cannot be 'top{count}' before it is known which {what}s are labels. "
            "Read the file with all its labels, then call `select_labels` on it."
        )
    positions = _from_one_end(count, n_names, what)  # checks the count
    most_frequent = np.argsort(-counts, kind="stable")[: len(positions)]
    return sorted(most_frequent.tolist())


def labelsets_from(columns: pd.DataFrame, where: str) -> Labelsets:
    """Return label columns as zeros and ones, or name the row and column that is neither.

    Parameters
    ----------
    columns
        Numbers, booleans or one of the spellings in `INDICATORS`.
    where
        The file or service that they come from, for the messages.
    """
    Y = np.empty(columns.shape, dtype=np.int8)
    for j, name in enumerate(columns.columns):
        column = columns.iloc[:, j]
        missing = column.isna().to_numpy()
        if missing.any():
            raise DataError(
                f"Every label in {where} must be given, label {str(name)!r} is missing in row "
                f"{missing.argmax()} (rows count from 0). Fill it in or drop that row."
            )
        values = _indicators(column)
        if (values < 0).any():
            row = int((values < 0).argmax())
            raise DataError(
                f"Labels in {where} must be 0 or 1 (or false and true, no and yes), "
                f"got {column.iloc[row]} in row {row} (rows count from 0) of label "
                f"{str(name)!r}. If that column is a feature, name the labels with `labels`."
            )
        Y[:, j] = values
    return Y


def _indicators(column: pd.Series[Any]) -> Labelsets:
    """Return 0, 1, or -1 for what is neither."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        of_category = [INDICATORS.get(str(c).lower(), -1) for c in column.cat.categories]
        return np.array(of_category, dtype=np.int8)[column.cat.codes.to_numpy()]
    if pd.api.types.is_numeric_dtype(column.dtype):  # bool among them
        values = column.to_numpy()
        return np.where(values == 1, 1, np.where(values == 0, 0, -1)).astype(np.int8)
    spelled = (str(value).strip().lower() for value in column)
    return np.array([INDICATORS.get(value, -1) for value in spelled], dtype=np.int8)

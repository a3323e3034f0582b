"""What each column of a training table is: a number, a category, a text, or nothing to learn from.

The whole table is looked at once, so that all folds treat a column alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError, unknown_name
from labelsure.tables.input_columns._column_values import (
    holds_containers,
    read_numbers,
    read_texts,
)

if TYPE_CHECKING:
    import pandas as pd

NUMBER, CATEGORY, TEXT, LEFT_OUT = "number", "category", "text", "left out"
ID, LABEL, PROBABILITY = "id", "label", "probability"
FEATURES = (NUMBER, CATEGORY, TEXT)
ROLES = (*FEATURES, LEFT_OUT, ID, LABEL, PROBABILITY)

MAX_CATEGORIES = 100
"""One-hot columns of one category: those that are rarer share the last one."""

MIN_ROWS_OF_ID = 20
"""In fewer rows the values of an ordinary category can all be different by chance."""

SEVERAL_WORDS = 2.0
"""Mean number of words from which mostly different values are texts."""

MANY_WORDS = 4.0
"""Mean number of words from which values are texts even if they come again."""

NOTES = {
    NUMBER: "scaled; the median where it is missing",
    CATEGORY: "one column for each value; others than in training count as none of them",
    TEXT: "weights of its words (TF-IDF)",
    ID: "names the rows",
    LABEL: "to be predicted",
    PROBABILITY: "what the other system says of the label",
    LEFT_OUT: "as asked for",
}
"""What is done to a column of each role."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True)
class ColumnRole:
    """What one column is, and what is done to it.

    Parameters
    ----------
    name
        Of the column.
    role
        One of "number", "category", "text", "left out", "id", "label" and "probability".
    note
        What is done, or why nothing is.
    """

    name: str
    role: str
    note: str

    @classmethod
    def of(cls, name: str, role: str) -> ColumnRole:
        """Return a role with what is always done to such columns."""
        return cls(name, role, NOTES[role])

    def to_dict(self) -> dict[str, str]:
        """Return it as plain values."""
        return {"name": self.name, "role": self.role, "note": self.note}


def infer_roles(
    frame: pd.DataFrame,
    *,
    id_column: str | None = None,
    label_columns: Sequence[str] = (),
    left_out: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
) -> list[ColumnRole]:
    """Return what each column of a training table is.

    Parameters
    ----------
    frame
        The whole table.
    id_column
        The column that names the rows.
    label_columns
        Those that are to be predicted.
    left_out
        Those that must not be learned from.
    given
        Roles of features that are known, by name.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"wind": ["3.5", "", "2"], "sky": ["blue", "grey", "blue"]})
    >>> [(role.name, role.role) for role in infer_roles(frame)]
    [('wind', 'number'), ('sky', 'category')]
    """
    known = {str(name): LABEL for name in label_columns}
    known |= dict.fromkeys(map(str, left_out), LEFT_OUT)
    known |= {} if id_column is None else {id_column: ID}
    for name, role in (given or {}).items():
        if role not in (*FEATURES, LEFT_OUT):
            raise unknown_name(f"role of column {name!r}:", role, (*FEATURES, LEFT_OUT))
        if known.setdefault(name, role) != role:
            raise InputError(
                f"A column must have one role, {name!r} is given as {known[name]} and as {role}."
            )
    unknown = next((name for name in known if name not in set(map(str, frame.columns))), None)
    if unknown is not None:
        raise unknown_name("column", unknown, [str(name) for name in frame.columns])
    return [
        ColumnRole.of(str(name), known[str(name)])
        if str(name) in known
        else _infer(str(name), column)
        for name, column in frame.items()
    ]


def _infer(name: str, column: pd.Series[Any]) -> ColumnRole:
    reason = _reason_against(column)
    if reason:
        return ColumnRole(name, LEFT_OUT, reason)
    numbers, is_bad = read_numbers(column)
    if not is_bad.any():
        counts = _counts_rows(numbers)
        return ColumnRole(name, LEFT_OUT, "it counts the rows") if counts else _of(name, NUMBER)
    texts, missing = read_texts(column)
    values = texts[~missing]
    if all(_DATE.fullmatch(text) for text in values):
        return ColumnRole(name, LEFT_OUT, DATES)
    n_words = float(np.mean([len(text.split()) for text in values]))
    share = len(set(values)) / len(values)
    if n_words >= MANY_WORDS or (n_words >= SEVERAL_WORDS and share > 0.5):
        return _of(name, TEXT)
    if len(values) >= MIN_ROWS_OF_ID and share > 0.5:
        note = f"{len(set(values))} different values in {len(values)} rows, as those of an id"
        return ColumnRole(name, LEFT_OUT, note)
    return _of(name, CATEGORY)


_of = ColumnRole.of

DATES = "dates are no feature; make numbers of them, such as a weekday or an age"


def _reason_against(column: pd.Series[Any]) -> str:
    """Return why nothing can be learned from a column, whatever its type, or ""."""
    import pandas as pd

    if holds_containers(column):
        return "lists are no feature"
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return DATES
    texts, missing = read_texts(column)
    if missing.all():
        return "it is empty"
    if len(set(texts)) == 1:
        return "it is the same in every row"
    return ""


def _counts_rows(numbers: Floats) -> bool:
    """Whether numbers are 0, 1, 2, ... or 1, 2, 3, ..., as pandas writes an index."""
    long_enough = len(numbers) >= MIN_ROWS_OF_ID
    return long_enough and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())

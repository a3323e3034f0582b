"""Values of one column as numbers or as text, and the rows whose value is neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import Floats, Mask
from labelsure.errors import InputError, RowsError

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""How files spell that a value is not there, in small letters."""

N_NAMES_LISTED = 5

TRUTH_VALUES = {"true": 1.0, "false": 0.0}
"""As text files spell them, in small letters, and what they are as numbers."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?")
"""Numbers that a float holds; 007 is a name."""


def read_numbers(column: pd.Series[Any]) -> tuple[Floats, Mask]:
    """Return the values as floats, NaN where they are missing, and which are no finite numbers.

    Parameters
    ----------
    column
        Numbers, booleans, or text that spells numbers.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):  # bool among them
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return values, np.isinf(values)
    plain = _parse_plain_numbers(column)
    if plain is not None:
        return plain, np.isinf(plain)
    texts, missing = read_texts(column)
    numbers = np.array([_parse_number(text) for text in texts], dtype=np.float64)
    return numbers, ~missing & ~np.isfinite(numbers)


def _parse_plain_numbers(column: pd.Series[Any]) -> Floats | None:
    """Return the numbers of a text column as Arrow reads them, None where one is no plain number.

    That is far quicker than one by one, and gives the same bits: both round correctly.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(column.dtype, pd.StringDtype):
        return None
    texts = pa.array(column, from_pandas=True)
    try:
        numbers = pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.array(numbers.to_numpy(zero_copy_only=False))


def _parse_number(text: str) -> float:
    """Return the number that a text spells; NaN for anything else, as for what is missing."""
    try:
        return float("x" if "_" in text else text)  # Python reads 1_000 as a number
    except ValueError:
        return float("nan")


def read_texts(column: pd.Series[Any]) -> tuple[Any, Mask]:
    """Return the values as text without spaces around them, and which of them are missing.

    Parameters
    ----------
    column
        Anything; what is missing becomes "".
    """
    absent = column.isna().to_numpy(dtype=bool)
    texts = np.array(
        ["" if gone else str(value).strip() for value, gone in zip(column, absent, strict=True)],
        dtype=object,
    )
    missing = absent | np.array([text.lower() in MISSING for text in texts], dtype=bool)
    texts[missing] = ""
    return texts, missing


def read_categories(column: pd.Series[Any], known: Sequence[str]) -> Any:
    """Return the values as text, spelled as in training.

    One format has the text "true" or "1" where another has True or 1.0: a value that is none of the
    known ones is taken for the one that means the same, if only one does.

    Parameters
    ----------
    column
        Anything; what is missing becomes "".
    known
        The values that were seen in training.
    """
    texts, missing = read_texts(column)
    exact = set(known)
    by_meaning: dict[str, str | None] = {}
    for name in known:
        key = meaning_of(name)
        by_meaning[key] = None if key in by_meaning else name
    for place, text in enumerate(texts):
        if text not in exact and not missing[place]:
            texts[place] = by_meaning.get(meaning_of(column.iloc[place])) or text
    return texts


def meaning_of(value: Any) -> str:
    """Return one spelling of what a value says, whatever the format of its file.

    Parameters
    ----------
    value
        A text, a number, a boolean, or a list of one of these.

    Examples
    --------
    >>> [meaning_of(value) for value in (True, "TRUE", 1.0, "1", "01", ["a"])]
    ['true', 'true', '1', '1', '01', 'a']
    """
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) == 1:
        return meaning_of(value[0])
    text = str(value).strip()
    if text.lower() in TRUTH_VALUES:
        return text.lower()
    if _NUMBER.fullmatch(text):
        return repr(float(text)).removesuffix(".0")
    return text


def holds_containers(column: pd.Series[Any]) -> bool:
    """Whether some value is a list, an array or an object with keys.

    Parameters
    ----------
    column
        Of a table.
    """
    return column.dtype == object and any(
        isinstance(value, (list, tuple, dict, np.ndarray)) for value in column
    )


def check_frame(X: Any, where: str) -> pd.DataFrame:
    """Return a table whose columns have texts for names, or refuse what is no table.

    Parameters
    ----------
    X
        What a caller takes for a table.
    where
        What it is, for messages.
    """
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        raise InputError(
            f"{where} must be a DataFrame, whose columns are known by name, got a "
            f"{type(X).__name__}. Pass one row as `pd.DataFrame([row])`, an array as "
            "`pd.DataFrame(array, columns=names)`."
        )
    frame: pd.DataFrame = X.set_axis([str(name) for name in X.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(
            f"The columns of {where} must have names of their own, {twice!r} is there twice."
        )
    return frame


def refuse_missing_columns(wanted: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a table without some of the columns that a model needs, by name.

    Parameters
    ----------
    wanted
        The columns that it needs.
    known
        Those of the table.
    where
        What it is, for messages.
    """
    missing = [name for name in wanted if name not in set(known)]
    if missing:
        listed = ", ".join(repr(name) for name in missing[:N_NAMES_LISTED])
        more = len(missing) - N_NAMES_LISTED
        raise InputError(
            f"The columns of {where} must hold those that the model was made with, in any order; "
            f"missing are {listed}{f' and {more} more' if more > 0 else ''}. Add or rename columns."
        )


def raise_bad_rows(reasons: dict[Any, str], where: str) -> None:
    """Raise an error that knows which rows cannot be used and why, if there are some.

    Parameters
    ----------
    reasons
        A clause for each bad row, by its place in the index of the table.
    where
        What the table is, for messages.
    """
    if reasons:
        raise RowsError(reasons, where)

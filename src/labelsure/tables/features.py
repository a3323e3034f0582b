"""`TableColumns`: what each column of a table is, and its values as features of a classifier."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.storage import first_line
from labelsure._runtime.typing import Floats, Mask
from labelsure.errors import InputError, RowsError, UnseenValuesWarning, unknown_name
from labelsure.labelsets.names import list_some
from labelsure.saving import Savable
from labelsure.tables.column_choice import (
    MIN_ROWS_OF_ID,
    holds_containers,
    read_numbers,
    read_texts,
)
from labelsure.tables.files import check_names

if TYPE_CHECKING:
    import pandas as pd

TRUTH_VALUES = {"true": 1.0, "false": 0.0}
"""As text files spell them, in small letters, and what they are as numbers."""

_WHOLE_FLOAT = re.compile(r"\A(-?(?:0|[1-9][0-9]{0,14}))\.0\Z")
"""How floats spell whole numbers; 007 and the version 1.10 are names."""


def spell_category(text: str) -> str:
    """Return one spelling of a value: formats write True and 1.0, "TRUE" and "1" for the same.

    Examples
    --------
    >>> [spell_category(text) for text in ("True", "TRUE", "1.0", "1", "01", "1.10")]
    ['true', 'true', '1', '1', '01', '1.10']
    """
    if text.lower() in TRUTH_VALUES:
        return text.lower()
    return _WHOLE_FLOAT.sub(r"\1", text)


def check_frame(X: Any, where: str) -> pd.DataFrame:
    """Return a table whose columns have texts for names, or refuse what is no table."""
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        raise InputError(
            f"{where} must be a DataFrame, whose columns are known by name, got a "
            f"{type(X).__name__}. Pass one row as `pd.DataFrame([row])`, an array as "
            "`pd.DataFrame(array, columns=names)`."
        )
    frame: pd.DataFrame = X.set_axis([str(name) for name in X.columns], axis=1)
    check_names(list(frame.columns), where)
    return frame


def refuse_missing_columns(wanted: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a table without some of the columns that a model needs, by name."""
    has = set(known)
    missing = [name for name in wanted if name not in has]
    if missing:
        raise InputError(
            f"The columns of {where} must hold those that the model was made with, in any order; "
            f"missing are {list_some(missing)}. Add or rename columns."
        )


def raise_bad_rows(reasons: dict[Any, str], where: str) -> None:
    """Raise an error that knows which rows cannot be used and why, if there are some."""
    if reasons:
        raise RowsError(reasons, where)


NUMBER, CATEGORY, TEXT, LEFT_OUT = "number", "category", "text", "left out"
ID, LABEL, PROBABILITY = "id", "label", "probability"
FEATURES = (NUMBER, CATEGORY, TEXT)

MAX_CATEGORIES = 100
"""One-hot columns of one category: those that are rarer share the last one."""

SEVERAL_WORDS = 2.0
"""Mean number of words from which mostly different values are texts."""

MANY_WORDS = 4.0
"""Mean number of words from which values are texts even if they come again."""

NOTES = {
    NUMBER: "scaled; missing values imputed by the median",
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
    import pandas as pd

    texts, missing = read_texts(column)
    values, reason = texts[~missing], ""
    numbers, is_bad = np.empty(0), np.ones(1, bool)
    if holds_containers(column):
        reason = "lists are no feature"
    elif missing.all():
        reason = "empty"
    elif len(set(texts)) == 1:
        reason = "constant"
    elif pd.api.types.is_datetime64_any_dtype(column.dtype) or all(map(_DATE.fullmatch, values)):
        reason = "dates are no feature; make numbers of them, such as a weekday or an age"
    else:
        numbers, is_bad = read_numbers(column)
    if not reason and not is_bad.any():
        if not _counts_rows(numbers):
            return ColumnRole.of(name, NUMBER)
        reason = "it counts the rows"
    if reason:
        return ColumnRole(name, LEFT_OUT, reason)
    n_words = float(np.mean([len(text.split()) for text in values]))
    share = len(set(values)) / len(values)
    if n_words >= MANY_WORDS or (n_words >= SEVERAL_WORDS and share > 0.5):
        return ColumnRole.of(name, TEXT)
    if len(values) >= MIN_ROWS_OF_ID and share > 0.5:
        note = f"{len(set(values))} different values in {len(values)} rows, as those of an id"
        return ColumnRole(name, LEFT_OUT, note)
    return ColumnRole.of(name, CATEGORY)


def _counts_rows(numbers: Floats) -> bool:
    """Whether numbers are 0, 1, 2, ... or 1, 2, 3, ..., as pandas writes an index."""
    long_enough = len(numbers) >= MIN_ROWS_OF_ID
    return long_enough and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


MOSTLY = 0.5
"""Share of unseen values of a category from which on they are worth a warning."""

MAX_WORDS = 20_000
"""Words of one text column that have a weight: the most frequent ones."""


def _read_feature(column: pd.Series[Any]) -> tuple[Floats, Mask]:
    """Return numbers, also where a text file spells truth values, and which values are none."""
    numbers, is_bad = read_numbers(column)
    for at in np.flatnonzero(is_bad).tolist():
        value = TRUTH_VALUES.get(str(column.iloc[at]).strip().lower())
        if value is not None:
            numbers[at], is_bad[at] = value, False
    return numbers, is_bad


class TableColumns(TransformerMixin, BaseEstimator, Savable):  # type: ignore[misc]
    """The columns of a table as features: numbers scaled, categories one-hot, texts by their words.

    It is the first step of a pipeline, and is saved with it. Columns go by name: their order does
    not matter, and further columns are ignored.

    Parameters
    ----------
    roles
        What each column is, as `infer_roles` returns it; None to infer it when fitting. Infer it
        from the whole table where a part of it is fitted to, such as a fold.

    Attributes
    ----------
    roles_
        What was done to each column.
    n_features_in_
        How many columns features are made of.
    medians_
        Of the numbers, which stand in for those that are missing.
    transformer_
        scikit-learn's `ColumnTransformer`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"wind": ["1", "", "5"], "sky": ["blue", "grey", "blue"]})
    >>> columns = TableColumns().fit(frame)
    >>> print(columns)
    wind: number (scaled; missing values imputed by the median)
    sky: category (one column for each value; others than in training count as none of them)
    >>> columns.transform(pd.DataFrame({"sky": ["grey"], "wind": [3]}))
    array([[0., 0., 1.]])
    """

    def __init__(self, roles: list[ColumnRole] | None = None) -> None:
        self.roles = roles

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, scales, categories and words.

        Parameters
        ----------
        X
            A DataFrame; values may be text, as those of CSV files.
        y
            Is not looked at.
        """
        frame = check_frame(X, "the table")
        self.roles_ = infer_roles(frame) if self.roles is None else list(self.roles)
        used = self._names_of(*FEATURES)
        if not used:
            raise InputError(
                "The table must have at least one column to learn from, got "
                f"{'; '.join(f'{role.name!r}: {role.note}' for role in self.roles_) or 'none'}."
            )
        self.n_features_in_ = len(used)
        typed = self.convert(frame)
        medians = typed[self._names_of(NUMBER)].median()
        self.medians_ = medians.fillna(0.0).to_numpy(dtype=np.float64)  # a fold may have none
        self.transformer_ = self._make_transformer()
        try:
            self.transformer_.fit(self._fill_in(typed))
        except ValueError as error:  # of a text column in which no text has a word
            raise InputError(
                f"Text columns ({', '.join(map(repr, self._names_of(TEXT)))}) must have words of "
                f"two or more letters, but: {first_line(error)}. Leave such a column out."
            ) from error
        return self

    def transform(self, X: Any) -> Any:
        """Return the features, sparse where there is a text column.

        Parameters
        ----------
        X
            A DataFrame with the columns that were fitted to, in any order.
        """
        check_is_fitted(self)
        typed = self.convert(X)
        for text in self.find_unseen(typed).values():
            warnings.warn(text, UnseenValuesWarning, stacklevel=2)
        return self.transformer_.transform(self._fill_in(typed))

    def convert(self, X: Any, where: str = "the table") -> pd.DataFrame:
        """Return the columns that features are made of, as numbers and texts.

        What it returns can be transformed in place of X. Raises a `RowsError` that knows all rows
        with a value that is no number.

        Parameters
        ----------
        X
            A DataFrame.
        where
            What it is, for messages.
        """
        import pandas as pd

        check_is_fitted(self, "roles_")
        frame = check_frame(X, where)
        refuse_missing_columns(self._names_of(*FEATURES), list(frame.columns), where)
        reasons: dict[Any, str] = {}
        columns: dict[str, Any] = {}
        for role in self.roles_:
            if role.role == NUMBER:
                columns[role.name], is_bad = _read_feature(frame[role.name])
                for at in np.flatnonzero(is_bad).tolist():
                    value = frame[role.name].iloc[at : at + 1].tolist()[0]
                    reason = f"{role.name!r} must be a finite number, got {value!r}"
                    reasons.setdefault(frame.index[at], reason)
            elif role.role in FEATURES:
                texts, _ = read_texts(frame[role.name])
                is_category = role.role == CATEGORY
                columns[role.name] = [*map(spell_category, texts)] if is_category else texts
        raise_bad_rows(dict(sorted(reasons.items())), where)
        return pd.DataFrame(columns, index=frame.index)

    def find_unseen(self, typed: pd.DataFrame) -> dict[str, str]:
        """Return a sentence for each category most of whose values training did not have.

        Parameters
        ----------
        typed
            What `convert` returned.
        """
        found = {}
        names = self._names_of(CATEGORY)
        encoder = self.transformer_.named_transformers_.get("categories")
        for name, known in zip(names, encoder.categories_ if names else (), strict=True):
            seen = {"", *known}
            unseen = [value for value in typed[name] if value not in seen]
            if len(unseen) > MOSTLY * len(typed):
                found[name] = (
                    f"Column {name!r} has mostly values that training did not have, e.g. "
                    f"{str(unseen[0])!r} ({len(unseen)} of {len(typed)} rows). They count as none "
                    "of the known ones. Check how the column is written."
                )
        return found

    @property
    def columns_read(self) -> list[str]:
        """The columns that features are made of."""
        return self._names_of(*FEATURES)

    @property
    def id_column(self) -> str | None:
        """The column that names the rows, or None."""
        return next(iter(self._names_of(ID)), None)

    def describe_columns(self) -> list[dict[str, str]]:
        """Return what was done to each column, as plain values."""
        return [role.to_dict() for role in self.roles_]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features: the column, and for its values and words these."""
        return self.transformer_.get_feature_names_out()

    def __str__(self) -> str:
        if not hasattr(self, "roles_"):
            return repr(self)
        return "\n".join(f"{role.name}: {role.role} ({role.note})" for role in self.roles_)

    def _names_of(self, *roles: str) -> list[str]:
        return [role.name for role in self.roles_ if role.role in roles]

    def _fill_in(self, typed: pd.DataFrame) -> pd.DataFrame:
        return typed.fillna(dict(zip(self._names_of(NUMBER), self.medians_, strict=True)))

    def _make_transformer(self) -> ColumnTransformer:
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MAX_CATEGORIES,
            sparse_output=bool(self._names_of(TEXT)),
        )
        parts: list[tuple[str, Any, Any]] = [
            ("numbers", StandardScaler(), self._names_of(NUMBER)),
            ("categories", encoder, self._names_of(CATEGORY)),
        ]
        for place, name in enumerate(self._names_of(TEXT)):
            words = TfidfVectorizer(max_features=MAX_WORDS, sublinear_tf=True)
            parts.append((f"text{place}", words, name))
        return ColumnTransformer(
            [part for part in parts if part[2]],
            sparse_threshold=1.0 if self._names_of(TEXT) else 0.0,
            verbose_feature_names_out=False,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

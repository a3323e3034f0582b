"""`TableColumns`: from a table with columns of any type to the features of a classifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.storage import first_line
from labelsure.errors import InputError, UnseenValuesWarning
from labelsure.saving._savable import Savable
from labelsure.tables.input_columns._column_values import (
    TRUTH_VALUES,
    check_frame,
    raise_bad_rows,
    read_categories,
    read_numbers,
    read_texts,
    refuse_missing_columns,
)
from labelsure.tables.input_columns._inferred_roles import (
    CATEGORY,
    FEATURES,
    ID,
    MAX_CATEGORIES,
    NUMBER,
    TEXT,
    ColumnRole,
    infer_roles,
)

if TYPE_CHECKING:
    import pandas as pd

MOSTLY = 0.5
"""Share of unseen values of a category from which on they are worth a warning."""

MAX_WORDS = 20_000
"""Words of one text column that have a weight: the most frequent ones."""


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
    wind: number (scaled; the median where it is missing)
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
        self.__dict__.pop("transformer_", None)  # of an earlier fit, whose categories were others
        typed = self.convert(frame)
        numbers = typed[self._names_of(NUMBER)].to_numpy(dtype=np.float64)
        some = ~np.isnan(numbers).all(axis=0)  # a fold may have none
        self.medians_ = np.zeros(numbers.shape[1])
        self.medians_[some] = np.nanmedian(numbers[:, some], axis=0)
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
        categories = self._categories()
        for role in self.roles_:
            if role.role == NUMBER:
                columns[role.name], is_bad = self._read_numbers(frame[role.name])
                for at in np.flatnonzero(is_bad).tolist():
                    value = frame[role.name].iloc[at]
                    reason = f"{role.name!r} must be a finite number, got {value!r}"
                    reasons.setdefault(frame.index[at], reason)
            elif role.name in categories:
                columns[role.name] = read_categories(frame[role.name], categories[role.name])
            elif role.role in FEATURES:
                columns[role.name] = read_texts(frame[role.name])[0]
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
        for name, known in self._categories().items():
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

    def _categories(self) -> dict[str, list[str]]:
        """Return the values of each category that were seen in training; nothing before that."""
        fitted = getattr(self, "transformer_", None)
        names = self._names_of(CATEGORY)
        if fitted is None or not names:
            return {}
        seen = fitted.named_transformers_["categories"].categories_
        return {name: [str(value) for value in of] for name, of in zip(names, seen, strict=True)}

    def _read_numbers(self, column: pd.Series[Any]) -> tuple[Any, Any]:
        """Return numbers, and 1 and 0 where a text file spells booleans that training had."""
        numbers, is_bad = read_numbers(column)
        for at in np.flatnonzero(is_bad).tolist() if hasattr(self, "transformer_") else ():
            value = TRUTH_VALUES.get(str(column.iloc[at]).strip().lower())
            if value is not None:
                numbers[at], is_bad[at] = value, False
        return numbers, is_bad

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

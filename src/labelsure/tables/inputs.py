"""`InputTable`: rows of a file as X of a model, and their row names.

The first step of a model reads the columns: `TableColumns` makes features of them, and
`PredictionColumns` another system's predictions. Models that were made in Python know their columns
by the names that they were fitted to.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.storage import first_line
from labelsure._runtime.typing import Column, FeaturesLike, Floats, LabelsetsLike, Mask
from labelsure.classifiers._inner_models import first_step
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.errors import InputError, RowsError, UnseenValuesWarning, unknown_name, warn
from labelsure.labelsets.answers import (
    LABELS,
    SCORES,
    OddAnswers,
    find_pairs,
    pair_lists,
    parse_cell,
    read_score,
    read_votes_of_cell,
    scores_by_name,
    show_value,
)
from labelsure.labelsets.label_names import check_label_names, show_names
from labelsure.labelsets.names import list_some
from labelsure.saving import Savable
from labelsure.tables.column_choice import MIN_ROWS_OF_ID, holds_containers
from labelsure.tables.files import check_names, list_rows, stack_rows, unknown_column
from labelsure.tables.values import Texts, read_numbers, read_texts, spell_ids, spell_number

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.model._aware_classifier import AccuracyAwareClassifier


# Columns as features

TRUTH_VALUES = {"true": 1.0, "false": 0.0}
"""Numbers of truth values, by their lower-case spelling in text files."""

TRUTH_WORDS = (("true", "false"), ("1", "0"))
"""Spellings of truth values as categories; formats without truth values write numbers."""

_WHOLE_FLOAT = re.compile(r"\A(-?(?:0|[1-9][0-9]{0,14}))\.0\Z")
"""How floats spell whole numbers; 007 and the version 1.10 are names."""


def spell_category(text: str) -> str:
    """One spelling of a value: formats write True and 1.0, "TRUE" and "1" for the same.

    Examples
    --------
    >>> [spell_category(text) for text in ("True", "TRUE", "1.0", "1", "01", "1.10")]
    ['true', 'true', '1', '1', '01', '1.10']
    """
    if text.lower() in TRUTH_VALUES:
        return text.lower()
    return _WHOLE_FLOAT.sub(r"\1", text)


def check_frame(X: FeaturesLike, where: str) -> pd.DataFrame:
    """DataFrame with column names as text. Raises InputError for anything else."""
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        raise InputError(
            f"{where} must be a DataFrame, whose columns are known by name, got a "
            f"{type(X).__name__}. Pass one row as `pd.DataFrame([row])`, an array as "
            "`pd.DataFrame(array, columns=names)`."
        )
    frame: pd.DataFrame = X.set_axis([str(name) for name in X.columns], axis=1)
    check_names(list(frame.columns), where)
    return frame


def refuse_missing_columns(required: Iterable[str], existing: Sequence[str], where: str) -> None:
    """Raise InputError for a table without some of the columns that a model needs."""
    has = set(existing)
    missing = [name for name in required if name not in has]
    if missing:
        raise InputError(
            f"The columns of {where} must include those that the model was fitted to, in any "
            f"order; missing are {list_some(missing)}. Add or rename columns."
        )


def raise_bad_rows(reasons: dict[Any, str], where: str) -> None:
    """Raise a RowsError with the reasons, if there are any."""
    if reasons:
        raise RowsError(reasons, where)


NUMBER, CATEGORY, TEXT, LEFT_OUT = "number", "category", "text", "left out"
ID, LABEL, PROBABILITY = "id", "label", "probability"
FEATURES = (NUMBER, CATEGORY, TEXT)

MAX_CATEGORIES = 100
"""Maximum one-hot columns of one category: rarer values share the last one."""

SEVERAL_WORDS = 2.0
"""Mean number of words from which mostly different values are texts."""

MANY_WORDS = 4.0
"""Mean number of words from which values are texts even if they repeat."""

NOTES = {
    NUMBER: "scaled; missing values imputed by the median",
    CATEGORY: "one column for each value; others than in training count as none of them",
    TEXT: "weights of its words (TF-IDF)",
    ID: "names the rows",
    LABEL: "to be predicted",
    PROBABILITY: "what the other system says of the label",
    LEFT_OUT: "as asked for",
}
"""Default note of each role."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True)
class ColumnRole:
    """Role of one column, and how it is used.

    Parameters
    ----------
    name
        Name of the column.
    role
        One of "number", "category", "text", "left out", "id", "label" and "probability".
    note
        Use of the column, or why it has none.
    """

    name: str
    role: str
    note: str

    @classmethod
    def of(cls, name: str, role: str) -> ColumnRole:
        """Role with the default note."""
        return cls(name, role, NOTES[role])


def infer_roles(
    frame: pd.DataFrame,
    *,
    id_column: str | None = None,
    label_columns: Sequence[str] = (),
    left_out: Sequence[str] = (),
    overrides: Mapping[str, str] | None = None,
) -> list[ColumnRole]:
    """Role of each column of a training table.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"wind": ["3.5", "", "2"], "sky": ["blue", "grey", "blue"]})
    >>> [(role.name, role.role) for role in infer_roles(frame)]
    [('wind', 'number'), ('sky', 'category')]
    """
    role_of = {str(name): LABEL for name in label_columns}
    role_of |= dict.fromkeys(map(str, left_out), LEFT_OUT)
    role_of |= {} if id_column is None else {id_column: ID}
    for name, role in (overrides or {}).items():
        if role not in (*FEATURES, LEFT_OUT):
            raise unknown_name(f"role of column {name!r}:", role, (*FEATURES, LEFT_OUT))
        if role_of.setdefault(name, role) != role:
            raise InputError(
                f"A column must have one role, {name!r} is given as {role_of[name]} and as {role}. "
                "Leave one out."
            )
    names = set(map(str, frame.columns))
    unknown = next((name for name in role_of if name not in names), None)
    if unknown is not None:
        raise unknown_column(unknown, frame.columns)
    return [
        ColumnRole.of(str(name), role_of[str(name)])
        if str(name) in role_of
        else _infer_role(str(name), column)
        for name, column in frame.items()
    ]


def _infer_role(name: str, column: Column) -> ColumnRole:
    import pandas as pd

    read = read_texts(column)
    texts, missing = read.values, read.missing
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
    elif pd.api.types.is_timedelta64_dtype(column.dtype) or _holds_times(column):
        reason = "times are no feature; make numbers of them, such as seconds"
    else:
        numbers, is_bad = read_numbers(column)
    if not reason and not is_bad.any():
        if not _counts_rows(numbers):
            return ColumnRole.of(name, NUMBER)
        reason = "it counts the rows"
    if reason:
        return ColumnRole(name, LEFT_OUT, reason)
    with_comma = np.array([bool(_DECIMAL_COMMA.fullmatch(text)) for text in texts])
    if max(with_comma.sum(), (~is_bad & ~missing).sum()) >= MIN_SHARE_OF_NUMBERS * len(values):
        row = int(np.argmax(is_bad))
        warn(
            f"Column {name!r} is not used as a number: row {row} (rows count from 0) has "
            f"{texts[row]!r}. Numbers have a decimal point; fix the value, or give the column's "
            "role.",
            UserWarning,
        )
    n_words = float(np.mean([len(text.split()) for text in values]))
    share = len(set(values)) / len(values)
    if n_words >= MANY_WORDS or (n_words >= SEVERAL_WORDS and share > 0.5):
        return ColumnRole.of(name, TEXT)
    if len(values) >= MIN_ROWS_OF_ID and share > 0.5:
        note = f"{len(set(values))} different values in {len(values)} rows, as those of an id"
        return ColumnRole(name, LEFT_OUT, note)
    return ColumnRole.of(name, CATEGORY)


MIN_SHARE_OF_NUMBERS = 0.9
"""Share of numbers in a column from which on other values are probably mistakes."""

_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


def _holds_times(column: Column) -> bool:
    """Whether all values that are not missing are times of a day."""
    values = column.dropna()
    return len(values) > 0 and all(isinstance(value, time) for value in values)


def _counts_rows(numbers: Floats) -> bool:
    """Whether numbers are 0, 1, 2, ... or 1, 2, 3, ..., as pandas writes an index."""
    long_enough = len(numbers) >= MIN_ROWS_OF_ID
    return long_enough and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


MAX_SHARE_OF_UNSEEN = 0.5
"""Share of unseen values of a category above which to warn."""

MAX_WORDS = 20_000
"""Maximum words of one text column that have a weight, the most frequent ones."""


def _read_feature(column: Column) -> tuple[Floats, Mask]:
    """(n,) numbers, with true as 1 and false as 0, and a mask of values that are no number."""
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
        Roles of the columns, from `infer_roles`; None infers them when fitting. Infer them
        from the whole table where a part of it is fitted to, such as a fold.

    Attributes
    ----------
    roles_
        Role of each column.
    n_features_in_, feature_names_in_
        How many columns features are made of, and their names.
    medians_
        Medians of number columns, which replace missing values.
    numeric_categories_
        Categories whose training values had a numeric type: texts are compared as numbers.
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

    def fit(self, X: FeaturesLike, y: LabelsetsLike = None) -> Self:
        """Learn medians, scales, categories and words.

        Parameters
        ----------
        X
            A DataFrame; values may be text, as those of CSV files.
        y
            Ignored.
        """
        frame = check_frame(X, "the table")
        self.roles_ = infer_roles(frame) if self.roles is None else list(self.roles)
        used = self._names_of(*FEATURES)
        if not used:
            raise InputError(
                "The table must have at least one column to learn from, got "
                f"{'; '.join(f'{role.name!r}: {role.note}' for role in self.roles_) or 'none'}."
            )
        self.n_features_in_, self.feature_names_in_ = len(used), np.array(used, dtype=object)
        texts_of = {name: read_texts(frame[name]) for name in self._names_of(CATEGORY)}
        self.numeric_categories_ = [
            name for name, read in texts_of.items() if (read.is_number | read.missing).all()
        ]
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

    def transform(self, X: FeaturesLike) -> Any:
        """Features, sparse where there is a text column.

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

    def convert(self, X: FeaturesLike, where: str = "the table") -> pd.DataFrame:
        """Columns that features are made of, as numbers and texts.

        The result can be transformed in place of X. Raises a `RowsError` with all rows
        with a value that is no number.

        Parameters
        ----------
        X
            A DataFrame.
        where
            Name of the table in messages.
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
                read = read_texts(frame[role.name])
                for at, why in read.reasons.items():
                    reasons.setdefault(frame.index[at], f"{role.name!r}: {why}")
                is_category = role.role == CATEGORY
                columns[role.name] = (
                    self._spell_categories(role.name, read) if is_category else read.values
                )
        raise_bad_rows(dict(sorted(reasons.items())), where)
        return pd.DataFrame(columns, index=frame.index)

    def _spell_categories(self, name: str, read: Texts) -> list[str]:
        """(n,) categories in the spelling of the training data, whatever their type here."""
        texts = [spell_category(text) for text in read.values]
        is_numeric = name in getattr(self, "numeric_categories_", ())
        if is_numeric:
            texts = [spell_number(text) for text in texts]
        if not hasattr(self, "transformer_"):
            return texts
        encoder = self.transformer_.named_transformers_["categories"]
        categories = encoder.categories_[self._names_of(CATEGORY).index(name)]
        for known_words, other_words in (TRUTH_WORDS, TRUTH_WORDS[::-1]):
            if {*categories} <= {"", *known_words}:
                spelling_of = dict(zip(other_words, known_words, strict=True))
                return [spelling_of.get(text, text) for text in texts]
        if is_numeric or not read.is_number.any():
            return texts
        spelling_of = {spell_number(text): text for text in categories}
        spelling_of |= {text: text for text in categories}
        return [
            spelling_of.get(text, text) if is_number else text
            for text, is_number in zip(texts, read.is_number, strict=True)
        ]

    def find_unseen(self, typed: pd.DataFrame) -> dict[str, str]:
        """Warnings of columns whose categories are mostly unseen in training, by column.

        Parameters
        ----------
        typed
            Result of `convert`.
        """
        message_of = {}
        names = self._names_of(CATEGORY)
        encoder = self.transformer_.named_transformers_.get("categories")
        for name, categories in zip(names, encoder.categories_ if names else (), strict=True):
            known_values = {"", *categories}
            unseen = [value for value in typed[name] if value not in known_values]
            if len(unseen) > MAX_SHARE_OF_UNSEEN * len(typed):
                message_of[name] = (
                    f"Column {name!r} has mostly values that training did not have, e.g. "
                    f"{str(unseen[0])!r} ({len(unseen)} of {len(typed)} rows). They count as none "
                    "of the known ones. Check how the column is written."
                )
        return message_of

    @property
    def columns_read(self) -> list[str]:
        """The columns that features are made of."""
        return self._names_of(*FEATURES)

    @property
    def id_column(self) -> str | None:
        """The column that names the rows, or None."""
        return next(iter(self._names_of(ID)), None)

    def describe_columns(self) -> list[dict[str, str]]:
        """Role and note of each column, for JSON."""
        return [asdict(role) for role in self.roles_]

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names of the features: column names, categories and words."""
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
        transformers: list[tuple[str, Any, Any]] = [
            ("numbers", StandardScaler(), self._names_of(NUMBER)),
            ("categories", encoder, self._names_of(CATEGORY)),
        ]
        for place, name in enumerate(self._names_of(TEXT)):
            words = TfidfVectorizer(max_features=MAX_WORDS, sublinear_tf=True)
            transformers.append((f"text{place}", words, name))
        return ColumnTransformer(
            [transformer for transformer in transformers if transformer[2]],
            sparse_threshold=1.0 if self._names_of(TEXT) else 0.0,
            verbose_feature_names_out=False,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


# Predictions of another system

COLUMNS, POSITIONS, CELLS, LISTS, ANSWERS = "columns", "positions", "cells", "lists", "answers"
LISTED = "listed"
LAYOUTS = {
    COLUMNS: "a column of scores for each label",
    POSITIONS: "an array with a column of scores for each label, in their order",
    CELLS: "a cell with the scores of all labels",
    LISTS: "a list of labels and a list of their scores",
    ANSWERS: "a list of answers, each of which is a list of labels",
    LISTED: "a row of a sparse matrix, which lists some labels by number, with their scores",
}
"""Content of a row in each layout."""

SPARSE_LAYOUTS = (CELLS, LISTS, LISTED)
"""Layouts in which a row may list some of the labels only."""

ANSWER_NAMES = ("answers", "votes", "samples")
SCORE_NAMES = ("scores", "predictions", "probabilities", "logits", "value")
"""Names of columns that may hold all scores of a row; the last is `files.VALUE_COLUMN`."""


@dataclass(frozen=True)
class Layout:
    """Location of the predictions in the columns of a table.

    Parameters
    ----------
    name
        One of `LAYOUTS`.
    column
        Column of all predictions of a row; None where there are several.
    label_names
        Label names in the table; None where labels go by position.
    n_labels
        Number of columns of a sparse matrix; None for other layouts.
    """

    name: str
    column: str | None = None
    label_names: tuple[str, ...] | None = None
    n_labels: int | None = None


def find_layout(frame: pd.DataFrame, id_column: str | None = None) -> Layout:
    """Layout of predictions in a table, by its column names and first row.

    Examples
    --------
    >>> import pandas as pd
    >>> find_layout(pd.DataFrame({"id": [7], "cat": [0.9], "dog": [0.2]}), "id").label_names
    ('cat', 'dog')
    """
    others = [name for name in frame.columns if str(name) != id_column]
    if not others or not len(frame):
        raise InputError(
            "Predictions must have at least one row, and a column beside the id, got "
            f"{len(frame)} rows and {len(others)} such columns."
        )
    if all(isinstance(name, (int, np.integer)) for name in others):
        return Layout(POSITIONS)
    for name in others:
        matrix = stack_rows(frame[name].iloc[:1])
        if matrix is not None:
            return Layout(LISTED, str(name), n_labels=matrix.shape[1])
    first = {str(name): parse_cell(frame[name].iloc[0]) for name in others}
    if isinstance(first.get(LABELS), list) and isinstance(first.get(SCORES), list):
        return Layout(LISTS, label_names=tuple(map(str, first[LABELS])))
    named = [name for name in (*ANSWER_NAMES, *SCORE_NAMES) if name in first]
    for name in named or (list(first) if len(first) == 1 else []):
        value = first[name]
        if _are_answers(value) or (name in ANSWER_NAMES and isinstance(value, list)):
            return Layout(ANSWERS, name)
        if isinstance(value, (list, dict)):
            return Layout(CELLS, name, _names_in_cell(value))
    return Layout(COLUMNS, label_names=tuple(first))


def check_lists_labels(layout: str) -> None:
    """Raise InputError for a layout in which each row has all labels."""
    if layout not in SPARSE_LAYOUTS:
        raise InputError(
            "With `sparse`, rows must list pairs of label and score, or be those of a sparse "
            f"matrix, got {LAYOUTS[layout]}. Leave out `sparse`, or write labels with their "
            "scores."
        )


def _are_answers(value: object) -> bool:
    """Whether a cell is a list of lists, of labels or of zeros and ones; some may be null."""
    answers = [answer for answer in value if answer is not None] if isinstance(value, list) else []
    return (
        all(isinstance(answer, list) for answer in answers)
        and not any(isinstance(label, dict) for answer in answers for label in answer)
        and bool(answers)
    )


def _names_in_cell(value: object) -> tuple[str, ...] | None:
    try:
        pairs = find_pairs(parse_cell(value))
    except ValueError:
        return None
    return None if pairs is None else tuple(label for label, _ in pairs)


def all_listed_labels(columns: Sequence[Iterable[object]]) -> list[str]:
    """Sorted labels that cells list; cells that cannot be read are skipped."""
    labels: set[str] = set()
    for cells in zip(*columns, strict=True):
        try:
            pairs = find_pairs(parse_cell(cells[0])) if len(cells) == 1 else pair_lists(*cells)
        except ValueError:
            continue
        labels.update(label for label, _ in pairs or [])
    if not labels:
        raise InputError(
            "Predictions must list at least one label, they list none. Name all labels with "
            "`labels`."
        )
    return sorted(labels)


SINGLE_COLUMN_LAYOUTS = (CELLS, ANSWERS, LISTED)
"""Layouts with all predictions of a row in one column."""

VOTES = "answers as zeros and ones"
"""Name of the column of arrays that `convert` makes of answers."""

LISTED_SCORES = "scores of the labels that are listed"
"""Name of the column of cells that `convert` makes of sparse rows."""


class PredictionColumns(TransformerMixin, BaseEstimator, Savable):  # type: ignore[misc]
    """Predictions of another system in a table, as probabilities, logits or votes of the labels.

    It is the first step of a pipeline that ends in `PrecomputedProbabilities`, and saved with it.

    Parameters
    ----------
    label_names
        The labels, in the order in which the model has them; how many, where they have no names.
    layout
        Layout of the predictions:

        - "columns": a column of scores for each label, of its name;
        - "positions": the same without names, as in an array; where a table has names, its columns
          are those of the labels' names;
        - "cells": a cell with all scores: numbers, pairs of label and score, or scores by label;
        - "lists": a list of labels in "labels", and one of their scores in "scores";
        - "answers": a cell with a list of answers, each of which is a list of labels;
        - "listed": a row of a sparse matrix, which lists some labels by number.
    column
        The column of the cells.
    id_column
        The column that names the rows.
    logits
        Whether scores are logits. Otherwise they must lie in [0, 1].
    sparse
        Whether "cells" and "lists" list some labels only. The others have a probability near 0,
        and the result is a sparse array of scores, as for "listed".
    unknown
        Names in answers that are no label: "refuse" the row, or "drop" them with a
        warning that counts them.

    Attributes
    ----------
    label_names_, n_labels_
        Label names, None where there are none, and the number of labels.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"dog": ["0.2"], "cat": ["0.9"]})
    >>> PredictionColumns(["cat", "dog"]).fit(frame).transform(frame)
       cat  dog
    0  0.9  0.2
    """

    def __init__(
        self,
        label_names: Any = (),
        layout: str = COLUMNS,
        column: str | None = None,
        *,
        id_column: str | None = None,
        logits: bool = False,
        sparse: bool = False,
        unknown: str = "drop",
    ) -> None:
        self.label_names = label_names
        self.layout = layout
        self.column = column
        self.id_column = id_column
        self.logits = logits
        self.sparse = sparse
        self.unknown = unknown

    def fit(self, X: FeaturesLike, y: LabelsetsLike = None) -> Self:
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X, y
            Ignored.
        """
        if self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)
        if self.layout in SINGLE_COLUMN_LAYOUTS and self.column is None:
            raise InputError(f"`column` must name the column of the {self.layout}, got None.")
        if self.sparse:
            check_lists_labels(self.layout)
        if isinstance(self.label_names, (int, np.integer)):
            self.label_names_, self.n_labels_ = None, int(self.label_names)
        else:
            names = list(self.label_names)
            self.label_names_, self.n_labels_ = check_label_names(names, len(names)), len(names)
        return self

    @property
    def is_sparse(self) -> bool:
        """Whether rows list some labels only."""
        return self.sparse or self.layout == LISTED

    def transform(self, X: FeaturesLike) -> Any:
        """Scores, a column for each label (a DataFrame where these have names), or votes.

        Of rows that list some labels, a sparse array of their scores.

        Parameters
        ----------
        X
            A DataFrame.
        """
        converted = self.convert(X)
        if self.is_sparse:
            return stack_rows(converted[LISTED_SCORES])
        if self.layout != ANSWERS:
            return converted if self.label_names_ is not None else converted.to_numpy()
        cells = list(converted[VOTES])
        votes = np.full((len(cells), max(map(len, cells), default=1), self.n_labels_), np.nan)
        for row, cell in enumerate(cells):
            votes[row, : len(cell)] = cell
        return votes

    def convert(self, X: FeaturesLike, where: str = "the table") -> pd.DataFrame:
        """Scores with a column for each label, or one column of votes or listed scores.

        The result can be transformed in place of X. Raises a `RowsError` with all rows
        that cannot be read.

        Parameters
        ----------
        X
            A DataFrame.
        where
            Name of the table in messages.
        """
        import pandas as pd

        check_is_fitted(self, "n_labels_")
        frame = check_frame(X, where)
        if self._is_converted(frame):
            return frame
        if self.layout == POSITIONS:
            frame = self._name_positions(frame, where)
        else:
            refuse_missing_columns(self.columns_read, list(frame.columns), where)
        reasons: dict[Any, str] = {}
        if self.layout == ANSWERS:
            votes = self._read_rows(frame, reasons, self._read_votes)
            raise_bad_rows(reasons, where)
            if odd := str(sum((odd for _, odd in votes), OddAnswers())):
                warn(odd, UnseenValuesWarning)
            cells = pd.Series([rows for rows, _ in votes], frame.index, dtype=object)
            return pd.DataFrame({VOTES: cells})
        scores = self._read_scores(frame, reasons, where)
        entries = coo_array(scores)
        values = entries.data
        is_bad = ~np.isfinite(values) | ((not self.logits) & ((values < 0) | (values > 1)))
        for at in np.flatnonzero(is_bad).tolist():
            (label,) = show_names(self.label_names_, entries.col[[at]])
            must = "lie in [0, 1]" if np.isfinite(values[at]) else "be a finite number"
            reason = f"the score of {label!r} must {must}, got {values[at]:g}"
            hint = "; logits are read with `kind`" if np.isfinite(values[at]) else ""
            reasons.setdefault(frame.index[entries.row[at]], reason + hint)
        raise_bad_rows(dict(sorted(reasons.items())), where)
        if self.is_sparse:
            return pd.DataFrame({LISTED_SCORES: list_rows(scores).set_axis(frame.index)})
        return pd.DataFrame(scores, frame.index, self._shown_names)

    def count_odd_answers(self, X: pd.DataFrame) -> OddAnswers:
        """Counts of answers that are left out.

        Parameters
        ----------
        X
            A DataFrame, not converted.
        """
        if self.layout != ANSWERS:
            return OddAnswers()
        return sum((self._read_votes(cell)[1] for cell in X[str(self.column)]), OddAnswers())

    def _read_votes(self, cell: object) -> tuple[Floats, OddAnswers]:
        rows, _, odd = read_votes_of_cell(cell, self._shown_names, self.unknown)
        return rows.astype(np.float64), odd

    def _read_scores(self, frame: pd.DataFrame, reasons: dict[Any, str], where: str) -> Any:
        """(n, L) scores, sparse or dense; rows without scores get a reason."""
        if self.layout in (COLUMNS, POSITIONS):
            return _read_columns(frame[self._shown_names], reasons)
        if self.layout == LISTED:
            matrix = stack_rows(frame[str(self.column)])
            if matrix is None or matrix.shape[1] != self.n_labels_:
                raise InputError(
                    f"The sparse matrix in {where} must have {self.n_labels_} columns, one for "
                    f"each label, got {'no matrix' if matrix is None else matrix.shape[1]}."
                )
            return matrix
        names = self._shown_names
        columns = {name: j for j, name in enumerate(names)}

        def read(*values: Any) -> Any:
            pairs = (
                pair_lists(*values)
                if self.layout == LISTS
                else _pairs_of(values[0], () if self.sparse else names)
            )
            return _place_scores(pairs, columns) if self.sparse else scores_by_name(pairs, names)

        rows = self._read_rows(frame, reasons, read)
        if not self.sparse:
            empty = np.full(self.n_labels_, 0.5)
            return np.array([empty if row is None else row for row in rows]).reshape(len(rows), -1)
        cells = [row or {} for row in rows]
        data = [score for cell in cells for score in cell.values()]
        indices = [place for cell in cells for place in cell]
        starts = np.cumsum([0, *map(len, cells)])
        return csr_array((data, indices, starts), (len(cells), self.n_labels_))

    def _read_rows(
        self, frame: pd.DataFrame, reasons: dict[Any, str], read: Callable[..., Any]
    ) -> list[Any]:
        """Value of each row; None and a reason where its cells cannot be read."""
        values: list[Any] = []
        for row, *cells in zip(
            frame.index, *(frame[column] for column in self.columns_read), strict=True
        ):
            try:
                values.append(read(*cells))
            except ValueError as error:
                values.append(None)
                reasons[row] = str(error)
        return values

    def _is_converted(self, frame: pd.DataFrame) -> bool:
        if self.is_sparse:
            return list(frame.columns) == [LISTED_SCORES]
        if self.layout == ANSWERS:
            return list(frame.columns) == [VOTES]
        return (
            self.layout in (CELLS, LISTS)
            and list(frame.columns) == self._shown_names
            and all(dtype == np.float64 for dtype in frame.dtypes)
        )

    def _name_positions(self, frame: pd.DataFrame, where: str) -> pd.DataFrame:
        n_labels = self.n_labels_
        is_array = [str(name) for name in frame.columns] == [str(j) for j in range(frame.shape[1])]
        if not is_array and self.label_names_ is not None:
            refuse_missing_columns(self._shown_names, list(frame.columns), where)
            return frame[self._shown_names]
        if frame.shape[1] != n_labels:
            raise InputError(
                f"The array in {where} must have {n_labels} columns, one for each label, got "
                f"{frame.shape[1]}."
            )
        return frame.set_axis(self._shown_names, axis=1)

    @property
    def _shown_names(self) -> list[str]:
        return show_names(self.label_names_, self.n_labels_)

    @property
    def columns_read(self) -> list[str]:
        """The columns that a table must have; for an array none has a name."""
        if self.layout == COLUMNS:
            return self._shown_names
        of_layout: dict[str, list[str]] = {POSITIONS: [], LISTS: [LABELS, SCORES]}
        return of_layout.get(self.layout, [str(self.column)])

    def describe_columns(self) -> list[dict[str, str]]:
        """Role and note of each column, for JSON."""
        roles = [] if self.id_column is None else [ColumnRole.of(self.id_column, ID)]
        if self.layout == COLUMNS:
            roles += [ColumnRole.of(name, PROBABILITY) for name in self._shown_names]
        elif self.layout == POSITIONS:
            roles += [
                ColumnRole(str(place), PROBABILITY, f"what the other system says of {name!r}")
                for place, name in enumerate(self._shown_names)
            ]
        else:
            roles += [
                ColumnRole(name, PROBABILITY, LAYOUTS[self.layout]) for name in self.columns_read
            ]
        return [asdict(role) for role in roles]


def _read_columns(columns: pd.DataFrame, reasons: dict[object, str]) -> Floats:
    scores = np.empty(columns.shape)
    for j, name in enumerate(columns.columns):
        scores[:, j], is_bad = read_numbers(columns[name])
        for at in np.flatnonzero(is_bad | np.isnan(scores[:, j])).tolist():
            value = columns[name].iloc[at]
            reason = f"the score of {name!r} must be a finite number, got {value!r}"
            reasons.setdefault(columns.index[at], reason)
            scores[at, j] = 0.5
    return scores


def _pairs_of(value: object, label_names: Sequence[str]) -> list[tuple[str, object]]:
    """(label, score) pairs of a cell. Raises ValueError.

    Scores without labels are in the order of `label_names`, if there are any. Otherwise a cell may
    list any labels, or none.
    """
    parsed = parse_cell(value)
    pairs = [] if not label_names and parsed in ([], {}) else find_pairs(parsed)
    if pairs is not None:
        return pairs
    if not label_names:
        raise ValueError(
            "it must list labels with their scores, pairs such as {'label': 'a', 'score': 0.9}, "
            f"got {show_value(value)}"
        )
    if not isinstance(parsed, list):
        raise ValueError(f"its scores must be a list, got {show_value(value)}")
    if len(parsed) != len(label_names):
        raise ValueError(f"it must have {len(label_names)} scores, got {len(parsed)}")
    return list(zip(label_names, parsed, strict=True))


def _place_scores(pairs: list[tuple[str, object]], columns: Mapping[str, int]) -> dict[int, float]:
    """Listed scores by label position. Raises ValueError."""
    score_of: dict[int, float] = {}
    for label, score in pairs:
        if label not in columns:
            raise ValueError(
                f"the label {label!r} is unknown to the model; name all labels with `labels` when "
                "the model is made"
            )
        if columns[label] in score_of:
            raise ValueError(f"the label {label!r} has two scores")
        score_of[columns[label]] = read_score(score, label)
    return dict(sorted(score_of.items()))


# What a model reads


class InputTable:
    """Reader of the columns that a model needs.

    Parameters
    ----------
    model
        A fitted `AccuracyAwareClassifier`. One of `train_model` or `calibrate_model` knows its
        columns; another one that was fitted to a DataFrame of numbers knows their names; one whose
        pipeline begins with a vectoriser takes the column "text", or the only one.
    id_column
        Column of row names; None for that of the training data, if the table has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> from labelsure.tables import TableColumns
    >>> from sklearn.pipeline import make_pipeline
    >>> frame = pd.DataFrame({"id": range(20), "wind": range(20)}, dtype=str)
    >>> Y = pd.DataFrame({"storm": [0] * 10 + [1] * 10, "calm": [1] * 8 + [0] * 12})
    >>> roles = [ColumnRole.of("id", "id"), ColumnRole.of("wind", "number")]
    >>> pipeline = make_pipeline(TableColumns(roles), BinaryRelevance())
    >>> model = AccuracyAwareClassifier(pipeline, cv=2, random_state=0).fit(frame, Y)
    >>> X, ids = InputTable(model).read(pd.DataFrame({"wind": ["3"], "id": ["a7"]}))
    >>> model.predict(X), list(ids)
    (array([[0, 1]]), ['a7'])
    """

    def __init__(self, model: AccuracyAwareClassifier, id_column: str | None = None) -> None:
        self._reader = _find_reader(model, id_column)
        self._id_is_wanted = id_column is not None
        self.id_column = self._reader.id_column if id_column is None else id_column

    @property
    def is_sparse(self) -> bool:
        """Whether rows list some of very many labels, so that labelsets are sparse."""
        return bool(getattr(self._reader, "is_sparse", False))

    @property
    def columns(self) -> list[str] | None:
        """The columns that have to be read of a file; None for all of them."""
        needed = self._reader.columns_read
        if not needed:
            return None
        return [*dict.fromkeys((*needed, *([] if self.id_column is None else [self.id_column])))]

    def read(self, frame: pd.DataFrame, where: str = "the table") -> tuple[Any, pd.Index | None]:
        """X of the rows, with their index, and the row names; None without an id column.

        Raises a `RowsError`, whose `reasons` are by row, where some rows cannot be used. The others
        can be read without them: ``read(frame.drop(index=list(error.reasons)))``.
        """
        import pandas as pd

        if self._id_is_wanted and self.id_column not in map(str, frame.columns):
            raise InputError(f"`id_column` must name a column of {where}, got {self.id_column!r}.")
        ids = None
        if self.id_column is not None and self.id_column in frame.columns:
            values, reasons = spell_ids(frame[self.id_column])
            bad = {frame.index[at]: f"{self.id_column!r}: {why}" for at, why in reasons.items()}
            raise_bad_rows(bad, where)
            ids = pd.Index(values)
        return self._reader.convert(frame, where), ids

    def find_unseen(self, X: FeaturesLike) -> dict[str, str]:
        """Warnings of columns whose categories are mostly unseen in training, by column."""
        return self._reader.find_unseen(X) if isinstance(self._reader, TableColumns) else {}

    def count_odd_answers(self, frame: pd.DataFrame) -> OddAnswers:
        """Counts of answers that are left out."""
        has_answers = isinstance(self._reader, PredictionColumns)
        return self._reader.count_odd_answers(frame) if has_answers else OddAnswers()


class _TextColumn:
    """Reader of texts, for a vectoriser as first step: the column "text", or the only one."""

    id_column = None
    columns_read = ()

    def __init__(self, id_column: str | None) -> None:
        self._id_column = id_column

    def convert(self, frame: pd.DataFrame, where: str) -> Any:
        """Texts with the index of the rows."""
        import pandas as pd

        names = [name for name in frame.columns if name != self._id_column]
        chosen = [name for name in names if name == TEXT] or names
        if len(chosen) != 1:
            raise InputError(
                f"{where} must have one column of texts, or one called {TEXT!r}, for a model that "
                f"was fitted to texts, got {', '.join(map(repr, names))}. Rename it, or say which "
                "column names the rows."
            )
        texts = frame[chosen[0]]
        read = read_texts(texts)
        reasons = {texts.index[at]: f"the text: {why}" for at, why in read.reasons.items()}
        reasons |= dict.fromkeys(texts.index[texts.isna()], "the text is missing")
        raise_bad_rows(dict(sorted(reasons.items())), where)
        pairs = zip(texts, read.values, strict=True)
        return pd.Series(
            [a if isinstance(a, str) else b for a, b in pairs], texts.index, dtype="str"
        )


class _NumberColumns:
    """Reader of numbers: columns by name, or an array by position."""

    id_column = None

    def __init__(self, model: AccuracyAwareClassifier) -> None:
        self.columns_read = [str(name) for name in getattr(model, "feature_names_in_", ())]
        self._n_features = getattr(model, "n_features_in_", None)
        self._allows_missing = get_tags(model.estimator_).input_tags.allow_nan
        self._columns = TableColumns()
        self._columns.roles_ = [ColumnRole.of(name, "number") for name in self.columns_read]

    def convert(self, frame: pd.DataFrame, where: str) -> Any:
        """Numbers, a DataFrame if the model knows names."""
        numbers = frame
        if self.columns_read:
            numbers = self._columns.convert(frame, where)
        elif [*frame.columns] != [*range(self._n_features or frame.shape[1])]:
            raise InputError(
                f"{where} must be an array of {self._n_features} columns without names, like the "
                f"training data, got columns {list_some(list(frame.columns))}. Save the table as "
                ".npy, or fit the model to a DataFrame."
            )
        is_bad = numbers.isna().any(axis=1)
        if is_bad.any() and not self._allows_missing:
            reason = "a number is missing, which the model does not allow"
            raise RowsError(dict.fromkeys(numbers.index[is_bad], reason), where)
        return numbers if self.columns_read else numbers.to_numpy()


def _find_reader(model: AccuracyAwareClassifier, id_column: str | None) -> Any:
    """Reader of the columns of a model: its first step, or one made from its feature names."""
    first = first_step(model.estimator_)
    if isinstance(first, (TableColumns, PredictionColumns)):
        return first
    if isinstance(first, PrecomputedProbabilities):
        return _read_precomputed(first)
    tags = get_tags(first).input_tags if isinstance(first, BaseEstimator) else None
    if tags is not None and tags.string and not tags.two_d_array:
        return _TextColumn(id_column)
    return _NumberColumns(model)


def _read_precomputed(model: PrecomputedProbabilities) -> PredictionColumns:
    if model.kind not in ("marginal", "logit"):
        raise InputError(
            "Predictions in files must be of kind 'marginal' or 'logit', unless `labelsure "
            f"calibrate` made the model, got kind {model.kind!r}. Make the model with `labelsure "
            "calibrate`."
        )
    layout = "positions" if model.column_names_ is None else "columns"
    names = model.label_names_ or model.n_labels_
    return PredictionColumns(names, layout, logits=model.kind == "logit").fit(None)

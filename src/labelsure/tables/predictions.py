"""`PredictionColumns`: another system's predictions in a table, as an array of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError, UnseenValuesWarning, unknown_name, warn
from labelsure.labelsets.answers import (
    LABELS,
    SCORES,
    OddAnswers,
    find_pairs,
    pair_lists,
    parse_cell,
    read_cell_of_votes,
    read_score,
    scores_by_name,
    show_value,
)
from labelsure.labelsets.rows import check_label_names, show_names
from labelsure.saving import Savable
from labelsure.tables.column_choice import read_numbers
from labelsure.tables.features import (
    ID,
    PROBABILITY,
    ColumnRole,
    check_frame,
    raise_bad_rows,
    refuse_missing_columns,
)
from labelsure.tables.files import list_rows, stack_rows

if TYPE_CHECKING:
    import pandas as pd

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
"""What stands in a row."""

SPARSE_LAYOUTS = (CELLS, LISTS, LISTED)
"""Those in which rows may list some labels only."""

ANSWER_NAMES = ("answers", "votes", "samples")
SCORE_NAMES = ("scores", "predictions", "probabilities", "logits", "value")
"""Columns that hold all scores of a row are looked for under these names; the last is what
`files` calls rows without columns."""


@dataclass(frozen=True)
class Layout:
    """Where the predictions of a row are.

    Parameters
    ----------
    name
        One of `LAYOUTS`.
    column
        The column that holds them, where it is one.
    label_names
        The labels that the table names; None where it counts them.
    n_labels
        How many a sparse matrix has; None for others.
    """

    name: str
    column: str | None = None
    label_names: tuple[str, ...] | None = None
    n_labels: int | None = None


def find_layout(frame: pd.DataFrame, id_column: str | None = None) -> Layout:
    """Return how predictions stand in a table, by the names of its columns and the first row.

    Examples
    --------
    >>> import pandas as pd
    >>> find_layout(pd.DataFrame({"id": [7], "cat": [0.9], "dog": [0.2]}), "id").label_names
    ('cat', 'dog')
    """
    others = [name for name in frame.columns if str(name) != id_column]
    if not others or not len(frame):
        raise InputError(
            "Predictions must have a row for each instance and a column beside the id, got "
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
    """Refuse a layout in which a row cannot list some labels only."""
    if layout not in SPARSE_LAYOUTS:
        raise InputError(
            "Rows that list some labels must have pairs of label and score, or be those of a "
            f"sparse matrix, got {LAYOUTS[layout]}. Leave out `sparse`, or write "
            "labels with their scores."
        )


def _are_answers(value: Any) -> bool:
    """Whether a cell is a list of lists, of labels or of zeros and ones; some may be null."""
    given = [answer for answer in value if answer is not None] if isinstance(value, list) else []
    return (
        all(isinstance(answer, list) for answer in given)
        and not any(isinstance(label, dict) for answer in given for label in answer)
        and bool(given)
    )


def _names_in_cell(value: Any) -> tuple[str, ...] | None:
    try:
        pairs = find_pairs(parse_cell(value))
    except ValueError:
        return None
    return None if pairs is None else tuple(label for label, _ in pairs)


def read_cell(value: Any, label_names: Sequence[str]) -> Floats:
    """Return the scores in one cell, (L,)."""
    parsed = parse_cell(value)
    pairs = find_pairs(parsed)
    if pairs is not None:
        return scores_by_name(pairs, label_names)
    if not isinstance(parsed, list):
        raise ValueError(f"its scores must be a list, got {show_value(value)}")
    if len(parsed) != len(label_names):
        raise ValueError(f"it must have {len(label_names)} scores, got {len(parsed)}")
    return np.array(
        [read_score(score, label) for score, label in zip(parsed, label_names, strict=True)]
    )


def _read_listed_pairs(value: Any, places: Mapping[str, int]) -> dict[int, float]:
    """Return the scores that a cell lists with their labels, by the places of these."""
    parsed = parse_cell(value)
    pairs = [] if parsed in ([], {}) else find_pairs(parsed)
    if pairs is None:
        raise ValueError(
            "it must list labels with their scores, pairs such as {'label': 'a', 'score': 0.9}, "
            f"got {show_value(value)}"
        )
    return _read_pairs(pairs, places)


def _read_pairs(pairs: list[tuple[str, Any]], places: Mapping[str, int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for label, score in pairs:
        if label not in places:
            raise ValueError(
                f"the label {label!r} is none of the model's {len(places)}; name all labels when "
                "the model is made, with `labels`"
            )
        if places[label] in found:
            raise ValueError(f"the label {label!r} has two scores")
        found[places[label]] = read_score(score, label)
    return dict(sorted(found.items()))


def all_listed_labels(columns: Sequence[Iterable[Any]]) -> list[str]:
    """Return all labels that cells list, sorted; cells that cannot be read are left for later."""
    found: set[str] = set()
    for cells in zip(*columns, strict=True):
        try:
            pairs = find_pairs(parse_cell(cells[0])) if len(cells) == 1 else pair_lists(*cells)
        except ValueError:
            continue
        found.update(label for label, _ in pairs or [])
    if not found:
        raise InputError(
            "Predictions must list at least one label, they list none. Name all labels with "
            "`labels`."
        )
    return sorted(found)


HELD_IN_COLUMN = (CELLS, ANSWERS, LISTED)
"""Layouts that need the name of a column."""

VOTES = "answers as zeros and ones"
"""What `convert` calls the column of arrays that it makes of answers."""

LISTED_SCORES = "scores of the labels that are listed"
"""What `convert` calls the column of cells that it makes of sparse rows."""


class PredictionColumns(TransformerMixin, BaseEstimator, Savable):  # type: ignore[misc]
    """Predictions of another system in a table, as probabilities, logits or votes of the labels.

    It is the first step of a pipeline that ends in `PrecomputedProbabilities`, and saved with it.

    Parameters
    ----------
    label_names
        The labels, in the order in which the model has them; how many, where they have no names.
    layout
        How predictions stand in the table:

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
        and what is returned is a sparse array of scores, as for "listed".
    unknown
        What to do with names in answers that are no label: "refuse" the row, or "drop" them with a
        warning that counts them.

    Attributes
    ----------
    label_names_, n_labels_
        The names, None where there are none; how many labels there are.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X, y
            Are not looked at.
        """
        if self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)
        if self.layout in HELD_IN_COLUMN and self.column is None:
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

    def transform(self, X: Any) -> Any:
        """Return scores with a column for each label, a DataFrame where these have names, or votes.

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

    def convert(self, X: Any, where: str = "the table") -> pd.DataFrame:
        """Return scores with a column for each label, or a column with what each row has.

        What it returns can be transformed in place of X. Raises a `RowsError` that knows all rows
        that cannot be read.

        Parameters
        ----------
        X
            A DataFrame.
        where
            What it is, for messages.
        """
        import pandas as pd

        check_is_fitted(self, "n_labels_")
        frame = check_frame(X, where)
        if self._is_converted(frame):
            return frame
        reasons: dict[Any, str] = {}
        if self.is_sparse:
            return self._read_listed(frame, reasons, where)
        if self.layout == POSITIONS:
            frame = self._name_positions(frame, where)
        else:
            refuse_missing_columns(self.columns_read, list(frame.columns), where)
        if self.layout == ANSWERS:
            values = _read_rows(
                frame, reasons, self._read_votes, [str(self.column)], self._shown_names
            )
            raise_bad_rows(reasons, where)
            if odd := str(self.count_odd_answers(frame)):
                warn(odd, UnseenValuesWarning)
            return pd.DataFrame({VOTES: pd.Series(values, frame.index, dtype=object)})
        scores = self._read_scores(frame, reasons)
        if not self.logits:
            _check_range(scores, frame.index, self._shown_names, reasons)
        raise_bad_rows(dict(sorted(reasons.items())), where)
        return pd.DataFrame(scores, frame.index, self._shown_names)

    def count_odd_answers(self, X: pd.DataFrame) -> OddAnswers:
        """Return what is left out of the answers in a table.

        Parameters
        ----------
        X
            A DataFrame, not converted.
        """
        if self.layout != ANSWERS:
            return OddAnswers()
        cells = X[str(self.column)]
        read = (read_cell_of_votes(cell, self._shown_names)[2] for cell in cells)
        return sum(read, OddAnswers())

    def _read_votes(self, value: Any, label_names: Sequence[str]) -> Floats:
        rows, _, _ = read_cell_of_votes(value, label_names, self.unknown)
        return rows.astype(np.float64)

    def _read_listed(
        self, frame: pd.DataFrame, reasons: dict[Any, str], where: str
    ) -> pd.DataFrame:
        """Return a column of cells that list labels by place."""
        import pandas as pd

        refuse_missing_columns(self.columns_read, list(frame.columns), where)
        if self.layout == LISTED:
            matrix = stack_rows(frame[str(self.column)])
            if matrix is None or matrix.shape[1] != self.n_labels_:
                raise InputError(
                    f"The sparse matrix in {where} must have {self.n_labels_} columns, one for "
                    f"each label, got {'no matrix' if matrix is None else matrix.shape[1]}."
                )
        else:
            read = _read_listed_pairs if self.layout == CELLS else _read_pairs
            places = {name: j for j, name in enumerate(self.label_names_ or ())}
            cells = _read_rows(frame, reasons, read, self.columns_read, places)
            raise_bad_rows(reasons, where)
            data = [score for cell in cells for score in cell.values()]
            listed = [place for cell in cells for place in cell]
            starts = np.cumsum([0, *map(len, cells)])
            matrix = csr_array((data, listed, starts), (len(cells), self.n_labels_))
        scores = matrix.data
        is_bad = ~np.isfinite(scores) | ((not self.logits) & ((scores < 0) | (scores > 1)))
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        for at in np.flatnonzero(is_bad).tolist():
            (label,) = show_names(self.label_names_, matrix.indices[[at]])
            reason = _reason_against(label, float(scores[at]))
            reasons.setdefault(frame.index[rows[at]], reason)
        raise_bad_rows(reasons, where)
        return pd.DataFrame({LISTED_SCORES: list_rows(matrix).set_axis(frame.index)})

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

    def _read_scores(self, frame: pd.DataFrame, reasons: dict[Any, str]) -> Floats:
        """Return (n, L) scores, and note the rows that have none."""
        if self.layout in (COLUMNS, POSITIONS):
            return _read_columns(frame[self._shown_names], reasons)
        read = scores_by_name if self.layout == LISTS else read_cell
        rows = _read_rows(frame, reasons, read, self.columns_read, self._shown_names)
        empty = np.full(self.n_labels_, 0.5)
        return np.array([empty if row is None else row for row in rows]).reshape(len(frame), -1)

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
        """Return what each column is, as plain values."""
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
        return [role.to_dict() for role in roles]


def _read_columns(columns: pd.DataFrame, reasons: dict[Any, str]) -> Floats:
    scores = np.empty(columns.shape)
    for j, name in enumerate(columns.columns):
        scores[:, j], is_bad = read_numbers(columns[name])
        for at in np.flatnonzero(is_bad | np.isnan(scores[:, j])).tolist():
            value = columns[name].iloc[at]
            reason = f"the score of {name!r} must be a finite number, got {value!r}"
            reasons.setdefault(columns.index[at], reason)
            scores[at, j] = 0.5
    return scores


def _read_rows(
    frame: pd.DataFrame, reasons: dict[Any, str], read: Any, columns: list[str], names: Any
) -> list[Any]:
    """Return what a reader makes of each row's cell or pairs, None where it cannot read it."""
    values: list[Any] = []
    cells = zip(frame.index, *(frame[column] for column in columns), strict=True)
    for row, *parts in cells:
        try:
            values.append(read(parts[0] if len(parts) == 1 else pair_lists(*parts), names))
        except ValueError as error:
            values.append(None)
            reasons[row] = str(error)
    return values


def _check_range(scores: Floats, index: Any, names: list[str], reasons: dict[Any, str]) -> None:
    for at, j in np.argwhere((scores < 0) | (scores > 1)).tolist():
        reasons.setdefault(index[at], _reason_against(names[j], scores[at, j]))


def _reason_against(label: str, score: float) -> str:
    if not np.isfinite(score):
        return f"the score of {label!r} must be a finite number, got {score:g}"
    return f"the score of {label!r} must lie in [0, 1], got {score:g}; logits are read with `kind`"

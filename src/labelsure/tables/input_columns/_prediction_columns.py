"""`PredictionColumns`: from a table of another system's predictions to an array of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Floats
from labelsure._runtime.warnings import warn
from labelsure.errors import InputError, UnseenValuesWarning, unknown_name
from labelsure.labelsets.rows import check_label_names, show_names
from labelsure.saving._savable import Savable
from labelsure.tables.input_columns._column_values import (
    check_frame,
    raise_bad_rows,
    read_numbers,
    refuse_missing_columns,
)
from labelsure.tables.input_columns._inferred_roles import ID, PROBABILITY, ColumnRole
from labelsure.tables.input_columns._listed_predictions import (
    LabelPlaces,
    read_listed_lists,
    read_listed_pairs,
    read_listed_row,
)
from labelsure.tables.input_columns._prediction_layouts import (
    ANSWERS,
    CELLS,
    COLUMNS,
    LABELS,
    LAYOUTS,
    LISTED,
    LISTS,
    POSITIONS,
    SCORES,
    OddAnswers,
    check_lists_labels,
    read_answers,
    read_cell,
    read_lists,
)
from labelsure.tables.listed_cells import ListedCell, stack_cells

if TYPE_CHECKING:
    import pandas as pd

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
    ) -> None:
        self.label_names = label_names
        self.layout = layout
        self.column = column
        self.id_column = id_column
        self.logits = logits
        self.sparse = sparse

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
            return stack_cells(list(converted[LISTED_SCORES]), self.n_labels_)
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
            values = _read_rows(frame, reasons, read_answers, [str(self.column)], self._shown_names)
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
        return OddAnswers.count(X[str(self.column)], self._shown_names)

    def _read_listed(
        self, frame: pd.DataFrame, reasons: dict[Any, str], where: str
    ) -> pd.DataFrame:
        """Return a column of cells that list labels by place."""
        import pandas as pd

        refuse_missing_columns(self.columns_read, list(frame.columns), where)
        if self.layout == LISTED:
            self._check_width(frame[str(self.column)], where)
        places = LabelPlaces(self.label_names_, self.n_labels_, logits=self.logits)
        read = {CELLS: read_listed_pairs, LISTS: read_listed_lists, LISTED: read_listed_row}
        cells = _read_rows(frame, reasons, read[self.layout], self.columns_read, places)
        raise_bad_rows(reasons, where)
        return pd.DataFrame({LISTED_SCORES: pd.Series(cells, frame.index, dtype=object)})

    def _check_width(self, cells: Any, where: str) -> None:
        """Refuse a sparse matrix of other labels: all its rows have the same number."""
        n_labels = self.n_labels_
        widths = {cell.n_columns for cell in cells if isinstance(cell, ListedCell)}
        if widths - {n_labels}:
            raise InputError(
                f"The sparse matrix in {where} must have {n_labels} columns, one for each label, "
                f"got {max(widths - {n_labels})}."
            )

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
        read, columns = read_cell, [str(self.column)]
        if self.layout == LISTS:
            read, columns = read_lists, [LABELS, SCORES]  # type: ignore[assignment]
        rows = _read_rows(frame, reasons, read, columns, self._shown_names)
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
    """Return what a reader of cells makes of each row, None where it cannot read it."""
    values: list[Any] = []
    cells = zip(frame.index, *(frame[column] for column in columns), strict=True)
    for row, *parts in cells:
        try:
            values.append(read(*parts, names))
        except ValueError as error:
            values.append(None)
            reasons[row] = str(error)
    return values


def _check_range(scores: Floats, index: Any, names: list[str], reasons: dict[Any, str]) -> None:
    for at, j in np.argwhere((scores < 0) | (scores > 1)).tolist():
        reasons.setdefault(
            index[at],
            f"the score of {names[j]!r} must lie in [0, 1], got {scores[at, j]:g}; logits are "
            "read with `logits`",
        )

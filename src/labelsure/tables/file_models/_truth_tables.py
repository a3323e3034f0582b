"""Tables of true labels: how they are read, and joined with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import LabelNames, Labelsets
from labelsure._runtime.warnings import warn
from labelsure.errors import DataError, InputError, UnseenValuesWarning, unknown_name
from labelsure.labelsets.index import list_some
from labelsure.labelsets.names import match_labels, read_labelsets
from labelsure.labelsets.rows import check_label_names, is_sparse
from labelsure.labelsets.sparse import make_sparse
from labelsure.tables.datasets._column_roles import read_index, read_labels
from labelsure.tables.file_models._sparse_truth import (
    holds_sparse_rows,
    read_label_lists,
    read_sparse_rows,
    split_cell,
)
from labelsure.tables.input_columns._prediction_layouts import (
    ANSWERS,
    Layout,
    all_labels_in_answers,
)

if TYPE_CHECKING:
    import pandas as pd

N_LISTED = 5


@dataclass(frozen=True)
class TrueLabels:
    """The truth of some rows.

    Parameters
    ----------
    labelsets
        (n, L) zeros and ones, or sparse rows of ones.
    label_names
        One for each label, or None.
    ids
        The name of each row; None where rows are only counted.
    where
        What the table is, for messages.
    """

    labelsets: Labelsets
    label_names: LabelNames
    ids: pd.Index | None
    where: str


def read_truth(
    frame: pd.DataFrame,
    where: str,
    *,
    labels: Sequence[str] | None,
    n_labels: int | None = None,
    predicted: Layout | None = None,
    cells: Any = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    sparse: bool = False,
) -> TrueLabels:
    """Return the truth in a table, with the labels in one order for truth and predictions.

    Parameters
    ----------
    frame
        The table.
    where
        What it is, for messages.
    labels
        The labels, if somebody says them.
    n_labels
        How many there are, where that is known and they have no names.
    predicted
        How the predictions stand in their table, and which labels that names; None for those of
        a model.
    cells
        The column of answers, from which labels follow where nothing else names them.
    label_column, sep, id_column
        As of `calibrate_model`.
    sparse
        Whether labelsets are to be sparse; then all labels are given, or their number.
    """
    columns = [name for name in frame.columns if str(name) != id_column]
    if id_column is not None and id_column not in frame.columns:
        raise unknown_name(f"column of {where}", id_column, [str(name) for name in frame.columns])
    ids = None if id_column is None else read_index(frame[id_column], where, "the id")
    if not len(frame) or not columns:
        raise DataError(f"The table {where} must have labels beside the id, it has none.")
    if sparse:
        size = int(n_labels or 0) if labels is None else len(labels)
        sparse_names = check_label_names(labels, size)
        rows = _read_sparse(frame[columns], where, sparse_names, size, label_column, sep)
        return TrueLabels(rows, sparse_names, ids, where)
    own = None if predicted is None else predicted.label_names
    if predicted is not None and predicted.name == ANSWERS and labels is None:
        own = all_labels_in_answers(cells)
    holder = _column_of_names(frame[columns], label_column, sep, where)
    if holder is not None:
        names = labels if labels is not None else own
        if names is None:
            raise InputError(
                f"The truth in {where} lists names, and the predictions have none. Name the labels "
                "in the order of the predictions' columns with `labels`."
            )
        read = read_labelsets(_name_lists(frame[holder], where), names, name="truth", sep=sep)
        if labels is None and predicted is not None and predicted.name == ANSWERS:
            _warn_of_words(read, where)
        return TrueLabels(read.rows, read.label_names, ids, where)
    counted = all(isinstance(name, (int, np.integer)) for name in columns)
    if counted:
        named = labels if labels is not None else own
        names = check_label_names(named, len(columns))
        return TrueLabels(_read_bits(frame[columns], where), names, ids, where)
    chosen = labels if labels is not None else [str(name) for name in columns]
    missing = next((name for name in chosen if name not in frame.columns), None)
    if missing is not None:
        raise unknown_name(f"column of {where}", missing, [str(name) for name in columns])
    if own is not None and labels is None:
        beside = "the predictions (say which with `labels`)"
        chosen = [chosen[j] for j in match_labels(tuple(chosen), own, where.strip("'"), beside)]
    return TrueLabels(_read_bits(frame[list(chosen)], where), tuple(chosen), ids, where)


def _read_sparse(
    frame: pd.DataFrame,
    where: str,
    names: LabelNames,
    n_labels: int,
    label_column: str | None,
    sep: str | None,
) -> Labelsets:
    """Return the truth as sparse rows, whatever it stands in the table as."""
    if holds_sparse_rows(frame.iloc[:, 0]) and frame.shape[1] == 1:
        return read_sparse_rows(frame.iloc[:, 0], names, n_labels, where)
    holder = _column_of_names(frame, label_column, sep, where)
    if holder is not None:
        lists = _name_lists(frame[holder], where)
        return read_label_lists(lists, names, n_labels, where, sep=sep)
    if names is None:
        return make_sparse(_read_bits(frame, where))
    chosen = match_labels(
        tuple(str(name) for name in frame.columns), names, where.strip("'"), "the predictions"
    )
    return make_sparse(_read_bits(frame.iloc[:, chosen], where))


def names_in_truth(
    frame: pd.DataFrame,
    where: str,
    *,
    label_column: str | None,
    sep: str | None,
    id_column: str | None,
) -> set[str]:
    """Return the labels that a table of true labels names.

    Parameters
    ----------
    frame, where
        The table, and what it is, for messages.
    label_column, sep, id_column
        As of `calibrate_model`.
    """
    columns = [name for name in frame.columns if str(name) != id_column]
    if len(columns) == 1 and holds_sparse_rows(frame[columns[0]]):
        raise InputError(
            f"The truth in {where} counts its labels, the predictions name theirs: which is which "
            "must be said. Name all labels in the order of its columns with `labels`."
        )
    holder = _column_of_names(frame[columns], label_column, sep, where)
    if holder is None:
        return {str(name) for name in columns}
    cells = _name_lists(frame[holder], where)
    return {str(label) for cell in cells for label in split_cell(cell, sep)}


def _read_bits(columns: pd.DataFrame, where: str) -> Labelsets:
    import pandas as pd

    return read_labels(columns.replace("", pd.NA), None, where)[0]


def _column_of_names(
    frame: pd.DataFrame, label_column: str | None, sep: str | None, where: str
) -> str | None:
    """Return the column that holds names of labels; None where each label has a column."""
    if label_column is not None:
        if label_column not in frame.columns:
            raise unknown_name(f"column of {where}", label_column, [str(c) for c in frame.columns])
        return label_column
    if frame.shape[1] != 1:
        if sep is None:
            return None
        raise InputError(
            f"`sep` needs one column of {where} that holds names of labels, it has "
            f"{frame.shape[1]}. Name it with `label_column`."
        )
    only = frame.columns[0]
    holds = sep is not None or any(isinstance(value, (list, np.ndarray)) for value in frame[only])
    return only if holds else None


def _name_lists(column: pd.Series[Any], where: str) -> list[Any]:
    """Return the cells as lists or texts; refuse those that are missing."""
    cells = [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
    for row, value in enumerate(cells):
        if not isinstance(value, (str, list, tuple)):
            raise DataError(
                f"Column {str(column.name)!r} of {where} must name the labels of every row, got "
                f"{value!r} in row {row} (rows count from 0). Write an empty list where there are "
                "none."
            )
    return cells


def _warn_of_words(read: Any, where: str) -> None:
    """Say which labels only answers name, where nobody has said which labels there are."""
    never = np.asarray(read.rows.sum(axis=0)).ravel() == 0
    words = [name for name, is_one in zip(read.label_names, never, strict=True) if is_one]
    if words:
        warn(
            f"{len(words)} of {len(never)} labels are words that only answers contain, and never "
            f"the truth in {where}: {list_some(words)}. If they are no labels, say by `labels` "
            "which there are.",
            UnseenValuesWarning,
        )


def join_truth(
    predictions: pd.DataFrame, truth: TrueLabels, id_column: str | None, where: str
) -> tuple[pd.DataFrame, Any]:
    """Return the predictions that have a truth, and this with the same rows.

    The truth is a DataFrame, or sparse rows.

    Parameters
    ----------
    predictions
        A row for each instance.
    truth
        What is known.
    id_column
        The column by which both are joined; None to go by position.
    where
        What the predictions are, for messages.
    """
    import pandas as pd

    Y: Any = truth.labelsets
    if not is_sparse(Y):
        Y = pd.DataFrame(Y.astype(np.int64), columns=truth.label_names)
    if id_column is None or truth.ids is None:
        if len(predictions) != Y.shape[0]:
            raise InputError(
                f"Predictions and truth must have the same rows where no column names them, got "
                f"{len(predictions)} in {where} and {Y.shape[0]} in {truth.where}. Name a column "
                "of ids with `id_column`."
            )
        return predictions.reset_index(drop=True), Y
    if id_column not in predictions.columns:
        known = [str(name) for name in predictions.columns]
        raise unknown_name(f"column of {where}", id_column, known)
    ids = read_index(predictions[id_column], where, "the id")
    wanted = truth.ids
    if ids.dtype != wanted.dtype:  # whole numbers on one side only
        ids, wanted = ids.astype(str), wanted.astype(str)
    places = ids.get_indexer(wanted)
    if (places < 0).any():
        missing = [str(entry) for entry in wanted[places < 0]]
        listed = ", ".join(map(repr, missing[:N_LISTED]))
        more = len(missing) - N_LISTED
        raise InputError(
            f"Each row of {truth.where} must have a prediction in {where}, missing are the ids "
            f"{listed}{f' and {more} more' if more > 0 else ''}. Predict them, or drop these rows."
        )
    return predictions.iloc[places].reset_index(drop=True), Y

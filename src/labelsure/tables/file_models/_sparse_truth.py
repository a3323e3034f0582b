"""True labels of very many, from tables: rows of a sparse matrix, names, or numbers of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import LabelNames, Labelsets
from labelsure.errors import InputError, RowsError
from labelsure.labelsets.rows import show_names
from labelsure.labelsets.sparse import sparse_ones
from labelsure.tables.input_columns._listed_predictions import LabelPlaces
from labelsure.tables.listed_cells import ListedCell

if TYPE_CHECKING:
    import pandas as pd


def holds_sparse_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of a table holds rows of a sparse matrix.

    Parameters
    ----------
    column
        Of the truth.
    """
    return len(column) > 0 and isinstance(column.iloc[0], ListedCell)


def read_sparse_rows(
    column: pd.Series[Any], label_names: LabelNames, n_labels: int, where: str
) -> Labelsets:
    """Return rows of a sparse matrix of ones as sparse labelsets.

    Parameters
    ----------
    column
        Of a table, see `holds_sparse_rows`.
    label_names, n_labels
        The labels, in the order of the columns of the matrix, or None; how many there are.
    where
        What the table is, for messages.
    """
    cells: list[ListedCell] = list(column)
    if cells[0].n_columns != n_labels:
        raise InputError(
            f"The sparse matrix in {where} must have {n_labels} columns, one for each "
            f"label, got {cells[0].n_columns}."
        )
    reasons = {}
    for row, cell in zip(column.index, cells, strict=True):
        is_bad = (cell.values != 1) & (cell.values != 0)
        if is_bad.any():
            at = int(np.flatnonzero(is_bad)[0])
            (label,) = show_names(label_names, cell.columns[[at]])
            reasons[row] = f"the label {label!r} must be 0 or 1, got {cell.values[at]:g}"
    _refuse_rows(reasons, where)
    return _stack([cell.columns[cell.values == 1] for cell in cells], n_labels)


def read_label_lists(
    cells: Sequence[Any], label_names: LabelNames, n_labels: int, where: str, *, sep: str | None
) -> Labelsets:
    """Return names or numbers of labels as sparse labelsets.

    Parameters
    ----------
    cells
        A list for each row, or text with `sep` between the entries.
    label_names, n_labels
        The labels and how many there are. Where they have no names, whole numbers count them from
        0, also in the form in which they are shown, as y0.
    where
        What the table is, for messages.
    sep
        What stands between entries of a text.
    """
    places = LabelPlaces(label_names, n_labels, logits=False)
    rows, reasons = [], {}
    for row, cell in enumerate(cells):
        try:
            rows.append(np.unique([_find_place(entry, places) for entry in split_cell(cell, sep)]))
        except ValueError as error:
            reasons[row] = str(error)
    _refuse_rows(reasons, where)
    return _stack(rows, n_labels)


def split_cell(cell: Any, sep: str | None) -> list[Any]:
    """Return the entries of a cell, or raise a ValueError where it is no list.

    Parameters
    ----------
    cell
        A list, or text.
    sep
        What stands between entries of a text.
    """
    if not isinstance(cell, str):
        return list(cell)
    if sep is None:
        raise ValueError(
            f"it must be a list of labels, got the text {cell!r}; say what stands between labels "
            "with `sep`"
        )
    return [part.strip() for part in cell.split(sep) if part.strip()]


def _find_place(entry: Any, places: LabelPlaces) -> int:
    """Return the place of a label by its name, or by its number where labels have no names."""
    text = str(entry)
    text = text.removeprefix("y") if places.names is None else text
    if places.names is None and text.isascii() and text.isdigit():
        if int(text) >= len(places):
            raise ValueError(
                f"the label {text} must be a number from 0 to {len(places) - 1}, the last label"
            )
        return int(text)
    return places.find(text)


def _stack(rows: list[Any], n_labels: int) -> Labelsets:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    joined = np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int32)
    return sparse_ones(joined, starts.astype(np.int32), n_labels)


def _refuse_rows(reasons: dict[Any, str], where: str) -> None:
    if reasons:
        raise RowsError(reasons, where)

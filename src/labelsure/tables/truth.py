"""Tables of true labels: how they are read, and joined with predictions or rows of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath, Floats, Indices, LabelNames, Labelsets
from labelsure._runtime.warnings import warn
from labelsure.errors import DataError, InputError, UnseenValuesWarning, unknown_name
from labelsure.labelsets.names import list_some, match_labels, read_labelsets
from labelsure.labelsets.rows import (
    check_label_names,
    is_sparse,
    make_sparse,
    show_names,
    sparse_ones,
)
from labelsure.metrics.registry import counts, get_metric
from labelsure.tables.column_choice import holds_lists, read_index, read_json_lists, read_labels
from labelsure.tables.features import raise_bad_rows
from labelsure.tables.files import ListedCell, read_table, says_missing
from labelsure.tables.predictions import (
    ANSWERS,
    LabelPlaces,
    Layout,
    all_labels_in_answers,
)

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


def holds_sparse_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of a table holds rows of a sparse matrix."""
    return len(column) > 0 and isinstance(column.iloc[0], ListedCell)


def read_sparse_rows(
    column: pd.Series[Any], label_names: LabelNames, n_labels: int, where: str
) -> Labelsets:
    """Return rows of a sparse matrix of ones as sparse labelsets."""
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
    raise_bad_rows(reasons, where)
    return _stack([cell.columns[cell.values == 1] for cell in cells], n_labels)


def read_label_lists(
    cells: Sequence[Any], label_names: LabelNames, n_labels: int, where: str, *, sep: str | None
) -> Labelsets:
    """Return names or numbers of labels as sparse labelsets."""
    places = LabelPlaces(label_names, n_labels, logits=False)
    rows, reasons = [], {}
    for row, cell in enumerate(cells):
        try:
            rows.append(np.unique([_find_place(entry, places) for entry in split_cell(cell, sep)]))
        except ValueError as error:
            reasons[row] = str(error)
    raise_bad_rows(reasons, where)
    return _stack(rows, n_labels)


def split_cell(cell: Any, sep: str | None) -> list[Any]:
    """Return the entries of a cell, or raise a ValueError where it is no list."""
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
    """Return the truth in a table, with the labels in one order for truth and predictions."""
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
        return TrueLabels(read.labelsets, read.label_names, ids, where)
    counted = all(isinstance(name, (int, np.integer)) for name in columns)
    if counted:
        named = labels if labels is not None else own
        names = check_label_names(named, len(columns))
        return TrueLabels(read_labels(frame[columns], None, where)[0], names, ids, where)
    chosen = labels if labels is not None else [str(name) for name in columns]
    missing = next((name for name in chosen if name not in frame.columns), None)
    if missing is not None:
        raise unknown_name(f"column of {where}", missing, [str(name) for name in columns])
    if own is not None and labels is None:
        beside = "the predictions (say which with `labels`)"
        chosen = [chosen[j] for j in match_labels(tuple(chosen), own, where.strip("'"), beside)]
    return TrueLabels(read_labels(frame[list(chosen)], None, where)[0], tuple(chosen), ids, where)


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
        return make_sparse(read_labels(frame, None, where)[0])
    chosen = match_labels(
        tuple(str(name) for name in frame.columns), names, where.strip("'"), "the predictions"
    )
    return make_sparse(read_labels(frame.iloc[:, chosen], None, where)[0])


def names_in_truth(
    frame: pd.DataFrame,
    where: str,
    *,
    label_column: str | None,
    sep: str | None,
    id_column: str | None,
) -> set[str]:
    """Return the labels that a table of true labels names."""
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
    is_named = sep is not None or holds_lists(frame[only])
    return only if is_named else None


def _name_lists(column: pd.Series[Any], where: str) -> list[Any]:
    """Return the cells as lists or texts; refuse those that are missing."""
    cells = [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
    cells = read_json_lists(cells, f"Column {str(column.name)!r} of {where}")
    for row, value in enumerate(cells):
        if not isinstance(value, (str, list, tuple)) or says_missing(value):
            raise DataError(
                f"Column {str(column.name)!r} of {where} must name the labels of every row, got "
                f"{value!r} in row {row} (rows count from 0). Write an empty list where there are "
                "none."
            )
    return cells


def _warn_of_words(read: Any, where: str) -> None:
    """Say which labels only answers name, where nobody has said which labels there are."""
    never = np.asarray(read.labelsets.sum(axis=0)).ravel() == 0
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


ROW, FILE = "row", "file"


@dataclass(frozen=True)
class LabelledRows:
    """The truth of some rows of the input.

    Parameters
    ----------
    labelsets
        (n, L) in the order of the model's labels.
    entries
        (n,) the place of each in the table of the truth.
    names
        (n,) which row of the input each is: its id, or its position in its file.
    id_column
        The column that names rows; None where they go by position.
    files
        (n,) the name of each row's file; None where there is only one, or ids name the rows.
    where
        What the table of the truth is, for messages.
    """

    labelsets: Labelsets
    entries: Indices
    names: pd.Index
    id_column: str | None
    files: tuple[str, ...] | None
    where: str

    @classmethod
    def read(
        cls,
        path: AnyPath,
        model: AccuracyAwareClassifier,
        *,
        id_column: str | None,
        label_column: str | None,
        sep: str | None,
        csv_sep: str | None = None,
    ) -> LabelledRows:
        """Read the truth of some rows."""
        from labelsure.tables.inputs import InputTable

        frame, where = read_table(expand_path(path), csv_sep=csv_sep), repr(Path(path).name)
        inputs = InputTable(model, id_column)
        own = inputs.id_column
        named_by = own if id_column is not None or own in frame.columns else None
        if named_by is None and ROW not in frame.columns:
            raise InputError(
                f"The truth in {where} must say which rows it is about: by a column of ids that "
                "the input has as well (name it with `id_column`), or by a column "
                f"{ROW!r} with positions in the file from 0, as `labelsure score` writes it."
            )
        by_row = named_by is None
        places = [ROW, FILE] if by_row and inputs.is_sparse else []
        found = read_truth(
            frame.drop(columns=places, errors="ignore"),
            where,
            labels=model.label_names_,
            n_labels=model.n_labels_,
            label_column=label_column,
            sep=sep,
            id_column=named_by,
            sparse=inputs.is_sparse,
        )
        names = _read_positions(frame[ROW], where) if by_row else found.ids
        assert names is not None  # ids are read where their column is named
        files = tuple(map(str, frame[FILE])) if by_row and FILE in frame.columns else None
        entries = np.arange(found.labelsets.shape[0])
        return cls(found.labelsets, entries, names, named_by, files, where)

    def in_files(self, sources: list[str]) -> LabelledRows:
        """Return the same with the files of the input in place of their names in the truth."""
        known = list(dict.fromkeys(sources))
        if self.id_column is not None:
            return self
        if self.files is None:
            if len(known) > 1:
                raise InputError(
                    f"The truth in {self.where} must have a column {FILE!r} beside {ROW!r}: the "
                    "input has several files."
                )
            return self
        found = {name: _find_file(name, known) for name in dict.fromkeys(self.files)}
        for name, files in found.items():
            is_shared = list(found.values()).count(files) > 1
            if len(files) != 1 or is_shared:
                what = "several of them" if len(files) > 1 else "none of them"
                what = f"{files[0]!r}, as another name is" if len(files) == 1 else what
                raise InputError(
                    f"The truth in {self.where} must be about files of the input, {name!r} is "
                    f"{what}. Write the column {FILE!r} as `labelsure score` does."
                )
        return replace(self, files=tuple(found[name][0] for name in self.files))

    def of_file(self, source: str) -> LabelledRows:
        """Return the rows that may be in a file."""
        if self.files is None:
            return self
        mine = np.array([name == source for name in self.files], dtype=bool)
        return replace(
            self,
            labelsets=self.labelsets[mine],
            entries=self.entries[mine],
            names=self.names[mine],
            files=None,
        )

    def check_found(self, entries: Indices) -> None:
        """Refuse a truth of rows that are not in the input, or are there twice."""
        times = np.bincount(entries, minlength=len(self.names))
        for wrong, what in ((times == 0, "is not in the input"), (times > 1, "is there twice")):
            if wrong.any():
                name = str(self.names[np.flatnonzero(wrong)[0]])
                raise DataError(
                    f"Each row of {self.where} must be one row of the input, but {name!r} {what} "
                    f"({int(wrong.sum())} such rows)."
                )


def _find_file(name: str, sources: list[str]) -> list[str]:
    """Return the files that a name means: by its end, or below a folder that was renamed."""
    parts = os.path.normpath(name).split("/")
    by_end, below = list[str](), list[str]()
    for source in sources:
        own = source.split("/")
        n_shared = min(len(own), len(parts))
        if own[-n_shared:] == parts[-n_shared:]:
            by_end.append(source)
        elif len(own) > 1 and own[1:] == parts[1:]:
            below.append(source)
    return by_end or below


def _read_positions(column: pd.Series[Any], where: str) -> pd.Index:
    """Return positions in a file; rows of several files may have the same."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    bad = ~((numbers >= 0) & (numbers % 1 == 0))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"Column {ROW!r} of {where} must hold positions in the file, whole numbers from 0, got "
            f"{str(column.iloc[place])!r} in row {place} (rows count from 0)."
        )
    return pd.Index(numbers.astype(np.int64))


def find_labelled(
    model: AccuracyAwareClassifier,
    dist: LabelsetDistribution,
    decisions: Labelsets | None,
    known: LabelledRows,
    ids: pd.Index | None,
    positions: pd.Index,
) -> tuple[Indices, Floats, Floats]:
    """Return which entries of the truth a unit has, their accuracy, and what was estimated."""
    import pandas as pd

    own = positions if known.id_column is None or ids is None else ids
    place_of = pd.Series(np.arange(len(known.names)), known.names.astype(str))
    if not place_of.index.is_unique:
        raise DataError(
            f"The truth in {known.where} must name each row once, some are there twice."
        )
    places = place_of.reindex(own.astype(str)).to_numpy(dtype=np.float64)
    rows = np.flatnonzero(~np.isnan(places))
    entries = places[rows].astype(np.intp)
    if not len(rows):
        return entries, np.empty(0), np.empty(0)
    some = dist[rows]
    chosen = some.mode() if decisions is None else decisions[rows]
    compared = counts(known.labelsets[entries], chosen)
    accuracy = get_metric(model.metric).values(*compared, empty=model.empty)
    given = None if decisions is None else chosen
    estimated = model.accuracy_estimator_.predict(some, given)
    return known.entries[entries], accuracy, estimated

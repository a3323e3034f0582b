"""Tables of true labels: how they are read, and joined with predictions or rows of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath, Floats, Indices, LabelNames, Labelsets
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.labelsets.names import list_some, match_labels, read_labelsets
from labelsure.labelsets.rows import check_shape, is_sparse, show_names
from labelsure.metrics.registry import counts, get_metric
from labelsure.tables.column_choice import read_index, read_label_cells, read_label_columns
from labelsure.tables.files import read_table, stack_rows
from labelsure.tables.predictions import Layout

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


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
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    sparse: bool = False,
) -> TrueLabels:
    """Return the truth in a table, with the labels in one order for truth and predictions."""
    if id_column is not None and id_column not in frame.columns:
        raise unknown_name(f"column of {where}", id_column, [str(name) for name in frame.columns])
    ids = None if id_column is None else read_index(frame[id_column], where, "the id")
    columns = frame[[name for name in frame.columns if str(name) != id_column]]
    if columns.empty:
        raise DataError(f"The table {where} must have labels beside the id, it has none.")
    names = predicted.label_names if labels is None and predicted is not None else labels
    Y = _read_matrix(columns)
    lists = None if Y is not None else _read_lists(columns, label_column, sep, where)
    if lists is not None and names is None and n_labels is None:
        raise InputError(
            f"The truth in {where} lists names, and the predictions have none. Name the labels in "
            "the order of the predictions' columns with `labels`."
        )
    if lists is not None:
        is_counted = names is None  # and labels have the names y0, y1, ...
        if is_counted:
            names = show_names(None, n_labels or 0)
            lists = [
                [f"y{label}" if label.isdecimal() else label for label in row] for row in lists
            ]
        read = read_labelsets(lists, names, name="truth", sparse=sparse)
        return TrueLabels(read.labelsets, None if is_counted else read.label_names, ids, where)
    if Y is None:
        if labels is not None and not _are_counted(columns):
            unknown = next((name for name in labels if name not in columns), None)
            if unknown is not None:
                raise unknown_name(f"column of {where}", unknown, [str(c) for c in columns])
            columns = columns[list(labels)]
        Y = read_label_columns(columns, where)
        if not _are_counted(columns):
            own = tuple(str(name) for name in columns)
            names = own if names is None else tuple(names)
            beside = "the predictions (say which with `labels`)"
            Y = Y[:, match_labels(own, names, where.strip("'"), beside)]
    read = read_labelsets(Y, names, name=where.strip("'"), sparse=sparse)
    check_shape(read.shape, where.strip("'"), len(frame), n_labels)
    return TrueLabels(read.labelsets, read.label_names, ids, where)


def _are_counted(columns: pd.DataFrame) -> bool:
    """Whether columns have numbers for names, as those of an array."""
    return all(isinstance(name, (int, np.integer)) for name in columns)


def _read_matrix(columns: pd.DataFrame) -> Any:
    """Return a table that holds the rows of a sparse matrix as one; None for another table."""
    return stack_rows(columns.iloc[:, 0]) if columns.shape[1] == 1 else None


def _read_lists(
    columns: pd.DataFrame, label_column: str | None, sep: str | None, where: str
) -> list[list[str]] | None:
    """Return the names that each row lists; None where each label has a column."""
    if label_column is not None and label_column not in columns:
        raise unknown_name(f"column of {where}", label_column, [str(name) for name in columns])
    if label_column is None and columns.shape[1] != 1:
        if sep is None:
            return None
        raise InputError(
            f"`sep` needs one column of {where} that holds names of labels, it has "
            f"{columns.shape[1]}. Name it with `label_column`."
        )
    holder = columns.columns[0] if label_column is None else label_column
    cells = read_label_cells(columns[holder], sep, where)
    if cells is None and label_column is not None:
        raise InputError(
            f"Column {label_column!r} of {where} holds text: say what stands between the names of "
            "labels with `sep`, e.g. ';'."
        )
    return None if cells is None else [[str(label) for label in cell] for cell in cells]


def names_in_truth(
    frame: pd.DataFrame,
    where: str,
    *,
    label_column: str | None,
    sep: str | None,
    id_column: str | None,
) -> set[str]:
    """Return the labels that a table of true labels names."""
    columns = frame[[name for name in frame.columns if str(name) != id_column]]
    if _read_matrix(columns) is not None:
        raise InputError(
            f"The truth in {where} counts its labels, the predictions name theirs: which is which "
            "must be said. Name all labels in the order of its columns with `labels`."
        )
    lists = _read_lists(columns, label_column, sep, where)
    return {label for row in lists or [[str(name) for name in columns]] for label in row}


ID = "id"


def shared_id(*tables: pd.DataFrame) -> str | None:
    """Return the column that names rows where nobody says which: `id`, if all tables have it."""
    return ID if all(ID in table.columns for table in tables) else None


def join_truth(
    predictions: pd.DataFrame, truth: TrueLabels, id_column: str | None, where: str
) -> tuple[pd.DataFrame, Any]:
    """Return the predictions that have a truth, and this with the same rows.

    The truth is a DataFrame, or sparse rows.
    """
    Y: Any = truth.labelsets
    if not is_sparse(Y):
        Y = type(predictions)(Y.astype(np.int64), columns=truth.label_names)
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
    ids = read_index(predictions[id_column], where, "the id").astype(str)
    wanted = truth.ids.astype(str)
    places = ids.get_indexer(wanted)
    if (places < 0).any():
        raise InputError(
            f"Each row of {truth.where} must have a prediction in {where}, missing are the ids "
            f"{list_some(list(wanted[places < 0]))}. Predict them, or drop these rows."
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
    names
        (n,) which row of the input each is: its id, or its position in its file.
    files
        (n,) the file of each row; "" where ids name the rows.
    id_column
        The column that names rows; None where they go by position.
    where
        What the table of the truth is, for messages.
    """

    labelsets: Labelsets
    names: pd.Index
    files: tuple[str, ...]
    id_column: str | None
    where: str

    @classmethod
    def read(
        cls,
        path: AnyPath,
        model: AccuracyAwareClassifier,
        sources: Sequence[str],
        *,
        id_column: str | None,
        label_column: str | None,
        sep: str | None,
        csv_sep: str | None = None,
    ) -> LabelledRows:
        """Read the truth of some rows of the files that are called `sources`."""
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
        files = _find_files(frame, sources, where) if by_row else ("",) * len(frame)
        if len({*zip(names.astype(str), files, strict=True)}) < len(frame):
            raise DataError(f"The truth in {where} must name each row once, some are there twice.")
        return cls(found.labelsets, names.astype(str), files, named_by, where)

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


def _find_files(frame: pd.DataFrame, sources: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the files of the input for their names in the truth."""
    known = list(dict.fromkeys(sources))
    if FILE not in frame.columns:
        if len(known) > 1:
            raise InputError(
                f"The truth in {where} must have a column {FILE!r} beside {ROW!r}: the input has "
                "several files."
            )
        return (known[0],) * len(frame)
    given = [str(name) for name in frame[FILE]]
    found = {name: _find_file(name, known) for name in dict.fromkeys(given)}
    for name, files in found.items():
        is_shared = list(found.values()).count(files) > 1
        if len(files) != 1 or is_shared:
            what = "several of them" if len(files) > 1 else "none of them"
            what = f"{files[0]!r}, as another name is" if len(files) == 1 else what
            raise InputError(
                f"The truth in {where} must be about files of the input, {name!r} is {what}. Write "
                f"the column {FILE!r} as `labelsure score` does."
            )
    return tuple(found[name][0] for name in given)


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
    rows: pd.Index,
    source: str,
) -> tuple[Indices, Floats, Floats]:
    """Return which entries of the truth a unit has, their accuracy, and what was estimated."""
    by_row = known.id_column is None or ids is None
    own = (rows if by_row else ids).astype(str)  # type: ignore[union-attr]
    mine = np.flatnonzero([file in ("", source) for file in known.files])
    places = known.names[mine].get_indexer_for(own)
    chosen = np.flatnonzero(places >= 0)
    entries = mine[places[chosen]]
    if not len(chosen):
        return entries, np.empty(0), np.empty(0)
    some = dist[chosen]
    labelsets = some.mode() if decisions is None else decisions[chosen]
    compared = counts(known.labelsets[entries], labelsets)
    accuracy = get_metric(model.metric).values(*compared, empty=model.empty)
    given = None if decisions is None else labelsets
    return entries, accuracy, model.accuracy_estimator_.predict(some, given)

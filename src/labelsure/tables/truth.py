"""Tables of true labels, joined with predictions or rows of files by id or by position."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, issparse

from labelsure._runtime.storage import show_name
from labelsure._runtime.typing import (
    AnyPath,
    Column,
    FeaturesLike,
    Indices,
    LabelsetsLike,
)
from labelsure.errors import DataError, InputError, warn
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import NamedLabelsets, list_some, match_labels, read_labelsets
from labelsure.labelsets.reading import check_shape
from labelsure.tables.column_choice import read_index, read_label_cells, read_label_columns
from labelsure.tables.files import TextFormat, read_table, stack_rows, unknown_column
from labelsure.tables.inputs import InputTable

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.model._aware_classifier import AccuracyAwareClassifier

ROW, FILE, ID = "row", "file", "id"


def shared_id(name: str | None, *columns: Iterable[object]) -> str | None:
    """The name of the id column, if all tables have it; otherwise None."""
    return name if all(name in names for names in columns) else None


@dataclass(frozen=True)
class TrueLabels:
    """True labels of some rows, and the names of these rows.

    Parameters
    ----------
    truth
        Labelsets, indexed by row names as text: ids, or positions in the file; without an index
        rows are those of the other table, in the same order.
    id_column
        Column of row names; None for positions.
    where
        Name of the table in messages.
    files
        File of each row; "" where names are ids.
    fingerprints
        Fingerprint of each row as `score` wrote it, where names are positions; empty without.
    """

    truth: NamedLabelsets
    id_column: str | None
    where: str
    files: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        path: AnyPath,
        model: AccuracyAwareClassifier,
        *,
        id_column: str | None,
        label_column: str | None,
        sep: str | None,
        text: TextFormat,
        columns: Iterable[object] = (),
        sources: Sequence[str] | None = None,
    ) -> TrueLabels:
        """Read the true labels of rows that a model predicts.

        Rows are named by ids; without ids by their positions in the files `sources`, or else they
        are all rows, in order, of an input with these `columns`.
        """
        frame, where = read_table(path, text=text), show_name(path)
        inputs, named_by = InputTable(model, id_column), id_column
        if id_column is None and sources is None:
            named_by = shared_id(inputs.id_column or ID, frame.columns, columns)
        elif id_column is None:
            named_by = shared_id(inputs.id_column, frame.columns)
        by_row = named_by is None and sources is not None
        if by_row and ROW not in frame.columns:
            raise InputError(
                f"The truth in {where} must say which rows it labels. Add a column of ids that "
                f"the input has as well (name it with `id_column`), or a column {ROW!r} with "
                "positions in the file from 0, as `labelsure score` writes it."
            )
        dropped = {ROW, FILE, FINGERPRINT}.difference(model.label_names_ or ()) if by_row else ()
        true_labels = read_truth(
            frame.drop(columns=[*dropped], errors="ignore"),
            where,
            labels=model.label_names_,
            n_labels=model.n_labels_,
            label_column=label_column,
            sep=sep,
            id_column=named_by,
            sparse=inputs.is_sparse,
        )
        if sources is None:
            return true_labels
        files = ("",) * len(frame)
        if by_row:
            fingerprints = _read_fingerprints(frame, where)
            files = _find_files(frame, sources, where)
            truth = replace(true_labels.truth, index=_read_positions(frame[ROW], where))
            true_labels = replace(true_labels, truth=truth, fingerprints=fingerprints)
        if len({*zip(true_labels.names, files, strict=True)}) < len(frame):
            raise DataError(f"The truth in {where} must name each row once, some are there twice.")
        return replace(true_labels, files=files)

    @property
    def names(self) -> pd.Index:
        """Index of the truth, of which rows are named."""
        assert self.truth.index is not None
        return self.truth.index

    def find(self, names: pd.Index, source: str = "") -> tuple[Indices, Indices]:
        """(m,) positions in the truth of rows that a file has too, and (m,) in the file."""
        candidates = np.flatnonzero(
            [file in ("", source) for file in self.files or [""] * len(self.names)]
        )
        entry_of = self.names[candidates].get_indexer_for(names.astype(str))
        places = np.flatnonzero(entry_of >= 0)
        return candidates[entry_of[places]], places

    def check_fingerprints(
        self, entries: Indices, fingerprints: Sequence[str], source: str
    ) -> None:
        """Raise DataError for rows of a file whose fingerprint is not that of the labelled row."""
        for entry, fingerprint in zip(entries, fingerprints, strict=True):
            if self.fingerprints and self.fingerprints[entry] != fingerprint:
                raise DataError(
                    f"Each row of {self.where} must be the row that was drawn, but row "
                    f"{self.names[entry]} of {source!r} has another fingerprint: rows were added, "
                    "dropped or changed since. Use the file as it was scored, or name its rows by "
                    "ids with `id_column`."
                )

    def check_found(self, entries: Indices, where: str = "the input") -> None:
        """Raise DataError unless each row of the truth was found once in the input."""
        times = np.bincount(entries, minlength=len(self.names))
        for wrong, what in ((times == 0, "missing there"), (times > 1, "there twice")):
            if wrong.any():
                raise DataError(
                    f"Each row of {self.where} must be one row of {where}, {what}: "
                    f"{list_some(list(self.names[wrong]))}. Check the ids or positions of rows."
                )

    def locate(self, frame: pd.DataFrame, where: str) -> tuple[Indices, Indices]:
        """(m,) positions in the truth of rows that a table has too, and (m,) in the table."""
        if self.truth.index is None:
            if len(frame) != len(self.truth):
                raise InputError(
                    f"Predictions and truth must have the same rows where no column names them, "
                    f"got {len(frame)} in {where} and {len(self.truth)} in {self.where}. "
                    "Name a column of ids with `id_column`."
                )
            return np.arange(len(frame)), np.arange(len(frame))
        if self.id_column not in frame.columns:
            raise unknown_column(self.id_column, frame.columns, where)
        entries, places = self.find(read_index(frame[self.id_column], where, "the id"))
        self.check_found(entries, where)
        return entries, places

    def join(self, frame: pd.DataFrame, where: str) -> pd.DataFrame:
        """Labelled rows of a table, in the order of the truth."""
        entries, places = self.locate(frame, where)
        return frame.iloc[places[np.argsort(entries)]].reset_index(drop=True)


def read_truth(
    frame: pd.DataFrame,
    where: str,
    *,
    labels: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    n_labels: int | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    sparse: bool = False,
) -> TrueLabels:
    """True labels of a table.

    The label names are `labels`, else `predicted` (empty if predictions have no names), else those
    that occur in the table.
    """
    for name in (id_column, label_column):
        if name is not None and name not in frame.columns:
            raise unknown_column(name, frame.columns, where)
    ids = None
    if id_column is not None:
        ids = read_index(frame[id_column], where, "the id").astype(str)
    columns = frame[[name for name in frame.columns if str(name) != id_column]]
    if columns.empty:
        raise DataError(f"The table {where} must have labels beside the id, it has none.")
    Y: LabelsetsLike = stack_rows(columns.iloc[:, 0]) if columns.shape[1] == 1 else None
    cells = None
    if Y is None:
        label_columns = columns if label_column is None else columns[[label_column]]
        cells = read_label_cells(label_columns, sep, where, names_required=label_column is not None)
    names, title = labels if labels is not None else predicted or None, where.strip("'")
    if cells is not None:
        title, rows = "truth", [[str(label) for label in row] for row in cells]
        if names is None and n_labels is not None:  # labels are y0, y1, ...
            Y = [[f"y{label}" if label.isdecimal() else label for label in row] for row in rows]
            read = read_labelsets(Y, show_names(None, n_labels), name=title, sparse=sparse)
            return TrueLabels(NamedLabelsets(read.labelsets, None, ids), id_column, where)
        if names is None and predicted is not None:
            raise InputError(
                f"The truth in {where} lists names, and the predictions have none. Name the labels "
                "in the order of the predictions' columns with `labels`."
            )
        Y, names = rows, names or sorted({label for row in rows for label in row})
    elif Y is None:
        is_named = not all(isinstance(name, (int, np.integer)) for name in columns)
        if labels is not None and is_named:
            unknown = next((name for name in labels if name not in columns), None)
            if unknown is not None and {*labels}.isdisjoint(columns):
                raise InputError(
                    f"The truth in {where} must have a column for each label, got "
                    f"{list_some([str(name) for name in columns])}. If one of them holds label "
                    "names, name it with `label_column`, and say what separates the names with "
                    "`sep`, e.g. ';'."
                )
            if unknown is not None:
                raise unknown_column(unknown, columns, where)
            columns = columns[list(labels)]
        Y = read_label_columns(columns, where)
        if is_named:
            column_names = tuple(str(name) for name in columns)
            names = column_names if names is None else tuple(names)
            beside = "the predictions (say which with `labels`)"
            Y = Y[:, match_labels(column_names, names, title, beside)]
    read = read_labelsets(Y, names, name=title, sparse=sparse)
    check_shape(read.shape, title, len(frame), n_labels)
    return TrueLabels(replace(read, index=ids), id_column, where)


def _find_files(frame: pd.DataFrame, sources: Sequence[str], where: str) -> tuple[str, ...]:
    """(n,) names of the input file of each row of the truth."""
    input_files = list(dict.fromkeys(sources))
    if FILE not in frame.columns:
        if len(input_files) > 1:
            raise InputError(
                f"The truth in {where} must have a column {FILE!r} beside {ROW!r}: the input has "
                "several files."
            )
        return (input_files[0],) * len(frame)
    names = [str(name) for name in frame[FILE]]
    matches = {name: _match_files(name, input_files) for name in dict.fromkeys(names)}
    for name, files in matches.items():
        is_shared = list(matches.values()).count(files) > 1
        if len(files) != 1 or is_shared:
            what = "several of them" if len(files) > 1 else "none of them"
            what = f"{files[0]!r}, as another name is" if len(files) == 1 else what
            raise InputError(
                f"The truth in {where} must be about files of the input, {name!r} is {what}. Write "
                f"the column {FILE!r} as `labelsure score` does."
            )
    return tuple(matches[name][0] for name in names)


def _read_fingerprints(frame: pd.DataFrame, where: str) -> tuple[str, ...]:
    if FINGERPRINT in frame.columns:
        return tuple(frame[FINGERPRINT].astype(str))
    warn(
        f"Rows of {where} are joined by position, which is not checked. Keep the column "
        f"{FINGERPRINT!r} that `score` writes with an audit, or name rows by ids.",
        UserWarning,
    )
    return ()


def _match_files(name: str, sources: list[str]) -> list[str]:
    """Files whose path ends in a name, else those of the same path below a renamed folder."""
    name_parts = os.path.normpath(name).split("/")
    by_end, below = list[str](), list[str]()
    for source in sources:
        source_parts = source.split("/")
        n_shared = min(len(source_parts), len(name_parts))
        if source_parts[-n_shared:] == name_parts[-n_shared:]:
            by_end.append(source)
        elif len(source_parts) > 1 and source_parts[1:] == name_parts[1:]:
            below.append(source)
    return by_end or below


def _read_positions(column: Column, where: str) -> pd.Index:
    """Positions in a file as text; rows of several files may have the same."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    bad = ~((numbers >= 0) & (numbers % 1 == 0))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"Column {ROW!r} of {where} must hold positions in the file, whole numbers from 0, got "
            f"{str(column.iloc[place])!r} in row {place} (rows count from 0)."
        )
    return pd.Index(numbers.astype(np.int64)).astype(str)


FINGERPRINT = "fingerprint"
"""Column of row fingerprints, which a join by position compares."""


def fingerprint_rows(X: FeaturesLike, rows: Indices | None = None) -> list[str]:
    """Hashes of the rows of X, (n,) texts: "r" and 16 hexadecimal digits.

    Parameters
    ----------
    X
        (n, d) rows as a model takes them: a DataFrame, a Series of texts, an array or sparse rows.
    rows
        Positions of some rows; None for all.

    Examples
    --------
    >>> import pandas as pd
    >>> one, other = fingerprint_rows(pd.DataFrame({"a": [1, 2], "b": ["x", "x"]}))
    >>> one == other, [one] == fingerprint_rows(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    (False, True)
    """
    import pandas as pd

    chosen = slice(None) if rows is None else rows
    if issparse(X):
        csr = csr_array(X)[chosen]
        ends = csr.indptr.tolist()
        contents = [
            csr.indices[a:b].astype(np.int64).tobytes() + csr.data[a:b].astype(float).tobytes()
            for a, b in pairwise(ends)
        ]
        return [f"r{sha256(content).hexdigest()[:16]}" for content in contents]
    frame = pd.DataFrame(X).iloc[chosen]
    columns = {
        str(place): column.astype(float) if column.dtype.kind in "biuf" else column.astype(str)
        for place, (_, column) in enumerate(frame.items())
    }
    hashes = pd.util.hash_pandas_object(pd.DataFrame(columns, frame.index), index=False)
    return [f"r{number:016x}" for number in hashes]

"""Rows of input files whose truth somebody has found out: which they are, and how they compare."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath, Floats, Indices, Labelsets
from labelsure.errors import DataError, InputError
from labelsure.metrics.registry import counts, get_metric
from labelsure.tables.table_files._units import read_table

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution
    from labelsure.model._aware_classifier import AccuracyAwareClassifier

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
    ) -> LabelledRows:
        """Read the truth of some rows.

        Parameters
        ----------
        path
            The table.
        model
            Whose labels they are.
        id_column, label_column, sep
            As for `estimate_files`.
        """
        from labelsure.tables.file_models._input_table import InputTable
        from labelsure.tables.file_models._truth_tables import read_truth

        frame, where = read_table(expand_path(path)), repr(Path(path).name)
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

    def check_files(self, paths: list[Any]) -> None:
        """Refuse positions where it is not clear in which file, and files that are not there."""
        if self.id_column is not None:
            return
        if self.files is None:
            if len(set(map(str, paths))) > 1:
                raise InputError(
                    f"The truth in {self.where} must have a column {FILE!r} beside {ROW!r}: the "
                    "input has several files."
                )
            return
        for name in dict.fromkeys(self.files):
            found = {str(path) for path in paths if _ends_in(path, name)}
            if len(found) != 1:
                what = "several" if found else "none"
                raise InputError(
                    f"The truth in {self.where} must be about files of the input, {name!r} is "
                    f"{what} of them. Write the column {FILE!r} as `labelsure score` does."
                )

    def of_file(self, path: Any) -> LabelledRows:
        """Return the rows that may be in a file."""
        if self.files is None:
            return self
        mine = np.array([_ends_in(path, name) for name in self.files], dtype=bool)
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


def _ends_in(path: Any, name: str) -> bool:
    """Whether a file is the one that a name means, from the working folder or one above it."""
    parts, place = Path(os.path.normpath(name)).parts, Path(os.path.abspath(path))
    return place.parts[-len(parts) :] == parts or Path(os.path.abspath(name)) == place


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
    """Return which entries of the truth a unit has, their accuracy, and what was estimated.

    Parameters
    ----------
    model, dist, decisions
        What predicts, the distributions of the unit's rows, what is predicted (None: the mode).
    known
        The truth.
    ids, positions
        What names the rows of the unit, and where they stand in the file.
    """
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

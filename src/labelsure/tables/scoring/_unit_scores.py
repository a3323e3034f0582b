"""One unit of rows, from a file to a part: a task that any process on any machine can do."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._kernels.threads import one_thread
from labelsure._runtime.storage import (
    checksum_bytes,
    expand_path,
    first_line,
    read_bytes,
    write_text,
)
from labelsure._runtime.typing import AnyPath, Indices
from labelsure.errors import DataError, InputError, LabelsureError, RowsError
from labelsure.saving._savable import load
from labelsure.tables.scoring._part_formats import (
    FORMATS,
    NAME_SEPARATOR,
    plain_records,
    write_part,
)
from labelsure.tables.table_files._file_kind import Unit
from labelsure.tables.table_files._units import read_unit

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.estimation._shift_test import View
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.tables.file_models._input_table import InputTable

IDENTITY = {
    "id": "the value of the id column; only if there is one",
    "file": "the input file, as it was named",
    "row": "the position of the row in that file, from 0; a header is no row",
    "audit": "whether chance has chosen the row for an audit; only with `--audit`",
}
"""Columns before those of the table for people, and what they hold."""


@dataclass(frozen=True)
class ModelFile:
    """A saved model, by which every worker loads the same one.

    Parameters
    ----------
    path
        Of the file, the same for all workers.
    checksum
        SHA-256 of its bytes.
    trust
        Types that may be built, as for `labelsure.load`.
    """

    path: str
    checksum: str
    trust: tuple[str, ...] = ()

    @classmethod
    def find(cls, path: Path, trust: tuple[str, ...]) -> ModelFile:
        """Read the checksum of a file."""
        return cls(str(path.absolute()), checksum_bytes(read_bytes(path)), trust)

    def load(self) -> AccuracyAwareClassifier:
        """Return the model, once for each process, if the file still is what it was."""
        return _load(self)


@lru_cache(maxsize=2)
def _load(file: ModelFile) -> AccuracyAwareClassifier:
    from labelsure.model._aware_classifier import AccuracyAwareClassifier

    path = Path(file.path)
    if checksum_bytes(read_bytes(path)) != file.checksum:
        raise DataError(
            f"The model {str(path)!r} must be the same for all workers and stay as it is during a "
            "run, but this one has another checksum. Copy it again, or start again."
        )
    model = load(path, trust=file.trust)
    if not isinstance(model, AccuracyAwareClassifier):
        raise InputError(
            f"The model {path.name!r} must be an AccuracyAwareClassifier, which knows how accurate "
            f"its predictions are, got a {type(model).__name__}. Fit and save one."
        )
    return model


@dataclass(frozen=True)
class TableSettings:
    """What the table of predictions holds.

    Parameters
    ----------
    top
        How many of the most probable labelsets.
    probabilities
        Whether each label has a column with its probability; None: yes, but for sparse labels.
    sep
        Between names of labels in CSV.
    id_column
        The input's column of identifiers; None for that of the model, if it has one.
    open_cost
        As of `Assessment.to_frame`.
    spreadsheet_safe
        Whether texts that a spreadsheet takes for a formula get an apostrophe in front.
    """

    top: int = 3
    probabilities: bool | None = None
    sep: str = NAME_SEPARATOR
    id_column: str | None = None
    open_cost: float | None = None
    spreadsheet_safe: bool = False


@dataclass(frozen=True)
class UnitTask:
    """All that a worker has to know to score a unit.

    Parameters
    ----------
    unit
        The rows.
    file
        The name of its file as the user gave it, for the column `file`.
    model
        What scores them.
    settings
        Of the table.
    part, notes
        Where the rows go, and what is known of them.
    audited
        The rows of the unit that chance has chosen, counted from its first; None without an audit.
    compared
        The rows of the unit that are compared with the calibration set, counted likewise.
    sets_aside
        Whether bad rows are set aside instead of refused.
    """

    unit: Unit
    file: str
    model: ModelFile
    settings: TableSettings
    part: str
    notes: str
    audited: tuple[int, ...] | None = None
    compared: tuple[int, ...] = ()
    sets_aside: bool = False


@dataclass(frozen=True)
class UnitOutcome:
    """What came of a unit.

    Parameters
    ----------
    number
        Of the unit.
    notes
        `n_rows` and `n_bad`, `n_accepted` (None without a policy), `total_estimated`, `n_bytes` of
        the part, `bad_rows`, `view` (names and values of what is compared of some rows, None
        without any); empty where it failed.
    problem
        Why it failed, in a sentence.
    is_of_rows
        Whether that is about rows of this unit alone, so that others may be fine.
    """

    number: int
    notes: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    is_of_rows: bool = False


def score_unit(task: UnitTask) -> UnitOutcome:
    """Score a unit and write its part; what goes wrong is returned, not raised.

    Parameters
    ----------
    task
        What to do.
    """
    number = task.unit.number
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the model were shown when the run began
            return UnitOutcome(number, _score(task))
    except RowsError as error:
        return UnitOutcome(number, problem=str(error), is_of_rows=True)
    except LabelsureError as error:
        return UnitOutcome(number, problem=str(error))
    except OSError as error:
        name = "" if error.filename is None else f": {str(error.filename)!r}"
        return UnitOutcome(number, problem=f"{error.strerror or first_line(error)}{name}.")
    except Exception as error:  # of whatever model is inside
        rows = f"rows {task.unit.first_row} to {task.unit.first_row + task.unit.n_rows - 1}"
        return UnitOutcome(
            number,
            problem=f"The model could not score {rows} of {task.file!r} "
            f"({type(error).__name__}: {first_line(error)}).",
            is_of_rows=True,
        )


def _score(task: UnitTask) -> dict[str, Any]:
    from labelsure.tables.file_models._input_table import InputTable

    model = task.model.load()  # first: BLAS is found where it is loaded
    frame = read_unit(task.unit)
    bad: dict[Any, str] = {}
    try:
        table, unseen, view = _score_rows(model, frame, task)
    except RowsError as error:
        if not task.sets_aside:
            raise
        bad = error.reasons
        table, unseen, view = _score_rows(model, frame.drop(index=list(bad)), task)
    if len(table):
        write_part(table, Path(task.part))
    values = plain_records(frame.loc[list(bad)])
    inputs = InputTable(model, task.settings.id_column)
    has_policy = len(table) > 0 and not table["accept"].isna().any()
    notes = {
        "n_rows": len(table),
        "n_bad": len(bad),
        "n_accepted": int(table["accept"].sum()) if has_policy else None,
        "total_estimated": float(table["estimated_accuracy"].sum()) if len(table) else 0.0,
        "n_bytes": Path(task.part).stat().st_size if len(table) else 0,
        "unseen": unseen,
        "odd_answers": asdict(inputs.count_odd_answers(frame.drop(index=list(bad)))),
        "view": None if view is None else [list(view.names), view.values.tolist()],
        "bad_rows": [
            {"file": task.file, "row": int(row), "reason": reason, "values": row_values}
            for (row, reason), row_values in zip(bad.items(), values, strict=True)
        ],
    }
    write_text(Path(task.notes), json.dumps(notes))
    return notes


def _score_rows(
    model: AccuracyAwareClassifier, frame: pd.DataFrame, task: UnitTask
) -> tuple[pd.DataFrame, dict[str, str], View | None]:
    """Return the table of some rows of a unit with their places, what is new, what is compared."""
    from labelsure.tables.file_models._input_table import InputTable

    if frame.empty:
        return frame, {}, None
    chosen = task.settings
    part_format = FORMATS[Path(task.part).suffix]
    wanted = np.array(task.compared, dtype=np.int64) + task.unit.first_row
    table, unseen, view = _make_table(
        InputTable(model, chosen.id_column),
        frame,
        model,
        where=repr(task.file),
        settings={
            "k": chosen.top,
            "probabilities": chosen.probabilities,
            "sep": None if part_format.has_lists else chosen.sep,
            "open_cost": chosen.open_cost,
        },
        compared=np.flatnonzero(np.isin(frame.index, wanted)),
    )
    place = int("id" in table)
    table.insert(place, "file", task.file)
    table.insert(place + 1, "row", np.asarray(frame.index, dtype=np.int64))
    if task.audited is not None:
        rows = frame.index - task.unit.first_row
        table.insert(place + 2, "audit", rows.isin(list(task.audited)))
    return _escape_formulas(table) if chosen.spreadsheet_safe else table, unseen, view


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""With what texts begin that spreadsheets take for formulas."""


def _escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with an apostrophe before such texts, also in the header."""

    def escape(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value

    escaped = {
        name: column if column.dtype.kind in "iufb" else column.map(escape)
        for name, column in table.items()
    }
    return type(table)(escaped, index=table.index).rename(columns=escape)


def _make_table(
    inputs: InputTable,
    frame: pd.DataFrame,
    model: AccuracyAwareClassifier,
    *,
    where: str,
    settings: dict[str, Any],
    compared: Indices,
) -> tuple[pd.DataFrame, dict[str, str], View | None]:
    X, ids = inputs.read(frame, where)
    wants_labels = settings["probabilities"] is not False
    n_shown = settings["k"] or int(wants_labels)  # labels without labelsets: 1 will do
    with one_thread():
        found = model.assess(X, k=n_shown, shift="ignore")
        table, view = found.to_frame(**settings), None
        if len(compared) and model.accuracy_estimator_.can_compare:
            some = found[compared]
            view = model.accuracy_estimator_.view(some.distribution, some.Y_pred)
    table.index = frame.index
    if ids is not None:
        table.insert(0, "id", _read_ids(ids, frame.index))
    return table, inputs.find_unseen(X), view


def _read_ids(ids: pd.Index, index: pd.Index) -> pd.Series[Any]:
    """Return ids of one type in all units: whole numbers by the file's type, all else as text."""
    import pandas as pd

    if pd.api.types.is_integer_dtype(ids.dtype):
        unsigned = pd.api.types.is_unsigned_integer_dtype(ids.dtype)
        return pd.Series(ids.astype("UInt64" if unsigned else "Int64"), index=index)
    texts = [None if pd.isna(value) else str(value) for value in ids]
    return pd.Series(texts, index=index, dtype=object)


def score_frame(
    frame: pd.DataFrame,
    model: AnyPath | AccuracyAwareClassifier,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    sep: str | None = None,
    open_cost: float | None = None,
) -> pd.DataFrame:
    """Return the table of predictions for some rows: for the partitions of a Dask DataFrame.

    Parameters
    ----------
    frame
        Rows as `labelsure.tables.table_files.read_unit` returns them; the table has their index.
    model
        An `AccuracyAwareClassifier`, or the file of one, which each process loads once.
    id_column
        The column of identifiers; None for that of the model, if it has one.
    top, probabilities, sep, open_cost
        As `k`, `probabilities`, `sep` and `open_cost` of `Assessment.to_frame`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), random_state=0).fit(X, X > 0)
    >>> score_frame(X[:2], model, probabilities=False)[["predicted", "top_1"]]
      predicted   top_1
    0      (a,)    (a,)
    1    (a, b)  (a, b)
    """
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.tables.file_models._input_table import InputTable

    if not isinstance(model, AccuracyAwareClassifier):
        model = ModelFile.find(expand_path(model), ()).load()
    settings = {"k": top, "probabilities": probabilities, "sep": sep, "open_cost": open_cost}
    inputs = InputTable(model, id_column)
    none = np.empty(0, dtype=np.intp)
    return _make_table(inputs, frame, model, where="the table", settings=settings, compared=none)[0]

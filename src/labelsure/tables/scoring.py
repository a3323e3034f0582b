"""`score_frame`: rows in, predictions with their estimated accuracy out; `score_files` maps it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure import __version__
from labelsure._kernels.threads import n_threads, one_thread
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.processes import TaskFailure, watched_workers
from labelsure._runtime.storage import (
    FinishedOutput,
    check_outputs,
    checksum_bytes,
    expand_path,
    first_line,
    is_address,
    is_stream,
    read_bytes,
    send_file,
    without_options,
    write_output,
)
from labelsure._runtime.task_pools import check_jobs
from labelsure._runtime.typing import AnyPath, Indices
from labelsure.distributions._instance_table import check_shown
from labelsure.errors import DataError, InputError, LabelsureError, RowsError, UnseenValuesWarning
from labelsure.estimation._shift import sample_rows, say_shift
from labelsure.labelsets.names import check_sep
from labelsure.labelsets.rows import show_names
from labelsure.saving import load
from labelsure.tables.files import (
    Unit,
    arrow_to_frame,
    describe_file_state,
    find_lines,
    list_units,
    load_unit,
    read_rows,
)
from labelsure.tables.inputs import InputTable
from labelsure.tables.parts import (
    NAME_SEPARATOR,
    SEPARATORS,
    PartStore,
    ScoredParts,
    check_suffix,
    encode_table,
    join_parts,
    plain_records,
    run_parts,
)
from labelsure.tables.predictions import OddAnswers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from labelsure.model._aware_classifier import AccuracyAwareClassifier

IDENTITY = {
    "id": "the value of the id column; only if there is one",
    "file": "the name of the input and the path of the file below it",
    "row": "the position of the row in that file, from 0; a header is no row",
    "audit": "whether chance has chosen the row for an audit; only with `--audit`",
}
"""Columns before those of the table for people, and what they hold."""


# The pure function


@dataclass(frozen=True)
class ModelFile:
    """A saved model, which every process loads once.

    Parameters
    ----------
    path
        Of the file.
    checksum
        SHA-256 of its bytes.
    trust
        Types that may be built, as for `labelsure.load`.
    content
        The bytes, where workers may not see the file.
    """

    path: str
    checksum: str
    trust: tuple[str, ...] = ()
    content: bytes | None = field(default=None, repr=False)

    @classmethod
    def find(cls, path: AnyPath, trust: Iterable[str] = (), *, packed: bool = False) -> ModelFile:
        """Read the checksum of a file, and keep its bytes where it is to be `packed`."""
        file = expand_path(path)
        content = read_bytes(file)
        kept = content if packed else None
        return cls(str(file.absolute()), checksum_bytes(content), tuple(trust), kept)

    @classmethod
    def pack(cls, model: AnyPath | AccuracyAwareClassifier) -> ModelFile:
        """Return a model or its file in a form that can be sent to any machine."""
        if isinstance(model, (str, PathLike)):
            return cls.find(model, packed=True)
        with TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.labelsure")
            return cls.find(Path(folder) / "model.labelsure", packed=True)

    def load(self) -> AccuracyAwareClassifier:
        """Return the model, if the file still is what it was."""
        key = self.checksum, self.trust
        if key not in _LOADED:
            model = self._read()
            _LOADED.clear()
            _LOADED[key] = model
        return _LOADED[key]

    def _read(self) -> AccuracyAwareClassifier:
        from labelsure.model._aware_classifier import AccuracyAwareClassifier

        with TemporaryDirectory() as folder:
            path = Path(self.path)
            if self.content is not None:
                path = Path(folder) / path.name
                path.write_bytes(self.content)
            elif checksum_bytes(read_bytes(path)) != self.checksum:
                raise DataError(
                    f"The model {str(path)!r} must be the same for all workers and stay as it is "
                    "during a run, but this one has another checksum. Copy it again, or start "
                    "again."
                )
            model = load(path, trust=self.trust)
        if not isinstance(model, AccuracyAwareClassifier):
            raise InputError(
                f"The model {path.name!r} must be an AccuracyAwareClassifier, which knows how "
                f"accurate its predictions are, got a {type(model).__name__}. Fit and save one."
            )
        return model


_LOADED: dict[tuple[str, tuple[str, ...]], Any] = {}  # the model that this process loaded last


@dataclass(frozen=True)
class ScoreSettings:
    """Which columns the table of predictions has, as for `score_frame`."""

    id_column: str | None = None
    top: int = 3
    probabilities: bool | None = None
    open_cost: float | None = None


def score_frame(
    model: AnyPath | AccuracyAwareClassifier,
    frame: Any,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    open_cost: float | None = None,
) -> Any:
    """Return the predictions for some rows and their estimated accuracy, as a table of one kind.

    What a row gets does not depend on the other rows, up to rounding: any engine that maps a
    function over parts of a table can call it. The columns are known beforehand, by `score_schema`.

    Parameters
    ----------
    model
        A fitted `AccuracyAwareClassifier`, or the file of one, which each process loads once.
    frame
        A pandas or polars DataFrame or a pyarrow Table with the columns that the model needs. One
        without rows gives a table without rows, e.g. as the `meta` of Dask.
    id_column
        The column of identifiers; None for that of the model, if it has one.
    top
        How many of the most probable labelsets to add.
    probabilities
        Whether each label has a column with its probability; None: yes, but for sparse labels.
    open_cost
        Add which labels to leave open at this cost, as `Assessment.leave_open` does.

    Returns
    -------
    A table of the same kind; a pandas DataFrame has the index of the rows.

    See Also
    --------
    score_schema : The columns and types of what it returns.
    score_dask : The same for a Dask DataFrame.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> from labelsure.tables import score_frame
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), random_state=0).fit(X, X > 0)
    >>> score_frame(model, X[:2], probabilities=False)[["predicted", "top_1"]]
      predicted   top_1
    0      (a,)    (a,)
    1    (a, b)  (a, b)
    """
    import pyarrow as pa

    fitted, rows = _load_model(model), _to_pandas(frame)
    settings = ScoreSettings(id_column, top, probabilities, open_cost)
    table, _, _ = _score_rows(fitted, rows, settings, "the table")
    if rows is frame:
        return table
    arrow = pa.Table.from_pandas(table, _make_schema(fitted, rows, settings), preserve_index=False)
    if isinstance(frame, pa.Table):
        return arrow
    import polars

    return polars.from_arrow(arrow)


def score_schema(
    model: AnyPath | AccuracyAwareClassifier,
    frame: Any = None,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    open_cost: float | None = None,
) -> pa.Schema:
    """Return the columns and types of what `score_frame` returns, as an Arrow schema.

    Parameters
    ----------
    model
        A fitted `AccuracyAwareClassifier`, or the file of one.
    frame
        Rows of the input, of which none is needed: whether there are identifiers, and whether they
        are whole numbers, follows from its columns. None for an input without identifiers.
    id_column, top, probabilities, open_cost
        As for `score_frame`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> from labelsure.tables import score_schema
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), random_state=0).fit(X, X > 0)
    >>> score_schema(model, top=1).names[-4:]
    ['top_1', 'top_1_probability', 'probability_y0', 'probability_y1']
    """
    settings = ScoreSettings(id_column, top, probabilities, open_cost)
    return _make_schema(_load_model(model), None if frame is None else _to_pandas(frame), settings)


def score_dask(
    frame: Any,
    model: AnyPath | AccuracyAwareClassifier,
    **settings: Any,
) -> Any:
    """Return the predictions for a Dask DataFrame as a Dask DataFrame: `score_frame`, lazily.

    The model travels in a task of its own, which is computed again where its worker dies. Each
    worker loads it once. Only the workers read the data and write what comes of it.

    Parameters
    ----------
    frame
        A `dask.dataframe.DataFrame`.
    model
        A fitted `AccuracyAwareClassifier`, or the file of one.
    **settings
        `id_column`, `top`, `probabilities` and `open_cost` as for `score_frame`.

    Examples
    --------
    >>> import dask.dataframe as dd, numpy as np, pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> from labelsure.tables import score_dask
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), random_state=0).fit(X, X > 0)
    >>> scored = score_dask(dd.from_pandas(X, npartitions=4), model)
    >>> len(scored.compute(scheduler="synchronous"))
    200
    """
    from dask.delayed import delayed

    file = ModelFile.pack(model)
    meta = score_frame(file.load(), frame._meta, **settings)
    packed = delayed(file, pure=True, traverse=False)
    return frame.map_partitions(_score_partition, packed, settings, meta=meta)


def _score_partition(rows: pd.DataFrame, file: ModelFile, settings: dict[str, Any]) -> pd.DataFrame:
    with one_thread():
        table: pd.DataFrame = score_frame(file.load(), rows, **settings)
    return table


def _load_model(model: AnyPath | AccuracyAwareClassifier) -> AccuracyAwareClassifier:
    return ModelFile.find(model).load() if isinstance(model, (str, PathLike)) else model


def _to_pandas(frame: Any) -> pd.DataFrame:
    """Return a table of any kind as a DataFrame whose types do not depend on the values."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(frame, pd.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "polars" and hasattr(frame, "to_arrow"):
        frame = frame.to_arrow()
        for place, column in enumerate(frame.schema):
            if pa.types.is_large_string(column.type) or str(column.type) == "string_view":
                frame = frame.set_column(place, column.name, frame.column(place).cast(pa.string()))
    if not isinstance(frame, pa.Table):
        raise InputError(
            "`frame` must be a pandas or polars DataFrame or a pyarrow Table, got "
            f"{type(frame).__name__}."
        )
    return arrow_to_frame(frame, "the table")


def _make_schema(
    model: AccuracyAwareClassifier, rows: pd.DataFrame | None, settings: ScoreSettings
) -> pa.Schema:
    import pyarrow as pa

    names, number = pa.list_(pa.string()), pa.float64()
    columns: list[tuple[str, Any]] = [
        *_id_field(model, rows, settings),
        ("predicted", names),
        ("probability", number),
        ("estimated_accuracy", number),
        ("expected_accuracy", number),
        ("accept", pa.bool_()),
        ("reason", pa.string()),
    ]
    if model.own_differs_:
        columns.append(("own_predicted", names))
    if model.region is not None:
        columns += [("certain", names), ("possible", names)]
    if settings.open_cost is not None:
        columns += [("decided", names), ("open", names)]
    for i in range(1, 1 + check_shown(settings.top, model.n_labels_)):
        columns += [(f"top_{i}", names), (f"top_{i}_probability", number)]
    if _shows_probabilities(model, settings):
        shown = show_names(model.label_names_, model.n_labels_)
        columns += [(f"probability_{name}", number) for name in shown]
    return pa.schema(columns)


def _id_field(
    model: AccuracyAwareClassifier, rows: pd.DataFrame | None, settings: ScoreSettings
) -> list[tuple[str, Any]]:
    import pandas as pd
    import pyarrow as pa

    column = InputTable(model, settings.id_column).id_column
    if rows is None or column not in rows.columns:
        return []
    if not pd.api.types.is_integer_dtype(rows[column].dtype):
        return [("id", pa.string())]
    is_unsigned = pd.api.types.is_unsigned_integer_dtype(rows[column].dtype)
    return [("id", pa.uint64() if is_unsigned else pa.int64())]


def _shows_probabilities(model: AccuracyAwareClassifier, settings: ScoreSettings) -> bool:
    if settings.probabilities is not None:
        return settings.probabilities
    return not InputTable(model, settings.id_column).is_sparse


def _score_rows(
    model: AccuracyAwareClassifier,
    rows: pd.DataFrame,
    settings: ScoreSettings,
    where: str,
    compared: Indices | None = None,
) -> tuple[pd.DataFrame, dict[str, str], pd.DataFrame | None]:
    """Return the table of some rows, what is new in them, and what is compared of some of them."""
    import pandas as pd

    schema = _make_schema(model, rows, settings)
    inputs = InputTable(model, settings.id_column)
    nullable = {"bool": pd.BooleanDtype(), "int64": pd.Int64Dtype(), "uint64": pd.UInt64Dtype()}
    empty = schema.empty_table().to_pandas(types_mapper=lambda kind: nullable.get(str(kind)))
    if rows.empty:
        return empty.set_axis(rows.index), {}, None
    X, ids = inputs.read(rows, where)
    shows = _shows_probabilities(model, settings)
    # One labelset will do where only labels are shown: the sweep for it finds their probabilities.
    found = model.assess(X, k=settings.top or int(shows), shift="ignore")
    table = found.to_frame(settings.top, probabilities=shows, open_cost=settings.open_cost)
    view = None
    if compared is not None and len(compared) and model.accuracy_estimator_._can_compare:
        some = found[compared]
        view = model.accuracy_estimator_._view(some.distribution, some.Y_pred)
    table.index = rows.index
    if ids is not None:
        is_text = empty["id"].dtype.kind not in "iu"
        names = [None if pd.isna(one) else str(one) for one in ids] if is_text else ids
        table.insert(0, "id", pd.Series(names, rows.index, dtype=empty["id"].dtype))
    return table.astype(empty.dtypes), inputs.find_unseen(X), view


# Parts of files

PART_ROWS = 100_000
"""Rows of a part at most, and of a row group of Parquet where there are as many."""

FEWEST_PART_ROWS = 2048
"""Scoring fewer rows takes less time than handing them to a worker."""

N_PARTS = 16
"""An input is cut into at least as many parts, unless they would be tiny: so that some processes
share them, and a killed run loses little."""

PART_BYTES, SLICE_BYTES = 2**26, 2**23
"""Bytes of a part as it is read, and of the rows that are held at a time, at most."""


@dataclass(frozen=True)
class Part:
    """Some rows of the input: what one task reads, scores and writes.

    Parameters
    ----------
    number
        0, 1, ... over all files.
    first_row
        Of the part among all rows.
    slices
        What is read at a time.
    """

    number: int
    first_row: int
    slices: tuple[Unit, ...]

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return sum(unit.n_rows for unit in self.slices)

    def choose(self, rows: Indices) -> Indices:
        """Return those of some rising row numbers that are here, counted from the first row."""
        ends = np.searchsorted(rows, [self.first_row, self.first_row + self.n_rows])
        return rows[slice(*ends)] - self.first_row


def list_parts(
    inputs: Any,
    model: AccuracyAwareClassifier,
    id_column: str | None,
    csv_sep: str | None = None,
) -> list[Part]:
    """Return the parts of files, which follow from the input alone."""
    columns, rows = InputTable(model, id_column).columns, min(PART_ROWS, FEWEST_PART_ROWS)
    units = list_units(inputs, rows=rows, csv_sep=csv_sep, columns=columns)
    if not units:
        raise DataError("The input must have at least one row, it has none.")
    n_total = sum(unit.n_rows for unit in units)
    most = min(PART_ROWS, max(FEWEST_PART_ROWS, -(-n_total // N_PARTS)))
    parts: list[Part] = []
    slices: list[Unit] = []
    first_row = rows_in_part = bytes_in_part = bytes_in_slice = 0
    for unit in units:
        size = unit.n_bytes
        if slices and (rows_in_part + unit.n_rows > most or bytes_in_part + size > PART_BYTES):
            parts.append(Part(len(parts), first_row, tuple(slices)))
            first_row += rows_in_part
            slices, rows_in_part, bytes_in_part = [], 0, 0
        if slices and bytes_in_slice + size <= SLICE_BYTES and _is_next(slices[-1], unit):
            bytes_in_slice += size
            n_rows = slices[-1].n_rows + unit.n_rows
            slices[-1] = replace(slices[-1], n_rows=n_rows, n_bytes=bytes_in_slice)
        else:
            slices.append(unit)
            bytes_in_slice = size
        rows_in_part, bytes_in_part = rows_in_part + unit.n_rows, bytes_in_part + size
    return [*parts, Part(len(parts), first_row, tuple(slices))]


def _is_next(before: Unit, unit: Unit) -> bool:
    """Whether the rows of a unit follow those of another one and can be read with them."""
    is_same_table = (before.path, before.group) == (unit.path, unit.group)
    return is_same_table and before.first_row + before.n_rows == unit.first_row


@dataclass(frozen=True)
class PartJob:
    """What a worker has to know to score a part.

    Parameters
    ----------
    part, name
        The rows, and the name of what is written.
    store, key
        Where it is written, and what all that it depends on comes to.
    settings, text
        Of the table, and of its text as for `encode_table`.
    audited
        The rows of the part that chance has chosen, from its first; None without an audit.
    compared
        The rows of the part that are compared with the calibration set, likewise.
    sets_aside
        Whether bad rows are set aside instead of refused.
    """

    part: Part
    name: str
    store: PartStore
    key: str
    settings: ScoreSettings
    text: dict[str, Any]
    audited: Indices | None
    compared: Indices
    sets_aside: bool


def _load_job(job: PartJob) -> tuple[PartJob]:
    """Return a job with the bytes of compressed files, which one process reads for all."""
    slices = tuple(load_unit(unit) for unit in job.part.slices)
    return (replace(job, part=replace(job.part, slices=slices)),)


@dataclass(frozen=True)
class PartProblem:
    """Why a part failed, in a sentence, and whether others may be fine."""

    message: str
    is_of_rows: bool = False


class _ModelError(Exception):
    """What a model raised, with the rows that it could not score."""


def score_part(model: ModelFile, job: PartJob) -> dict[str, Any] | PartProblem:
    """Score a part, write it and return its notes; what goes wrong is returned, not raised."""
    try:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # those of the model were shown when the run began
            return _score_part(model.load(), job)
    except (RowsError, _ModelError) as error:
        return PartProblem(str(error), is_of_rows=True)
    except LabelsureError as error:
        return PartProblem(str(error))
    except OSError as error:
        name = "" if error.filename is None else f": {str(error.filename)!r}"
        return PartProblem(f"{error.strerror or first_line(error)}{name}.")


def _score_part(model: AccuracyAwareClassifier, job: PartJob) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    tables, views, bad_rows = [], [], []
    unseen: dict[str, str] = {}
    odd, first_row = OddAnswers(), 0
    inputs = InputTable(model, job.settings.id_column)
    for unit in job.part.slices:
        rows, bad = read_rows(unit, inputs.columns)
        try:
            _refuse(bad if not job.sets_aside else {}, unit)
            found = _score_slice(model, rows, unit, job, first_row)
        except RowsError as error:
            if not job.sets_aside:
                raise
            bad |= error.reasons
            rows = rows.drop(index=list(error.reasons))
            found = _score_slice(model, rows, unit, job, first_row)
        tables.append(found[0])
        unseen |= found[1]
        if found[2] is not None:
            views.append(found[2])
        odd += inputs.count_odd_answers(rows)
        bad_rows += _describe_bad_rows(unit, bad)
        first_row += unit.n_rows
    table = pa.concat_tables(tables)
    content = b""
    if len(table):
        suffix = Path(job.name).suffix
        content = encode_table(table, suffix, **job.text)
    accept = table["accept"]
    notes = {
        "key": job.key,
        "n_rows": len(table),
        "n_bad": len(bad_rows),
        "n_accepted": None if accept.null_count or not len(table) else pc.sum(accept).as_py(),
        "total_estimated": float(table["estimated_accuracy"].to_numpy().sum()),
        "unseen": unseen,
        "odd_answers": asdict(odd),
        "view": [
            list(views[0].columns),
            np.concatenate([view.to_numpy() for view in views]).tolist(),
        ]
        if views
        else None,
        "bad_rows": bad_rows,
    }
    return job.store.write(job.name, content, notes)


def _refuse(bad: dict[int, str], unit: Unit) -> None:
    if bad:
        raise RowsError(bad, unit.where)


def _score_slice(
    model: AccuracyAwareClassifier, rows: pd.DataFrame, unit: Unit, job: PartJob, first_row: int
) -> tuple[pa.Table, dict[str, str], pd.DataFrame | None]:
    """Return the table of some rows with their places, what is new, what is compared."""
    import pyarrow as pa

    positions = rows.index.to_numpy() - unit.first_row + first_row
    compared = np.flatnonzero(np.isin(positions, job.compared))
    try:
        table, unseen, view = _score_rows(model, rows, job.settings, unit.where, compared)
    except LabelsureError:
        raise
    except Exception as error:  # of whatever model is inside
        places = f"rows {unit.first_row} to {unit.first_row + unit.n_rows - 1} of {unit.where}"
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise _ModelError(f"The model could not score {places} ({reason}).") from error
    schema = _make_schema(model, rows, job.settings)
    arrow = pa.Table.from_pandas(table, schema, preserve_index=False).replace_schema_metadata(None)
    place = int("id" in table)
    arrow = arrow.add_column(place, "file", pa.array([unit.source] * len(rows), pa.string()))
    arrow = arrow.add_column(place + 1, "row", pa.array(rows.index.to_numpy(), pa.int64()))
    if job.audited is not None:
        chosen = pa.array(np.isin(positions, job.audited))
        arrow = arrow.add_column(place + 2, "audit", chosen)
    return arrow, unseen, view


def _describe_bad_rows(unit: Unit, bad: dict[int, str]) -> list[dict[str, Any]]:
    """Return where each bad row is, why it cannot be used, and its values where they are known."""
    if not bad:
        return []
    whole, _ = read_rows(unit)
    rows = sorted(bad)
    readable = whole.loc[whole.index.isin(rows)]
    values = dict(zip(readable.index.tolist(), plain_records(readable), strict=True))
    return [
        {
            "file": unit.source,
            "row": row,
            "line": line,
            "reason": bad[row],
            "values": values.get(row),
        }
        for row, line in zip(rows, find_lines(unit, rows), strict=True)
    ]


# Runs

FOLDER_SUFFIX = ".parquet"
"""Of the parts of a folder, which has no suffix to say another one."""

STREAM_SUFFIX = ".csv"
"""What a device or a pipe gets whose name has no suffix."""


@dataclass(frozen=True)
class ScoreRun:
    """What `score_files` has written.

    Parameters
    ----------
    out
        The file or the folder.
    n_rows
        Predictions in it.
    n_bad
        Rows that were set aside.
    n_accepted
        Predictions that the policy accepts; None without a target or a share.
    mean_estimated
        The mean of the estimated accuracies.
    n_parts, n_kept
        Parts in all, and those that an earlier run had finished.
    n_audited
        Rows that chance has chosen for an audit.
    shift
        Whether the rows are like the calibration set, by at most 2,000 of them that chance has
        chosen, or why that was not tested.
    shift_found
        Whether they are not.
    """

    out: str
    n_rows: int
    n_bad: int
    n_accepted: int | None
    mean_estimated: float
    n_parts: int
    n_kept: int
    n_audited: int
    shift: str
    shift_found: bool


Progress = Callable[[int, int], None]
"""Called with the number of rows that are finished, and of all."""


def score_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    out: AnyPath,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    sep: str = NAME_SEPARATOR,
    csv_sep: str | None = None,
    open_cost: float | None = None,
    spreadsheet_safe: bool = False,
    audit: int | None = None,
    seed: int = 0,
    bad_rows: AnyPath | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ScoreRun:
    """Score the rows of files, in parts that fit into memory, and write a table.

    Each part is written once and as a whole. Interrupted, the same call goes on where it was. Parts
    follow from the input alone, so that neither the number of jobs nor a cluster changes a bit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), random_state=0).fit(X, X > 0)
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     model.save(folder / "signs.labelsure")
    ...     X.to_csv(folder / "new.csv", index=False)
    ...     run = score_files(folder / "signs.labelsure", folder / "new.csv", folder / "out.csv")
    ...     table = pd.read_csv(folder / "out.csv")
    >>> run.n_rows, list(table.columns[:4])
    (200, ['file', 'row', 'predicted', 'probability'])
    """
    inputs = [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)
    n_jobs = check_jobs(n_jobs, n_threads())
    settings = ScoreSettings(id_column, top, probabilities, open_cost)
    path = str(out) if is_address(out) else str(expand_path(out))
    aside = None if bad_rows is None else _check_bad_rows(expand_path(bad_rows))
    check_outputs([path, *([] if aside is None else [aside])], [model, *inputs])
    file = ModelFile.find(model, trust, packed=scheduler is not None)
    fitted = file.load()  # what is wrong with it is said before anything is written
    parts = list_parts(inputs, fitted, id_column, csv_sep)
    n_total = parts[-1].first_row + parts[-1].n_rows
    audited = None if audit is None else _choose_rows(n_total, audit, seed)
    compared = sample_rows(n_total)
    names = dict.fromkeys(unit.path for part in parts for unit in part.slices)
    text = {"sep": sep, "csv_sep": csv_sep or "", "spreadsheet_safe": spreadsheet_safe}
    manifest = {
        "labelsure": __version__,
        "model": file.checksum,
        "inputs": [describe_file_state(name) for name in names],
        "settings": {**asdict(settings), **text, "audit": audit, "seed": seed},
    }
    with ExitStack() as stack:
        place = path
        if not is_address(path) and is_stream(Path(path)):
            folder = stack.enter_context(TemporaryDirectory())
            place = f"{folder}/predictions{check_suffix(Path(path).suffix or STREAM_SUFFIX)}"
        store, suffix = _find_store(place, is_folder=str(out).endswith("/"))
        _check_text(suffix, sep, spreadsheet_safe, fitted)
        finished = FinishedOutput(place, {**manifest, "bad_rows": aside})
        if not store.keeps_parts:
            is_begun = store.find_change(manifest) == ""
            found = finished.find(overwrite=overwrite or is_begun)
            if found is not None:
                return ScoreRun(**{**found, "out": path, "n_kept": len(parts)})
        with store.locked(manifest, overwrite=overwrite), watched_workers():
            if aside is not None:
                store.check_bad_rows(aside, overwrite=overwrite)
            key = checksum_bytes(json.dumps(manifest, sort_keys=True).encode())
            jobs = {
                f"part-{part.number:05d}{suffix}": PartJob(
                    part,
                    f"part-{part.number:05d}{suffix}",
                    PartStore(store.place),
                    key,
                    settings,
                    text,
                    None if audited is None else part.choose(audited),
                    part.choose(compared),
                    aside is not None,
                )
                for part in parts
            }
            notes, n_kept = _run(store, jobs, file, n_jobs, scheduler, progress)
            if aside is not None:
                _write_bad_rows(aside, notes)
            if not (n_rows := sum(part["n_rows"] for part in notes.values())):
                raise DataError(
                    "The input must have at least one row that can be scored, none can."
                )
            if not store.keeps_parts:
                _join(store, suffix, notes, csv_sep or "")
        if place != path:
            send_file(Path(place), Path(path))
    _warn_of_values(notes)
    accepted = [part["n_accepted"] for part in notes.values() if part["n_rows"]]
    test, untested = fitted.accuracy_estimator_._compare_with_calibration(_join_views(notes))
    run = ScoreRun(
        path,
        n_rows,
        sum(part["n_bad"] for part in notes.values()),
        None if None in accepted else sum(accepted),
        sum(part["total_estimated"] for part in notes.values()) / n_rows,
        len(parts),
        n_kept,
        0 if audited is None else len(audited),
        say_shift(test, untested),
        test is not None and test.found,
    )
    if place == path and not store.keeps_parts:
        finished.note(asdict(run))
    return run


def _run(
    store: ScoredParts,
    jobs: dict[str, PartJob],
    model: ModelFile,
    n_jobs: int,
    scheduler: str | None,
    progress: Progress | None,
) -> tuple[dict[str, dict[str, Any]], int]:
    """Score the parts that are not finished; return the notes of all, and how many were kept."""
    notes: dict[str, dict[str, Any]] = {}
    problems: dict[str, PartProblem] = {}
    n_total = sum(job.part.n_rows for job in jobs.values())
    n_finished = n_kept = 0

    def report(name: str) -> None:
        nonlocal n_finished
        n_finished += jobs[name].part.n_rows
        if progress is not None:
            progress(n_finished, n_total)

    def keep(name: str, noted: dict[str, Any]) -> bool:
        nonlocal n_kept
        if noted["n_bad"] and not jobs[name].sets_aside:  # which were set aside, unlike now
            return False
        notes[name] = noted
        n_kept += 1
        report(name)
        return True

    results = run_parts(
        store,
        {name: job.key for name, job in jobs.items()},
        score_part,
        lambda names: [(jobs[name],) for name in names],
        keep=keep,
        prepare=_load_job,
        n_jobs=n_jobs,
        scheduler=scheduler,
        shared=model,
    )
    for name, found in results:
        if isinstance(found, TaskFailure):
            found = PartProblem(found.message)
        if isinstance(found, PartProblem):
            problems[name] = found
            report(name)
            if not found.is_of_rows:
                break  # the others would meet the same
        else:
            notes[name] = found
            report(name)
    if problems:
        first = problems[min(problems)]
        n_others = len(problems) - 1
        others = f" Other parts that failed in the same way: {n_others}." if n_others else ""
        hint = " Or set such rows aside with `bad_rows`." if first.is_of_rows else ""
        kept = f"{len(notes)} of {len(jobs)} parts are kept."
        raise InputError(f"{first.message}{hint}{others} {kept}")
    return dict(sorted(notes.items())), n_kept


def _find_store(place: str, *, is_folder: bool) -> tuple[ScoredParts, str]:
    suffix = Path(without_options(place)).suffix
    if not suffix or is_folder:
        return ScoredParts(place, keeps_parts=True), FOLDER_SUFFIX
    if is_address(place):
        raise InputError(
            f"The output at an address must be a folder of Parquet files, got {place!r}. Leave out "
            f"{suffix!r}, or write one file here."
        )
    return ScoredParts(place, keeps_parts=False), check_suffix(suffix)


def _check_text(suffix: str, sep: str, spreadsheet_safe: bool, model: Any) -> None:
    """Refuse settings of CSV that cannot be used."""
    if suffix in SEPARATORS:
        check_sep(sep, model.label_names_)
    elif spreadsheet_safe:
        raise InputError(
            "`spreadsheet_safe` is for CSV and TSV, which spreadsheets open, got an output in "
            f"{suffix}. Leave it out, or write CSV."
        )


def _check_bad_rows(path: Path) -> Path:
    if path.suffix.lower() != ".jsonl" and not is_stream(path):
        raise InputError(
            f"The file for bad rows must have a name that ends in .jsonl, got {str(path)!r}."
        )
    return path


def _choose_rows(n_rows: int, n_chosen: int, seed: int) -> Indices:
    """Return rows that chance chooses, each with the same probability, in their order."""
    read_whole_number(n_chosen, "audit")
    rows = np.random.default_rng(seed).choice(n_rows, min(n_chosen, n_rows), replace=False)
    return np.sort(rows)


def _write_bad_rows(path: Path, notes: dict[str, dict[str, Any]]) -> None:
    """Write the rows that were set aside, in the order of the input."""
    rows = (row for part in notes.values() for row in part["bad_rows"])
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_output(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _join(store: ScoredParts, suffix: str, notes: dict[str, dict[str, Any]], csv_sep: str) -> None:
    """Make one file of the parts."""
    contents = (store.read(name, part) for name, part in notes.items() if part["n_rows"])

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            join_parts(contents, suffix, file, csv_sep)

    write_output(Path(store.out), write)


def _join_views(notes: dict[str, dict[str, Any]]) -> pd.DataFrame | None:
    """Return what is compared of all parts, in their order; None without any."""
    import pandas as pd

    views = [part["view"] for part in notes.values() if part["view"]]
    if not views:
        return None
    values = np.concatenate([np.array(values, dtype=np.float32) for _, values in views])
    return pd.DataFrame(values, columns=views[0][0])


def _warn_of_values(notes: dict[str, dict[str, Any]]) -> None:
    """Say which values the model has not met, once for each column."""
    unseen = {name: text for part in notes.values() for name, text in part["unseen"].items()}
    odd = sum((OddAnswers(**part["odd_answers"]) for part in notes.values()), OddAnswers())
    for text in filter(None, [*unseen.values(), str(odd)]):
        warnings.warn(text, UnseenValuesWarning, stacklevel=3)

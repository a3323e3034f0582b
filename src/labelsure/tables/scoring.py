"""`score_frame`: rows in, predictions with their estimated accuracy out; `score_files` maps it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure import __version__
from labelsure._kernels.threads import n_threads, one_thread
from labelsure._runtime import storage
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.processes import TaskFailure, check_jobs, watched_workers
from labelsure._runtime.typing import AnyPath, Indices
from labelsure.distributions._instance_table import check_shown
from labelsure.errors import DataError, InputError, LabelsureError, RowsError, UnseenValuesWarning
from labelsure.estimation._shift import sample_rows, say_shift
from labelsure.labelsets.answers import OddAnswers
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import check_sep
from labelsure.metrics.registry import get_metric
from labelsure.model._assessment import assess_rows, estimate_rows
from labelsure.saving import load
from labelsure.tables.files import (
    UNKNOWN,
    FileSlice,
    TableFile,
    TextFormat,
    arrow_to_frame,
    find_lines,
    list_slices,
    load_slice,
    read_rows,
)
from labelsure.tables.fingerprints import FINGERPRINT, fingerprint_rows
from labelsure.tables.inputs import InputTable, raise_bad_rows
from labelsure.tables.parts import (
    NAME_SEPARATOR,
    SEPARATORS,
    PartStore,
    ScoredParts,
    check_suffix,
    decode_parquet,
    encode_parquet,
    run_parts,
    write_tables,
)
from labelsure.tables.values import decode_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from labelsure.estimation._batch_summary import RowEstimates
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


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
        file = storage.expand_path(path)
        content = storage.read_bytes(file)
        kept = content if packed else None
        return cls(str(file.absolute()), storage.checksum_bytes(content), tuple(trust), kept)

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
            elif storage.checksum_bytes(storage.read_bytes(path)) != self.checksum:
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
    fingerprints: bool = False


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

    rows = _to_pandas(frame)
    settings = ScoreSettings(id_column, top, probabilities, open_cost)
    scorer = FrameScorer(_load_model(model), settings)
    schema = scorer.make_schema(rows)
    if rows.empty:
        table = _empty_table(schema).set_axis(rows.index)
    else:
        table, _ = scorer.score(rows, *scorer.inputs.read(rows))
    if rows is frame:
        return table
    arrow = pa.Table.from_pandas(table, schema, preserve_index=False)
    if isinstance(frame, pa.Table):
        return arrow
    import polars

    return polars.from_arrow(arrow)


def score_schema(
    model: AnyPath | AccuracyAwareClassifier, frame: Any = None, **settings: Any
) -> pa.Schema:
    """Return the columns and types of what `score_frame` returns, as an Arrow schema.

    Parameters
    ----------
    model
        A fitted `AccuracyAwareClassifier`, or the file of one.
    frame
        Rows of the input, of which none is needed: whether there are identifiers, and whether they
        are whole numbers, follows from its columns. None for an input without identifiers.
    **settings
        `id_column`, `top`, `probabilities` and `open_cost` as for `score_frame`.

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
    scorer = FrameScorer(_load_model(model), ScoreSettings(**settings))
    return scorer.make_schema(None if frame is None else _to_pandas(frame))


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
    if not isinstance(frame, pa.Table):
        raise InputError(
            "`frame` must be a pandas or polars DataFrame or a pyarrow Table, got "
            f"{type(frame).__name__}."
        )
    table, reasons = decode_table(frame)
    raise_bad_rows(reasons, "the table")
    return arrow_to_frame(table, "the table")


def _empty_table(schema: pa.Schema) -> pd.DataFrame:
    """Return a table without rows whose types do not depend on values."""
    import pandas as pd

    nullable = {"bool": pd.BooleanDtype(), "int64": pd.Int64Dtype(), "uint64": pd.UInt64Dtype()}
    return schema.empty_table().to_pandas(types_mapper=lambda kind: nullable.get(str(kind)))


class FrameScorer:
    """A model, and what its table of predictions shows."""

    def __init__(self, model: AccuracyAwareClassifier, settings: ScoreSettings) -> None:
        self.model, self.inputs = model, InputTable(model, settings.id_column)
        self._top, self._open_cost = settings.top, settings.open_cost
        shows = settings.probabilities
        self._shows = not self.inputs.is_sparse if shows is None else shows
        self._has_fingerprints = settings.fingerprints

    def make_schema(self, rows: pd.DataFrame | None) -> pa.Schema:
        """Return the columns of the table for some rows, whose ids may be numbers or texts."""
        import pandas as pd
        import pyarrow as pa

        model, names, number = self.model, pa.list_(pa.string()), pa.float64()
        columns: list[tuple[str, Any]] = [
            ("predicted", names),
            ("probability", number),
            ("estimated_accuracy", number),
            ("expected_accuracy", number),
            ("accept", pa.bool_()),
            ("reason", pa.string()),
        ]
        if self._has_fingerprints:
            columns.insert(0, (FINGERPRINT, pa.string()))
        if rows is not None and self.inputs.id_column in rows.columns:
            kind, id_type = rows[self.inputs.id_column].dtype, pa.string()
            if pd.api.types.is_integer_dtype(kind):
                is_unsigned = pd.api.types.is_unsigned_integer_dtype(kind)
                id_type = pa.uint64() if is_unsigned else pa.int64()
            columns.insert(0, ("id", id_type))
        if model.fitted_.comparison.differs:
            columns.append(("own_predicted", names))
        if model.region is not None:
            columns += [("certain", names), ("possible", names)]
        if self._open_cost is not None:
            columns += [("decided", names), ("open", names)]
        for i in range(1, 1 + check_shown(self._top, model.n_labels_)):
            columns += [(f"top_{i}", names), (f"top_{i}_probability", number)]
        if self._shows:
            shown = show_names(model.label_names_, model.n_labels_)
            columns += [(f"probability_{name}", number) for name in shown]
        return pa.schema(columns)

    def score(
        self, rows: pd.DataFrame, X: Any, ids: pd.Index | None
    ) -> tuple[pd.DataFrame, RowEstimates]:
        """Return the table of some rows, which the model takes as X, and their estimates."""
        import pandas as pd

        # One labelset will do where only labels are shown: the sweep finds their probabilities.
        fitted, k = self.model.fitted_, self._top or int(self._shows)
        predictions = fitted.predictor.predict(X)
        estimated = estimate_rows(fitted, predictions, k)
        found = assess_rows(fitted, predictions, estimated, X)
        table = found.to_frame(self._top, probabilities=self._shows, open_cost=self._open_cost)
        table.index = rows.index
        if self._has_fingerprints:
            table.insert(0, FINGERPRINT, fingerprint_rows(X))
        types = _empty_table(self.make_schema(rows)).dtypes
        if ids is not None:
            is_text = types["id"].kind not in "iu"
            names = [None if pd.isna(one) else str(one) for one in ids] if is_text else ids
            table.insert(0, "id", pd.Series(names, rows.index, dtype=types["id"]))
        return table.astype(types), estimated


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
    """Some rows of the input, perhaps of several files: what one task reads, scores and writes.

    Parameters
    ----------
    number
        0, 1, ... over all files.
    first_row
        Of the part among all rows.
    slices
        What is read at a time, of one file each.
    """

    number: int
    first_row: int
    slices: tuple[FileSlice, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return sum(slice_.n_rows for slice_ in self.slices)

    @property
    def n_bytes(self) -> int:
        """How much its rows take, about."""
        return sum(slice_.n_bytes for slice_ in self.slices)

    def add(self, more: FileSlice) -> Part:
        """Return a part with further rows, as a slice of their own or with those before them."""
        *others, last = self.slices or (None,)
        joined = None if last is None else last.join(more, SLICE_BYTES)
        slices = (*self.slices, more) if joined is None else (*others, joined)
        return replace(self, slices=slices)

    def choose(self, rows: Indices) -> Indices:
        """Return those of some rising row numbers that are here, counted from the first row."""
        ends = np.searchsorted(rows, [self.first_row, self.first_row + self.n_rows])
        return rows[slice(*ends)] - self.first_row


def list_parts(
    inputs: Any, columns: Sequence[str] | None, text: TextFormat = UNKNOWN
) -> list[Part]:
    """Return the parts of files, which follow from the input alone."""
    rows = min(PART_ROWS, FEWEST_PART_ROWS)
    slices = list_slices(inputs, rows=rows, text=text, columns=columns)
    if not slices:
        raise DataError("The input must have at least one row, it has none.")
    n_total = sum(slice_.n_rows for slice_ in slices)
    most = min(PART_ROWS, max(FEWEST_PART_ROWS, -(-n_total // N_PARTS)))
    parts = [Part(0, 0)]
    for slice_ in slices:
        last = parts[-1]
        is_full = last.n_rows + slice_.n_rows > most or last.n_bytes + slice_.n_bytes > PART_BYTES
        if last.slices and is_full:
            parts.append(Part(len(parts), last.first_row + last.n_rows))
        parts[-1] = parts[-1].add(slice_)
    return parts


Progress = Callable[[int, int], None]
"""Called with the number of rows that are finished, and of all."""


@dataclass(frozen=True)
class FileRows:
    """A saved model and the rows of some files, in parts: what scores, estimates, pages map over.

    Parameters
    ----------
    file, model
        The model, as workers load it and as it is here.
    parts
        Of the files, by name.
    n_rows
        How many rows there are in all.
    """

    file: ModelFile
    model: AccuracyAwareClassifier
    parts: dict[str, Part]
    n_rows: int

    @classmethod
    def open(
        cls,
        model: AnyPath,
        inputs: Any,
        *,
        id_column: str | None = None,
        text: TextFormat = UNKNOWN,
        trust: Iterable[str] = (),
        packed: bool = False,
    ) -> FileRows:
        """Load the model, so that what is wrong with it is said first, and cut the files."""
        file = ModelFile.find(model, trust, packed=packed)
        fitted = file.load()
        parts = list_parts(inputs, InputTable(fitted, id_column).columns, text)
        names = {f"part-{part.number:05d}.parquet": part for part in parts}
        return cls(file, fitted, names, parts[-1].first_row + parts[-1].n_rows)

    @property
    def files(self) -> list[TableFile]:
        """The files, in their order."""
        slices = (slice_ for part in self.parts.values() for slice_ in part.slices)
        return list(dict.fromkeys(slice_.file for slice_ in slices))

    @property
    def sources(self) -> list[str]:
        """The name of each file, below the input that was given."""
        return list(dict.fromkeys(file.source for file in self.files))

    def map(
        self,
        function: Callable[..., Any],
        tasks: Mapping[str, tuple[Any, ...]],
        *,
        store: PartStore | None = None,
        key: str = "",
        keep: Callable[[str, dict[str, Any]], bool] = lambda name, notes: True,
        n_jobs: int | None = None,
        scheduler: str | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[str, Any, bool]]:
        """Call a function with the model, each part and its task, and yield what comes back.

        That is the name of a part, the result, and whether it was kept in the `store`.
        """
        keys, n_finished = dict.fromkeys(self.parts, key), 0

        def make_tasks(missing: list[str]) -> list[tuple[Any, ...]]:
            return [(function, self.parts[name], *tasks[name]) for name in missing]

        with watched_workers():
            for name, found, is_kept in run_parts(
                store,
                keys,
                run_part,
                make_tasks,
                keep=keep,
                prepare=_load_task,
                n_jobs=check_jobs(n_jobs, n_threads()),
                scheduler=scheduler,
                shared=self.file,
            ):
                yield name, found, is_kept
                n_finished += self.parts[name].n_rows
                if progress is not None:
                    progress(n_finished, self.n_rows)


def _load_task(function: Any, part: Part, *task: Any) -> tuple[Any, ...]:
    """Return a task with the bytes of compressed files, which one process reads for all."""
    return function, replace(part, slices=tuple(map(load_slice, part.slices))), *task


def run_part(file: ModelFile, function: Callable[..., Any], *task: Any) -> Any:
    """Call a function with the model in a worker; what goes wrong is returned, not raised."""
    try:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # those of the model were shown when the run began
            return function(file.load(), *task)
    except RowsError as error:
        return TaskFailure(RowsError.__name__, str(error))
    except LabelsureError as error:
        return TaskFailure(type(error).__name__, str(error))
    except OSError as error:
        name = "" if error.filename is None else f": {str(error.filename)!r}"
        return TaskFailure("OSError", f"{error.strerror or storage.first_line(error)}{name}.")


@dataclass(frozen=True)
class SliceRows:
    """Some rows of a part that are read at a time.

    Parameters
    ----------
    slice
        Where they are.
    rows, X, ids
        As they were read, as the model takes them, and their names.
    positions
        Of the rows among all rows of the part, from 0.
    """

    slice: FileSlice
    rows: pd.DataFrame
    X: Any
    ids: pd.Index | None
    positions: Indices


def read_slices(
    inputs: InputTable,
    part: Part,
    *,
    columns: Iterable[str] = (),
    chosen: Indices | None = None,
    bad: list[dict[str, Any]] | None = None,
) -> Iterator[SliceRows]:
    """Yield the rows of a part, or some of them, with some more columns.

    Bad rows are refused, or put into `bad`.
    """
    first_row = 0
    wanted = None if inputs.columns is None else [*dict.fromkeys((*inputs.columns, *columns))]
    for slice_ in part.slices:
        rows, reasons = read_rows(slice_, wanted)
        if reasons and bad is None:
            raise RowsError(reasons, slice_.where)
        if chosen is not None:
            rows = rows[np.isin(rows.index - slice_.first_row + first_row, chosen)]
        try:
            X, ids = inputs.read(rows, slice_.where) if len(rows) else (None, None)
        except RowsError as error:
            if bad is None:
                raise
            reasons |= {int(row): reason for row, reason in error.reasons.items()}
            rows = rows.drop(index=list(error.reasons))
            X, ids = inputs.read(rows, slice_.where) if len(rows) else (None, None)
        if bad is not None:
            bad += _describe_bad_rows(slice_, reasons)
        if len(rows):
            yield SliceRows(
                slice_, rows, X, ids, rows.index.to_numpy() - slice_.first_row + first_row
            )
        first_row += slice_.n_rows


def _describe_bad_rows(slice_: FileSlice, bad: dict[int, str]) -> list[dict[str, Any]]:
    """Return where each bad row is, why it cannot be used, and its values where they are known."""
    if not bad:
        return []
    whole, _ = read_rows(slice_)
    rows = sorted(bad)
    readable = whole.loc[whole.index.isin(rows)]
    values = dict(zip(readable.index.tolist(), plain_records(readable), strict=True))
    return [
        {
            "file": slice_.file.source,
            "row": row,
            "line": line,
            "reason": bad[row],
            "values": values.get(row),
        }
        for row, line in zip(rows, find_lines(slice_, rows), strict=True)
    ]


def plain_records(frame: pd.DataFrame) -> Any:
    """Return rows as JSON can hold them, infinite numbers as text."""
    columns = {
        name: column.astype(object).where(~np.isinf(column), column.astype(str))
        if column.dtype.kind == "f"
        else column
        for name, column in frame.items()
    }
    text = type(frame)(columns).to_json(
        orient="records",
        date_format="iso",
        double_precision=15,
        default_handler=lambda value: value.tolist() if hasattr(value, "tolist") else str(value),
    )
    return json.loads(text)


def join_views(views: Iterable[pd.DataFrame]) -> pd.DataFrame | None:
    """Return what is compared of all parts, in their order; None without any."""
    import pandas as pd

    seen = list(views)
    return pd.concat(seen, ignore_index=True).astype(np.float32) if seen else None


def score_part(
    model: AccuracyAwareClassifier,
    part: Part,
    store: PartStore,
    name: str,
    key: str,
    settings: ScoreSettings,
    audited: Indices | None,
    compared: Indices,
    sets_aside: bool,
) -> dict[str, Any]:
    """Score a part, write it to the store under a name and with a key, and return its notes.

    Of `audited` and `compared` rows it notes which are here, and what is compared of them; bad rows
    are set aside or refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tables, summaries, unseen, odd = [], [], dict[str, str](), OddAnswers()
    scorer = FrameScorer(model, settings)
    bad: list[dict[str, Any]] | None = [] if sets_aside else None
    for some in read_slices(scorer.inputs, part, bad=bad):
        try:
            frame, found = scorer.score(some.rows, some.X, some.ids)
        except LabelsureError:
            raise
        except Exception as error:  # of whatever model is inside
            rows = f"rows {some.rows.index[0]} to {some.rows.index[-1]} of {some.slice.where}"
            reason = f"{type(error).__name__}: {storage.first_line(error)}"
            raise DataError(f"The model could not score {rows} ({reason}).") from error
        schema = scorer.make_schema(some.rows)
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        place = int(some.ids is not None)
        identity = {
            "file": pa.array([some.slice.file.source] * len(frame)),
            "row": pa.array(frame.index),
        }
        if audited is not None:
            identity["audit"] = pa.array(np.isin(some.positions, audited))
        for column, values in reversed(identity.items()):
            table = table.add_column(place, column, values)
        tables.append(table.replace_schema_metadata(None))
        viewed = np.flatnonzero(np.isin(some.positions, compared))
        if model.accuracy_estimator_.can_compare:
            summaries.append(found.summarise(viewed))
        unseen |= scorer.inputs.find_unseen(some.X)
        odd += scorer.inputs.count_odd_answers(some.rows)
    table = pa.concat_tables(tables) if tables else None
    view = reduce(add, summaries).view if summaries else None
    accept = None if table is None or table["accept"].null_count else table["accept"]
    notes = {
        "key": key,
        "n_rows": 0 if table is None else len(table),
        "n_bad": len(bad or ()),
        "n_accepted": None if accept is None else pc.sum(accept).as_py(),
        "total_estimated": 0.0 if table is None else pc.sum(table["estimated_accuracy"]).as_py(),
        "unseen": unseen,
        "odd_answers": asdict(odd),
        "view": None if view is None else view.to_dict("list"),
        "bad_rows": bad or [],
    }
    return store.write(name, b"" if table is None else encode_parquet(table), notes)


# Runs

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
    metric
        The name of the accuracy.
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
    metric: str
    mean_estimated: float
    n_parts: int
    n_kept: int
    n_audited: int
    shift: str
    shift_found: bool


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
    encoding: str | None = None,
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
    import pandas as pd

    inputs = [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)
    settings = ScoreSettings(id_column, top, probabilities, open_cost, audit is not None)
    path = str(out) if storage.is_address(out) else str(storage.expand_path(out))
    aside = None if bad_rows is None else check_bad_rows(storage.expand_path(bad_rows))
    storage.check_outputs([path, *([] if aside is None else [aside])], [model, *inputs])
    rows = FileRows.open(
        model,
        inputs,
        id_column=id_column,
        text=TextFormat(csv_sep, encoding),
        trust=trust,
        packed=scheduler is not None,
    )
    audited = None if audit is None else _choose_rows(rows.n_rows, audit, seed)
    compared = sample_rows(rows.n_rows)
    manifest = {
        "labelsure": __version__,
        "model": rows.file.checksum,
        "inputs": [list(file.state) for file in rows.files],
        "settings": {
            **asdict(replace(settings, fingerprints=False)),  # which `audit` says
            "audit": audit,
            "seed": seed,
            "csv_sep": csv_sep,
            "encoding": encoding,
        },
    }
    text: dict[str, Any] = {"sep": sep, "csv_sep": csv_sep, "spreadsheet_safe": spreadsheet_safe}
    is_piped = not storage.is_address(path) and storage.is_stream(Path(path))
    suffix = _find_suffix(path, is_folder=str(out).endswith("/"), is_piped=is_piped)
    _check_text(suffix, sep, spreadsheet_safe, rows.model)
    set_aside = None if aside is None else storage.FinishedOutput(aside, {**manifest, "out": path})
    finished = storage.FinishedOutput(path, {**manifest, **text, "bad_rows": aside})
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if is_piped else ""
        store = ScoredParts(f"{folder}/stream" if is_piped else path, keeps_parts=not suffix)
        replaced = None
        if overwrite and not suffix and not store.is_remote and store.find_change(manifest):
            # Old predictions stay until the new ones are finished.
            replaced, store = store, ScoredParts(f"{store.place}.new", keeps_parts=True)
        if suffix and not is_piped:
            is_begun = store.find_change(manifest) == ""
            noted = finished.find(overwrite=overwrite or is_begun)
            if noted is not None:
                return ScoreRun(**{**noted, "out": path, "n_kept": len(rows.parts)})
        stack.enter_context(store.locked(manifest, overwrite=overwrite))
        if set_aside is not None:
            set_aside.find(overwrite=overwrite)
        key = storage.checksum_bytes(json.dumps(manifest, sort_keys=True).encode())
        place = PartStore(store.place)  # without what only this process needs
        tasks = {}
        for name, part in rows.parts.items():
            audits = None if audited is None else part.choose(audited)
            more = (settings, audits, part.choose(compared), set_aside is not None)
            tasks[name] = (place, name, key, *more)
        results = rows.map(
            score_part,
            tasks,
            store=store,
            key=key,
            # Rows that were set aside stay so only where that is wanted now.
            keep=lambda name, noted: not noted["n_bad"] or set_aside is not None,
            n_jobs=n_jobs,
            scheduler=scheduler,
            progress=progress,
        )
        notes: dict[str, dict[str, Any]] = {}
        kept: list[str] = []
        names = _finish_parts(results, notes, kept, len(tasks))
        if is_piped:
            with storage.open_stream(Path(path)) as pipe:
                write_tables(_read_in_order(store, names, notes, list(tasks)), suffix, pipe, **text)
        else:
            for _ in names:
                pass
        notes = dict(sorted(notes.items()))
        if set_aside is not None:
            rows_aside = [row for some in _list_noted(notes, "bad_rows") for row in some]
            write_bad_rows(set_aside, rows_aside)
        if not (n_rows := sum(part["n_rows"] for part in notes.values())):
            raise DataError("The input must have at least one row that can be scored, none can.")
        if suffix and not is_piped:
            tables = _read_in_order(store, iter(notes), notes, list(notes))
            storage.write_output(Path(path), lambda file: _write_file(tables, suffix, file, text))
    _warn_of_values(notes)
    accepted = [part["n_accepted"] for part in notes.values() if part["n_rows"]]
    view = join_views([pd.DataFrame(columns) for columns in _list_noted(notes, "view")])
    test, untested = rows.model.accuracy_estimator_.compare_with_calibration(view)
    run = ScoreRun(
        path,
        n_rows,
        sum(part["n_bad"] for part in notes.values()),
        None if None in accepted else sum(accepted),
        get_metric(rows.model.metric).title,
        sum(part["total_estimated"] for part in notes.values()) / n_rows,
        len(tasks),
        len(kept),
        0 if audited is None else len(audited),
        say_shift(test, untested),
        test is not None and test.found,
    )
    if suffix and not is_piped:
        finished.note(asdict(run))
    if replaced is not None:
        replaced.replace_by(store)
    return run


def _finish_parts(
    results: Iterable[tuple[str, Any, bool]],
    notes: dict[str, dict[str, Any]],
    kept: list[str],
    n_parts: int,
) -> Iterator[str]:
    """Note the parts as they are finished, and yield their names; refuse at last what failed."""
    failed: dict[str, TaskFailure] = {}
    for name, found, is_kept in results:
        if isinstance(found, TaskFailure):
            failed[name] = found
            if found.error != RowsError.__name__:
                break  # the others would meet the same
            continue
        notes[name] = found
        kept += [name] * is_kept
        yield name
    if failed:
        first = failed[min(failed)]
        others = len(failed) - 1
        more = f" Other parts that failed in the same way: {others}." if others else ""
        is_of_rows = first.error == RowsError.__name__
        hint = " Or set such rows aside with `bad_rows`." if is_of_rows else ""
        raise InputError(f"{first.message}{hint}{more} {len(notes)} of {n_parts} parts are kept.")


def _read_in_order(
    store: PartStore, names: Iterable[str], notes: Mapping[str, Any], order: list[str]
) -> Iterator[pa.Table]:
    """Yield the tables of parts in their order, each as soon as those before it are finished."""
    at = 0
    for _ in names:
        while at < len(order) and (noted := notes.get(order[at])) is not None:
            if noted["n_rows"]:
                yield decode_parquet(store.read(order[at], noted))
            at += 1


def _write_file(tables: Iterable[pa.Table], suffix: str, path: Path, text: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        write_tables(tables, suffix, file, **text)


def _find_suffix(path: str, *, is_folder: bool, is_piped: bool) -> str:
    """Return the suffix of the file to write; "" for a folder of parts."""
    suffix = Path(storage.without_options(path)).suffix
    if is_piped:
        return check_suffix(suffix or STREAM_SUFFIX)
    if not suffix or is_folder:
        return ""
    if storage.is_address(path):
        raise InputError(
            f"The output at an address must be a folder of Parquet files, got {path!r}. Leave out "
            f"{suffix!r}, or write one file here."
        )
    if Path(path).is_dir():
        raise InputError(f"{path!r} exists already, and is a folder. Choose another name.")
    return check_suffix(suffix)


def _check_text(
    suffix: str, sep: str, spreadsheet_safe: bool, model: AccuracyAwareClassifier
) -> None:
    """Refuse settings of CSV that cannot be used."""
    if suffix in SEPARATORS:
        check_sep(sep, model.label_names_)
    elif spreadsheet_safe:
        raise InputError(
            "`spreadsheet_safe` is for CSV and TSV, which spreadsheets open, got an output in "
            f"{suffix or 'Parquet'}. Leave it out, or write CSV."
        )


def check_bad_rows(path: Path) -> Path:
    """Return the file for bad rows if its name says JSONL."""
    if path.suffix.lower() != ".jsonl" and not storage.is_stream(path):
        raise InputError(
            f"The file for bad rows must have a name that ends in .jsonl, got {str(path)!r}."
        )
    return path


def _choose_rows(n_rows: int, n_chosen: int, seed: int) -> Indices:
    """Return rows that chance chooses, each with the same probability, in their order."""
    read_whole_number(n_chosen, "audit")
    rows = np.random.default_rng(seed).choice(n_rows, min(n_chosen, n_rows), replace=False)
    return np.sort(rows)


def _list_noted(notes: dict[str, dict[str, Any]], name: str) -> list[Any]:
    return [part[name] for part in notes.values() if part[name]]


def write_bad_rows(output: storage.FinishedOutput, rows: list[dict[str, Any]]) -> int:
    """Write rows that were set aside, in the order of the input; return how many they are."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    storage.write_output(output.path, lambda file: file.write_text(text, encoding="utf-8"))
    output.note({})
    return len(rows)


def _warn_of_values(notes: dict[str, dict[str, Any]]) -> None:
    """Say which values the model has not met, once for each column."""
    unseen = {name: text for some in _list_noted(notes, "unseen") for name, text in some.items()}
    odd = sum((OddAnswers(**some) for some in _list_noted(notes, "odd_answers")), OddAnswers())
    for text in filter(None, [*unseen.values(), str(odd)]):
        warnings.warn(text, UnseenValuesWarning, stacklevel=3)

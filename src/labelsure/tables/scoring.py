"""`score_frame`: rows in, predictions with their estimated accuracy out; `score_files` maps it."""

from __future__ import annotations

import json
import warnings
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from hashlib import sha256
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
from labelsure._runtime.limits import MORE_MEMORY, is_out_of_memory
from labelsure._runtime.processes import TaskFailure, check_jobs, run_tasks, watched_workers
from labelsure._runtime.runs import FinishedOutput, PartStore, make_key
from labelsure._runtime.typing import AnyPath, FeaturesLike, Floats, FrameLike, JsonObject, Mask
from labelsure.distributions._instance_table import check_shown
from labelsure.errors import DataError, InputError, LabelsureError, RowsError, UnseenValuesWarning
from labelsure.estimation._batch_summary import ComparedRows
from labelsure.estimation._shift import describe_shift
from labelsure.labelsets.answers import OddAnswers
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import check_sep
from labelsure.metrics.registry import get_metric
from labelsure.model._assessment import assess_rows
from labelsure.saving import load
from labelsure.tables.files import (
    UNKNOWN,
    Chunk,
    TableFile,
    TextFormat,
    arrow_to_frame,
    check_unchanged,
    find_rows,
    list_files,
    list_inputs,
    name_lines,
    read_chunks,
)
from labelsure.tables.inputs import InputTable, raise_bad_rows
from labelsure.tables.parts import (
    NAME_SEPARATOR,
    SEPARATORS,
    ScoredParts,
    check_suffix,
    write_tables,
)
from labelsure.tables.truth import FINGERPRINT, fingerprint_rows
from labelsure.tables.values import decode_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import ArrayLike

    from labelsure.estimation._batch_summary import RowEstimates
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


# The pure function


@dataclass(frozen=True)
class ModelFile:
    """A saved model, which every process loads once.

    Parameters
    ----------
    path
        Absolute path.
    checksum
        SHA-256 of the file.
    trust
        Types that may be built, as for `labelsure.load`.
    content
        Bytes of the file, for workers on other machines.
    """

    path: str
    checksum: str
    trust: tuple[str, ...] = ()
    content: bytes | None = field(default=None, repr=False)

    @classmethod
    def find(cls, path: AnyPath, trust: Iterable[str] = (), *, packed: bool = False) -> ModelFile:
        """Model file with its checksum, and with its bytes if `packed`."""
        file = storage.expand_path(path)
        content = storage.read_bytes(file)
        kept = content if packed else None
        return cls(str(file.absolute()), storage.checksum_bytes(content), tuple(trust), kept)

    @classmethod
    def pack(cls, model: AnyPath | AccuracyAwareClassifier) -> ModelFile:
        """Model with its bytes, which can be sent to any machine."""
        if isinstance(model, (str, PathLike)):
            return cls.find(model, packed=True)
        with TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.labelsure")
            return cls.find(Path(folder) / "model.labelsure", packed=True)

    def load(self) -> AccuracyAwareClassifier:
        """The model. Raises DataError if its file has changed."""
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
    """Options of the table of predictions, as for `score_frame`."""

    id_column: str | None = None
    top: int = 3
    probabilities: bool | None = None
    open_cost: float | None = None
    fingerprints: bool = False


def score_frame(
    model: AnyPath | AccuracyAwareClassifier,
    frame: FrameLike,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    open_cost: float | None = None,
) -> FrameLike:
    """Predictions and estimated accuracies of the rows of a table.

    The result of a row does not depend on other rows, up to rounding: any engine that maps a
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
    score_schema : Columns and types of the result.
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
    model: AnyPath | AccuracyAwareClassifier, frame: FrameLike = None, **settings: Any
) -> pa.Schema:
    """Columns and types of the result of `score_frame`, as an Arrow schema.

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
    frame: FrameLike,
    model: AnyPath | AccuracyAwareClassifier,
    **settings: Any,
) -> FrameLike:
    """Predictions for a Dask DataFrame as a Dask DataFrame: `score_frame`, lazily.

    The model travels in a task of its own, which is computed again where its worker dies. Each
    worker loads it once. Only the workers read the data and write the results.

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


def _score_partition(rows: pd.DataFrame, file: ModelFile, settings: JsonObject) -> pd.DataFrame:
    with one_thread():
        table: pd.DataFrame = score_frame(file.load(), rows, **settings)
    return table


def _load_model(model: AnyPath | AccuracyAwareClassifier) -> AccuracyAwareClassifier:
    return ModelFile.find(model).load() if isinstance(model, (str, PathLike)) else model


def _to_pandas(frame: FrameLike) -> pd.DataFrame:
    """Table of any kind as a DataFrame whose types do not depend on the values."""
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
    """Empty table of a schema, with nullable integers and truth values."""
    import pandas as pd

    nullable = {"bool": pd.BooleanDtype(), "int64": pd.Int64Dtype(), "uint64": pd.UInt64Dtype()}
    return schema.empty_table().to_pandas(types_mapper=lambda kind: nullable.get(str(kind)))


class FrameScorer:
    """Model with the columns of its table of predictions."""

    def __init__(self, model: AccuracyAwareClassifier, settings: ScoreSettings) -> None:
        self.model, self.inputs = model, InputTable(model, settings.id_column)
        shows = settings.probabilities
        self._settings = settings
        self._shows_probabilities = not self.inputs.is_sparse if shows is None else shows

    def make_schema(self, rows: pd.DataFrame | None) -> pa.Schema:
        """Schema of the table for some rows, whose ids may be numbers or texts."""
        import pandas as pd
        import pyarrow as pa

        model, names, number = self.model, pa.list_(pa.string()), pa.float64()
        columns: list[tuple[str, pa.DataType]] = [
            ("predicted", names),
            ("probability", number),
            ("estimated_accuracy", number),
            ("expected_accuracy", number),
            ("accept", pa.bool_()),
            ("reason", pa.string()),
        ]
        if self._settings.fingerprints:
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
        if self._settings.open_cost is not None:
            columns += [("decided", names), ("open", names)]
        for i in range(1, 1 + check_shown(self._settings.top, model.n_labels_)):
            columns += [(f"top_{i}", names), (f"top_{i}_probability", number)]
        if self._shows_probabilities:
            shown = show_names(model.label_names_, model.n_labels_)
            columns += [(f"probability_{name}", number) for name in shown]
        return pa.schema(columns)

    def score(
        self, rows: pd.DataFrame, X: FeaturesLike, ids: pd.Index | None
    ) -> tuple[pd.DataFrame, RowEstimates]:
        """Table of predictions for rows, whose features are X, and their estimates."""
        import pandas as pd

        # One labelset will do where only labels are shown: the sweep finds their probabilities.
        fitted, k = self.model.fitted_, self._settings.top or int(self._shows_probabilities)
        predictions = fitted.predictor.predict(X)
        estimated = fitted.estimate_rows(predictions, k=k)
        assessment = assess_rows(fitted, predictions, estimated, X)
        table = assessment.to_frame(
            self._settings.top,
            probabilities=self._shows_probabilities,
            open_cost=self._settings.open_cost,
        )
        table.index = rows.index
        if self._settings.fingerprints:
            table.insert(0, FINGERPRINT, fingerprint_rows(X))
        types = _empty_table(self.make_schema(rows)).dtypes
        if ids is not None:
            is_text = types["id"].kind not in "iu"
            names = [None if pd.isna(one) else str(one) for one in ids] if is_text else ids
            table.insert(0, "id", pd.Series(names, rows.index, dtype=types["id"]))
        return table.astype(types), estimated

    def score_rows(self, usable: ReadRows) -> tuple[pd.DataFrame, RowEstimates]:
        """Like `score`. Raises DataError that names the rows for any exception of the model."""
        try:
            return self.score(usable.rows, usable.X, usable.ids)
        except LabelsureError:
            raise
        except Exception as error:  # of whatever model is inside
            if is_out_of_memory(error):
                raise InputError(MORE_MEMORY) from error
            rows = f"rows {usable.rows.index[0]} to {usable.rows.index[-1]} of {usable.chunk.where}"
            reason = f"{type(error).__name__}: {storage.first_line(error)}"
            raise DataError(f"The model could not score {rows} ({reason}).") from error


# Rows of files


def draw_keys(source: str, rows: ArrayLike, seed: str = "") -> Floats:
    """Random number in [0, 1) for each row of a file (SplitMix64).

    Rows with the smallest keys are a random sample, whoever reads them and in whatever order.

    Examples
    --------
    >>> draw_keys("new.csv", np.arange(3)).round(3)
    array([0.547, 0.267, 0.034])
    """
    start = int.from_bytes(sha256(f"{seed}/{source}".encode()).digest()[:8], "little")
    bits = (np.asarray(rows).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits += np.uint64(start)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


Progress = Callable[[int, int | None], None]
"""Called with the number of rows that are finished, and of all rows once that is known."""


def part_name(file: int, chunk: int) -> str:
    """File name of the part of a chunk; names sort like (file, chunk)."""
    return f"part-{file:05d}-{chunk:05d}.parquet"


PartResult = tuple[str, int, Any]
"""Name of a part, number of rows, and result."""


@dataclass(frozen=True)
class FileRows:
    """A saved model and the files whose rows it predicts, over which commands map functions.

    Parameters
    ----------
    file, model
        Model file that workers load, and the loaded model.
    files, columns
        Files, and columns that the model needs; None for all.
    """

    file: ModelFile
    model: AccuracyAwareClassifier
    files: list[TableFile]
    columns: list[str] | None

    @classmethod
    def open(
        cls,
        model: AnyPath,
        inputs: AnyPath | Iterable[AnyPath],
        *,
        id_column: str | None = None,
        columns: Iterable[str] = (),
        text: TextFormat = UNKNOWN,
        trust: Iterable[str] = (),
        packed: bool = False,
    ) -> FileRows:
        """Load the model, whose errors come first, and list the files."""
        file = ModelFile.find(model, trust, packed=packed)
        fitted = file.load()
        wanted = InputTable(fitted, id_column).columns
        if wanted is not None:
            wanted = [*dict.fromkeys((*wanted, *columns))]
        return cls(file, fitted, list_files(inputs, wanted, text), wanted)

    @property
    def sources(self) -> list[str]:
        """Name of each file, relative to the input."""
        return [file.source for file in self.files]

    def read(self) -> Iterator[tuple[str, Chunk]]:
        """Yield the chunks of all files, with the names of their parts."""
        for number, file in enumerate(self.files):
            for chunk in read_chunks(file, self.columns):
                yield part_name(number, chunk.number), chunk

    def map(
        self,
        function: Callable[..., Any],
        *task: Any,
        n_jobs: int | None = None,
        scheduler: str | None = None,
        ordered: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[tuple[str, Any]]:
        """Call a function with the model, each chunk, its part's name, and the task.

        Yields the name of each part and the result. A cluster gets one task a file; here one
        process reads, and others call the function.
        """
        n_finished, states = 0, [file.state for file in self.files]
        settings: JsonObject = {"shared": self.file, "ordered": ordered}
        settings["n_jobs"] = check_jobs(n_jobs, n_threads())
        if scheduler is None:
            results = self._map_here(function, task, settings)
        else:
            results = self._map_on_cluster(function, task, {**settings, "scheduler": scheduler})
        with watched_workers(), closing(results):
            for name, n_rows, result in results:
                yield name, result
                n_finished += n_rows
                if progress is not None:
                    progress(n_finished, None)
        for file, state in zip(self.files, states, strict=True):
            check_unchanged(file, state)

    def _map_here(self, function: Any, task: Any, settings: JsonObject) -> Generator[PartResult]:
        sent, failed = list[tuple[str, int]](), list[Exception]()

        def make_tasks() -> Iterator[tuple[object, ...]]:
            try:
                for name, chunk in self.read():
                    sent.append((name, chunk.n_rows))
                    yield function, chunk, name, *task
            except Exception as error:  # joblib would lose it
                failed.append(error)

        for number, result in run_tasks(run_chunk, make_tasks(), **settings):
            yield *sent[number], result
        if failed:
            raise failed[0]

    def _map_on_cluster(
        self, function: object, task: object, settings: JsonObject
    ) -> Generator[PartResult]:
        tasks = [
            (function, replace(self, files=[file]), number, task)
            for number, file in enumerate(self.files)
        ]
        for number, part_results in run_tasks(run_file, tasks, **settings):
            if isinstance(part_results, TaskFailure):
                part_results = [(part_name(number, 0), 0, part_results)]
            yield from part_results


def run_file(
    file: ModelFile, function: Any, rows: FileRows, number: int, task: Any
) -> list[PartResult]:
    """Results of a function for the chunks of one file, in a worker."""
    results = list[PartResult]()
    try:
        for chunk in read_chunks(rows.files[0], rows.columns):
            name = part_name(number, chunk.number)
            results.append((name, chunk.n_rows, run_chunk(file, function, chunk, name, *task)))
    except LabelsureError as error:
        results.append((part_name(number, len(results)), 0, _failure(error)))
    return results


def run_chunk(file: ModelFile, function: Callable[..., Any], *task: Any) -> Any:
    """Result of a function of the model, in a worker; errors are returned, not raised."""
    try:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # those of the model were shown when the run began
            return function(file.load(), *task)
    except RowsError as error:
        return error
    except (LabelsureError, OSError) as error:
        return _failure(error)


def _failure(error: Exception) -> TaskFailure:
    if isinstance(error, OSError) and not isinstance(error, LabelsureError):
        name = "" if error.filename is None else f": {str(error.filename)!r}"
        return TaskFailure("OSError", f"{error.strerror or storage.first_line(error)}{name}.")
    return TaskFailure(type(error).__name__, str(error))


def refuse_failure(result: object, files: Iterable[TableFile]) -> None:
    """Raise the failure of a chunk, with the lines of bad rows."""
    if isinstance(result, RowsError):
        reasons = result.reasons
        for file in files:
            if repr(file.source) == result.where:
                first = dict([next(iter(reasons.items()))])
                reasons = {**reasons, **name_lines(file, first)}
        raise RowsError(reasons, result.where)
    if isinstance(result, TaskFailure):
        raise InputError(result.message)


@dataclass(frozen=True)
class ReadRows:
    """Rows of a chunk that can be used.

    Parameters
    ----------
    chunk
        The chunk.
    rows, X, ids
        Rows as read, features of the model, and row names.
    """

    chunk: Chunk
    rows: pd.DataFrame
    X: FeaturesLike
    ids: pd.Index | None

    @property
    def source(self) -> str:
        """The name of the file."""
        return self.chunk.file.source

    @property
    def keys(self) -> Floats:
        """The random key of each row."""
        return draw_keys(self.source, self.rows.index)

    def take(self, is_taken: Mask) -> ReadRows:
        """Some of the rows, without the content of their chunk."""
        X: Any = None if self.X is None else getattr(self.X, "iloc", self.X)
        X = None if X is None else X[is_taken]
        ids = None if self.ids is None else self.ids[is_taken]
        return ReadRows(replace(self.chunk, content=None), self.rows[is_taken], X, ids)


class BadRows:
    """Rows that cannot be used, by file: set aside in a file, skipped, or refused.

    Parameters
    ----------
    output
        File for bad rows, or None.
    sets_aside
        Whether bad rows are left out; otherwise the first one is an error.
    """

    def __init__(self, output: FinishedOutput | None, *, sets_aside: bool) -> None:
        self.sets_aside, self._output = sets_aside, output
        self.reasons: dict[str, dict[int, str]] = {}

    @classmethod
    def open(
        cls,
        path: AnyPath | None,
        model: AnyPath,
        inputs: list[AnyPath],
        *,
        overwrite: bool,
        skips: bool = False,
    ) -> BadRows:
        """Bad rows with a file, which is checked before anything is computed, or without."""
        if path is None:
            return cls(None, sets_aside=skips)
        place = check_bad_rows(storage.expand_path(path))
        storage.check_output_file(place, [model, *inputs])
        state = storage.describe_files([model, *(one for one in inputs if Path(one).exists())])
        output = FinishedOutput(place, {"labelsure": __version__, "bad_rows_of": state})
        output.find(overwrite=overwrite)
        return cls(output, sets_aside=True)

    def add(self, source: str, reasons: Iterable[tuple[int, str]]) -> None:
        """Add bad rows of a file."""
        self.reasons.setdefault(source, {}).update(reasons)

    def write(self, files: Iterable[TableFile]) -> int:
        """Write bad rows in the order of the input, if there is a file; their number."""
        import pandas as pd

        if self._output is None:
            return 0
        lines = list[str]()
        for file in files:
            reasons = self.reasons.get(file.source, {})
            for row, line, values in find_rows(file, reasons):
                plain = None if values is None else plain_records(pd.DataFrame([values]))[0]
                reason = reasons[row].replace("{line}", str(line), 1)
                record = {"file": file.source, "row": row, "line": line, "reason": reason}
                lines.append(json.dumps({**record, "values": plain}, ensure_ascii=False) + "\n")
        text = "".join(lines)
        storage.write_output(self._output.path, lambda path: path.write_text(text, "utf-8"))
        self._output.note({})
        return len(lines)


def check_bad_rows(path: Path) -> Path:
    """File for bad rows. Raises InputError unless its name ends in .jsonl."""
    if path.suffix.lower() != ".jsonl" and not storage.is_stream(path):
        raise InputError(
            f"The file for bad rows must have a name that ends in .jsonl, got {str(path)!r}."
        )
    return path


def read_rows(inputs: InputTable, chunk: Chunk, bad: dict[int, str] | None = None) -> ReadRows:
    """Usable rows of a chunk; reasons of the others are added to `bad`, or raised if it is None.

    X is None if no row can be used.
    """
    rows, reasons = chunk.read()
    if reasons and bad is None:
        raise RowsError(reasons, chunk.where)
    try:
        X, ids = inputs.read(rows, chunk.where) if len(rows) else (None, None)
    except RowsError as error:
        if bad is None:
            raise
        reasons |= {int(row): reason for row, reason in error.reasons.items()}
        rows = rows.drop(index=list(error.reasons))
        X, ids = inputs.read(rows, chunk.where) if len(rows) else (None, None)
    if bad is not None:
        bad |= dict(sorted(reasons.items()))
    return ReadRows(chunk, rows, X, ids)


def read_files(files: FileRows, inputs: InputTable, bad: BadRows) -> Iterator[ReadRows]:
    """Yield the usable rows of each chunk. Bad rows are set aside or raise RowsError."""
    for _, chunk in files.read():
        reasons: dict[int, str] | None = {} if bad.sets_aside else None
        try:
            usable = read_rows(inputs, chunk, reasons)
        except RowsError as error:
            refuse_failure(error, files.files)
        bad.add(chunk.file.source, (reasons or {}).items())
        if usable.X is not None:
            yield usable


def plain_records(frame: pd.DataFrame) -> Any:
    """Rows as plain values for JSON, infinite numbers as text."""
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


def score_chunk(
    model: AccuracyAwareClassifier,
    chunk: Chunk,
    name: str,
    store: PartStore,
    key: str,
    settings: ScoreSettings,
    sets_aside: bool,
) -> tuple[JsonObject, bool]:
    """Notes of the part of a chunk, and whether an earlier run has written it.

    Otherwise the chunk is scored and written to the store. Bad rows are set aside or refused; a
    part from which rows were set aside is made again where they are refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    earlier_notes = store.find(name, key)
    if earlier_notes is not None and (sets_aside or not earlier_notes["bad"]):
        return earlier_notes, True
    scorer, compared = FrameScorer(model, settings), None
    unseen, odd = dict[str, str](), OddAnswers()
    bad: dict[int, str] | None = {} if sets_aside else None
    usable = read_rows(scorer.inputs, chunk, bad)
    schema = scorer.make_schema(usable.rows)
    table = schema.empty_table()
    if len(usable.rows):
        frame, estimates = scorer.score_rows(usable)
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        if model.accuracy_estimator_.can_compare:
            compared = estimates.summarise(keys=usable.keys).compared
        unseen = scorer.inputs.find_unseen(usable.X)
        odd = scorer.inputs.count_odd_answers(usable.rows)
    place = int("id" in schema.names)
    table = table.add_column(place, "file", pa.array([usable.source] * len(table), pa.string()))
    table = table.add_column(place + 1, "row", pa.array(usable.rows.index, pa.int64()))
    accept = table["accept"]
    notes = {
        "n_rows": len(table),
        "n_accepted": None if accept.null_count else pc.sum(accept, min_count=0).as_py(),
        "total_estimated": pc.sum(table["estimated_accuracy"], min_count=0).as_py(),
        "unseen": unseen,
        "odd_answers": asdict(odd),
        "compared": None if compared is None else _pack(compared),
        "bad": [] if bad is None else list(bad.items()),
        "file": usable.source,
        "first_row": chunk.first_row,
    }
    store.write(name, table.replace_schema_metadata(None), key, notes)
    return notes, False


def _pack(compared: ComparedRows) -> list[object]:
    """Column names, and values and keys of compared rows in base64, twice as fast as JSON."""
    values = compared.view.to_numpy(np.float32), np.asarray(compared.keys, np.float64)
    return [list(compared.view), *(b64encode(part.tobytes()).decode() for part in values)]


def _unpack(names: list[str], values: str, keys: str) -> ComparedRows:
    import pandas as pd

    numbers = np.frombuffer(b64decode(values), np.float32).reshape(-1, len(names))
    return ComparedRows(pd.DataFrame(numbers, columns=names), np.frombuffer(b64decode(keys)))


# Runs

STREAM_SUFFIX = ".csv"
"""Suffix of devices and pipes without one."""


@dataclass(frozen=True)
class ScoreRun:
    """Summary of a run of `score_files`.

    Parameters
    ----------
    out
        The file or the folder.
    n_rows
        Number of predictions.
    n_bad
        Number of rows that were set aside.
    n_accepted
        Number of accepted predictions; None without a target or a share.
    metric
        Title of the metric.
    mean_estimated
        Mean estimated accuracy.
    n_parts, n_kept
        Number of parts, and of those that an earlier run had finished.
    n_audited
        Number of random rows marked for an audit.
    shift
        Result of the shift test on at most 2,000 random rows, or why there was none.
    shift_found
        Whether the test found a shift.
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

    Each part is written as a whole. Interrupted, the same call goes on where it was. Parts follow
    from the input alone, so that neither the number of jobs nor a cluster changes a bit.

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
    inputs = list_inputs(inputs)
    settings = ScoreSettings(id_column, top, probabilities, open_cost, audit is not None)
    path = str(out) if storage.is_address(out) else str(storage.expand_path(out))
    bad_path = None if bad_rows is None else check_bad_rows(storage.expand_path(bad_rows))
    storage.check_outputs([path, *([] if bad_path is None else [bad_path])], [model, *inputs])
    rows = FileRows.open(
        model,
        inputs,
        id_column=id_column,
        text=TextFormat(csv_sep, encoding),
        trust=trust,
        packed=scheduler is not None,
    )
    if audit is not None:
        read_whole_number(audit, "audit")
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
    dialect: JsonObject = {"sep": sep, "csv_sep": csv_sep, "spreadsheet_safe": spreadsheet_safe}
    is_piped = not storage.is_address(path) and storage.is_stream(Path(path))
    suffix = _find_suffix(path, is_folder=str(out).endswith("/"), is_piped=is_piped)
    _check_text(suffix, sep, spreadsheet_safe, rows.model)
    bad_output = None if bad_path is None else FinishedOutput(bad_path, {**manifest, "out": path})
    finished = FinishedOutput(path, {**manifest, **dialect, "bad_rows": bad_path})
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if is_piped else ""
        store = ScoredParts(f"{folder}/stream" if is_piped else path, keeps_parts=not suffix)
        replaced = None
        if overwrite and not suffix and not store.is_remote and store.find_change(manifest):
            # Old predictions stay until the new ones are finished.
            replaced, store = store, ScoredParts(f"{store.place}.new", keeps_parts=True)
            Path(store.place).mkdir(Path(replaced.place).stat().st_mode & 0o777, exist_ok=True)
        if suffix and not is_piped:
            is_begun = store.find_change(manifest) == ""
            earlier = finished.find(overwrite=overwrite or is_begun)
            if earlier is not None:
                return ScoreRun(**{**earlier, "out": path, "n_kept": earlier["n_parts"]})
        stack.enter_context(store.locked(manifest, overwrite=overwrite))
        if bad_output is not None:
            bad_output.find(overwrite=overwrite)
        key = make_key(manifest)
        part_store = PartStore(store.place)  # without what only this process needs
        results = rows.map(
            score_chunk,
            *(part_store, key, settings, bad_output is not None),
            n_jobs=n_jobs,
            scheduler=scheduler,
            ordered=is_piped,
            progress=progress,
        )
        notes: dict[str, JsonObject] = {}
        kept: list[str] = []
        names = _finish_parts(results, notes, kept, rows.files)
        if is_piped and audit is None:
            with storage.open_stream(Path(path)) as pipe:
                write_tables(filter(len, map(part_store.read, names)), suffix, pipe, **dialect)
        else:
            deque(names, maxlen=0)
        notes = dict(sorted(notes.items()))
        if not notes:
            raise DataError("The input must have at least one row, it has none.")
        if bad_output is not None:
            bad = BadRows(bad_output, sets_aside=True)
            for part in notes.values():
                bad.add(part["file"], part["bad"])
            bad.write(rows.files)
        if not (n_rows := sum(part["n_rows"] for part in notes.values())):
            store.clear()
            raise DataError("The input must have at least one row that can be scored, none can.")
        audited = None if audit is None else _draw_audit(notes, audit, seed)
        tables = _read_marked(part_store, notes, audited, seed)
        if is_piped and audited is not None:  # which only all rows together say
            with storage.open_stream(Path(path)) as pipe:
                write_tables((table for _, table in tables), suffix, pipe, **dialect)
        elif not suffix and audited is not None:
            for name, table in tables:
                if not table.equals(part_store.read(name)):
                    part_store.write(name, table, key, notes[name])
        elif suffix and not is_piped:
            whole = (table for _, table in tables)
            storage.write_output(Path(path), lambda file: _write_file(whole, suffix, file, dialect))
    _warn_of_values(notes)
    accepted = [part["n_accepted"] for part in notes.values() if part["n_rows"]]
    compared = [_unpack(*packed) for packed in _list_noted(notes, "compared")]
    view = reduce(add, compared).view if compared else None
    test, untested = rows.model.accuracy_estimator_.compare_with_calibration(view)
    run = ScoreRun(
        path,
        n_rows,
        sum(len(part["bad"]) for part in notes.values()),
        None if None in accepted else sum(accepted),
        get_metric(rows.model.metric).title,
        sum(part["total_estimated"] for part in notes.values()) / n_rows,
        len(notes),
        len(kept),
        0 if audited is None else len(audited),
        describe_shift(test, untested),
        test is not None and test.found,
    )
    if suffix and not is_piped:
        finished.note(asdict(run))
    if replaced is not None:
        replaced.replace_by(store)
    return run


def _finish_parts(
    results: Iterable[tuple[str, Any]],
    notes: dict[str, JsonObject],
    kept: list[str],
    files: Sequence[TableFile],
) -> Iterator[str]:
    """Collect notes and yield names of finished parts; raise the first failure at the end."""
    failed: dict[str, TaskFailure | RowsError] = {}
    for name, result in results:
        if isinstance(result, (TaskFailure, RowsError)):
            failed[name] = result
            if isinstance(result, TaskFailure):
                break  # the others would meet the same
            continue
        notes[name], is_kept = result
        kept += [name] * is_kept
        yield name
    if failed:
        first, others = failed[min(failed)], len(failed) - 1
        try:
            refuse_failure(first, files)
        except InputError as error:
            more = f" Other parts that failed in the same way: {others}." if others else ""
            hint = ""
            if isinstance(first, RowsError):
                hint = " Or set such rows aside with `bad_rows`."
            raise InputError(f"{error}{hint}{more} {len(notes)} finished parts are kept.") from None


def _read_marked(
    store: PartStore, notes: JsonObject, audited: Floats | None, seed: int
) -> Iterator[tuple[str, pa.Table]]:
    """Yield name and table of each non-empty part, with the column "audit" if there is one."""
    for name, part in notes.items():
        if part["n_rows"]:
            table = store.read(name)
            if audited is not None:
                table = _mark_audit(table, part["file"], audited, seed)
            yield name, table


def _write_file(tables: Iterable[pa.Table], suffix: str, path: Path, dialect: JsonObject) -> None:
    with open(path, "wb") as file:
        write_tables(tables, suffix, file, **dialect)


def _find_suffix(path: str, *, is_folder: bool, is_piped: bool) -> str:
    """Suffix of the file to write; "" for a folder of parts."""
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


def _draw_audit(notes: JsonObject, n_rows: int, seed: int) -> Floats:
    """(n_rows,) smallest row keys in ascending order: a random sample of all parts."""
    smallest = np.empty(0)
    for part in notes.values():
        rows = np.arange(part["first_row"], part["first_row"] + part["n_rows"] + len(part["bad"]))
        rows = rows[~np.isin(rows, [row for row, _ in part["bad"]])]
        keys = draw_keys(part["file"], rows, _audit_seed(seed))
        smallest = np.sort(np.concatenate([smallest, keys]))[:n_rows]
    return smallest


def _audit_seed(seed: int) -> str:
    return f"audit {seed}"


def _mark_audit(table: pa.Table, file: str, audited: Floats, seed: int) -> pa.Table:
    """Table of a part with the mask of sampled rows as column "audit"."""
    import pyarrow as pa

    place = table.schema.get_field_index("row") + 1
    is_audited = draw_keys(file, table["row"].to_numpy(), _audit_seed(seed)) <= audited[-1]
    if "audit" in table.column_names:
        table = table.drop_columns("audit")
    return table.add_column(place, "audit", pa.array(is_audited))


def _list_noted(notes: dict[str, JsonObject], name: str) -> list[Any]:
    return [part[name] for part in notes.values() if part[name]]


def _warn_of_values(notes: dict[str, JsonObject]) -> None:
    """Warn of unseen values, once for each column, and of odd answers."""
    unseen = {name: text for texts in _list_noted(notes, "unseen") for name, text in texts.items()}
    odd = sum((OddAnswers(**counts) for counts in _list_noted(notes, "odd_answers")), OddAnswers())
    for text in filter(None, [*unseen.values(), str(odd)]):
        warnings.warn(text, UnseenValuesWarning, stacklevel=3)

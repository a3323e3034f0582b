"""`score_files`: files in, predictions with their estimated accuracy out, at any size."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
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
    is_stream,
    read_bytes,
    send_file,
    write_output,
    write_text,
)
from labelsure._runtime.task_pools import check_jobs, run_tasks
from labelsure._runtime.typing import AnyPath, Indices
from labelsure.errors import DataError, InputError, LabelsureError, RowsError, UnseenValuesWarning
from labelsure.estimation._shift import View, sample_rows, say_shift
from labelsure.saving import load
from labelsure.tables.files import (
    UNIT_ROWS,
    Unit,
    describe_file_state,
    find_lines,
    list_units,
    read_rows,
    with_absolute_path,
)
from labelsure.tables.parts import (
    FORMATS,
    NAME_SEPARATOR,
    PartsFolder,
    check_suffix,
    plain_records,
    write_part,
)
from labelsure.tables.predictions import OddAnswers

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.estimation._shift import View
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.tables.inputs import InputTable

IDENTITY = {
    "id": "the value of the id column; only if there is one",
    "file": "the name of the input and the path of the file below it",
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
    from labelsure.tables.inputs import InputTable

    model = task.model.load()  # first: BLAS is found where it is loaded
    inputs = InputTable(model, task.settings.id_column)
    frame, bad = read_rows(task.unit, inputs.columns)
    if bad and not task.sets_aside:
        raise RowsError(bad, repr(task.file))
    try:
        table, unseen, view = _score_rows(model, frame, task)
    except RowsError as error:
        if not task.sets_aside:
            raise
        bad = bad | error.reasons
        frame = frame.drop(index=list(error.reasons))
        table, unseen, view = _score_rows(model, frame, task)
    if len(table):
        write_part(table, Path(task.part))
    has_policy = len(table) > 0 and not table["accept"].isna().any()
    notes = {
        "n_rows": len(table),
        "n_bad": len(bad),
        "n_accepted": int(table["accept"].sum()) if has_policy else None,
        "total_estimated": float(table["estimated_accuracy"].sum()) if len(table) else 0.0,
        "n_bytes": Path(task.part).stat().st_size if len(table) else 0,
        "unseen": unseen,
        "odd_answers": asdict(inputs.count_odd_answers(frame)),
        "view": None if view is None else [list(view.names), view.values.tolist()],
        "bad_rows": _describe_bad_rows(task, bad),
    }
    write_text(Path(task.notes), json.dumps(notes))
    return notes


def _describe_bad_rows(task: UnitTask, bad: dict[int, str]) -> list[dict[str, Any]]:
    """Return where each bad row is, why it cannot be used, and its values where they are known."""
    if not bad:
        return []
    whole, _ = read_rows(task.unit)
    rows = sorted(bad)
    readable = whole.loc[whole.index.isin(rows)]
    values = dict(zip(readable.index.tolist(), plain_records(readable), strict=True))
    return [
        {"file": task.file, "row": row, "line": line, "reason": bad[row], "values": values.get(row)}
        for row, line in zip(rows, find_lines(task.unit, rows), strict=True)
    ]


def _score_rows(
    model: AccuracyAwareClassifier, frame: pd.DataFrame, task: UnitTask
) -> tuple[pd.DataFrame, dict[str, str], View | None]:
    """Return the table of some rows of a unit with their places, what is new, what is compared."""
    from labelsure.tables.inputs import InputTable

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
        if len(compared) and model.accuracy_estimator_._can_compare:
            some = found[compared]
            view = model.accuracy_estimator_._view(some.distribution, some.Y_pred)
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
        Rows as `labelsure.tables.files.read_unit` returns them; the table has their index.
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
    from labelsure.tables.inputs import InputTable

    if not isinstance(model, AccuracyAwareClassifier):
        model = ModelFile.find(expand_path(model), ()).load()
    settings = {"k": top, "probabilities": probabilities, "sep": sep, "open_cost": open_cost}
    inputs = InputTable(model, id_column)
    none = np.empty(0, dtype=np.intp)
    return _make_table(inputs, frame, model, where="the table", settings=settings, compared=none)[0]


FOLDER_SUFFIX = ".parquet"
"""Of the parts of a folder, which has no suffix to say another one."""

STREAM_SUFFIX = ".csv"
"""What a device or a pipe gets whose name has no suffix."""


@dataclass(frozen=True)
class UnitEvent:
    """A unit that is finished.

    Parameters
    ----------
    state
        "done", "failed", or "kept" from an earlier run.
    n_rows
        How many rows it has.
    n_finished, n_total
        Rows of all units so far, and of all.
    message
        Why it failed.
    """

    state: str
    n_rows: int
    n_finished: int
    n_total: int
    message: str = ""


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
    n_units, n_kept
        Units in all, and those that an earlier run had finished.
    n_audited
        Rows that chance has chosen for an audit.
    shift
        Whether the rows are like the calibration set, by at most 2,000 of them that chance has
        chosen, or why that was not tested.
    shift_found
        Whether they are not.
    """

    out: Path
    n_rows: int
    n_bad: int
    n_accepted: int | None
    mean_estimated: float
    n_units: int
    n_kept: int
    n_audited: int = 0
    shift: str = ""
    shift_found: bool = False


Progress = Callable[[UnitEvent], None]


def score_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath],
    out: AnyPath,
    *,
    id_column: str | None = None,
    top: int = 3,
    probabilities: bool | None = None,
    sep: str = NAME_SEPARATOR,
    open_cost: float | None = None,
    spreadsheet_safe: bool = False,
    audit: int | None = None,
    seed: int = 0,
    bad_rows: AnyPath | None = None,
    rows_per_unit: int = UNIT_ROWS,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    trust: Iterable[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ScoreRun:
    """Score the rows of files, in units that fit into memory, and write a table.

    Each unit is written as a part, whole or not at all. Interrupted, the same call goes on where it
    was. The bits do not depend on the number of jobs, nor on whether a cluster does the work.

    Parameters
    ----------
    model
        The file of an `AccuracyAwareClassifier`.
    inputs
        Files or folders, as for `labelsure.tables.files.list_units`.
    out
        A name that ends in .csv, .tsv, .jsonl or .parquet: a file. Without a suffix: a folder of
        Parquet files, a part for each unit. A device or a pipe gets CSV, unless its suffix says
        another format, once all rows are scored.
    id_column
        The input's column of identifiers; None for that of the model, if it has one.
    top, probabilities, sep, open_cost
        As of `Assessment.to_frame`; `sep` is for CSV alone, which has no lists.
    spreadsheet_safe
        Put an apostrophe before texts of CSV that begin with =, +, - or @, which spreadsheets take
        for formulas. By default data are written as they are.
    audit
        How many rows chance chooses, so that their labels say something about all of them.
    seed
        Of that choice.
    bad_rows
        A .jsonl file for rows that cannot be scored; without one they are an error.
    rows_per_unit
        How many rows are read and written at a time.
    n_jobs
        Processes of this machine; None means as many as there are cores.
    scheduler
        The address of a Dask scheduler whose workers do the work instead.
    trust
        As for `labelsure.load`.
    overwrite
        Whether to replace an output that is there, and parts of another run. An output that the
        same model, inputs and settings have made needs no replacing: it is left as it is.
    progress
        Called with a `UnitEvent` for each unit.

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
    settings = TableSettings(top, probabilities, sep, id_column, open_cost, spreadsheet_safe)
    path = expand_path(out)
    aside = None if bad_rows is None else _check_bad_rows(expand_path(bad_rows))
    check_outputs([path, *([] if aside is None else [aside])], [model, *inputs])
    file = ModelFile.find(expand_path(model), tuple(trust))
    file.load()  # what is wrong with it is said before anything is written
    units = list_units(inputs, rows=rows_per_unit)
    audited = _choose_rows(units, audit, seed)
    compared = split_rows(units)
    manifest = {
        "labelsure": __version__,
        "model": file.checksum,
        "inputs": _describe_files(units),
        "rows_per_unit": rows_per_unit,
        "settings": {**asdict(settings), "audit": audit, "seed": seed},
    }
    with ExitStack() as stack:
        place = path
        if is_stream(path):
            folder = stack.enter_context(TemporaryDirectory())
            place = Path(folder) / f"predictions{check_suffix(path.suffix or STREAM_SUFFIX)}"
        target = _find_target(place, is_folder=str(out).endswith("/"))
        if spreadsheet_safe and FORMATS[target.suffix].has_lists:
            raise InputError(
                "`spreadsheet_safe` is for CSV and TSV, which spreadsheets open, got an output in "
                f"{target.suffix}. Leave it out, or write CSV."
            )
        finished = FinishedOutput(place, {**manifest, "bad_rows": aside})
        if not target.folder.keeps_parts:
            found = finished.find(overwrite=overwrite or target.folder.is_begun(manifest))
            if found is not None:
                return ScoreRun(**{**found, "out": path, "n_kept": len(units)})
        execution = _Execution(target, len(units), progress or (lambda event: None))
        with target.folder.locked(manifest, overwrite=overwrite), watched_workers():
            if aside is not None:
                target.folder.check_bad_rows(aside, overwrite=overwrite)
            tasks = [
                execution.make_task(unit, file, settings, rows, some, sets_aside=aside is not None)
                for unit, rows, some in zip(units, audited, compared, strict=True)
            ]
            execution.run(tasks, n_jobs, scheduler)
            execution.write_bad_rows(aside)
            execution.join()
        if place != path:
            send_file(place, path)
    unseen = {k: text for notes in execution.notes.values() for k, text in notes["unseen"].items()}
    odd = sum((OddAnswers(**n["odd_answers"]) for n in execution.notes.values()), OddAnswers())
    for text in filter(None, [*unseen.values(), str(odd)]):  # one for each column
        warnings.warn(text, UnseenValuesWarning, stacklevel=2)
    n_audited = sum(len(rows) for rows in audited if rows is not None)
    judge = file.load().accuracy_estimator_
    test, untested = judge._compare_with_calibration(execution.join_views())
    run = replace(
        execution.summarise(n_audited),
        out=path,
        shift=say_shift(test, untested),
        shift_found=test is not None and test.found,
    )
    if place == path and not target.folder.keeps_parts:
        finished.note({**asdict(run), "out": str(path)})
    return run


@dataclass(frozen=True)
class _Target:
    """Where the predictions go: the folder of the parts, and the suffix of these."""

    folder: PartsFolder
    suffix: str


def _find_target(path: Path, *, is_folder: bool) -> _Target:
    if not path.suffix or is_folder:
        return _Target(PartsFolder(path, keeps_parts=True), FOLDER_SUFFIX)
    return _Target(PartsFolder(path, keeps_parts=False), check_suffix(path.suffix))


def _check_bad_rows(path: Path) -> Path:
    if path.suffix.lower() != ".jsonl" and not is_stream(path):
        raise InputError(
            f"The file for bad rows must have a name that ends in .jsonl, got {str(path)!r}."
        )
    return path


def _describe_files(units: list[Unit]) -> list[list[Any]]:
    """Return name, size and time of each file, by which a changed one is noticed."""
    return [describe_file_state(name) for name in dict.fromkeys(unit.path for unit in units)]


def _choose_rows(
    units: list[Unit], n_chosen: int | None, seed: int
) -> list[tuple[int, ...] | None]:
    """Return the rows of each unit that chance chooses, counted from its first; None for no audit.

    All rows of all files have the same chance, and only those chosen are held in memory.
    """
    if not units:
        raise DataError("The input must have at least one row to score, it has none.")
    if n_chosen is None:
        return [None] * len(units)
    read_whole_number(n_chosen, "audit")
    ends = np.cumsum([unit.n_rows for unit in units])
    n_rows = int(ends[-1])
    rows = np.random.default_rng(seed).choice(n_rows, min(n_chosen, n_rows), replace=False)
    chosen: list[list[int]] = [[] for _ in units]
    for row in np.sort(rows):
        place = int(np.searchsorted(ends, row, side="right"))
        chosen[place].append(int(row - ends[place] + units[place].n_rows))
    return [tuple(some) for some in chosen]


def split_rows(units: list[Unit]) -> list[Indices]:
    """Return which rows of each unit are compared with the calibration set, from its first on.

    They are chosen from all rows: the same ones however these are cut into units.
    """
    ends = np.cumsum([unit.n_rows for unit in units])
    chosen = sample_rows(int(ends[-1]))
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [part - (end - unit.n_rows) for part, unit, end in zip(parts, units, ends, strict=True)]


class _Execution:
    """One execution of a run: what is finished, and what is missing."""

    def __init__(self, target: _Target, n_units: int, progress: Progress) -> None:
        self.target, self.n_units, self.progress = target, n_units, progress
        self.notes: dict[int, dict[str, Any]] = {}
        self.problems: list[UnitOutcome] = []
        self.n_kept = self.n_finished = self.n_total = 0

    def make_task(
        self,
        unit: Unit,
        model: ModelFile,
        settings: TableSettings,
        audited: tuple[int, ...] | None,
        compared: Indices,
        *,
        sets_aside: bool,
    ) -> UnitTask:
        folder = self.target.folder
        return UnitTask(
            with_absolute_path(unit),
            unit.source,
            model,
            settings,
            str(folder.part_path(unit.number, self.target.suffix).absolute()),
            str(folder.notes_path(unit.number).absolute()),
            audited,
            tuple(compared.tolist()),
            sets_aside,
        )

    def join_views(self) -> View | None:
        """Return what is compared of all units, in their order; None without any."""
        views = [notes["view"] for _, notes in sorted(self.notes.items()) if notes["view"]]
        if not views:
            return None
        values = np.concatenate([np.array(values, dtype=np.float32) for _, values in views])
        return View(tuple(views[0][0]), values)

    def run(self, tasks: list[UnitTask], n_jobs: int, scheduler: str | None) -> None:
        """Score the units that are not finished, and say what went wrong with the others."""
        self.n_total = sum(task.unit.n_rows for task in tasks)
        missing = [task for task in tasks if not self._keep(task)]
        found = run_tasks(
            score_unit, [(task,) for task in missing], n_jobs=n_jobs, scheduler=scheduler
        )
        for place, outcome in found:
            unit = missing[place].unit
            if isinstance(outcome, TaskFailure):
                outcome = UnitOutcome(unit.number, problem=outcome.message)
            if outcome.problem:
                self.problems.append(outcome)
                self._report("failed", unit.n_rows, outcome.problem)
                if not outcome.is_of_rows:
                    break  # the others would meet the same
            else:
                self._finish(unit, outcome.notes, "done")
        if self.problems:
            raise InputError(self._explain_problems())

    def _keep(self, task: UnitTask) -> bool:
        """Use what an earlier run has finished, unless it set rows aside that now must not be."""
        notes = self.target.folder.read_notes(task.unit.number, self.target.suffix)
        if notes is None or (notes["n_bad"] and not task.sets_aside):
            return False
        self.n_kept += 1
        self._finish(task.unit, notes, "kept")
        return True

    def _finish(self, unit: Unit, notes: dict[str, Any], state: str) -> None:
        self.notes[unit.number] = notes
        self._report(state, unit.n_rows)

    def _report(self, state: str, n_rows: int, message: str = "") -> None:
        self.n_finished += n_rows
        self.progress(UnitEvent(state, n_rows, self.n_finished, self.n_total, message))

    def _explain_problems(self) -> str:
        first = min(self.problems, key=lambda outcome: outcome.number)
        n_others = len(self.problems) - 1
        others = f" Other units that failed in the same way: {n_others}." if n_others else ""
        hint = " Or set such rows aside with `bad_rows`." if first.is_of_rows else ""
        return f"{first.problem}{hint}{others} {len(self.notes)} of {self.n_units} units are kept."

    def write_bad_rows(self, path: Path | None) -> None:
        """Write the rows that were set aside, in the order of the input."""
        if path is None:
            return

        def write(temporary: Path) -> None:
            with open(temporary, "w", encoding="utf-8") as file:
                for number in sorted(self.notes):
                    for row in self.notes[number]["bad_rows"]:
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")

        write_output(path, write)

    def join(self) -> None:
        """Make one file of the parts, unless they stay."""
        folder, suffix = self.target.folder, self.target.suffix
        parts = [
            folder.part_path(number, suffix)
            for number, notes in sorted(self.notes.items())
            if notes["n_rows"]
        ]
        if not parts:
            raise DataError("The input must have at least one row that can be scored, none can.")
        if not folder.keeps_parts:
            write_output(folder.out, lambda temporary: FORMATS[suffix].join(parts, temporary))

    def summarise(self, n_audited: int) -> ScoreRun:
        notes = list(self.notes.values())
        n_rows = sum(part["n_rows"] for part in notes)
        accepted = [part["n_accepted"] for part in notes if part["n_rows"]]
        return ScoreRun(
            self.target.folder.out,
            n_rows,
            sum(part["n_bad"] for part in notes),
            None if None in accepted else sum(accepted),
            sum(part["total_estimated"] for part in notes) / n_rows,
            self.n_units,
            self.n_kept,
            n_audited,
        )

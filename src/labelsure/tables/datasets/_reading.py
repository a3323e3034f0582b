"""`read_dataset`: files of all formats as data sets, labels by name or position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from labelsure._runtime.limits import check_size
from labelsure._runtime.storage import (
    checksum_bytes,
    decode,
    decompress,
    expand_path,
    first_line,
    read_bytes,
    stem_of,
    suffix_of,
)
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError, InputError, TooLargeError, missing_extra, unknown_name
from labelsure.tables.datasets._column_roles import (
    AssignedColumns,
    ColumnChoice,
    read_index,
    read_labels,
)
from labelsure.tables.datasets._columns import (
    LabelChoice,
    check_column_count,
    check_nominal,
    read_xml_labels,
)
from labelsure.tables.datasets._dataset import Dataset
from labelsure.tables.datasets._sparse_text import read_sparse_text

MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""How a CSV file spells a missing value. In quotes they are text."""

TEXT = ".txt"
_PART = re.compile(r"(?<=.)[-_](train|test)$", re.IGNORECASE)


def read_dataset(
    path: AnyPath,
    labels: LabelChoice | Path | None = None,
    *,
    index: str | None = None,
    drop: str | Iterable[str] = (),
    sep: str | None = None,
    nominal: str = "onehot",
) -> Dataset:
    r"""Read a data set from an ARFF, CSV, Parquet or sparse text file, as it is or as .gz or .bz2.

    Parameters
    ----------
    path
        The suffix says the format: .arff, .csv, .tsv, .parquet, or .txt for a data file of the
        extreme-classification repository, before .gz or .bz2.
    labels
        Which columns are the labels: names or patterns such as ``"tag_*"`` (a list, or one string
        with commas), or a number, negative for the last columns. Or one column that holds the
        names of labels: as text with `sep`, or as lists (Parquet). For ARFF also the path of an
        xml that names them; None takes the .xml of the same name beside the file, or ``name.xml``
        beside ``name-train.arff`` (Mulan), or else the ``-C`` in the name of the relation (MEKA).
    index
        The column whose values name the rows. They become the index of `Dataset.X` and come along
        into distributions and tables: whole numbers as such, anything else as text.
    drop
        Columns that are left out: names or patterns (a list, or one string with commas). Numbers
        and patterns in `labels` do not count them, nor the column of `index`.
    sep
        What stands between the names in a column of label names, e.g. ``";"``.
    nominal
        How nominal features of ARFF become numbers: ``"onehot"`` or ``"ordinal"``. Features of
        two values become one column either way.

    Returns
    -------
    Dataset
        Missing features are NaN and left to your pipeline; missing labels are refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("degrees,sunny,warm\n12.5,1,0\n25,1,1\n")
    ...     data = read_dataset(path, labels="sunny,warm")
    >>> data
    Dataset('weather', n_samples=2, n_labels=2, n_features=1)

    The same from a column of label names, with names for the rows:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("day,degrees,tags\nMo,12.5,sunny\nTu,25,sunny;warm\n")
    ...     data = read_dataset(path, labels="tags", sep=";", index="day")
    >>> data.label_names, list(data.X.index)
    (('sunny', 'warm'), ['Mo', 'Tu'])
    """
    path, nominal = expand_path(path), check_nominal(nominal)
    choice = ColumnChoice.read(labels, index, drop, sep)
    suffix = suffix_of(path)
    if suffix == TEXT:
        _refuse_columns(choice, path.name)
    elif suffix not in (".arff", *TABULAR):
        raise unknown_name("format of file", path.name, [".arff", *TABULAR, TEXT])
    content = read_bytes(path)
    origin: dict[str, Any] = {
        "name": stem_of(path),
        "source": path.name,
        "checksum": checksum_bytes(content),
    }
    if suffix == TEXT:
        data = read_sparse_text(decompress(content, path), path.name)
    elif suffix in TABULAR:
        data = TABULAR[suffix](decompress(content, path), choice, path.name)
    else:
        try:
            from labelsure.tables.datasets._arff import read_arff
        except ImportError as error:
            raise missing_extra("An ARFF file", "study") from error
        choice = choice.with_labels(_resolve_labels(path, choice.labels))
        data = read_arff(decompress(content, path), choice, nominal, path.name)
    return replace(data, **origin)


def _refuse_columns(choice: ColumnChoice, where: str) -> None:
    if choice != ColumnChoice():
        raise InputError(
            f"`labels`, `index`, `drop` and `sep` are about tables, {where} lists labels and "
            "features by number. Leave them out; `Dataset.select_labels` takes some labels."
        )


def _resolve_labels(path: Path, labels: Any) -> Any:
    """Return the names in the xml at `labels` or beside the file, otherwise `labels` itself."""
    if labels is None:
        # Mulan has one xml for both parts of a data set.
        stems = dict.fromkeys([stem_of(path), _PART.sub("", stem_of(path))])
        for xml in (path.with_name(stem + ".xml") for stem in stems):
            if xml.exists():
                return frozenset(read_xml_labels(read_bytes(xml), xml.name))
    if isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        xml = expand_path(labels)
        return frozenset(read_xml_labels(read_bytes(xml), xml.name))
    return labels


def read_csv(content: bytes, choice: ColumnChoice, where: str, delimiter: str = ",") -> Dataset:
    """Return the data set in a CSV file with a header line.

    Parameters
    ----------
    content
        The file, decompressed.
    choice
        Which columns are what.
    where
        The name of the file, for the messages.
    delimiter
        What stands between values.
    """
    text = decode(content).encode()
    check_column_count(text.partition(b"\n")[0].count(delimiter.encode()) + 1, where)
    table = _parse_csv(text, delimiter, where)
    columns = choice.assign(_check_columns(table, choice, where))
    # Names are text, also where they look like numbers: 007 is not 7.
    names = list(columns.labels) if choice.sep else []
    names += [] if columns.index is None else [columns.index]
    if names:
        texts = _parse_csv(text, delimiter, where, names)
        for name in names:
            j = table.column_names.index(name)
            table = table.set_column(j, name, texts.column(name))
    return _make_dataset(table, choice, where)


def _parse_csv(
    text: bytes, delimiter: str, where: str, names: Sequence[str] | None = None
) -> pa.Table:
    """Return the columns of a CSV file; some of them as text if `names` says which.

    In a column of names an empty value is a name or a list without content, and is not missing.
    """
    from pyarrow import csv

    bad_rows: list[csv.InvalidRow] = []

    def stop_at(row: csv.InvalidRow) -> str:
        bad_rows.append(row)
        return "error"

    try:
        return csv.read_csv(
            pa.BufferReader(text),
            # One block, so that the type of a column is inferred from all of it.
            read_options=csv.ReadOptions(
                use_threads=False, block_size=min(len(text) + 1, 2**31 - 1)
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=stop_at
            ),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names or (), pa.string()),
                null_values=[value for value in MISSING if value or names is None],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        if bad_rows:
            raise _make_length_error(bad_rows[0], text, where) from error
        raise DataError(f"{where} cannot be read as CSV: {first_line(error)}.") from error


def _make_length_error(row: Any, text: bytes, where: str) -> DataError:
    # Arrow counts rows with the header and without blank lines.
    filled = [number for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    number = filled[row.number - 1] if row.number and row.number <= len(filled) else row.number
    return DataError(
        f"Line {number} of {where} must have {row.expected_columns} values like the header, it "
        f"has {row.actual_columns}. Mend or drop that line."
    )


def read_parquet(content: bytes, choice: ColumnChoice, where: str) -> Dataset:
    """Return the data set in a Parquet file; arguments as in `read_csv`."""
    from pyarrow import parquet

    try:
        metadata = parquet.read_metadata(pa.BufferReader(content))
        n_rows, n_columns = metadata.num_rows, metadata.num_columns
        check_column_count(n_columns, where)
        # A few bytes can stand for any number of equal values.
        check_size(8 * n_rows * n_columns, f"The values in {where}", "Split the file.")
        table = parquet.read_table(pa.BufferReader(content))
    except TooLargeError:
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"The names of the columns of {where} must be UTF-8 text.") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{where} cannot be read as Parquet: {first_line(error)}. Fetch it again."
        ) from error
    return _make_dataset(table, choice, where)


def _check_columns(table: pa.Table, choice: ColumnChoice, where: str) -> list[str]:
    names = [str(name) for name in table.column_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"The columns of {where} must have different names, {twice!r} is twice.")
    if table.num_rows == 0:
        raise DataError(f"{where} must have at least one row, it has none.")
    if choice.labels is None:
        raise InputError(
            f"`labels` must say which columns of {where} are labels: names such as 'a,b,c', a "
            "pattern such as 'tag_*', a number (negative: the last columns), or one column of "
            "label names."
        )
    return names


def _make_dataset(table: pa.Table, choice: ColumnChoice, where: str) -> Dataset:
    names = _check_columns(table, choice, where)
    kept = {*choice.assign_features(names).features, choice.index}
    table = table.select([name for name in names if name in kept])
    frame = _make_frame(table, choice.index, where)
    columns = replace(choice, drop=()).assign([str(name) for name in frame.columns])
    _check_single_values(table, columns, where)
    Y, label_names = read_labels(frame[columns.labels], choice.sep, where)
    X = frame[columns.features]
    if columns.index is not None:
        X = X.set_axis(read_index(frame[columns.index], where), axis=0)
    return Dataset(X, Y, label_names)


def _check_single_values(table: pa.Table, columns: AssignedColumns, where: str) -> None:
    single = {*columns.features, columns.index}
    for column in table.schema:
        if pa.types.is_nested(column.type) and column.name in single:
            raise DataError(
                f"Column {column.name!r} of {where} must hold one value in each row, it holds "
                f"{column.type}. Pass labels={column.name!r} if these are the names of labels, "
                f"write each part as a column, or leave it out with drop=[{column.name!r}]."
            )


def _make_frame(table: pa.Table, index: str | None, where: str) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = table.to_pandas()
        if (
            index is not None and index in frame.index.names
        ):  # pandas keeps the index of a DataFrame apart
            frame = frame.reset_index(level=index)
        frame = frame.reset_index(drop=True)
    except Exception as error:  # pandas relies on its metadata in the file, which may be wrong
        raise _make_column_error(table, error, where) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _make_column_error(table: pa.Table, error: Exception, where: str) -> DataError:
    for name in table.column_names:
        try:
            table.column(name).to_pandas()
        except Exception as cause:
            return DataError(
                f"Column {name!r} of {where} cannot be read ({first_line(cause)}). Write it as "
                f"numbers or text, or leave it out with drop=[{name!r}]."
            )
    return DataError(
        f"The columns of {where} cannot become a DataFrame ({first_line(error)}). Write the "
        "file again, without an index."
    )


TABULAR: dict[str, Callable[[bytes, ColumnChoice, str], Dataset]] = {
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
"""Readers of tables whose columns `ColumnChoice` names."""

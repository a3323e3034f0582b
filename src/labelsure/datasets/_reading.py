"""`read_dataset`: ARFF, CSV and Parquet files as data sets, labels by name or position."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from labelsure._storage import (
    checksum_bytes,
    decode,
    decompress,
    first_line,
    read_bytes,
    stem_of,
    suffix_of,
)
from labelsure._typing import AnyPath
from labelsure.datasets._arff import read_arff
from labelsure.datasets._cache import cache_folder, cache_key
from labelsure.datasets._columns import (
    LabelChoice,
    check_nominal,
    choose_labels,
    read_labelsets,
    read_xml_labels,
)
from labelsure.datasets._dataset import Dataset
from labelsure.errors import DataError, InputError, unknown_name

MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""How a CSV file spells a missing value. In quotes they are text."""


def read_dataset(
    path: AnyPath,
    labels: LabelChoice | Path | None = None,
    *,
    nominal: str = "onehot",
    cache: bool | AnyPath = True,
) -> Dataset:
    r"""Read a data set from an ARFF, CSV or Parquet file, as it is or as .gz or .bz2.

    Parameters
    ----------
    path
        The suffix says the format: .arff, .csv, .tsv or .parquet, before .gz or .bz2.
    labels
        Which columns are the labels: names or patterns such as ``"tag_*"`` (a list, or one string
        with commas), or a number, negative for the last columns. For ARFF also the path of an xml
        that names them; None takes the .xml of the same name beside the file (Mulan), or else the
        ``-C`` in the name of the relation (MEKA).
    nominal
        How nominal features of ARFF become numbers: ``"onehot"`` or ``"ordinal"``. Features of
        two values become one column either way.
    cache
        Where parsed ARFF is kept: True for the folder in LABELSURE_CACHE or else the user's cache
        folder, a folder, or False for nowhere.

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
    """
    path, nominal = Path(path), check_nominal(nominal)
    if isinstance(labels, Iterable) and not isinstance(labels, str):
        labels = list(labels)
    suffix = suffix_of(path)
    if suffix not in (".arff", *TABULAR):
        raise unknown_name("format of file", path.name, [".arff", *TABULAR])
    content = read_bytes(path)
    origin: dict[str, Any] = {
        "name": stem_of(path),
        "source": path.name,
        "checksum": checksum_bytes(content),
    }
    if suffix in TABULAR:
        data = TABULAR[suffix](decompress(content, path), labels, path.name)  # type: ignore[arg-type]
        return replace(data, **origin)
    return _read_cached_arff(path, content, labels, nominal, cache, origin)


def _read_cached_arff(
    path: Path,
    content: bytes,
    labels: Any,
    nominal: str,
    cache: bool | AnyPath,
    origin: dict[str, Any],
) -> Dataset:
    labels = _resolve_labels(path, labels)
    folder = cache_folder(cache)
    spelled = sorted(labels) if isinstance(labels, frozenset) else repr(labels)
    key = cache_key(origin["name"], origin["checksum"], spelled, nominal)
    data = folder.load(key) if folder else None
    if data is None:
        data = read_arff(decompress(content, path), labels, nominal, path.name)
        data = replace(data, **origin)
        if folder:
            folder.save(key, data)
    return data


def _resolve_labels(path: Path, labels: Any) -> Any:
    """Return the names in the xml at `labels` or beside the file, otherwise `labels` itself."""
    xml = path.with_name(stem_of(path) + ".xml")
    if labels is None and xml.exists():
        return frozenset(read_xml_labels(read_bytes(xml), xml.name))
    if isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return frozenset(read_xml_labels(read_bytes(Path(labels)), Path(labels).name))
    return labels


def read_csv(
    content: bytes, labels: LabelChoice | None, where: str, delimiter: str = ","
) -> Dataset:
    """Return the data set in a CSV file with a header line.

    Parameters
    ----------
    content
        The file, decompressed.
    labels
        Which columns are labels.
    where
        The name of the file, for the messages.
    delimiter
        What stands between values.
    """
    from pyarrow import csv

    text = decode(content).encode()
    bad_rows: list[csv.InvalidRow] = []

    def stop_at(row: csv.InvalidRow) -> str:
        bad_rows.append(row)
        return "error"

    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            # One block, so that the type of a column is inferred from all of it.
            read_options=csv.ReadOptions(
                use_threads=False, block_size=min(len(text) + 1, 2**31 - 1)
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=stop_at
            ),
            convert_options=csv.ConvertOptions(
                null_values=MISSING, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        if bad_rows:
            raise _make_length_error(bad_rows[0], text, where) from error
        raise DataError(f"{where} cannot be read as CSV: {first_line(error)}.") from error
    return _read_table(table, labels, where)


def _make_length_error(row: Any, text: bytes, where: str) -> DataError:
    # Arrow counts rows with the header and without blank lines.
    filled = [number for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    number = filled[row.number - 1] if row.number and row.number <= len(filled) else row.number
    return DataError(
        f"Line {number} of {where} must have {row.expected_columns} values like the header, it "
        f"has {row.actual_columns}. Mend or drop that line."
    )


def read_parquet(content: bytes, labels: LabelChoice | None, where: str) -> Dataset:
    """Return the data set in a Parquet file; arguments as in `read_csv`."""
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{where} cannot be read as Parquet: {first_line(error)}. Fetch it again."
        ) from error
    return _read_table(table, labels, where)


def _read_table(table: pa.Table, labels: LabelChoice | None, where: str) -> Dataset:
    try:
        names = [str(name) for name in table.column_names]
    except UnicodeDecodeError as error:
        raise DataError(f"The names of the columns of {where} must be UTF-8 text.") from error
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"The columns of {where} must have different names, {twice!r} is twice.")
    if table.num_rows == 0:
        raise DataError(f"{where} must have at least one row, it has none.")
    if labels is None:
        raise InputError(
            f"`labels` must say which columns of {where} are labels: names such as 'a,b,c', a "
            "pattern such as 'tag_*', or a number (negative: the last columns)."
        )
    frame = _make_frame(table, where)
    columns = [str(name) for name in frame.columns]
    chosen = choose_labels(labels, columns, what="column")
    label_names = [columns[j] for j in chosen]
    Y = read_labelsets(frame[label_names], where)
    return Dataset(frame.drop(columns=label_names), Y, tuple(label_names))


def _make_frame(table: pa.Table, where: str) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = table.to_pandas().reset_index(drop=True)
    except Exception as error:  # pandas relies on its metadata in the file, which may be wrong
        raise DataError(
            f"The columns of {where} cannot become a DataFrame ({first_line(error)}). Write the "
            "file again, without an index."
        ) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


TABULAR: dict[str, Callable[[bytes, LabelChoice | None, str], Dataset]] = {
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
"""Formats whose readers are as fast as the cache, so that nothing is kept."""

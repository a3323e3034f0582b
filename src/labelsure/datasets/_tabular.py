"""CSV and Parquet files: numbers and text as they are, labels by name."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from labelsure.datasets._dataset import Dataset
from labelsure.datasets._files import decoded, first_line
from labelsure.datasets._labels import LabelChoice, choose_labels, labelsets_from
from labelsure.errors import DataError, InputError

MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"]
"""How a CSV file spells a missing value. In quotes they are text."""


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

    text = decoded(content).encode()
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
            raise _wrong_length(bad_rows[0], text, where) from error
        raise DataError(f"{where} cannot be read as CSV: {first_line(error)}.") from error
    return _from_table(table, labels, where)


def _wrong_length(row: Any, text: bytes, where: str) -> DataError:
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
    return _from_table(table, labels, where)


def _from_table(table: pa.Table, labels: LabelChoice | None, where: str) -> Dataset:
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
    frame = _to_frame(table, where)
    columns = [str(name) for name in frame.columns]
    chosen = choose_labels(labels, columns, what="column")
    label_names = [columns[j] for j in chosen]
    Y = labelsets_from(frame[label_names], where)
    return Dataset(frame.drop(columns=label_names), Y, tuple(label_names))


def _to_frame(table: pa.Table, where: str) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = table.to_pandas().reset_index(drop=True)
    except Exception as error:  # pandas trusts its notes in the file, and trips over wrong ones
        raise DataError(
            f"The columns of {where} cannot become a DataFrame ({first_line(error)}). Write the "
            "file again, without an index."
        ) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)

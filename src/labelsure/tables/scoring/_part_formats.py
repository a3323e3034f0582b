"""The files that scoring writes: how a part is written, and how parts become one file."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._runtime.storage import write_whole
from labelsure.errors import DataError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

NAME_SEPARATOR = ";"
"""Between the names of labels in CSV, which has no lists."""

COPIED_BYTES = 2**20


class PartFormat(ABC):
    """A format of files with predictions.

    `has_lists` says whether a field can hold several names; otherwise they are joined to a text.
    """

    has_lists = True

    @abstractmethod
    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows of a part."""

    @abstractmethod
    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Write one file of the rows of at least one part, in bounded memory."""


class CsvFormat(PartFormat):
    """Text with a header in every part, of which the joined file has one."""

    has_lists = False

    def __init__(self, separator: str = ",") -> None:
        self.separator = separator

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows, numbers with all their digits."""
        frame.to_csv(path, index=False, sep=self.separator, lineterminator="\n")

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Append the parts, without the header of all but the first."""
        header = self._header_of(parts[0])
        with open(path, "wb") as joined:
            joined.write(header)
            for part in parts:
                with open(part, "rb") as file:
                    if file.read(len(header)) != header:
                        raise _other_columns(part)
                    shutil.copyfileobj(file, joined, COPIED_BYTES)

    def _header_of(self, part: Path) -> bytes:
        """Return the bytes of the header, in which names may hold line breaks."""
        import pandas as pd

        columns = pd.read_csv(part, sep=self.separator, nrows=0).columns
        text = pd.DataFrame(columns=columns).to_csv(
            index=False, sep=self.separator, lineterminator="\n"
        )
        return text.encode("utf-8")


class JsonLinesFormat(PartFormat):
    """A JSON object for each row."""

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows, numbers with all their digits."""
        with open(path, "w", encoding="utf-8") as file:
            for record in plain_records(frame):
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Append the parts."""
        with open(path, "wb") as joined:
            for part in parts:
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, joined, COPIED_BYTES)


class ParquetFormat(PartFormat):
    """A row group for each part."""

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows; the type of a column does not depend on its values."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(frame, schema=_schema_of(frame), preserve_index=False)
        with open(path, "wb") as file:  # pyarrow opens no file whose name is not UTF-8
            pq.write_table(table.replace_schema_metadata(None), file)

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Write a row group for each part; all must have the columns of the first."""
        import pyarrow.parquet as pq

        with open(parts[0], "rb") as first:
            schema = pq.read_schema(first)
        with open(path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
            for part in parts:
                with open(part, "rb") as source, pq.ParquetFile(source) as parquet:
                    if not parquet.schema_arrow.equals(schema):
                        raise _other_columns(part)
                    writer.write_table(parquet.read())


NAME_COLUMNS = frozenset({"predicted", "certain", "possible", "decided", "open"})
"""Columns that hold the names of labels, beside those of the most probable labelsets."""


def _schema_of(frame: pd.DataFrame) -> Any:
    """Return the type of each column: an empty list or text must not become one of nothing."""
    import pyarrow as pa

    def type_of(name: str) -> Any:
        if name in NAME_COLUMNS or (name.startswith("top_") and not name.endswith("_probability")):
            return pa.list_(pa.string())
        kind = frame[name].dtype.kind
        kinds = {"f": pa.float64(), "i": pa.int64(), "u": pa.uint64(), "b": pa.bool_()}
        return kinds.get(kind, pa.string())

    return pa.schema([(str(name), type_of(str(name))) for name in frame])


def _other_columns(part: Path) -> DataError:
    return DataError(
        f"The part {part.name!r} must have the columns and types of the first one, it has others. "
        "Remove the folder it is in, and run again."
    )


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries that JSON can hold; what is missing is None.

    Parameters
    ----------
    frame
        Its index is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> plain_records(pd.DataFrame({"a": [1.5, None], "b": [("x",), ()]}))
    [{'a': 1.5, 'b': ['x']}, {'a': None, 'b': []}]
    """
    columns = {str(name): _plain_column(frame[name]) for name in frame}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain_column(column: pd.Series[Any]) -> list[Any]:
    """Return the values of a column; those of numbers without a look at each."""
    values = column.tolist()
    if column.dtype.kind in "iubf" and not column.hasnans:
        return values
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    import pandas as pd

    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if pd.isna(value):
        return None
    return value if isinstance(value, (bool, int, float)) else str(value)


FORMATS: dict[str, PartFormat] = {
    ".csv": CsvFormat(),
    ".tsv": CsvFormat("\t"),
    ".jsonl": JsonLinesFormat(),
    ".parquet": ParquetFormat(),
}
"""By suffix."""


def check_suffix(suffix: str) -> str:
    """Return the suffix of an output file if it is one that can be written.

    Parameters
    ----------
    suffix
        As in the file's name.
    """
    if suffix.lower() not in FORMATS:
        raise unknown_name("format of predictions", suffix, FORMATS)
    return suffix.lower()


def write_part(frame: pd.DataFrame, path: Path) -> None:
    """Write the rows of a part, as a whole or not at all.

    Parameters
    ----------
    frame
        The rows.
    path
        Its suffix says the format.
    """
    write_whole(path, lambda temporary: FORMATS[path.suffix].write(frame, temporary))

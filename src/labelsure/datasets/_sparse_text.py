"""Text files of the extreme-classification repository: rows that list what is not zero.

A data file begins with a line "n_instances n_features n_labels"; each further line is an instance,
"l1,l2,... f1:v1 f2:v2 ...". In a file of one matrix the first line is "n_rows n_columns", and rows
are "j1:v1 j2:v2 ...". Indices count from 0.
"""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from labelsure import _limits
from labelsure.errors import DataError, TooLargeError

COUNTED = {
    3: ("how many instances, features and labels there are", "1000 500 90"),
    2: ("how many rows and columns there are", "1000 500"),
}
"""What the first line must say, by how many numbers it has, with an example."""

MAX_SHOWN = 40
"""Characters of a file that a message shows."""


def read_sizes(line: bytes, n_numbers: int, where: str) -> list[int]:
    """Return the numbers in the first line of a file.

    Parameters
    ----------
    line
        The first line.
    n_numbers
        How many it must have: 3 for a data file, 2 for that of a matrix.
    where
        The name of the file, for the messages.
    """
    words = line.removeprefix(b"\xef\xbb\xbf").split()
    if len(words) != n_numbers or not all(map(_is_whole, words)) or 0 in map(int, words):
        says, example = COUNTED[n_numbers]
        raise DataError(
            f"Line 1 of {where} must say {says}, {n_numbers} whole numbers from 1 on such as "
            f"`{example}`, got {_show(line.strip())}."
        )
    sizes = [int(word) for word in words]
    if max(sizes[1:]) > _limits.MAX_LISTED_COLUMNS:
        raise TooLargeError(
            f"Line 1 of {where} must say at most {_limits.MAX_LISTED_COLUMNS} features or labels, "
            f"got {max(sizes[1:])}. Leave out those that are not needed."
        )
    return sizes


def read_data_text(content: bytes, where: str) -> tuple[Any, Any]:
    """Return the features, a CSR matrix, and the labelsets, a CSR array of ones, of a data file.

    Parameters
    ----------
    content
        The file, decompressed.
    where
        The name of the file, for the messages.
    """
    lines = io.BytesIO(content)
    n_rows, n_features, n_labels = read_sizes(lines.readline(), 3, where)
    features, labels = ListedRows(n_features, "feature"), ListedRows(n_labels, "label")

    def read_row(line: bytes) -> None:
        listed, pairs = _split_row(line)
        labels.add(*_read_indices(listed))
        features.add(*_read_pairs(pairs, "feature"))

    _read_rows(lines, read_row, n_rows, where)
    return features.to_matrix(), labels.to_labelsets()


def read_matrix_text(content: bytes, where: str, what: str) -> ListedRows:
    """Return the rows of the file of one matrix.

    Parameters
    ----------
    content, where
        As for `read_data_text`.
    what
        What a column is: "feature", or "label", whose values must all be 1.
    """
    lines = io.BytesIO(content)
    n_rows, n_columns = read_sizes(lines.readline(), 2, where)
    rows = ListedRows(n_columns, what)

    def read_row(line: bytes) -> None:
        indices, values = _read_pairs(line, what)
        if what == "label" and any(value != 1 for value in values):
            at = next(i for i, value in enumerate(values) if value != 1)
            raise ValueError(
                f"have 1 as the value of each label, got {values[at]} of {indices[at]}"
            )
        rows.add(indices, values)

    _read_rows(lines, read_row, n_rows, where)
    return rows


class ListedRows:
    """The rows of one matrix, as they are read: memory in what is listed.

    Parameters
    ----------
    n_columns
        How many columns there are.
    what
        What a column is, for the messages.
    """

    def __init__(self, n_columns: int, what: str) -> None:
        self.n_columns, self._what = n_columns, what
        self._indices, self._values, self._ends = array("q"), array("d"), array("q", [0])

    def add(self, indices: Sequence[int], values: Sequence[float]) -> None:
        """Add a row, or raise a `ValueError` that says what must hold."""
        if indices and max(indices) >= self.n_columns:
            raise ValueError(
                f"list {self._what}s from 0 to {self.n_columns - 1}, of which line 1 speaks, got "
                f"{max(indices)}"
            )
        if len(set(indices)) < len(indices):
            twice = next(index for index in indices if indices.count(index) > 1)
            raise ValueError(f"list each {self._what} once, {twice} is there twice")
        self._indices.extend(indices)
        self._values.extend(values)
        self._ends.append(len(self._indices))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def to_matrix(self) -> Any:
        """Return a CSR matrix in canonical form, without zeros."""
        matrix = sparse.csr_matrix(self._parts(np.float64), shape=(len(self), self.n_columns))
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix

    def to_labelsets(self) -> Any:
        """Return a CSR array of ones in canonical form; values must all be 1."""
        rows = sparse.csr_array(self._parts(np.int8), shape=(len(self), self.n_columns))
        rows.sort_indices()
        return rows

    def _parts(self, dtype: Any) -> tuple[Any, ...]:
        integers = sparse.get_index_dtype(maxval=max(self.n_columns, len(self._indices)))
        values = np.frombuffer(self._values, dtype=np.float64).astype(dtype)
        indices, ends = (
            np.frombuffer(numbers, dtype=np.int64).astype(integers)
            for numbers in (self._indices, self._ends)
        )
        return values, indices, ends


def _read_rows(
    lines: Iterator[bytes], read_row: Callable[[bytes], None], n_rows: int, where: str
) -> None:
    """Read as many rows as the first line says; a `ValueError` of one becomes a message."""
    n_read = 0
    for number, line in enumerate(lines, start=2):
        row = line.rstrip()
        if n_read == n_rows:
            if row:
                raise DataError(
                    f"{where} must have {n_rows} rows after line 1, which says so, but line "
                    f"{number} is one more. Correct line 1, or drop what is too much."
                )
            continue  # blank lines at the end
        try:
            read_row(row)
        except ValueError as error:
            raise DataError(
                f"Line {number} of {where} must {error}. Mend that line, or drop it and count one "
                "row less in line 1."
            ) from error
        n_read += 1
    if n_read < n_rows:
        raise DataError(
            f"{where} must have {n_rows} rows after line 1, which says so, it has {n_read}. "
            "Is it cut off?"
        )


def _split_row(line: bytes) -> tuple[bytes, bytes]:
    """Return labels and features of a row; without labels it begins with a space or a feature."""
    words = line.split(maxsplit=1)
    if not words or line[:1].isspace() or b":" in words[0]:
        return b"", line
    return words[0], words[1] if len(words) == 2 else b""


def _read_indices(listed: bytes) -> tuple[list[int], list[float]]:
    words = listed.split(b",") if listed else []
    if not all(map(_is_whole, words)):
        raise ValueError(
            f"begin with whole numbers of labels and commas between them, got {_show(listed)}"
        )
    return [int(word) for word in words], [1.0] * len(words)


def _read_pairs(text: bytes, what: str) -> tuple[list[int], list[float]]:
    pairs = [word.split(b":") for word in text.split()]
    try:
        if b"_" in text or not all(index.isdigit() for index, _ in pairs):
            raise ValueError
        indices = [int(index) for index, _ in pairs]
        values = [float(value) for _, value in pairs]
    except ValueError:
        bad = next(pair for pair in pairs if not _is_pair(pair))
        raise ValueError(
            f"write each {what} as index:value, two numbers, got {_show(b':'.join(bad))}"
        ) from None
    if not all(map(math.isfinite, values)):
        at = next(i for i, value in enumerate(values) if not math.isfinite(value))
        raise ValueError(f"have finite values, got {values[at]} of {what} {indices[at]}")
    return indices, values


def _is_pair(words: list[bytes]) -> bool:
    if len(words) != 2 or not _is_whole(words[0]) or b"_" in words[1]:
        return False
    try:
        float(words[1])
    except ValueError:
        return False
    return True


def _is_whole(word: bytes) -> bool:
    return word.isdigit() and len(word) <= 18  # which fits into 64 bits


def _show(text: bytes) -> str:
    shown = text.decode("utf-8", errors="replace")
    return repr(shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 3]}...")

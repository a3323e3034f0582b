"""Folders of the extreme-classification repository: which files make which part of the data.

A part is one data file (`train.txt`), or a file of features and one of labels (`trn_X_Xf.txt` and
`trn_X_Y.txt`), or those rows of a data file that a split file names (`name_trSplit.txt`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from labelsure._storage import (
    COMPRESSIONS,
    checksum_bytes,
    decode,
    decompress,
    expand_path,
    first_line,
    read_bytes,
    stem_of,
    suffix_of,
)
from labelsure._typing import AnyPath, Indices
from labelsure.datasets._dataset import Dataset
from labelsure.datasets._label_files import read_label_file
from labelsure.datasets._sparse_text import read_data_text, read_matrix_text
from labelsure.errors import DataError, InputError

TEXT = ".txt"
PARTS = ("train", "test")

_DATA = re.compile(r"(?:^|.*[^a-z])(?:(tr|trn|train)|(ts|tst|test))(?:[^a-z].*|$)")
_PART = re.compile(r"(?:^|.*[^a-z])(?:tr|trn|train|ts|tst|test)")
"""Names that can be nothing but data: where the first line is damaged, reading says so."""
_SPLIT = re.compile(r".*?(?:(tr|trn|train)|(ts|tst|test))[-_]?split")
_MATRIX = re.compile(r"(?:(tr|trn|train)|(ts|tst|test))_x_(xf|y)")
_HEADER = re.compile(rb"\s*[0-9]+\s+[0-9]+\s+[0-9]+\s*")
HEADER_BYTES = 100
"""Three numbers take less."""


@dataclass(frozen=True)
class ExtremeFiles:
    """The files of a folder by what they are; each a dictionary from part to path.

    Parameters
    ----------
    data
        With features and labels; the part is "all" where the name says nothing.
    features, labels
        With one matrix each.
    splits
        With the numbers of the rows of a part.
    where
        The folder, for the messages.
    """

    data: dict[str, Path]
    features: dict[str, Path]
    labels: dict[str, Path]
    splits: dict[str, Path]
    where: str

    @classmethod
    def find(cls, folder: Path) -> ExtremeFiles:
        """Look at the names of the text files in a folder, and at the first line of the others."""
        found = cls({}, {}, {}, {}, repr(folder.name))
        for path in _list_text_files(folder):
            stem = stem_of(path).lower()
            if matrix := _MATRIX.fullmatch(stem):
                kind = found.features if matrix[3] == "xf" else found.labels
                found.note(kind, _part_of(matrix), path)
            elif split := _SPLIT.fullmatch(stem):
                found.note(found.splits, _part_of(split), path)
            elif _PART.fullmatch(stem) or _HEADER.fullmatch(_first_line(path)):
                named = _DATA.fullmatch(stem)
                found.note(found.data, _part_of(named) if named else "all", path)
        found.check()
        return found

    def note(self, kind: dict[str, Path], part: str, path: Path) -> None:
        """Keep a file, unless there is one for the same."""
        if part in kind:
            raise DataError(
                f"The folder {self.where} must have one such file for the part {part!r}, got "
                f"{kind[part].name!r} and {path.name!r}. Move one of them away, or read a data "
                "file alone with `read_dataset`."
            )
        kind[part] = path

    def check(self) -> None:
        """Refuse what does not make whole parts, or makes them in two ways."""
        for part in {*self.features, *self.labels}:
            if part not in self.features or part not in self.labels:
                there, missing = (
                    ("features", "labels")
                    if part in self.features
                    else (
                        "labels",
                        "features",
                    )
                )
                raise DataError(
                    f"The folder {self.where} must have a file of features, `trn_X_Xf.txt`, and "
                    f"one of labels, `trn_X_Y.txt`, for the part {part!r}, it has {there} and no "
                    f"{missing}. Add the other file."
                )
        ways = [name for name, kind in self._ways() if kind]
        if len(ways) > 1:
            raise DataError(
                f"The folder {self.where} must hold its data in one form, it has "
                f"{' and '.join(ways)}. Move one form into a folder of its own."
            )
        if not ways:
            raise DataError(
                f"The folder {self.where} must have a text file that begins with the numbers of "
                "instances, features and labels, such as `train.txt`, or the files `trn_X_Xf.txt` "
                "and `trn_X_Y.txt`; it has neither."
            )
        if self.splits and "all" not in self.data:
            raise DataError(
                f"The folder {self.where} must have one data file for its split files "
                f"({', '.join(path.name for path in self.splits.values())}), whose name says "
                "neither train nor test. Move the split files away if they belong to other data."
            )

    def _ways(self) -> list[tuple[str, dict[str, Path]]]:
        whole = {part: path for part, path in self.data.items() if part == "all"}
        parts = {part: path for part, path in self.data.items() if part != "all"}
        return [
            ("files of features and of labels", self.features),
            ("data files of parts", parts),
            ("a data file of all instances", whole),
        ]


def read_extreme_folder(
    folder: AnyPath, *, split: int = 1, label_names: AnyPath | Iterable[str] | None = None
) -> dict[str, Dataset]:
    r"""Read a folder of text files as the extreme-classification repository has them.

    Parameters
    ----------
    folder
        It has a data file for each part, such as `train.txt` and `test.txt`; or files of features
        and labels, `trn_X_Xf.txt` and `trn_X_Y.txt`, with `tst` for the test part; or one data
        file, perhaps with `name_trSplit.txt` and `name_tstSplit.txt`, whose columns have row
        numbers from 1 on. Each may be compressed as .gz or .bz2.
    split
        Which column of split files, from 1 on.
    label_names
        The names of labels, or a text file with one in each line; None for no names.

    Returns
    -------
    dict
        A `Dataset` for each part: "train" and "test", or "all". `X` and `Y` are sparse.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder)
    ...     _ = (path / "train.txt").write_text("2 3 100000\n7,99999 0:1.5 2:1\n 1:2\n")
    ...     _ = (path / "test.txt").write_text("1 3 100000\n7 0:1\n")
    ...     parts = read_extreme_folder(folder)
    >>> list(parts), parts["train"].Y.shape, parts["train"].Y.indices
    (['train', 'test'], (2, 100000), array([    7, 99999], dtype=int32))
    """
    path = expand_path(folder)
    if not path.is_dir():
        raise DataError(
            f"`folder` must be a folder of text files, got {str(folder)!r}. A single data file is "
            "read with `read_dataset`."
        )
    if isinstance(split, bool) or not isinstance(split, (int, np.integer)) or split < 1:
        raise InputError(f"`split` must be a column of split files, 1, 2, ..., got {split!r}.")
    files = ExtremeFiles.find(path)
    names = _read_names(label_names)
    if files.features:
        parts = {
            part: _read_two_files(files.features[part], files.labels[part])
            for part in PARTS
            if part in files.features
        }
    else:
        parts = {part: read_extreme_file(file) for part, file in sorted_parts(files.data)}
        if files.splits:
            parts = _take_split(parts["all"], files.splits, split)
    _check_same_columns(parts, files.where)
    return {
        part: _rename(data, f"{path.name}-{part}" if part != "all" else path.name, names)
        for part, data in parts.items()
    }


def sorted_parts(kind: dict[str, Path]) -> list[tuple[str, Path]]:
    """Return the parts of a kind of file, that for training first."""
    return [(part, kind[part]) for part in (*PARTS, "all") if part in kind]


def read_extreme_file(path: Path) -> Dataset:
    """Return the data set in one data file.

    Parameters
    ----------
    path
        Of a text file, as it is or compressed.
    """
    content = read_bytes(path)
    X, Y = read_data_text(decompress(content, path), path.name)
    return Dataset(X, Y, name=stem_of(path), source=path.name, checksum=checksum_bytes(content))


def _read_two_files(features: Path, labels: Path) -> Dataset:
    contents = [read_bytes(path) for path in (features, labels)]
    X, Y = (
        read_matrix_text(decompress(content, path), path.name, what)
        for content, path, what in zip(
            contents, (features, labels), ("feature", "label"), strict=True
        )
    )
    if len(X) != len(Y):
        raise DataError(
            f"{features.name} and {labels.name} must have the same number of rows, got {len(X)} "
            f"and {len(Y)}. Are they of one part?"
        )
    checksum = checksum_bytes("".join(map(checksum_bytes, contents)).encode())
    source = f"{features.name}, {labels.name}"
    return Dataset(X.to_matrix(), Y.to_labelsets(), source=source, checksum=checksum)


def _take_split(data: Dataset, splits: dict[str, Path], split: int) -> dict[str, Dataset]:
    rows = {
        part: _read_split(decode(decompress(read_bytes(path), path)), split, len(data), path.name)
        for part, path in sorted_parts(splits)
    }
    if len(rows) == 2:
        shared = np.intersect1d(rows["train"], rows["test"])
        if len(shared):
            raise DataError(
                f"{splits['train'].name} and {splits['test'].name} must name different rows, "
                f"row {shared[0] + 1} is in both. Are they of one split?"
            )
    return {part: data.take(taken) for part, taken in rows.items()}


def _read_split(text: str, split: int, n_rows: int, where: str) -> Indices:
    """Return one column of row numbers, which count from 1 in the file, from 0 here."""
    taken: list[int] = []
    line_of: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) < split:
            raise DataError(
                f"Line {number} of {where} must have a number for split {split}, it has "
                f"{len(words)}. Choose another with `split`, or mend that line."
            )
        word = words[split - 1]
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= n_rows):
            raise DataError(
                f"Line {number} of {where} must have numbers of rows from 1 to {n_rows}, got "
                f"{word!r}. Rows count from 1 in split files."
            )
        if line_of.setdefault(int(word), number) != number:
            raise DataError(
                f"{where} must name each row once, row {word} is in lines {line_of[int(word)]} "
                f"and {number}. Drop one of them."
            )
        taken.append(int(word) - 1)
    if not taken:
        raise DataError(f"{where} must name at least one row, it is empty. Is it cut off?")
    return np.array(taken, dtype=np.intp)


def _check_same_columns(parts: dict[str, Dataset], where: str) -> None:
    sizes = {part: (data.n_features, data.n_labels) for part, data in parts.items()}
    if len(set(sizes.values())) > 1:
        said = "; ".join(
            f"{part}: {n_features} features and {n_labels} labels"
            for part, (n_features, n_labels) in sizes.items()
        )
        raise DataError(
            f"The parts in the folder {where} must have the same features and labels, got {said}. "
            "Are they of one data set?"
        )


def _read_names(label_names: AnyPath | Iterable[str] | None) -> Any:
    is_path = isinstance(label_names, (str, PathLike))
    return read_label_file(label_names) if is_path else label_names  # type: ignore[arg-type]


def _rename(data: Dataset, name: str, label_names: Any) -> Dataset:
    if label_names is None:
        return replace(data, name=name)
    return replace(data, name=name, label_names=label_names)


def _list_text_files(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"The folder {str(folder)!r} cannot be read: {error.strerror}.") from error
    return [path for path in entries if suffix_of(path) == TEXT and path.is_file()]


def _first_line(path: Path) -> bytes:
    """Return what the first line begins with."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    try:
        with open(path, "rb") as raw:
            file = compression.open(raw) if compression else raw
            return bytes(file.readline(HEADER_BYTES)).removeprefix(b"\xef\xbb\xbf").strip()
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"The file {path.name!r} cannot be read: {first_line(error)}. Fetch it again, or move "
            "it away."
        ) from error


def _part_of(match: re.Match[str]) -> str:
    return PARTS[0] if match[1] else PARTS[1]

"""Parsed data sets on disk: plain arrays in .npz files, nothing that runs when it is loaded."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from platformdirs import user_cache_path
from scipy import sparse

from labelsure._storage import expand_path, write_whole
from labelsure._typing import AnyPath
from labelsure.datasets._dataset import Dataset
from labelsure.errors import InputError

CACHE_VARIABLE = "LABELSURE_CACHE"
READER_VERSION = 2
"""Part of every key. Raise it when the readers return something else for the same file."""

CONTENT = "content_checksum"
"""Beside the arrays: a file can be whole and hold other labels than were read from the source."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class CacheFolder:
    """Where data sets are kept, and what happens if the folder cannot be written.

    Parameters
    ----------
    path
        Made when the first data set is written.
    chosen_by
        ``"argument"``: a failure to write is an error. ``"variable"``: it is a warning.
        ``"default"``: it passes silently, because the user has not chosen this folder.
    """

    path: Path
    chosen_by: str

    def load(self, key: str) -> Dataset | None:
        """Return the data set that is kept under a key, None where there is no readable one."""
        try:
            # np.load leaves a broken file open if it has opened it itself.
            with (
                open(self.path / f"{key}.npz", "rb") as file,
                np.load(file, allow_pickle=False) as arrays,
            ):
                return _make_dataset(_check_content(dict(arrays)))
        except Exception:  # whatever is wrong with the file, its source can be read again
            return None

    def save(self, key: str, data: Dataset) -> None:
        """Keep a data set. Other processes see the whole file or none."""
        arrays = _make_arrays(data)
        arrays[CONTENT] = _encode(_checksum_content(arrays))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / f"{key}.npz", lambda path: _save_arrays(path, arrays))
        except OSError as error:
            self.report_failure(error)

    def make(self) -> Path | None:
        """Return the folder, made if need be; None where it cannot be made."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.report_failure(error)
            return None
        return self.path

    def report_failure(self, error: OSError) -> None:
        """Raise, warn or do nothing, depending on who chose the folder."""
        message = (
            f"The cache folder {str(self.path)!r} cannot be written ({error.strerror or error}). "
        )
        if self.chosen_by == "argument":
            raise InputError(
                message + "Pass another folder as `cache`, or cache=False for none."
            ) from error
        if self.chosen_by == "variable":
            advice = f"Set {CACHE_VARIABLE} to another folder; nothing is kept until then."
            warnings.warn(message + advice, UserWarning, stacklevel=2)


def cache_folder(cache: bool | AnyPath) -> CacheFolder | None:
    """Return the folder that `cache` stands for, None for no cache.

    Parameters
    ----------
    cache
        A folder; True for the one in the environment variable LABELSURE_CACHE, or else the user's
        cache folder; False for none.
    """
    if cache is False:
        return None
    if cache is not True:
        return CacheFolder(expand_path(cache), "argument")
    if os.environ.get(CACHE_VARIABLE):
        return CacheFolder(expand_path(os.environ[CACHE_VARIABLE]), "variable")
    try:
        path = user_cache_path("labelsure", appauthor=False, opinion=False)
    except RuntimeError:  # the user has no home folder
        return None
    # Older versions of platformdirs leave `~` in the path of such a user, which is not absolute.
    return CacheFolder(path, "default") if path.is_absolute() else None


def cache_key(name: str, *parts: Any) -> str:
    """Return a file name for what the parts determine: checksums and options.

    Parameters
    ----------
    name
        Of the data set, so that people can tell the files apart.
    parts
        Anything that JSON can write.
    """
    digest = sha256(json.dumps([READER_VERSION, *parts]).encode()).hexdigest()
    readable = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)[:40]
    return f"{readable}-{digest[:32]}"


def _save_arrays(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:  # given a name, NumPy would add its own ending
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _checksum_content(arrays: Arrays) -> str:
    digest = sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _check_content(arrays: Arrays) -> Arrays:
    """Return the arrays without their checksum, which must be theirs."""
    checksum = arrays.pop(CONTENT).tobytes().decode()
    if checksum != _checksum_content(arrays):
        raise ValueError("The content of the file was changed.")
    return arrays


def _make_arrays(data: Dataset) -> Arrays:
    fields = {
        field: getattr(data, field)
        for field in ("label_names", "feature_names", "name", "source", "checksum")
    }
    arrays = {"Y": data.Y, "fields": _encode(json.dumps(fields))}
    if sparse.issparse(data.X):
        X = data.X
        return arrays | {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": np.array(X.shape),
        }
    index = data.X.index
    if not isinstance(index, pd.RangeIndex):
        arrays["index"] = _encode(json.dumps({"name": index.name, "data": index.tolist()}))
    is_number = [pd.api.types.is_numeric_dtype(dtype) for dtype in data.X.dtypes]
    numbers = data.X.loc[:, is_number].to_numpy(dtype=np.float64)
    texts = [data.X.iloc[:, j] for j in np.flatnonzero(~np.array(is_number, dtype=bool))]
    written = [[None if pd.isna(value) else str(value) for value in text] for text in texts]
    return arrays | {
        "numbers": numbers,
        "is_number": np.array(is_number, dtype=bool),
        "texts": _encode(json.dumps(written)),
    }


def _make_dataset(arrays: Arrays) -> Dataset:
    fields = json.loads(arrays["fields"].tobytes())
    names = fields["label_names"]
    fields["label_names"] = None if names is None else tuple(names)
    fields["feature_names"] = tuple(fields["feature_names"])
    if "indptr" in arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = sparse.csr_matrix(parts, shape=tuple(arrays["shape"].tolist()))
        X.check_format(full_check=True)
        return Dataset(X, arrays["Y"], **fields)
    names, is_number = fields["feature_names"], arrays["is_number"]
    if is_number.all():
        X = pd.DataFrame(arrays["numbers"], columns=list(names))
    else:
        numbers, texts = iter(arrays["numbers"].T), iter(json.loads(arrays["texts"].tobytes()))
        columns = {
            name: next(numbers) if is_one else pd.Series(next(texts), dtype=object)
            for name, is_one in zip(names, is_number, strict=True)
        }
        X = pd.DataFrame(columns)
    if "index" in arrays:
        X.index = pd.Index(**json.loads(arrays["index"].tobytes()))
    return Dataset(X, arrays["Y"], **fields)


def _encode(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)

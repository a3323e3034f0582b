"""The data sets that have a name: their sizes, and how each is loaded."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from labelsure._runtime.storage import COMPRESSIONS, expand_path, first_line, stem_of, suffix_of
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError, unknown_name
from labelsure.tables.datasets._built_in import load_digits, load_simulated, load_yeast
from labelsure.tables.datasets._column_roles import ColumnChoice, check_dense, choose_features
from labelsure.tables.datasets._columns import (
    LabelChoice,
    check_nominal,
    encode_frame,
    read_label_columns,
)
from labelsure.tables.datasets._dataset import Dataset, checksum_values
from labelsure.tables.datasets._reading import read_dataset

DATA_VARIABLE = "LABELSURE_DATA"
SOURCES = ("file", "embedded", "openml")


@dataclass(frozen=True)
class NamedDataset:
    """One data set of the catalogue.

    Parameters
    ----------
    name
        What `load_dataset` calls it.
    domain
        What the instances are.
    n_samples, n_labels, n_features
        Its size, None where nobody has counted.
    openml_id
        Its number on OpenML, None where it is not there.
    embedded
        What makes it from installed packages, None where it must come from elsewhere.
    """

    name: str
    domain: str
    n_samples: int | None = None
    n_labels: int | None = None
    n_features: int | None = None
    openml_id: int | None = None
    embedded: Callable[[], Dataset] | None = None


ENTRIES = {
    entry.name: entry
    for entry in (
        NamedDataset("digits", "image", 1797, 5, 64, embedded=load_digits),
        NamedDataset("simulated", "simulation", 1000, 6, 10, embedded=load_simulated),
        NamedDataset("emotions", "audio", 593, 6, 72, openml_id=40589),
        NamedDataset("scene", "image", 2407, 6, 294, openml_id=40595),
        NamedDataset("yeast", "biology", 2417, 14, 103, openml_id=40597, embedded=load_yeast),
        NamedDataset("stare", "medical", 373, 15, 44),
        NamedDataset("enron", "text", 1702, 53, 1001, openml_id=41466),
        NamedDataset("slashdot", "text", 3782, 22, 1079, openml_id=41472),
        NamedDataset("birds", "audio", openml_id=41464),
        NamedDataset("genbase", "biology", openml_id=41467),
        NamedDataset("image", "image", openml_id=41468),
        NamedDataset("langlog", "text", openml_id=41469),
    )
}


def list_datasets(data_dir: AnyPath | None = None) -> list[str]:
    """Return the names that `load_dataset` knows.

    Parameters
    ----------
    data_dir
        A folder whose ARFF files are listed too; by default the one in LABELSURE_DATA, if any.

    Examples
    --------
    >>> [name for name in list_datasets() if name.startswith("s")]
    ['simulated', 'scene', 'stare', 'slashdot']
    """
    folder = _find_data_folder(data_dir)
    return list(dict.fromkeys([*ENTRIES, *(_find_arff_files(folder) if folder else {})]))


def catalogue() -> pd.DataFrame:
    """Return the named data sets as a table: domain, size, number on OpenML, whether embedded.

    Examples
    --------
    >>> int(catalogue().loc["enron", "n_labels"])
    53
    """
    table = pd.DataFrame([asdict(entry) for entry in ENTRIES.values()]).set_index("name")
    counts = ["n_samples", "n_labels", "n_features", "openml_id"]
    table[counts] = table[counts].astype("Int64")  # whole numbers with gaps
    table["is_embedded"] = [entry.embedded is not None for entry in ENTRIES.values()]
    return table.drop(columns="embedded")


def load_dataset(
    name: str,
    data_dir: AnyPath | None = None,
    *,
    labels: LabelChoice | None = None,
    index: str | None = None,
    drop: str | Iterable[str] = (),
    source: str | None = None,
    nominal: str = "onehot",
) -> Dataset:
    """Load a data set by its name.

    It is taken from the first of these that has it: `data_dir`; the folder in the environment
    variable LABELSURE_DATA; installed packages; OpenML. What OpenML answers is kept in
    scikit-learn's data home (`sklearn.datasets.get_data_home`) and fetched once.

    Parameters
    ----------
    name
        One of `list_datasets()`.
    data_dir
        A folder with ``name.arff``, also as .gz or .bz2, and the .xml of the same name where the
        labels are named in one (``name.xml`` also for ``name-train`` and ``name-test``). If it is
        given, the data set must be there.
    labels
        Some of the labels: names or patterns, or ``"first20"``, ``"last20"`` (which are
        probably the labels of Enron in the paper) or ``"top20"``, the most frequent ones.
    index, drop
        The column whose values name the rows, and columns that are left out, as in
        `read_dataset`.
    source
        ``"file"``, ``"embedded"`` or ``"openml"`` to allow only that one.
    nominal
        How nominal features become numbers: ``"onehot"`` or ``"ordinal"``.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', n_samples=1797, n_labels=5, n_features=64)
    """
    check_nominal(nominal)
    if source is not None and source not in SOURCES:
        raise unknown_name("source", source, SOURCES)
    folder = _find_data_folder(data_dir)
    files = (
        {stem.lower(): path for stem, path in _find_arff_files(folder).items()} if folder else {}
    )
    key = str(name).lower()
    if key not in files and key not in ENTRIES:
        raise unknown_name("data set", name, list_datasets(data_dir))
    if key in files and source in (None, "file"):
        data = read_dataset(files[key], index=index, drop=drop, nominal=nominal)
    elif source == "file" or (source is None and data_dir is not None):
        raise _make_absence_error(key, folder, files)
    else:
        choice = ColumnChoice.read(None, index, drop, None)
        entry = ENTRIES.get(key, NamedDataset(key, ""))
        data = _load_elsewhere(entry, choice, source, nominal)
    return data if labels is None else data.select_labels(labels)


def _load_elsewhere(
    entry: NamedDataset, choice: ColumnChoice, source: str | None, nominal: str
) -> Dataset:
    if entry.embedded is not None and source in (None, "embedded"):
        data = entry.embedded()
        return replace(data, X=choose_features(data.X, choice, entry.name), feature_names=())
    if entry.openml_id is not None and source in (None, "openml"):
        bunch = _fetch(entry.name, entry.openml_id)
        return _make_dataset(bunch, entry.name, entry.openml_id, choice, nominal)
    homes = {"embedded": entry.embedded, "openml": entry.openml_id}
    elsewhere = [f'source="{home}"' for home, there in homes.items() if there is not None]
    raise DataError(
        f"{entry.name!r} must be read from a file{' or ' if elsewhere else ''}"
        f"{' or '.join(elsewhere)}. Put {entry.name}.arff into a folder and name it with "
        f"`data_dir` or the environment variable {DATA_VARIABLE}."
    )


def _find_data_folder(data_dir: AnyPath | None) -> Path | None:
    if data_dir is not None:
        return expand_path(data_dir)
    return expand_path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None


def _find_arff_files(folder: Path) -> dict[str, Path]:
    """Return the ARFF files of a folder by their names; of several, one that is not compressed."""
    try:
        paths = sorted(path for path in folder.iterdir() if suffix_of(path) == ".arff")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"The data folder {str(folder)!r} cannot be read ({reason}). Check "
            f"`data_dir` or the environment variable {DATA_VARIABLE}."
        ) from error
    files: dict[str, Path] = {}
    for path in paths:
        files.setdefault(stem_of(path), path)
    return files


def _make_absence_error(name: str, folder: Path | None, files: Iterable[str]) -> DataError:
    if folder is None:
        return DataError(
            f"{name!r} must be read from a folder, but none is named. Pass `data_dir`, or set the "
            f"environment variable {DATA_VARIABLE}."
        )
    parts = [stem for stem in files if stem in (f"{name}-train", f"{name}-test")]
    hint = f" There is {' and '.join(parts)}: load each by its name." if parts else ""
    endings = ", ".join(["", *COMPRESSIONS]).replace(", ", f", {name}.arff")
    return DataError(
        f"{name!r} must be in the data folder {str(folder)!r}, but there is no {name}.arff"
        f"{endings}.{hint} Leave `data_dir` out to take it from elsewhere."
    )


def _fetch(name: str, data_id: int) -> Any:
    """Return what OpenML answers, or what scikit-learn has kept of it."""
    from sklearn import datasets

    try:
        datasets.get_data_home()  # makes the folder
    except OSError as error:
        raise DataError(
            f"scikit-learn must be able to keep {name!r} in its data home, which cannot be made "
            f"({first_line(error)}). Set the environment variable SCIKIT_LEARN_DATA to another "
            "folder."
        ) from error
    try:
        with warnings.catch_warnings():
            # scikit-learn warns at each retry; the error below says it once.
            warnings.filterwarnings("ignore", message="A network error occurred")
            return datasets.fetch_openml(
                data_id=data_id,
                as_frame="auto",
                parser="liac-arff",  # the other one fails on TRUE and FALSE with pandas 3
            )
    except (OSError, HTTPException) as error:  # URLError, timeouts and lost connections among them
        reason = first_line(getattr(error, "reason", None) or error)
        raise DataError(
            f"{name!r} must be fetched from OpenML (data set {data_id}), which cannot be reached "
            f"({reason}). Connect to the internet, or name a folder that has {name}.arff with "
            "`data_dir` or the environment variable LABELSURE_DATA."
        ) from error
    except Exception as error:  # scikit-learn parses the answer, and fails in many ways
        raise DataError(
            f"What OpenML answered for {name!r} (data set {data_id}) cannot be read: "
            f"{first_line(error)}. Try again later, or read a file with `data_dir`."
        ) from error


def _make_dataset(
    bunch: Any, name: str, data_id: int, choice: ColumnChoice, nominal: str
) -> Dataset:
    where = f"OpenML data set {data_id}"
    labels = _find_label_columns(bunch, where)
    Y = read_label_columns(labels, where)
    if sparse.issparse(bunch.data):
        X, feature_names = _choose_sparse_features(bunch, choice, where)
        values = X.data
    else:
        frame = choose_features(pd.DataFrame(bunch.data), choice, where)
        X = encode_frame(frame, nominal, where)
        feature_names = tuple(X.columns)
        values = X.select_dtypes("number").to_numpy()
    return Dataset(
        X,
        Y,
        tuple(map(str, labels.columns)),
        feature_names,
        name=name,
        source=where,
        checksum=checksum_values(np.asarray(values, dtype=np.float64), Y),
    )


def _choose_sparse_features(
    bunch: Any, choice: ColumnChoice, where: str
) -> tuple[Any, tuple[str, ...]]:
    names = [str(name) for name in bunch.feature_names]
    columns = choice.assign_features(names)
    check_dense(columns, where)
    kept = [names.index(name) for name in columns.features]
    return (bunch.data if len(kept) == len(names) else bunch.data[:, kept]), tuple(columns.features)


def _find_label_columns(bunch: Any, where: str) -> pd.DataFrame:
    target = bunch.target
    if target is None or np.size(target) == 0:
        raise DataError(f"{where} must say which columns are labels, it names none.")
    if isinstance(target, pd.DataFrame):
        return target
    columns = np.asarray(target).reshape(len(target), -1)
    return pd.DataFrame(columns, columns=list(bunch.target_names))

"""Data sets from OpenML, through scikit-learn."""

from __future__ import annotations

import warnings
from http.client import HTTPException
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from labelsure.datasets._cache import CacheFolder, cache_key
from labelsure.datasets._dataset import Dataset, checksum_of
from labelsure.datasets._files import first_line
from labelsure.datasets._labels import labelsets_from
from labelsure.datasets._nominal import encode_frame
from labelsure.errors import DataError


def load_openml(name: str, data_id: int, nominal: str, folder: CacheFolder | None) -> Dataset:
    """Return a data set from the cache, or fetch it.

    Parameters
    ----------
    name
        What labelsure calls it.
    data_id
        What OpenML calls it.
    nominal
        How nominal features become numbers.
    folder
        Where it is kept, None for nowhere.
    """
    key = cache_key(name, "openml", data_id, nominal)
    data = folder.load(key) if folder else None
    if data is None:
        data = _from_bunch(_fetch(name, data_id, folder), name, data_id, nominal)
        if folder:
            folder.save(key, data)
    return data


def _fetch(name: str, data_id: int, folder: CacheFolder | None) -> Any:
    from sklearn import datasets

    home = folder.made() if folder else None
    try:
        with warnings.catch_warnings():
            # scikit-learn warns at each retry; the error below says it once.
            warnings.filterwarnings("ignore", message="A network error occurred")
            return datasets.fetch_openml(
                data_id=data_id,
                data_home=None if home is None else str(home),
                cache=home is not None,
                as_frame="auto",
                parser="liac-arff",  # the other one trips over TRUE and FALSE with pandas 3
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


def _from_bunch(bunch: Any, name: str, data_id: int, nominal: str) -> Dataset:
    where = f"OpenML data set {data_id}"
    labels = _label_columns(bunch, where)
    Y = labelsets_from(labels, where)
    if sparse.issparse(bunch.data):
        X, feature_names = bunch.data, tuple(map(str, bunch.feature_names))
        values = X.data
    else:
        X = encode_frame(pd.DataFrame(bunch.data), nominal)
        feature_names = tuple(X.columns)
        values = X.select_dtypes("number").to_numpy()
    return Dataset(
        X,
        Y,
        tuple(map(str, labels.columns)),
        feature_names,
        name=name,
        source=where,
        checksum=checksum_of(np.asarray(values, dtype=np.float64), Y),
    )


def _label_columns(bunch: Any, where: str) -> pd.DataFrame:
    target = bunch.target
    if target is None or np.size(target) == 0:
        raise DataError(f"{where} must say which columns are labels, it names none.")
    if isinstance(target, pd.DataFrame):
        return target
    columns = np.asarray(target).reshape(len(target), -1)
    return pd.DataFrame(columns, columns=list(bunch.target_names))

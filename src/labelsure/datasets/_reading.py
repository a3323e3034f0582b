"""`read_dataset`: any file that people have their data in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from labelsure._typing import AnyPath
from labelsure.datasets._arff import read_arff
from labelsure.datasets._cache import cache_folder, cache_key
from labelsure.datasets._dataset import Dataset
from labelsure.datasets._files import (
    checksum_of_bytes,
    decompressed,
    read_bytes,
    stem_of,
    suffix_of,
)
from labelsure.datasets._labels import LabelChoice
from labelsure.datasets._mulan import read_label_names
from labelsure.datasets._nominal import check_nominal
from labelsure.datasets._tabular import read_csv, read_parquet
from labelsure.errors import unknown_name

TABULAR: dict[str, Callable[[bytes, LabelChoice | None, str], Dataset]] = {
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
"""Formats whose readers are as fast as the cache, so that nothing is kept."""


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
        "checksum": checksum_of_bytes(content),
    }
    if suffix in TABULAR:
        data = TABULAR[suffix](decompressed(content, path), labels, path.name)  # type: ignore[arg-type]
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
    labels = _named_by_xml(path, labels)
    folder = cache_folder(cache)
    spelled = sorted(labels) if isinstance(labels, frozenset) else repr(labels)
    key = cache_key(origin["name"], origin["checksum"], spelled, nominal)
    data = folder.load(key) if folder else None
    if data is None:
        data = read_arff(decompressed(content, path), labels, nominal, path.name)
        data = replace(data, **origin)
        if folder:
            folder.save(key, data)
    return data


def _named_by_xml(path: Path, labels: Any) -> Any:
    """Return the set of names in the xml that is asked for or stands beside, or `labels`."""
    xml = path.with_name(stem_of(path) + ".xml")
    if labels is None and xml.exists():
        return frozenset(read_label_names(read_bytes(xml), xml.name))
    if isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        return frozenset(read_label_names(read_bytes(Path(labels)), Path(labels).name))
    return labels

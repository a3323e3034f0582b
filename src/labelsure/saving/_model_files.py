"""Files of fitted models, written by `save` and read by `load`: skops and a JSON header.

A saved model is a compressed zip file: the entries of skops, and `labelsure.json`, which says what
the file holds and what wrote it. The CRC-32 that zip keeps of every entry finds damage. It is no
signature: whoever changes a file can change it too, so that everything is checked before it is
built.
"""

from __future__ import annotations

import io
import json
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from labelsure import __version__
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.storage import first_line, read_bytes, write_output
from labelsure._runtime.typing import JsonObject
from labelsure.errors import DataError, InputError, TooLargeError
from labelsure.labelsets.label_names import MAX_WRITTEN_NAMES, abbreviate_names
from labelsure.metrics.registry import METRICS, get_metric
from labelsure.saving._schema import (
    COPIES,
    LOSS_MODULES,
    TRUSTED_LOADERS,
    Budget,
    ExpansionError,
    find_entries,
    name_of,
    parse_json,
    read_nodes,
)
from labelsure.saving._values import check_entry, check_values, read_entry, sizes_inside

HEADER, SCHEMA = "labelsure.json", "schema.json"
FORMAT, FORMAT_VERSION = "labelsure", 1
MAX_BYTES = 2**33
"""Default limit of the memory in which a model is built."""

COMPRESSION_LEVEL = 1
"""Level of deflate, of 9. For a forest of 300 trees, level 1 takes 40% of the time of
level 6 and 20% more space."""

JOINED_NAMES = "names in one text"


class CompactState:
    """Parts of saved models: registered metrics are kept by name, very many names as one text."""

    def __getstate__(self) -> JsonObject:
        """Attributes, with registered metrics by name and very many names as one text."""
        state = {name: _join_names(value) for name, value in vars(self).items()}
        if "metric" in state:
            state["metric"] = _name_metric(state["metric"])
        return state

    def __setstate__(self, state: JsonObject) -> None:
        """Restore the attributes of `__getstate__`."""
        vars(self).update({name: _split_names(value) for name, value in state.items()})


class Savable(CompactState):
    """Base class of estimators with `save`, whose files `labelsure.load` reads.

    `OWN_TYPES` of `_schema` has every such class.
    """

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `labelsure.load` reads; no pickle is in it.

        Parameters
        ----------
        path
            The file, usually with the ending `.labelsure`. An existing file is replaced.

        See Also
        --------
        labelsure.load : Reads the file.
        """
        check_is_fitted(self)
        content = _write_model(self)
        try:
            write_output(Path(path), lambda temporary: temporary.write_bytes(content))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise DataError(
                f"The file {str(path)!r} cannot be written: {reason}. Choose an existing folder "
                "that you may write to."
            ) from error


def _join_names(value: Any) -> Any:
    """A long tuple of texts as one JSON text: skops writes a node for each item of a tuple."""
    is_long = isinstance(value, tuple) and len(value) > MAX_WRITTEN_NAMES
    if is_long and all(isinstance(name, str) for name in value):
        return {JOINED_NAMES: json.dumps(value)}
    return value


def _split_names(value: object) -> Any:
    if isinstance(value, dict) and set(value) == {JOINED_NAMES}:
        return tuple(json.loads(value[JOINED_NAMES]))
    return value


def _name_metric(metric: object) -> Any:
    return next((name for name, known in METRICS.items() if known is metric), metric)


def _write_model(model: Savable) -> bytes:
    """Bytes of the file. Raises InputError for a part that cannot be saved."""
    from skops.io import dumps

    _refuse_function(_name_metric(getattr(model, "metric", None)))
    try:
        header = json.dumps(_describe(model), indent=1, allow_nan=False)
        for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            content = dumps(model, compression=method, compresslevel=COMPRESSION_LEVEL)
            with zipfile.ZipFile(buffer := io.BytesIO(content), "a", method) as file:
                file.writestr(HEADER, header)
            with suppress(ExpansionError), zipfile.ZipFile(buffer) as file:
                _read_parts(file, Budget(len(buffer.getvalue()), sys.maxsize), "")
                return buffer.getvalue()
        raise ValueError("it takes too many times its size in memory")
    except Exception as error:  # of skops, for whatever it cannot write
        raise InputError(
            f"The {type(model).__name__} holds something that cannot be saved: "
            f"{first_line(error)}. Replace that part, or pickle the model and load only your own "
            "pickles."
        ) from error


def _refuse_function(metric: Any) -> None:
    if metric is not None and not isinstance(metric, str):
        name = get_metric(metric).name
        raise InputError(
            f"`metric` must be registered to be saved, got the function {name!r}. Set "
            f"`labelsure.metrics.METRICS[{name!r}] = Metric({name!r}, function)` before fitting "
            f"and before loading, and fit with metric={name!r}."
        )


def _describe(model: Savable) -> JsonObject:
    """Header of the file, of values that JSON preserves."""
    names, n_labels = (getattr(model, name, None) for name in ("label_names_", "n_labels_"))
    metric, card = getattr(model, "metric", None), getattr(model, "card_", None)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {
            "labelsure": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "kind": type(model).__name__,
        "metric": None if metric is None else get_metric(metric).name,
        "label_names": None if n_labels is None else abbreviate_names(names, n_labels),
        "card": None if card is None else card.to_dict(),
    }


def load(path: str | Path, *, trust: Iterable[str | type] = (), max_bytes: int = MAX_BYTES) -> Any:
    """Read a model, an estimator or a policy that `save` wrote.

    Loading executes no code from the file and uses no pickle. A checksum detects damage, and types
    are checked by their qualified names before they are imported. Indices and sizes on which
    compiled code relies are checked, other values are not: load files from people you trust.

    Parameters
    ----------
    path
        The file.
    trust
        Types that may be built beside those of labelsure and those that skops trusts, or their
        exact names: e.g. ``["xgboost.core.Booster"]``. Trust them only in a file whose writer you
        know.
    max_bytes
        Limit of what building the model takes in memory. Another limit is 500 times the size of
        the file, which `save` never exceeds.

    Returns
    -------
    The saved object, such as an `AccuracyAwareClassifier` or an `AcceptPolicy`.

    See Also
    --------
    AccuracyAwareClassifier.save : Writes such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from labelsure import BinaryRelevance, load
    >>> model = BinaryRelevance().fit([[0.0], [1.0], [8.0]], [[0, 1], [0, 1], [1, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "example.labelsure")
    ...     load(Path(folder) / "example.labelsure").predict([[9.0]])
    array([[1, 0]])
    """
    if isinstance(trust, (str, bool)) or not isinstance(trust, Iterable):
        raise InputError(
            "`trust` must be a list of types or of their full names, e.g. "
            f"['xgboost.core.Booster'], got {trust!r}."
        )
    names = {f"{t.__module__}.{t.__name__}" if isinstance(t, type) else t for t in trust}
    limit, name = read_whole_number(max_bytes, "max_bytes"), Path(path).name
    with _blame(name):
        content, trusted = _read_model(Path(path), names, limit)
        model = _build_model(content, trusted)
        check_values(model, names)
    return model


def read_description(path: str | Path) -> JsonObject:
    """Header of a saved file; nothing in the file is imported or built.

    Returns
    -------
    Its kind, metric, label names and card, the versions that wrote it, and as `trust` the types
    that have to be trusted to load it.
    """
    with _blame(Path(path).name), _open_file(Path(path)) as (file, n_bytes):
        parts = _read_parts(file, Budget(n_bytes, MAX_BYTES), Path(path).name)
    return {**parts.header, "trust": sorted(parts.untrusted)}


def damaged(name: str, reason: object) -> DataError:
    """Error for a file that `save` cannot have written."""
    return DataError(
        f"The file {name!r} must be as `save` wrote it, but is damaged or changed: "
        f"{first_line(reason)}. Copy it again, or save the model again."
    )


@contextmanager
def _blame(name: str) -> Iterator[None]:
    """Convert every exception to an error that names the file."""
    try:
        yield
    except (DataError, TooLargeError):
        raise
    except ImportError as error:
        raise DataError(
            f"The file {name!r} needs a library that is not installed: {first_line(error)}. "
            "Install it."
        ) from error
    except MemoryError as error:
        raise TooLargeError(
            f"The file {name!r} needs more memory than there is. Load it on a larger machine."
        ) from error
    except Exception as error:  # whatever bytes there are
        raise damaged(name, error) from error


@contextmanager
def _open_file(path: Path) -> Iterator[tuple[zipfile.ZipFile, int]]:
    """Yield the open zip file of a saved model, and its size in bytes."""
    name, beginning = path.name, read_bytes(path, 4)
    if not beginning.startswith(b"PK"):
        is_pickle = beginning.startswith(b"\x80")
        what = "a pickle, which can run any code and is never opened" if is_pickle else ""
        raise _foreign(name, what or ("something else" if beginning else "an empty file"))
    content = read_bytes(path)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if HEADER not in file.namelist():
            raise _foreign(name, "a zip file of something else")
        yield file, len(content)


@dataclass(frozen=True)
class _Parts:
    """Header, schema and entries of a saved model, checked before anything is built."""

    header: JsonObject
    schema: bytes
    entries: dict[str, tuple[str, str]]
    """Loader and class of each entry beside the header and the schema."""
    trusted: list[str]
    """Types of the file that need no `trust`, beside those of skops."""
    untrusted: frozenset[str]


def _read_parts(file: zipfile.ZipFile, budget: Budget, file_name: str) -> _Parts:
    """Parts of a file, checked but for the values of arrays. Raises ValueError."""
    from skops.io import get_untrusted_types

    sizes = {entry.filename: entry.file_size for entry in file.infolist()}
    if len(sizes) < len(file.infolist()):
        raise ValueError("two entries have the same name")
    budget.take(COPIES * sum(sizes.values()))
    header, schema = read_entry(file, HEADER), read_entry(file, SCHEMA).replace(*LOSS_MODULES)
    budget.take_json(header)
    described = _check_header(parse_json(header), file_name)
    nodes = read_nodes(schema, budget)
    del sizes[HEADER], sizes[SCHEMA]
    entries = find_entries(nodes, sizes, budget)
    named = {(name_of(node), node["__loader__"]) for node in nodes}
    del nodes  # which take as much memory as those of skops
    for name, (loader, _) in entries.items():
        if loader == "SparseMatrixNode":
            budget.take(COPIES * sizes_inside(read_entry(file, name)))
    empty = _join_entries(schema, ((name, b"") for name in entries))
    untrusted = {*get_untrusted_types(data=empty)} - TRUSTED_LOADERS.keys()
    misused = {n for n, loader in named if TRUSTED_LOADERS.get(n, loader) != loader}
    trusted = sorted({n for n, _ in named} & TRUSTED_LOADERS.keys())
    return _Parts(described, schema, entries, trusted, frozenset(untrusted | misused))


def _join_entries(schema: bytes, entries: Iterable[tuple[str, bytes]]) -> bytes:
    """Uncompressed file for skops."""
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as file:
        file.writestr(SCHEMA, schema)
        for name, content in entries:
            file.writestr(name, content)
    return buffer.getvalue()


def _read_model(path: Path, trust: set[str], max_bytes: int) -> tuple[bytes, list[str]]:
    """Bytes of a checked file for skops, and the types that it may name."""
    with _open_file(path) as (file, n_bytes):
        parts = _read_parts(file, Budget(n_bytes, max_bytes), path.name)
        if needed := sorted(parts.untrusted - trust):
            raise DataError(
                f"The file {path.name!r} must name trusted types only, got {', '.join(needed)}. "
                "They could run code or crash: if you trust who wrote the file, name them in "
                f"`trust`: {needed!r}."
            )
        checked = (
            (name, check_entry(*kind, read_entry(file, name)))
            for name, kind in parts.entries.items()
        )
        return _join_entries(parts.schema, checked), [*parts.trusted, *trust]


def _build_model(content: bytes, trusted: list[str]) -> Savable:
    from skops.io import loads

    model = loads(content, trusted=trusted)
    if not isinstance(model, Savable):
        raise TypeError(f"it holds a {type(model).__name__}, which has no `save`")
    return model


def _foreign(name: str, found: str) -> DataError:
    return DataError(
        f"The file {name!r} must be one that `save` of labelsure wrote, got {found}. Wrap a model "
        "of another library by `labelsure.as_distribution`."
    )


def _check_header(header: JsonObject, name: str) -> JsonObject:
    version, versions = header["format_version"], header["versions"]
    if header["format"] != FORMAT or not all(isinstance(v, str) for v in versions.values()):
        raise ValueError(f"{HEADER!r} does not say what wrote it")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format_version is {version!r}")
    if version > FORMAT_VERSION:
        raise DataError(
            f"The file {name!r} must have format {FORMAT_VERSION} or older, got {version}. It was "
            f"written by labelsure {versions.get('labelsure')}, this is {__version__}: upgrade "
            "labelsure."
        )
    return header

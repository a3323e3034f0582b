"""`Savable`, what has a `save`, and `load`, which reads whatever it wrote."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.storage import first_line, write_output
from labelsure.errors import DataError, InputError
from labelsure.labelsets.rows import MAX_WRITTEN_NAMES, abbreviate_names
from labelsure.metrics.registry import METRICS, get_metric
from labelsure.saving._file_format import (
    FORMAT,
    FORMAT_VERSION,
    HEADER,
    SavedFile,
    current_version,
    damaged,
    read_saved,
    seal,
)
from labelsure.saving._schema import (
    PUBLIC_NAMES,
    check_schema,
    check_trust,
    find_untrusted,
    make_entries,
    name_modules,
)

LIBRARY = "scikit-learn"

FILTERS_LOCK = Lock()

VERSION = "_sklearn_version"
"""The key of scikit-learn's version in a pickle, as scikit-learn has it."""

JOINED_NAMES = "names in one text"
"""The key under which very many names stand in a file."""


class Savable:
    """What can be saved once it is fitted, and loaded by `labelsure.load`.

    The name of such a class stands among the trusted types.
    """

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `labelsure.load` reads; no pickle is in it.

        Parameters
        ----------
        path
            Where the file will be, e.g. "tickets.labelsure". It is there as a whole or not at all.
        """
        check_is_fitted(self)
        place = Path(path)
        content = _write_model(self._as_saved())
        try:
            write_output(place, lambda temporary: temporary.write_bytes(content))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise DataError(
                f"The file {str(place)!r} cannot be written: {reason}. Choose a folder that is "
                "there and yours."
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes and scikit-learn's version, very many names as one text.

        A file has an entry for each part, so that a text is shorter than a list.
        """
        state = {name: _join_names(value) for name, value in vars(self).items()}
        return {**state, VERSION: sklearn.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` returned; warn if another scikit-learn wrote it."""
        wrote = state.get(VERSION, sklearn.__version__)
        if wrote != sklearn.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=wrote,
                ),
                stacklevel=2,
            )
        attributes = {name: value for name, value in state.items() if name != VERSION}
        vars(self).update({name: _split_names(value) for name, value in attributes.items()})

    def _as_saved(self) -> Self:
        """Return itself, or a copy in which metrics stand by name: a file holds no function."""
        changed: dict[str, Any] = {
            name: part._as_saved() for name, part in vars(self).items() if isinstance(part, Savable)
        }
        metric = getattr(self, "metric", "")
        if not isinstance(metric, str):
            changed["metric"] = _name_metric(metric)
        model = copy(self)
        vars(model).update(changed)
        return model


def _join_names(value: Any) -> Any:
    """Return very many texts as one, in a dictionary that says so; anything else as it is."""
    is_long = isinstance(value, tuple) and len(value) > MAX_WRITTEN_NAMES
    if is_long and all(isinstance(name, str) for name in value):
        return {JOINED_NAMES: json.dumps(value)}
    return value


def _split_names(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {JOINED_NAMES}:
        return tuple(json.loads(value[JOINED_NAMES]))
    return value


def _name_metric(metric: Any) -> str:
    for name, known in METRICS.items():
        if metric is known:
            return name
    name = get_metric(metric).name
    raise InputError(
        f"`metric` must be the name of a registered metric to be saved, got the function {name!r}: "
        "a file holds no function. Register it, "
        f"`labelsure.metrics.METRICS[{name!r}] = Metric({name!r}, function)`, where the model is "
        f"fitted and where it is loaded, and fit with metric={name!r}."
    )


def _write_model(model: Savable) -> bytes:
    """Return the bytes of the file, or say what in the model cannot be in one."""
    from skops.io import dumps

    try:
        for part in _parts(model):
            _refuse_files(part)
        parts = make_entries(dumps(model))
    except Exception as error:  # of skops, for whatever it cannot write
        raise InputError(
            f"The {type(model).__name__} holds something that cannot be saved: "
            f"{first_line(error)}. Replace that part, or pickle the model and keep the file to "
            "yourself."
        ) from error
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": _versions(),
        **_describe(model),
    }
    text = json.dumps(header, indent=1, allow_nan=False)
    return seal({HEADER: text.encode("ascii"), **parts})


def _versions() -> dict[str, str]:
    return {
        "labelsure": current_version(),
        LIBRARY: sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _describe(model: Savable) -> dict[str, Any]:
    """Return what the header says of a model: plain values, which JSON gives back as they are."""
    names, n_labels = (getattr(model, name, None) for name in ("label_names_", "n_labels_"))
    card = getattr(model, "card_", None)
    return {
        "kind": type(model).__name__,
        "metric": getattr(model, "metric", None),
        "label_names": None if n_labels is None else abbreviate_names(names, n_labels),
        "card": None if card is None else card.to_dict(),
    }


def load(path: str | Path, *, trust: Any = ()) -> Any:
    """Read a model, an estimator or a policy that `save` wrote.

    Nothing in the file is run: a checksum finds damage, and types are compared with exact names
    before any of them is imported. Values are not checked: load files from people you trust.

    Parameters
    ----------
    path
        The file.
    trust
        Types that may be built beside those of labelsure and those that skops trusts, or their
        exact names: e.g. ``["sklearn.tree._tree.Tree"]`` for forests. Trust them only in a file
        whose writer you know.

    Returns
    -------
    What was saved: e.g. an `AccuracyAwareClassifier`, an `AccuracyEstimator` or an `AcceptPolicy`.

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
    names = check_trust(trust)
    file = read_saved(Path(path))
    check_schema(file, names)
    _check_metric(file)
    _warn_of_version(file)
    return _build(file, names)


def read_description(path: str | Path) -> dict[str, Any]:
    """Return what a saved file says of itself; nothing in it is imported or built.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Its kind, metric, label names and card, the versions that wrote it, and as `trust` the types
    that have to be trusted to load it.
    """
    file = read_saved(Path(path))
    return {**file.header, "trust": find_untrusted(file)}


def _check_metric(file: SavedFile) -> None:
    metric = file.header.get("metric")
    if isinstance(metric, str) and metric not in METRICS:
        raise InputError(
            f"The file {file.name!r} needs the metric {metric!r}, which is not registered here. "
            f"Before loading, write `labelsure.metrics.METRICS[{metric!r}] = Metric({metric!r}, "
            "function)` as where the model was fitted."
        )


def _warn_of_version(file: SavedFile) -> None:
    wrote = file.header["versions"].get(LIBRARY)
    if wrote != sklearn.__version__:
        warnings.warn(
            f"The file {file.name!r} was written with scikit-learn {wrote}, this is "
            f"{sklearn.__version__}: predictions may differ. Compare some, or fit and save again.",
            UserWarning,
            stacklevel=3,
        )


def _build(file: SavedFile, trust: list[str]) -> Savable:
    from skops.io import loads

    try:
        # There is one warning for the whole file. Filters are those of the process: by turns.
        with FILTERS_LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = loads(name_modules(file), trusted=[*PUBLIC_NAMES, *trust])
    except ImportError as error:
        raise DataError(
            f"The file {file.name!r} needs a library that is not installed: {first_line(error)}. "
            "Install it, then load the file again."
        ) from error
    except Exception as error:  # whatever the file says, it is to blame
        raise damaged(file.name, f"{type(error).__name__}, {first_line(error)}") from error
    if not isinstance(model, Savable):
        raise damaged(file.name, f"it holds a {type(model).__name__}, which has no `save`")
    for part in _parts(model):
        _refuse_replaced_methods(part, file)
        try:
            _refuse_files(part)
        except InputError as error:
            raise damaged(file.name, error) from error
    return model


def _refuse_files(part: Any) -> None:
    """Refuse parameters by which scikit-learn's estimators read or write files."""
    if vars(part).get("input") in ("filename", "file"):
        raise InputError(
            "`input` of a vectoriser must be 'content': others open the files that data name"
        )
    if isinstance(vars(part).get("memory"), str):
        raise InputError("`memory` must be None: a folder of a cache would be written to")


def _parts(model: Savable) -> Iterator[Any]:
    """Yield the model and every object in it, wherever it is held."""
    waiting: list[Any] = [model]
    seen = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            yield part
            waiting.extend(vars(part).values())


def _refuse_replaced_methods(part: Any, file: SavedFile) -> None:
    """Refuse an attribute that stands in for a method: a type in its place would be called."""
    kind = type(part)
    if f"{kind.__module__}.{kind.__name__}" not in PUBLIC_NAMES:
        return
    fields = getattr(kind, "__dataclass_fields__", {})
    for name in vars(part):
        if name not in fields and getattr(kind, name, None) is not None:
            raise damaged(file.name, f"`{name}` must be what {kind.__name__} has under that name")

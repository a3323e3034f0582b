"""Fitted models on disk, without pickle: skops, a JSON header and a list of our types.

A saved model is a compressed zip file: the entries of skops, and `labelsure.json`, which says what
the file holds and what wrote it. The CRC-32 that zip keeps of every entry finds damage. It is no
signature: whoever changes a file can change it too, so that types are compared with exact names
before anything is built.

May depend on `metrics` and what is below it.
"""

from __future__ import annotations

import io
import json
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from labelsure import __version__
from labelsure._runtime.storage import first_line, read_bytes, write_output
from labelsure.errors import DataError, InputError
from labelsure.labelsets.rows import MAX_WRITTEN_NAMES, abbreviate_names
from labelsure.metrics.registry import METRICS, get_metric

_TYPES_BY_MODULE = {
    "classifiers._chain_classifiers": (
        "BinaryRelevance ClassifierTrellis EnsembleOfClassifierChains ProbabilisticClassifierChain"
    ),
    "classifiers._powerset_classifier": "LabelPowerset",
    "classifiers._adapters": "PrecomputedProbabilities",
    "classifiers.recalibration._dependence": "ChainDependence",
    "classifiers.recalibration._labelwise": "LabelwiseCalibration",
    "classifiers.recalibration._recalibrated_classifier": "RecalibratedClassifier",
    "classifiers.recalibration._temperature": "TemperatureScaling",
    "classifiers.recalibration._votes": "VoteSmoothing",
    "estimation._accuracy_model": "LabelsetFrequencies RidgeModel",
    "estimation._batch_estimates": "Estimate Scatter",
    "estimation._diagnostics": "PredictComparison",
    "estimation._estimator": "AccuracyEstimator",
    "estimation._label_estimates": "DensityRatios LabelCalibration",
    "estimation.score_table": "ScoreTable",
    "guarantees._label_thresholds": "LabelThresholds",
    "guarantees._labelset_region": "LabelsetRegion",
    "guarantees._policy": "AcceptPolicy",
    "model._aware_classifier": "AccuracyAwareClassifier",
    "model._decision_rules": "Best Given Mode OwnPredict Thresholds",
    "model._fitted": "Fitted",
    "model._inputs": "InputColumns",
    "model._model_card": "ModelCard",
    "model._predictor": "Labels Predictor",
    "tables.inputs": "ColumnRole PredictionColumns TableColumns",
}

OWN_TYPES = frozenset(
    f"labelsure.{module}.{name}"
    for module, names in _TYPES_BY_MODULE.items()
    for name in names.split()
)
"""Every type of this package that a fitted model consists of."""

PLAIN_TYPES = frozenset(
    {
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.utils._bunch.Bunch",
    }
)
"""Parts of imputers, `CalibratedClassifierCV`, `MLPClassifier` and `VotingClassifier`: Python
classes that only hold values, which skops does not list."""

LOADERS = re.compile(
    "(Bytearray|Bytes|ConstructorFromReduce|DType|DefaultDict|Dict|Json|List|Loss|MaskedArray|"
    "NdArray|Object|RandomGenerator|RandomState|Set|Slice|SparseMatrix|Tree|Tuple|Type)Node"
)
"""How skops may build a part. Functions, methods and operators are never loaded."""

HEADER, SCHEMA = "labelsure.json", "schema.json"
FORMAT, FORMAT_VERSION = "labelsure", 1
MIN_PROTOCOL = 2  # of skops; no file of ours has an older one

MAX_EXPANDED_BYTES = 2**32
"""The most that the entries of a file may take in memory: deflated ones grow up to 1,032 times."""

COMPRESSION_LEVEL = 1
"""Of 9. For a forest of 300 trees, level 1 takes 40% of the time of level 6 and 20% more space."""

TREE = "sklearn.tree._tree.Tree"
JOINED_NAMES = "names in one text"


class CompactState:
    """Parts of saved models: registered metrics are kept by name, very many names as one text."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, registered metrics by name and very many names as one text."""
        state = {name: _join_names(value) for name, value in vars(self).items()}
        if "metric" in state:
            state["metric"] = _name_metric(state["metric"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` returned."""
        vars(self).update({name: _split_names(value) for name, value in state.items()})


class Savable(CompactState):
    """What can be saved once it is fitted, and loaded by `labelsure.load`.

    `OWN_TYPES` lists every such class.
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
    """Return very many texts as one, since skops writes a node for each part of a tuple."""
    is_long = isinstance(value, tuple) and len(value) > MAX_WRITTEN_NAMES
    if is_long and all(isinstance(name, str) for name in value):
        return {JOINED_NAMES: json.dumps(value)}
    return value


def _split_names(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {JOINED_NAMES}:
        return tuple(json.loads(value[JOINED_NAMES]))
    return value


def _name_metric(metric: Any) -> Any:
    return next((name for name, known in METRICS.items() if known is metric), metric)


def _write_model(model: Savable) -> bytes:
    """Return the bytes of the file, or say what in the model cannot be in one."""
    from skops.io import dumps

    _refuse_function(_name_metric(getattr(model, "metric", None)))
    try:
        content = dumps(model, compression=zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL)
        with zipfile.ZipFile(buffer := io.BytesIO(content), "a", zipfile.ZIP_DEFLATED) as file:
            _check_size(file)
            _check_nodes(json.loads(file.read(SCHEMA)))
            file.writestr(HEADER, json.dumps(_describe(model), indent=1, allow_nan=False))
    except Exception as error:  # of skops, for whatever it cannot write
        raise InputError(
            f"The {type(model).__name__} holds something that cannot be saved: "
            f"{first_line(error)}. Replace that part, or pickle the model and load only your own "
            "pickles."
        ) from error
    return buffer.getvalue()


def _refuse_function(metric: Any) -> None:
    if metric is not None and not isinstance(metric, str):
        name = get_metric(metric).name
        raise InputError(
            f"`metric` must be registered to be saved, got the function {name!r}. Set "
            f"`labelsure.metrics.METRICS[{name!r}] = Metric({name!r}, function)` before fitting "
            f"and before loading, and fit with metric={name!r}."
        )


def _check_size(file: zipfile.ZipFile) -> None:
    size = sum(entry.file_size for entry in file.infolist())
    if size > MAX_EXPANDED_BYTES:
        raise ValueError(f"it takes {size:,} bytes in memory, the limit is {MAX_EXPANDED_BYTES:,}")


def _describe(model: Savable) -> dict[str, Any]:
    """Return the header: plain values, which JSON gives back as they are."""
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


def load(path: str | Path, *, trust: Iterable[str | type] = ()) -> Any:
    """Read a model, an estimator or a policy that `save` wrote.

    Loading executes no code from the file and uses no pickle. A checksum detects damage, and types
    are checked by their qualified names before they are imported. Values are checked for decision
    trees only, so load files from people you trust.

    Parameters
    ----------
    path
        The file.
    trust
        Types that may be built beside those of labelsure and those that skops trusts, or their
        exact names: e.g. ``["xgboost.core.Booster"]``. Trust them only in a file whose writer you
        know.

    Returns
    -------
    What was saved: e.g. an `AccuracyAwareClassifier`, an `AccuracyEstimator` or an `AcceptPolicy`.

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
    _, content, needed = _read_model(Path(path), names)
    if needed:
        raise DataError(
            f"The file {Path(path).name!r} must name trusted types only, got {', '.join(needed)}. "
            f"They could run code or crash: if you trust who wrote the file, name them in `trust`: "
            f"{needed!r}."
        )
    return _build_model(content, Path(path).name, names)


def read_description(path: str | Path) -> dict[str, Any]:
    """Return what a saved file says of itself; nothing in it is imported or built.

    Returns
    -------
    Its kind, metric, label names and card, the versions that wrote it, and as `trust` the types
    that have to be trusted to load it.
    """
    header, _, needed = _read_model(Path(path), set())
    return {**header, "trust": needed}


def damaged(name: str, reason: object) -> DataError:
    """Build the error for a file that holds no model that could have been saved."""
    return DataError(
        f"The file {name!r} must be as `save` wrote it, but is damaged or changed: "
        f"{first_line(reason)}. Copy it again, or save the model again."
    )


def _read_model(path: Path, trust: set[str]) -> tuple[dict[str, Any], bytes, list[str]]:
    """Return the header, a file that skops can build, and the types that `trust` lacks."""
    from skops.io import get_untrusted_types

    name, beginning = path.name, read_bytes(path, 4)
    if not beginning.startswith(b"PK"):
        is_pickle = beginning.startswith(b"\x80")
        what = "a pickle, which can run any code and is never opened" if is_pickle else ""
        raise _foreign(name, what or ("something else" if beginning else "an empty file"))
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as file:
            if HEADER not in file.namelist():
                raise _foreign(name, "a zip file of something else")
            _check_size(file)
            header = json.loads(_read_entry(file, HEADER))
            _check_header(header, name)
            schema = json.loads(_read_entry(file, SCHEMA))
            asked = _check_nodes(schema)
            plain = _without_compression(file, schema)
        untrusted = {*get_untrusted_types(data=plain)} - OWN_TYPES - PLAIN_TYPES - {TREE}
        return header, plain, sorted((untrusted | asked) - trust)
    except DataError:
        raise
    except Exception as error:  # whatever bytes there are, the file is to blame
        raise damaged(name, error) from error


def _foreign(name: str, found: str) -> DataError:
    return DataError(
        f"The file {name!r} must be one that `save` of labelsure wrote, got {found}. Wrap a model "
        "of another library by `labelsure.as_distribution`."
    )


def _read_entry(file: zipfile.ZipFile, name: str) -> bytes:
    """Return no more than the length that `_check_size` has counted."""
    with file.open(name) as entry:
        return entry.read(file.getinfo(name).file_size)


def _check_header(header: dict[str, Any], name: str) -> None:
    version, versions = header["format_version"], header["versions"]
    if header["format"] != FORMAT or not all(isinstance(v, str) for v in versions.values()):
        raise ValueError(f"{HEADER!r} does not say what wrote it")
    if version > FORMAT_VERSION:
        raise DataError(
            f"The file {name!r} must have format {FORMAT_VERSION} or older, got {version}. It was "
            f"written by labelsure {versions.get('labelsure')}, this is {__version__}: upgrade "
            "labelsure."
        )


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node, wherever it is, so that none is built that was not looked at."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if not part.keys().isdisjoint(("__class__", "__module__", "__loader__")):
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _check_nodes(schema: dict[str, Any]) -> set[str]:
    """Refuse what is never loaded; return types that skops might trust and we do not."""
    asked = set()
    if schema["protocol"] < MIN_PROTOCOL:
        raise ValueError(f"its protocol is {schema['protocol']!r}")
    for node in _nodes(schema):
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if not LOADERS.fullmatch(loader):
            raise ValueError(f"a {loader} ({name}) can run code and is never loaded")
        if name.startswith("labelsure.") and (loader, name in OWN_TYPES) != ("ObjectNode", True):
            asked.add(name)
        if name in PLAIN_TYPES and loader not in ("DTypeNode", "DictNode", "ObjectNode"):
            asked.add(name)
    return asked


def _without_compression(file: zipfile.ZipFile, schema: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as plain:
        plain.writestr(SCHEMA, json.dumps(schema))
        for name in set(file.namelist()) - {HEADER, SCHEMA}:
            plain.writestr(name, _read_entry(file, name))
    return buffer.getvalue()


def _build_model(content: bytes, name: str, trust: set[str]) -> Savable:
    from skops.io import loads

    try:
        model = loads(content, trusted=[*OWN_TYPES, *PLAIN_TYPES, TREE, *trust])
        if not isinstance(model, Savable):
            raise TypeError(f"it holds a {type(model).__name__}, which has no `save`")
        if TREE not in trust:
            for part in _parts(model):
                _check_trees(part)
    except ImportError as error:
        raise DataError(
            f"The file {name!r} needs a library that is not installed: {first_line(error)}. "
            "Install it."
        ) from error
    except Exception as error:  # whatever the file says, it is to blame
        raise damaged(name, error) from error
    return model


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
        elif isinstance(part, (list, tuple, set)):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            waiting.extend(part.flat if part.dtype.hasobject else ())
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            yield part
            waiting.extend(vars(part).values())


def _check_trees(part: Any) -> None:
    """Refuse decision trees whose indices lead astray: scikit-learn follows them unchecked.

    A child comes after its parent, so that every path ends.
    """
    from sklearn.ensemble import BaseEnsemble  # slow to import

    n_features = vars(part).get("n_features_in_")
    if (tree := vars(part).get("tree_")) is not None:
        if tree.n_features != n_features:
            raise ValueError("a decision tree has another number of features than its estimator")
        if tree.node_count != tree.capacity or tree.node_count == 0:
            raise ValueError("a decision tree does not have the sizes that it states")
        inner = np.flatnonzero(tree.children_left != -1)
        for children in (tree.children_left[inner], tree.children_right[inner]):
            if ((children <= inner) | (children >= tree.node_count)).any():
                raise ValueError("a decision tree has a child beyond its nodes")
        if ((tree.feature[inner] < 0) | (tree.feature[inner] >= n_features)).any():
            raise ValueError("a decision tree asks for a feature beyond those that it has")
    if isinstance(part, BaseEnsemble):
        members = vars(part).get("estimators_", ())
        flat = members.flat if isinstance(members, np.ndarray) else members
        trees = [member for member in flat if hasattr(member, "tree_")]
        if any(member.n_features_in_ > n_features for member in trees):
            raise ValueError("a decision tree has more features than its ensemble")
        if trees and isinstance(members, np.ndarray) and members.shape[1:] > (1,):
            raise ValueError(
                f"boosted trees of several classes cannot be checked. Pass trust=[{TREE!r}] if you "
                "know who wrote the file"
            )

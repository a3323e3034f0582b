"""Fitted models on disk, without pickle: skops, a JSON header and a list of our types.

A saved model is a compressed zip file. Its first entry, `labelsure.json`, says what the file holds
and what wrote it; the other entries are those of skops. The comment at its end is the SHA-256 of
everything before it, which finds damage. It is no signature: whoever changes a file can change its
checksum, so that types are compared with exact names before anything is built.

May depend on `metrics` and what is below it.
"""

from __future__ import annotations

import io
import json
import platform
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from labelsure import __version__
from labelsure._runtime.storage import checksum_bytes, first_line, read_bytes, write_output
from labelsure.errors import DataError, InputError
from labelsure.labelsets.rows import MAX_WRITTEN_NAMES, abbreviate_names
from labelsure.metrics.registry import METRICS, get_metric

__all__ = ["Savable", "damaged", "load", "read_description"]

OWN_TYPES = {
    "AcceptPolicy": "labelsure.guarantees._policy",
    "AccuracyAwareClassifier": "labelsure.model._aware_classifier",
    "AccuracyEstimator": "labelsure.estimation._estimator",
    "BinaryRelevance": "labelsure.classifiers._chain_classifiers",
    "ChainDependence": "labelsure.classifiers.recalibration",
    "ClassifierTrellis": "labelsure.classifiers._trellis_classifier",
    "ColumnRole": "labelsure.tables.features",
    "ConditionalBernoulliMixture": "labelsure.classifiers._bernoulli_mixture",
    "EnsembleOfClassifierChains": "labelsure.classifiers._chain_classifiers",
    "Estimate": "labelsure.estimation._batch_estimates",
    "LabelCalibration": "labelsure.estimation._label_estimates",
    "LabelPowerset": "labelsure.classifiers._powerset_classifier",
    "LabelThresholds": "labelsure.guarantees._label_thresholds",
    "LabelsetFrequencies": "labelsure.estimation._labelset_frequencies",
    "LabelsetRegion": "labelsure.guarantees._labelset_region",
    "LabelwiseCalibration": "labelsure.classifiers.recalibration",
    "ModelCard": "labelsure.model._model_card",
    "PrecomputedProbabilities": "labelsure.classifiers._precomputed",
    "PredictionColumns": "labelsure.tables.predictions",
    "ProbabilisticClassifierChain": "labelsure.classifiers._chain_classifiers",
    "RecalibratedClassifier": "labelsure.classifiers._recalibrated_classifier",
    "RidgeModel": "labelsure.estimation._accuracy_model",
    "ScoreTable": "labelsure.estimation.score_table",
    "TableColumns": "labelsure.tables.features",
    "TemperatureScaling": "labelsure.classifiers.recalibration",
    "VoteSmoothing": "labelsure.classifiers.recalibration",
}
"""Every type of this package that a fitted model consists of, and the module that defines it. Files
name these types as `labelsure.X`, so that a class that moves changes one line here."""

LOADERS = re.compile(
    "(Bytearray|Bytes|ConstructorFromReduce|DType|DefaultDict|Dict|Function|Json|List|Loss|"
    "MaskedArray|NdArray|Object|RandomGenerator|RandomState|Set|Slice|SparseMatrix|Tree|Tuple|"
    "Type)Node"
)
"""How skops may build a part. Methods, partial functions and operators call what a file tells them
to and are never loaded; functions need `trust=`."""

HEADER, SCHEMA = "labelsure.json", "schema.json"
FORMAT, FORMAT_VERSION = "labelsure", 1  # later versions keep the first entry and the checksum
MIN_PROTOCOL = 2  # of skops; no file of ours has an older one
CHECKSUM = b"sha256:"
CHECKSUM_LENGTH = len(CHECKSUM) + 64

MAX_EXPANDED_BYTES = 2**32
"""The most that the entries of a file may take in memory: deflated ones grow up to 1,032 times."""

COMPRESSION_LEVEL = 1
"""Of 9. For a forest of 300 trees, level 1 takes 40% of the time of level 6 and 20% more space."""

TREE = "sklearn.tree._tree.Tree"
JOINED_NAMES = "names in one text"
MAX_NAMES_SHOWN = 12
NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
FILTERS_LOCK = Lock()

_BEGINNINGS = {
    b"PK": "a zip file of something else",
    b"\x80": "a pickle, which can run any code and is never opened",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
    b"": "something else",
}


class Savable:
    """What can be saved once it is fitted, and loaded by `labelsure.load`.

    `OWN_TYPES` lists every such class.
    """

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `labelsure.load` reads; no pickle is in it."""
        check_is_fitted(self)
        content = _write_model(self)
        try:
            write_output(Path(path), lambda temporary: temporary.write_bytes(content))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise DataError(
                f"The file {str(path)!r} cannot be written: {reason}. Choose a folder that exists "
                "and that you may write to."
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, registered metrics by name and very many names as one text."""
        state = {name: _join_names(value) for name, value in vars(self).items()}
        if "metric" in state:
            state["metric"] = _name_metric(state["metric"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` returned."""
        vars(self).update({name: _split_names(value) for name, value in state.items()})


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

    for part in _parts(model):
        if isinstance(part, Savable):
            _refuse_function(_name_metric(getattr(part, "metric", None)))
    buffer = io.BytesIO()
    try:
        for part in _parts(model):
            _refuse_files(part)
        with zipfile.ZipFile(io.BytesIO(dumps(model))) as written:
            _check_size(written)
            schema = _name_publicly(json.loads(written.read(SCHEMA)))
            header = json.dumps(_describe(model), indent=1, allow_nan=False)
            with zipfile.ZipFile(
                buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL
            ) as file:
                file.writestr(HEADER, header)
                file.writestr(SCHEMA, json.dumps(schema, separators=(",", ":")))
                for name in written.namelist():
                    if name != SCHEMA:
                        file.writestr(name, written.read(name))
    except Exception as error:  # of skops, for whatever it cannot write
        raise InputError(
            f"The {type(model).__name__} holds something that cannot be saved: "
            f"{first_line(error)}. Replace that part, or pickle the model and keep the file to "
            "yourself."
        ) from error
    # The last two bytes of a zip file without a comment say how long the comment is.
    content = buffer.getvalue()[:-2] + CHECKSUM_LENGTH.to_bytes(2, "little")
    return content + CHECKSUM + checksum_bytes(content).encode("ascii")


def _refuse_function(metric: Any) -> None:
    if metric is not None and not isinstance(metric, str):
        name = get_metric(metric).name
        raise InputError(
            f"`metric` must be the name of a registered metric to be saved, got the function "
            f"{name!r}: a file holds no function. Register it, `labelsure.metrics.METRICS[{name!r}]"
            f" = Metric({name!r}, function)`, where the model is fitted and where it is loaded, "
            f"and fit with metric={name!r}."
        )


def _refuse_files(part: Any) -> None:
    """Refuse parameters by which scikit-learn's estimators read or write files."""
    if vars(part).get("input") in ("filename", "file"):
        raise ValueError("`input` of a vectoriser must be 'content': others open files")
    if isinstance(vars(part).get("memory"), str):
        raise ValueError("`memory` must be None: a cache would write to that folder")


def _check_size(file: zipfile.ZipFile) -> None:
    size = sum(entry.file_size for entry in file.infolist())
    if size > MAX_EXPANDED_BYTES:
        raise ValueError(f"it takes {size:,} bytes in memory, the limit is {MAX_EXPANDED_BYTES:,}")


def _name_publicly(schema: dict[str, Any]) -> dict[str, Any]:
    """Put `labelsure` in the place of our modules; refuse what could not be loaded again."""
    for node in _nodes(schema):
        loader, module, kind = (node[f"__{key}__"] for key in ("loader", "module", "class"))
        if OWN_TYPES.get(kind) == module:
            node["__module__"] = "labelsure"
        elif not LOADERS.fullmatch(loader):
            name = f"{module}.{kind}"
            raise ValueError(f"a {loader.removesuffix('Node')} of {name}, which is never loaded")
        elif not NAME.fullmatch(f"{module}.{kind}"):
            raise ValueError(f"{module}.{kind}, which cannot be found by that name")
    return schema


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
            "`trust` must be a list of types or of their names with modules, e.g. "
            f"['xgboost.core.Booster'], got {trust!r}."
        )
    names = {f"{t.__module__}.{t.__name__}" if isinstance(t, type) else t for t in trust}
    file = Path(path).name
    header, content, needed = _read_model(Path(path), names)
    if needed:
        shown = needed[:MAX_NAMES_SHOWN]
        more = f" and {len(needed) - len(shown)} more" if len(needed) > len(shown) else ""
        raise DataError(
            f"The file {file!r} must name trusted types only, got {', '.join(shown)}{more}. They "
            "could run code or crash the program: if you know who wrote the file and want them, "
            f"pass trust={shown!r}{' with those' if more else ''}."
        )
    metric, wrote = header.get("metric"), header["versions"].get("scikit-learn")
    if isinstance(metric, str) and metric not in METRICS:
        raise InputError(
            f"The file {file!r} needs the metric {metric!r}, which is not registered here. "
            f"Before loading, write `labelsure.metrics.METRICS[{metric!r}] = Metric({metric!r}, "
            "function)` as where the model was fitted."
        )
    if wrote != sklearn.__version__:
        warnings.warn(
            f"The file {file!r} was written with scikit-learn {wrote}, this is "
            f"{sklearn.__version__}: predictions may differ. Compare some, or fit and save again.",
            UserWarning,
            stacklevel=2,
        )
    return _build_model(content, file, names)


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
        f"The file {name!r} must be as `save` wrote it, but it is damaged or was changed: "
        f"{first_line(reason)}. Copy it again, or save the model again."
    )


def _read_model(path: Path, trust: set[str]) -> tuple[dict[str, Any], bytes, list[str]]:
    """Return the header, a file that skops can build, and the types that `trust` lacks."""
    name, beginning = path.name, read_bytes(path, CHECKSUM_LENGTH)
    if not (beginning.startswith(b"PK\x03\x04") and beginning[30:].startswith(HEADER.encode())):
        found = next(what for start, what in _BEGINNINGS.items() if beginning.startswith(start))
        raise DataError(
            f"The file {name!r} must be one that `save` of labelsure wrote, got "
            f"{found if beginning else 'an empty file'}. Check the name; a model of another "
            "library is used by `labelsure.as_distribution`."
        )
    content = read_bytes(path)
    body, checksum = content[:-CHECKSUM_LENGTH], content[-CHECKSUM_LENGTH:]
    if checksum != CHECKSUM + checksum_bytes(body).encode("ascii"):
        raise damaged(name, "its content does not have the checksum at its end")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            _check_size(file)
            header = json.loads(_read_entry(file, HEADER))
            _check_header(header, name)
            schema = json.loads(_read_entry(file, SCHEMA))
            asked = _name_modules(schema, trust)
            plain = _without_compression(file, schema)
        return header, plain, _list_untrusted(plain, asked, trust)
    except DataError:
        raise
    except Exception as error:  # whatever bytes there are, the file is to blame
        raise damaged(name, error) from error


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
            f"The file {name!r} must have format {FORMAT_VERSION} or an older one, got {version}: "
            f"it was written by labelsure {versions.get('labelsure', 'of a later version')}, this "
            f"is {__version__}. Upgrade labelsure to load it."
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


def _name_modules(schema: dict[str, Any], trust: set[str]) -> set[str]:
    """Put modules in the place of public names; return what skops might trust and we do not."""
    asked = set()
    if schema["protocol"] < MIN_PROTOCOL:
        raise ValueError(f"its protocol is {schema['protocol']!r}")
    for node in _nodes(schema):
        loader, module, kind = (node[f"__{key}__"] for key in ("loader", "module", "class"))
        name = f"{module}.{kind}"
        if not LOADERS.fullmatch(loader):
            raise ValueError(f"a {loader} ({name}) can run code and is never loaded")
        if loader == "TreeNode" and TREE not in trust:
            arguments = [node.pop("__reduce__")["args"], node["content"]]
            node.update(__loader__="ConstructorFromReduceNode", __module__=__name__)
            node.update(__class__="build_tree", content=_tuple_node(arguments))
        elif loader == "ObjectNode" and module == "labelsure" and kind in OWN_TYPES:
            node["__module__"] = OWN_TYPES[kind]
        elif loader == "FunctionNode" or name.startswith("labelsure."):
            asked.add(name)
    return asked


def _tuple_node(content: list[Any]) -> dict[str, Any]:
    kind = {"__loader__": "TupleNode", "__module__": "builtins", "__class__": "tuple"}
    return {**kind, "content": content}


def _without_compression(file: zipfile.ZipFile, schema: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as plain:
        plain.writestr(SCHEMA, json.dumps(schema))
        for name in set(file.namelist()) - {HEADER, SCHEMA}:
            plain.writestr(name, _read_entry(file, name))
    return buffer.getvalue()


def _own_names() -> set[str]:
    return {f"{module}.{name}" for name, module in OWN_TYPES.items()} | {f"{__name__}.build_tree"}


def _list_untrusted(content: bytes, asked: set[str], trust: set[str]) -> list[str]:
    from skops.io import get_untrusted_types

    found = set(get_untrusted_types(data=content)) - _own_names()
    return sorted((found | asked) - trust)


def _build_model(content: bytes, name: str, trust: set[str]) -> Savable:
    from skops.io import loads

    try:
        # There is one warning for the whole file. Filters are those of the process: by turns.
        with FILTERS_LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = loads(content, trusted=[*_own_names(), *trust])
        if not isinstance(model, Savable):
            raise TypeError(f"it holds a {type(model).__name__}, which has no `save`")
        for part in _parts(model):
            _refuse_files(part)
            if TREE not in trust:
                _check_tree_owner(part)
    except ImportError as error:
        raise DataError(
            f"The file {name!r} needs a library that is not installed: {first_line(error)}. "
            "Install it, then load the file again."
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


@cache
def _tree_type() -> Any:
    from sklearn.tree import DecisionTreeClassifier  # slow to import

    return type(DecisionTreeClassifier().fit([[0.0]], [0]).tree_)


def build_tree(arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Return a decision tree of scikit-learn, which follows indices of nodes without checking them.

    A child comes after its parent, so that every path ends.
    """
    n_features, n_classes, n_outputs = arguments
    n_nodes = len(state["nodes"])
    if n_outputs != len(n_classes) or state["node_count"] != n_nodes or n_nodes == 0:
        raise ValueError("a decision tree does not have the sizes that it states")
    tree = _tree_type()(n_features, n_classes, n_outputs)
    tree.__setstate__(state)  # which compares types and shapes of nodes and values
    inner = np.flatnonzero(tree.children_left != -1)
    for children in (tree.children_left[inner], tree.children_right[inner]):
        if ((children <= inner) | (children >= n_nodes)).any():
            raise ValueError("a decision tree has a child beyond its nodes")
    if ((tree.feature[inner] < 0) | (tree.feature[inner] >= n_features)).any():
        raise ValueError("a decision tree asks for a feature beyond those that it has")
    return tree


def _check_tree_owner(part: Any) -> None:
    """Refuse estimators that would hand trees another number of features or outputs."""
    from sklearn.ensemble import BaseEnsemble  # slow to import

    tree = vars(part).get("tree_")
    if tree is not None and tree.n_features != vars(part)["n_features_in_"]:
        raise ValueError("a decision tree has another number of features than its estimator")
    if isinstance(part, BaseEnsemble):
        members = vars(part).get("estimators_", ())
        flat = members.flat if isinstance(members, np.ndarray) else members
        trees = [member for member in flat if hasattr(member, "tree_")]
        if any(member.n_features_in_ > vars(part)["n_features_in_"] for member in trees):
            raise ValueError("a decision tree has more features than its ensemble")
        if trees and isinstance(members, np.ndarray) and members.shape[1:] > (1,):
            raise ValueError(
                f"boosted trees of several classes cannot be checked. Pass trust=[{TREE!r}] if you "
                "know who wrote the file"
            )

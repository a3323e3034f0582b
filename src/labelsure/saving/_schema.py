"""Which types a saved model may name, checked before skops imports or builds anything.

A schema is a tree of nodes. Each names a *loader* (how skops builds it) and a type. Both are
compared with exact names: a name below a trusted one is not trusted, as below `sklearn` there are
functions that start programs.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from labelsure.errors import DataError, InputError
from labelsure.saving._file_format import SCHEMA, SavedFile, damaged, join_entries, split_entries

OWN_TYPES = {
    "AcceptPolicy": "labelsure.guarantees._policy",
    "AccuracyAwareClassifier": "labelsure.model._aware_classifier",
    "AccuracyEstimator": "labelsure.estimation._estimator",
    "BinaryRelevance": "labelsure.classifiers._chain_classifiers",
    "CalibrationSample": "labelsure.estimation._calibration_sample",
    "ChainDependence": "labelsure.classifiers.recalibration._dependence",
    "ClassifierTrellis": "labelsure.classifiers._trellis_classifier",
    "ColumnRole": "labelsure.tables.features",
    "ConditionalBernoulliMixture": "labelsure.classifiers._bernoulli_mixture",
    "DependenceLayer": "labelsure.classifiers._dependence_layer",
    "Dispersion": "labelsure.estimation._batch_estimates",
    "EnsembleOfClassifierChains": "labelsure.classifiers._chain_classifiers",
    "Estimate": "labelsure.estimation._batch_estimates",
    "GroupLevels": "labelsure.estimation._inputs",
    "LabelCalibration": "labelsure.estimation._label_calibration",
    "LabelPowerset": "labelsure.classifiers._powerset_classifier",
    "LabelThresholds": "labelsure.guarantees._label_thresholds",
    "LabelsetFrequencies": "labelsure.estimation._labelset_frequencies",
    "LabelsetRegion": "labelsure.guarantees._labelset_region",
    "LabelwiseCalibration": "labelsure.classifiers.recalibration._labelwise_calibration",
    "Layout": "labelsure.estimation._design",
    "ModelCard": "labelsure.model._model_card",
    "PluginModel": "labelsure.estimation._models",
    "PrecomputedProbabilities": "labelsure.classifiers._precomputed",
    "PredictionColumns": "labelsure.tables.predictions",
    "ProbabilisticClassifierChain": "labelsure.classifiers._chain_classifiers",
    "RidgeModel": "labelsure.estimation._models",
    "TableColumns": "labelsure.tables.features",
    "TemperatureScaling": "labelsure.classifiers.recalibration._temperature_scaling",
    "TrainingGain": "labelsure.estimation._batch_estimates",
    "View": "labelsure.estimation._shift_test",
}
"""Every type of this package that a fitted model consists of, and the module that defines it. Files
name these types as `labelsure.X`, so that a class that moves changes one line here."""

PUBLIC_NAMES = {f"{module}.{name}": f"labelsure.{name}" for name, module in OWN_TYPES.items()}

MIN_PROTOCOL = 2
"""Of skops. Older ones have nodes of their own, which nothing here has ever written."""

MAX_DEPTH = 300  # of nodes in each other; a pipeline in a search in a chain has about 40
MAX_NAMES_SHOWN = 12
NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")

FILE_SUFFIXES = {
    "NdArrayNode": ".npy",
    "SparseMatrixNode": ".npz",
    "BytesNode": ".bin",
    "BytearrayNode": ".bin",
}
"""What the entry of such a node holds, by the end of its name."""


@cache
def trusted_types() -> dict[str, frozenset[str]]:
    """Return for each loader the types that it may build without being asked.

    A loader that is not here is never used: those of methods, partial functions and operators call
    what a file tells them to. One with no types is used for those alone that a user trusts: it
    returns a function, calls a type with arguments from the file, or hands numbers to compiled code
    that does not check them (trees, sparse matrices).
    """
    from skops.io import _sklearn
    from skops.io import _trusted_types as known
    from skops.io._utils import get_type_name

    numbers = frozenset(known.NUMPY_DTYPE_TYPE_NAMES)
    primitives = frozenset(known.PRIMITIVE_TYPE_NAMES)
    learners = {*known.SKLEARN_ESTIMATOR_TYPE_NAMES, *known.SKLEARN_INTERNAL_TYPE_NAMES}
    return {
        "JsonNode": primitives,
        "TypeNode": numbers | primitives | frozenset(known.CONTAINER_TYPE_NAMES),
        "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
        "DefaultDictNode": frozenset({"collections.defaultdict"}),
        "ListNode": frozenset({"builtins.list"}),
        "SetNode": frozenset({"builtins.set"}),
        "TupleNode": frozenset({"builtins.tuple"}),
        "SliceNode": frozenset({"builtins.slice"}),
        "BytesNode": frozenset({"builtins.bytes"}),
        "BytearrayNode": frozenset({"builtins.bytearray"}),
        "NdArrayNode": numbers | {"numpy.ndarray"},
        "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray"}),
        "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
        "LossNode": frozenset(get_type_name(loss) for loss in _sklearn.ALLOWED_LOSSES),
        "ObjectNode": frozenset({*PUBLIC_NAMES.values(), *learners}),
        "ConstructorFromReduceNode": frozenset(),
        "DTypeNode": frozenset(),
        "FunctionNode": frozenset(),
        "RandomGeneratorNode": frozenset(),
        "SparseMatrixNode": frozenset(),
        "TreeNode": frozenset(),
    }


def check_trust(trust: Any) -> list[str]:
    """Return the exact names of the types that a user trusts, or say what is wrong with them.

    Parameters
    ----------
    trust
        Names with their modules, or the types themselves.
    """
    if isinstance(trust, (str, bool)) or not isinstance(trust, Iterable):
        raise InputError(
            "`trust` must be a list of types or of their names with modules, e.g. "
            f"['sklearn.tree._tree.Tree'], got {trust!r}."
        )
    names = [
        f"{entry.__module__}.{entry.__name__}" if isinstance(entry, type) else entry
        for entry in trust
    ]
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                f"`trust` must hold exact names such as 'sklearn.tree._tree.Tree', got {name!r}. "
                "A module, a part of a name or a pattern trusts nothing."
            )
    return names


def check_schema(file: SavedFile, trust: Iterable[str] = ()) -> None:
    """Refuse a file that names anything but trusted types; nothing is imported or built.

    Parameters
    ----------
    file
        What was read.
    trust
        Exact names that are trusted beside those that are known.
    """
    unknown = find_untrusted(file, trust)
    if unknown:
        raise _untrusted(file.name, unknown)


def find_untrusted(file: SavedFile, trust: Iterable[str] = ()) -> list[str]:
    """Return the types that a user has to trust for a file to be loaded; nothing is imported.

    Parameters
    ----------
    file
        What was read. It is refused if it names what is never loaded.
    trust
        Exact names that are trusted beside those that are known.
    """
    protocol = file.schema.get("protocol")
    if type(protocol) is not int or protocol < MIN_PROTOCOL:
        raise damaged(file.name, f"its protocol is {protocol!r}")
    trusted, unknown = frozenset(trust), set()
    for node in _nodes(file.schema, file.name):
        loader, name = _names_of(node, file.name)
        if loader not in trusted_types():
            raise DataError(
                f"The file {file.name!r} must hold a model made of plain objects, got a {loader} "
                f"({name}), which can run code and is never loaded. Do not use the file unless you "
                "know who wrote it."
            )
        if name not in trusted_types()[loader] and name not in trusted:
            unknown.add(name)
        else:
            _check_entry(node, loader, name, file)
    return sorted(unknown)


def _untrusted(name: str, unknown: list[str]) -> DataError:
    shown = unknown[:MAX_NAMES_SHOWN]
    more = f" and {len(unknown) - len(shown)} more" if len(unknown) > len(shown) else ""
    return DataError(
        f"The file {name!r} must name trusted types only, got {', '.join(shown)}{more}. They could "
        "run code or crash the program: if you know who wrote the file and want them, pass "
        f"trust={shown!r}{' with those' if more else ''}."
    )


def _nodes(schema: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield every node, wherever it is, so that none is built that was not looked at."""
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > 2 * MAX_DEPTH:  # each node has its parts in a container
            raise damaged(name, "its objects lie too deep in each other")
        if isinstance(part, dict):
            if not part.keys().isdisjoint(("__class__", "__module__", "__loader__")):
                yield part
            waiting.extend((value, depth + 1) for value in part.values())
        elif isinstance(part, list):
            waiting.extend((value, depth + 1) for value in part)


def _names_of(node: dict[str, Any], name: str) -> tuple[str, str]:
    """Return the loader of a node and its type with the module."""
    loader, module, kind = (node.get(f"__{key}__") for key in ("loader", "module", "class"))
    if not all(isinstance(text, str) for text in (loader, module, kind)) or "." in str(kind):
        raise damaged(name, "a part of it does not say what it is")
    return str(loader), f"{module}.{kind}"


def _check_entry(node: dict[str, Any], loader: str, kind: str, file: SavedFile) -> None:
    """Refuse a node whose entry is not there, or holds something else than the node says."""
    if loader == "JsonNode" and not isinstance(node.get("content"), str):
        raise damaged(file.name, "a value in it is no text")
    entry = node.get("file")
    needs_entry = loader in FILE_SUFFIXES and node.get("type") != "json"
    if not needs_entry and entry is None:
        return
    suffix = FILE_SUFFIXES.get(loader)
    if not isinstance(entry, str) or suffix is None or not entry.endswith(suffix):
        raise damaged(file.name, f"an entry {entry!r} is of another kind")
    if entry not in file.names:
        raise damaged(file.name, f"an entry {entry!r} is not there")
    array = file.arrays.get(entry)
    if array is None or kind == "numpy.ndarray" or loader != "NdArrayNode":
        return
    if array.shape != () or array.dtype.type.__name__ != kind.rpartition(".")[2]:
        raise damaged(file.name, f"a number in it is no {kind}")


def make_entries(content: bytes) -> dict[str, bytes]:
    """Return what skops wrote as entries that are the same for the same model.

    Raises a ValueError where `load` could not read them, whatever was trusted.

    skops names entries after places in memory. Here they are numbered in the order of the schema,
    and objects have a number only where two nodes are the same one.

    Parameters
    ----------
    content
        What `skops.io.dumps` returns.
    """
    written = split_entries(content)
    schema = json.loads(written[SCHEMA])
    nodes = list(_nodes(schema, SCHEMA))
    for node in nodes:
        if f"{node['__module__']}.{node['__class__']}" in PUBLIC_NAMES:
            node["__module__"] = "labelsure"
    _check_can_be_loaded(nodes)
    uses = Counter(node.get("__id__") for node in nodes if node.get("__loader__") != "JsonNode")
    numbers: dict[int, int] = {}
    places: dict[str, str] = {}
    for node in nodes:
        identity = node.pop("__id__", None)
        if uses[identity] > 1 and node["__loader__"] != "JsonNode":
            node["__id__"] = numbers.setdefault(identity, len(numbers) + 1)
        if "file" in node:
            suffix = FILE_SUFFIXES[node["__loader__"]]
            node["file"] = places.setdefault(node["file"], f"{len(places)}{suffix}")
    text = json.dumps(schema, separators=(",", ":"))
    entries = {SCHEMA: text.encode("ascii")}
    for place, entry in places.items():
        part = written[place]
        entries[entry] = _without_compression(part) if entry.endswith(".npz") else part
    return entries


def _check_can_be_loaded(nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if loader not in trusted_types():
            raise ValueError(f"a {loader.removesuffix('Node')} of {name}, which is never loaded")
        if not NAME.fullmatch(name):
            raise ValueError(f"{name}, which cannot be found by that name")


def _without_compression(content: bytes) -> bytes:
    """Return the zip file of a sparse matrix as ours are: not compressed, without dates."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return join_entries({name: file.read(name) for name in file.namelist()})


def name_modules(file: SavedFile) -> bytes:
    """Return the content with the modules of our types in place of their public names."""
    entries = split_entries(file.content)
    schema = json.loads(entries[SCHEMA])
    for node in _nodes(schema, file.name):
        if node["__module__"] == "labelsure":
            node["__module__"] = OWN_TYPES[node["__class__"]]
    return join_entries({**entries, SCHEMA: json.dumps(schema).encode("ascii")})

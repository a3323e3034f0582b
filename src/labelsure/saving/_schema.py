"""Nodes and sizes of a saved model, checked before skops reads any of them.

skops writes a tree of nodes as JSON, `schema.json`: each node names a class and the loader that
builds it. Here every node is looked at, wherever it is, so that none is built that was not. What
skops leaves open is closed: a name is trusted for one loader only, a node that stands in several
places is the same in all of them, each entry of the file belongs to one node, and the memory that
building takes is bounded before anything is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NoReturn

from labelsure._runtime.typing import JsonObject, JsonValue
from labelsure.errors import TooLargeError

Node = JsonObject

_TYPES_BY_MODULE = {
    "classifiers._chain_classifiers": (
        "BinaryRelevance ClassifierTrellis EnsembleOfClassifierChains ProbabilisticClassifierChain"
    ),
    "classifiers._powerset_classifier": "LabelPowerset",
    "classifiers._precomputed": "PrecomputedProbabilities",
    "classifiers.recalibration._constrained": "ConstrainedCalibration RuledCurves RuledLinks",
    "classifiers.recalibration._dependence": "ChainDependence",
    "classifiers.recalibration._labelwise": "LabelwiseCalibration",
    "classifiers.recalibration._recalibrated_classifier": "RecalibratedClassifier",
    "classifiers.recalibration._temperature": "TemperatureScaling",
    "classifiers.recalibration._votes": "VoteSmoothing",
    "distributions.constraints": "LabelConstraints",
    "estimation._accuracy_model": "LabelsetFrequencies RidgeModel",
    "estimation._batch_estimates": "Estimate Scatter",
    "estimation._diagnostics": "PredictComparison",
    "estimation._estimator": "AccuracyEstimator",
    "estimation._label_estimates": "LabelCalibration",
    "estimation._label_shift": "DensityRatios",
    "estimation.score_table": "ScoreTable",
    "guarantees._by_group": "ByGroup",
    "guarantees._label_thresholds": "LabelThresholds",
    "guarantees._labelset_region": "LabelsetRegion",
    "guarantees._policy": "AcceptPolicy",
    "model._aware_classifier": "AccuracyAwareClassifier",
    "model._decision_rules": "Best Given Mode OwnPredict Thresholds",
    "model._fitted": "Fitted",
    "model._input_ranges": "InputRanges",
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

TREE = "sklearn.tree._tree.Tree"

SPARSE_TYPES = frozenset(
    f"scipy.sparse._{kind}.{kind}_{container}"
    for kind in ("bsr", "coo", "csc", "csr", "dia")
    for container in ("array", "matrix")
)

LOSS_MODULES = b'"__module__": "_loss"', b'"__module__": "sklearn._loss._loss"'
"""Module of boosting's losses, as scikit-learn 1.7 states it and as every version imports it."""

LOSSES = tuple(
    f"sklearn._loss._loss.Cy{name}"
    for name in ("ExponentialLoss", "HalfBinomialLoss", "HalfMultinomialLoss")
)

TRUSTED_LOADERS = {
    **dict.fromkeys(OWN_TYPES, "ObjectNode"),
    **dict.fromkeys(SPARSE_TYPES, "SparseMatrixNode"),
    TREE: "TreeNode",
    **dict.fromkeys(LOSSES, "LossNode"),
    "numpy.dtype": "DTypeNode",
    "sklearn.calibration._CalibratedClassifier": "ObjectNode",
    "sklearn.calibration._SigmoidCalibration": "ObjectNode",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": "ObjectNode",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer": "ObjectNode",
    "sklearn.utils._bunch.Bunch": "DictNode",
}
"""Types beside those that skops trusts, with the only loader that may build each. They are ours,
hold only values, or are checked by `_values`."""

MAX_EXPANSION = 500
"""Times the size of a file that building it may take, in bytes: deflate of level 1, with which
models are saved, shrinks zeros 229 times, and level 9 does 1,032 times."""

COPIES = 2
"""Copies of each entry in memory: bytes and an array."""

NODE_BYTES = 1_500
"""Memory of one node in skops, most of it the list of names that each node has of its own."""

JSON_BYTES = {"[": 128, "{": 128, ",": 32}
"""Memory of a list, of a dict and of one more value, beside the text itself."""

BYTES_BUILT = {"BytearrayNode": 10}
"""Bytes in memory for a byte of an entry: skops makes a bytearray from a list of integers."""

MIN_PROTOCOL = 2  # of skops; no file of ours has an older one

DEFAULT_POOL_SIZE = 4  # of a seed sequence, in words; mixing takes the square of it


class ExpansionError(ValueError):
    """A file that would take more memory than one of its size may."""


class Budget:
    """Bytes that building a model may still take."""

    def __init__(self, file_size: int, max_bytes: int) -> None:
        self._n_taken, self._file_size, self._max_bytes = 0, file_size, max_bytes

    def take(self, n_bytes: int) -> None:
        """Subtract from the bytes left. Raises an error if these do not suffice."""
        self._n_taken += n_bytes
        if self._n_taken > MAX_EXPANSION * self._file_size:
            raise ExpansionError(f"it takes more than {MAX_EXPANSION} times its size in memory")
        if self._n_taken > self._max_bytes:
            raise TooLargeError(
                f"The model takes more than {self._max_bytes:,} bytes in memory. If you know who "
                "wrote the file, pass a larger `max_bytes`."
            )

    def take_json(self, text: str | bytes) -> None:
        """Subtract the memory of the values of a JSON text, before it is parsed."""
        content = text.encode() if isinstance(text, str) else text
        values = sum(size * content.count(mark.encode()) for mark, size in JSON_BYTES.items())
        self.take(2 * len(content) + values)


def parse_json(text: str | bytes) -> JsonValue:
    """Parse JSON without NaN and infinity, which compare with nothing."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    return json.loads(text, parse_constant=refuse)


def read_nodes(text: bytes, budget: Budget) -> list[Node]:
    """Parse `schema.json` into its nodes, each checked for itself."""
    budget.take_json(text)
    nodes: list[Node] = []
    schema = parse_json(text)
    _hash_part(schema, nodes, {})
    if schema["protocol"] < MIN_PROTOCOL:
        raise ValueError(f"its protocol is {schema['protocol']!r}")
    numbers = {node.get("__id__", id(node)) for node in nodes}
    budget.take(NODE_BYTES * len(numbers))
    for node in nodes:
        loader, name = node["__loader__"], name_of(node)
        if loader not in NODE_CHECKS:
            raise ValueError(f"a {loader} ({name}) can run code and is never loaded")
        NODE_CHECKS[loader](node, budget)
    return nodes


def name_of(node: Node) -> str:
    """Fully qualified name of the class that a node states."""
    return f"{node['__module__']}.{node['__class__']}"


def _hash_part(part: object, nodes: list[Node], seen: dict[int, tuple[str, str, int]]) -> int:
    """Hash of a part of the schema; its nodes are appended to a list.

    skops builds a node whose number it knows from the first one, unread: what stands in several
    places must be the same in all of them, but for numbers and files. Then each node is visited
    as often as it is written, and no node holds itself.
    """
    if isinstance(part, list):
        return hash(tuple(_hash_part(value, nodes, seen) for value in part))
    if not isinstance(part, dict):
        return hash(repr(part))
    is_node = not part.keys().isdisjoint(("__class__", "__module__", "__loader__"))
    own = ("__id__", "file") if is_node else ()
    found = hash(tuple((key, _hash_part(part[key], nodes, seen)) for key in part if key not in own))
    if is_node:
        nodes.append(part)
        number = part.get("__id__")
        same = (part["__loader__"], name_of(part), found)
        if number is not None and (
            type(number) is not int or seen.setdefault(number, same) != same
        ):
            raise ValueError(f"two parts have the number {number!r} and are not the same")
    return found


def find_entries(
    nodes: list[Node], sizes: Mapping[str, int], budget: Budget
) -> dict[str, tuple[str, str]]:
    """Loader and class of each entry. Raises ValueError unless each entry has one node."""
    owners: dict[str, Node] = {}
    for node in nodes:
        if (loader := node["__loader__"]) not in FILE_LOADERS or "file" not in node:
            continue
        file, number = node["file"], node.get("__id__", id(node))
        if file not in sizes:
            raise ValueError(f"there is no entry {file!r}")
        if owners.setdefault(file, node).get("__id__", id(owners[file])) != number:
            raise ValueError(f"two parts have the entry {file!r}")
        if owners[file] is node:
            budget.take(sizes[file] * BYTES_BUILT.get(loader, 0))
    if unnamed := sizes.keys() - owners.keys():
        raise ValueError(f"no part has the entry {min(unnamed)!r}")
    return {file: (node["__loader__"], name_of(node)) for file, node in owners.items()}


FILE_LOADERS = ("BytearrayNode", "BytesNode", "NdArrayNode", "SparseMatrixNode")


# Checks of each kind of node


def _check_name(node: Node, budget: Budget) -> None:
    """No check of the content: skops and `trust` decide on the name."""


def _check_json(node: Node, budget: Budget) -> None:
    text = node["content"]
    budget.take_json(text)
    value = json.loads(text)
    if isinstance(value, str):  # very many names are JSON once more
        budget.take_json(value)


def _check_array(node: Node, budget: Budget) -> None:
    """Refuse object arrays of several dimensions whose parts NumPy would look into.

    `numpy.array` makes an element of each number of an array inside, as often as it is held.
    """
    if node["type"] != "json":
        return
    items = node["content"]
    for _ in node["shape"]["content"][1:]:
        if any(item["__loader__"] != "ListNode" for item in items):
            raise ValueError("an array of objects does not have the shape that it states")
        items = [part for item in items for part in item["content"]]
    if len(node["shape"]["content"]) > 1 and not all(map(_is_scalar, items)):
        raise ValueError("an array of objects holds more than numbers, text and decision trees")


def _is_scalar(node: Node) -> bool:
    if node["__loader__"] == "JsonNode":
        return not str(node["content"]).startswith(("[", "{"))
    if node["__loader__"] == "NdArrayNode":
        return node["type"] == "numpy" and name_of(node) != "numpy.ndarray"
    return name_of(node) == "sklearn.tree._classes.DecisionTreeRegressor"


def _check_masked(node: Node, budget: Budget) -> None:
    parts = [node["content"][name] for name in ("data", "mask")]
    if any(part["__loader__"] != "NdArrayNode" or part["type"] != "numpy" for part in parts):
        raise ValueError("a masked array consists of something else than arrays")


def _check_generator(node: Node, budget: Budget) -> None:
    pool_size = node["content"]["seed_seq"]["content"]["pool_size"]["content"]
    if json.loads(pool_size) != DEFAULT_POOL_SIZE:
        raise ValueError(f"a seed sequence has a pool of {pool_size} words")


_PLAIN_LOADERS = (
    "BytearrayNode BytesNode ConstructorFromReduceNode DTypeNode DefaultDictNode DictNode ListNode "
    "LossNode ObjectNode RandomStateNode SetNode SliceNode SparseMatrixNode TreeNode TupleNode "
    "TypeNode"
)
NODE_CHECKS: dict[str, Callable[[Node, Budget], None]] = {
    **dict.fromkeys(_PLAIN_LOADERS.split(), _check_name),
    "JsonNode": _check_json,
    "MaskedArrayNode": _check_masked,
    "NdArrayNode": _check_array,
    "RandomGeneratorNode": _check_generator,
}
"""Every loader that may build a node. Functions, methods, operators and partials are never
loaded."""

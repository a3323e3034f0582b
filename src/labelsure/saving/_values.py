"""Values of a saved model on which compiled code relies without checking them.

Arrays and sparse matrices are checked before they are built; decision trees, support vectors,
neighbours and random states in the model, before anything uses it.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from labelsure._runtime.typing import Estimator
from labelsure.saving._schema import TREE

MT19937_WORDS, PHILOX_WORDS = 624, 4  # that a random state has drawn in advance

_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_entry(file: zipfile.ZipFile, name: str) -> bytes:
    """Return the bytes of an entry, no more than the length that the file states."""
    with file.open(name) as entry:
        return entry.read(file.getinfo(name).file_size)


def sizes_inside(content: bytes) -> int:
    """Bytes of the entries of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return sum(entry.file_size for entry in file.infolist())


def check_entry(loader: str, name: str, content: bytes) -> bytes:
    """Return an entry as skops may read it: arrays of the stated length, npz without deflate."""
    if loader == "NdArrayNode":
        check_array(content, name)
    if loader == "SparseMatrixNode":
        return check_sparse(content, name)
    return content


def check_array(content: bytes, name: str = "numpy.ndarray") -> None:
    """Refuse an array that states another length than it has, and scalars that are arrays."""
    stream = io.BytesIO(content)
    shape, _, dtype = _READ_HEADER[np.lib.format.read_magic(stream)](stream)
    n_values = math.prod(shape)
    if n_values * dtype.itemsize != len(content) - stream.tell() and not dtype.hasobject:
        raise ValueError("an array does not have the length that it states")
    if n_values and not dtype.itemsize:
        raise ValueError("an array has values without a size")
    kind = getattr(np, name.removeprefix("numpy."), np.ndarray)
    is_scalar = isinstance(kind, type) and issubclass(kind, np.generic)
    if is_scalar and (shape, dtype.kind) != ((), np.dtype(kind).kind):
        raise ValueError(f"a {name} is not one value of that type")


def check_sparse(content: bytes, name: str) -> bytes:
    """Return the npz of a sparse matrix without compression, after a check of its indices."""
    from scipy.sparse import load_npz

    plain = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as file, zipfile.ZipFile(plain, "w") as stored:
        for entry in file.infolist():
            array = read_entry(file, entry.filename)
            check_array(array)
            stored.writestr(entry.filename, array)
    plain.seek(0)
    matrix = load_npz(plain)
    if name != f"{type(matrix).__module__}.{type(matrix).__name__}":
        raise ValueError(f"a {type(matrix).__name__} is called {name}")
    if hasattr(matrix, "check_format"):  # coo and dia check all of it where they are built
        matrix.check_format(full_check=True)
    return plain.getvalue()


def check_values(model: Estimator, trust: set[str]) -> None:
    """Refuse values of a model that lead compiled code astray."""
    from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier  # slow to import
    from sklearn.svm._base import BaseLibSVM

    for part in _parts(model):
        if isinstance(part, (np.random.RandomState, np.random.Generator)):
            _check_random_state(part)
        elif isinstance(part, BaseLibSVM):
            _check_support_vectors(part)
        elif isinstance(part, (KNeighborsClassifier, RadiusNeighborsClassifier)):
            _check_neighbours(part)
        elif TREE not in trust and hasattr(part, "__dict__"):
            _check_trees(part)


def _parts(model: Estimator) -> Iterator[object]:
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
        elif isinstance(part, (np.random.RandomState, np.random.Generator)):
            yield part
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            yield part
            waiting.extend(vars(part).values())


def _check_random_state(generator: np.random.RandomState | np.random.Generator) -> None:
    if isinstance(generator, np.random.Generator):
        state: Any = generator.bit_generator.state
    else:
        state = generator.get_state(legacy=False)
    inner = state["state"]
    position = inner.get("pos", 0) if isinstance(inner, dict) else 0
    if not 0 <= position <= MT19937_WORDS or not 0 <= state.get("buffer_pos", 0) <= PHILOX_WORDS:
        raise ValueError("a random state has a position beyond its words")


def _check_support_vectors(svm: Any) -> None:
    """Refuse support vectors whose counts, coefficients or indices do not fit together."""
    if "_n_support" not in vars(svm):
        return  # not fitted
    counts, vectors, coefficients = svm._n_support, svm.support_vectors_, svm._dual_coef_
    n_vectors, n_classes, n_features = len(svm.support_), len(counts), svm.n_features_in_
    n_pairs = n_classes * (n_classes - 1) // 2
    if "classes_" not in vars(svm):  # of regression; the second number means nothing
        counts = counts[:1]
    sizes = [
        counts.min() >= 0 and counts.sum() == n_vectors,
        coefficients.shape == (n_classes - 1, n_vectors),
        coefficients.data.size == coefficients.shape[0] * coefficients.shape[1],
        len(svm._intercept_) == n_pairs,
        len(svm._probA) == len(svm._probB) and len(svm._probA) in (0, n_pairs),
        "_impl" not in vars(svm),
        svm.support_.max(initial=-1) < svm.shape_fit_[1] and svm.support_.min(initial=0) >= 0
        if svm.kernel == "precomputed"
        else vectors.shape == (n_vectors, n_features),
    ]
    if not all(sizes):
        raise ValueError("support vectors do not have the sizes that they state")


def _check_neighbours(neighbours: Any) -> None:
    """Refuse classes of neighbours that there are not, and neighbours without a class."""
    if "_fit_X" not in vars(neighbours):
        return  # not fitted
    classes, codes = neighbours.classes_, neighbours._y
    lists = classes if isinstance(classes, list) else [classes]
    codes = codes.reshape(len(codes), -1)
    if (
        neighbours._fit_X.shape != (len(codes), neighbours.n_features_in_)
        or codes.shape[1] != len(lists)
        or (codes < 0).any()
        or (codes >= [len(names) for names in lists]).any()
    ):
        raise ValueError("neighbours have classes beyond those that there are")


def _check_trees(part: object) -> None:
    """Refuse decision trees whose indices lead astray: scikit-learn follows them unchecked."""
    from sklearn.ensemble import BaseEnsemble  # slow to import

    n_features = vars(part).get("n_features_in_")
    if (tree := vars(part).get("tree_")) is not None:
        if tree.n_features != n_features:
            raise ValueError("a decision tree has another number of features than its estimator")
        if tree.node_count != tree.capacity or tree.node_count == 0:
            raise ValueError("a decision tree does not have the sizes that it states")
        if tree.max_depth != _depth_of(tree):
            raise ValueError("a decision tree does not have the depth that it states")
        features = tree.feature[tree.children_left != -1]
        if ((features < 0) | (features >= n_features)).any():
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


def _depth_of(tree: Any) -> int:
    """Depth of a decision tree. Raises ValueError unless each node but the root has one parent.

    A child comes after its parent, so that every path ends.
    """
    inner = np.flatnonzero(tree.children_left != -1)
    children = np.stack([tree.children_left, tree.children_right])
    is_beyond = (children[:, inner] <= inner) | (children[:, inner] >= tree.node_count)
    if is_beyond.any():
        raise ValueError("a decision tree has a child beyond its nodes")
    n_parents = np.bincount(children[:, inner].ravel(), minlength=tree.node_count)
    if (n_parents[1:] != 1).any():
        raise ValueError("a decision tree has a node with several parents, or without one")
    level, depth = children[:, 0], 0
    while (level := level[level != -1]).size:
        level, depth = children[:, level].ravel(), depth + 1
    return depth

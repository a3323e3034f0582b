"""Values of a saved model on which compiled code relies without checking them.

Arrays and sparse matrices are checked before they are built; decision trees, support vectors,
neighbours and random states in the model, before anything uses it.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labelsure._runtime.typing import Estimator
from labelsure.saving._schema import TREE

MT19937_WORDS, PHILOX_WORDS = 624, 4  # that a random state has drawn in advance
MAX_THREADS = 1024  # of compiled code that starts as many as a file states

_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_entry(file: zipfile.ZipFile, name: str) -> bytes:
    """Bytes of an entry, no more than the length that the file states."""
    with file.open(name) as entry:
        return entry.read(file.getinfo(name).file_size)


def sizes_inside(content: bytes) -> int:
    """Bytes of the entries of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return sum(entry.file_size for entry in file.infolist())


def check_entry(loader: str, name: str, content: bytes) -> bytes:
    """Entry as skops may read it: arrays of the stated length, npz without deflate."""
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
    """Uncompressed npz of a sparse matrix whose indices were checked."""
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
    for part in _parts(model):
        for base in type(part).__mro__:
            check = VALUE_CHECKS.get(f"{base.__module__}.{base.__qualname__}")
            if check is not None and (check is not _check_ensemble or TREE not in trust):
                check(part)
        tree = getattr(part, "__dict__", {}).get("tree_")
        if f"{type(tree).__module__}.{type(tree).__qualname__}" == TREE and TREE not in trust:
            _check_tree(part, tree)


def _parts(model: Estimator) -> Iterator[object]:
    """The model and every object that it holds, at any depth."""
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


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_random_state(generator: np.random.RandomState | np.random.Generator) -> None:
    if isinstance(generator, np.random.Generator):
        state: Any = generator.bit_generator.state
    else:
        state = generator.get_state(legacy=False)
    inner = state["state"]
    position = inner.get("pos", 0) if isinstance(inner, dict) else 0
    _require(
        0 <= position <= MT19937_WORDS and 0 <= state.get("buffer_pos", 0) <= PHILOX_WORDS,
        "a random state has a position beyond its words",
    )


def _check_support_vectors(svm: Any) -> None:
    """Check that counts, coefficients and indices of support vectors fit together."""
    if "_n_support" not in vars(svm):
        return  # not fitted
    counts, vectors, coefficients = svm._n_support, svm.support_vectors_, svm._dual_coef_
    n_vectors, n_classes, n_features = len(svm.support_), len(counts), svm.n_features_in_
    n_pairs = n_classes * (n_classes - 1) // 2
    if svm._impl not in ("c_svc", "nu_svc"):  # regression; the second count means nothing
        counts = counts[:1]
    _require(
        "_impl" not in vars(svm)
        and counts.min() >= 0
        and counts.sum() == n_vectors
        and coefficients.shape == (n_classes - 1, n_vectors)
        and getattr(coefficients, "nnz", coefficients.size) == (n_classes - 1) * n_vectors
        and len(svm._intercept_) == n_pairs
        and len(svm._probA) == len(svm._probB)
        and len(svm._probA) in (0, n_pairs)
        and (
            svm.support_.min(initial=0) >= 0
            and svm.support_.max(initial=-1) < svm.shape_fit_[1] == n_features
            if svm.kernel == "precomputed"
            else vectors.shape == (n_vectors, n_features)
        ),
        "support vectors do not have the sizes that they state",
    )


def _check_neighbours(neighbours: Any) -> None:
    """Check the shape of the training rows, and that class codes are within the classes."""
    if "_fit_X" not in vars(neighbours):
        return  # not fitted
    n_rows, n_features = neighbours._fit_X.shape
    parameters = (vars(neighbours).get("effective_metric_params_") or {}).values()
    _require(
        (n_rows, n_features) == (neighbours.n_samples_fit_, neighbours.n_features_in_)
        and all(size == n_features for value in parameters for size in np.shape(value)),
        "neighbours do not have the sizes that they state",
    )
    if (codes := vars(neighbours).get("_y")) is None:
        return
    _require(len(codes) == n_rows, "neighbours do not have the sizes that they state")
    if (classes := vars(neighbours).get("classes_")) is not None:
        lists = classes if isinstance(classes, list) else [classes]
        codes = codes.reshape(n_rows, -1)
        _require(
            codes.dtype.kind == "i"
            and codes.shape[1] == len(lists)
            and (codes >= 0).all()
            and (codes < [len(names) for names in lists]).all(),
            "neighbours have classes beyond those that there are",
        )


def _check_centres(clusters: Any) -> None:
    if "cluster_centers_" in vars(clusters):
        n_clusters, n_features = clusters.cluster_centers_.shape
        _require(n_clusters and n_features == clusters.n_features_in_, "centres have another width")
        _require(1 <= clusters._n_threads <= MAX_THREADS, "clusters ask for too many threads")


def _check_vocabulary(vectorizer: Any) -> None:
    """Check that words have columns 0, 1, ..., of which a sparse matrix is built unchecked."""
    columns = sorted((vars(vectorizer).get("vocabulary_") or {}).values())
    _require(columns == list(range(len(columns))), "words have columns beyond those that there are")


def _check_hashing(vectorizer: Any) -> None:
    n_features = vectorizer.n_features
    _require(
        isinstance(n_features, int) and 0 < n_features < 2**31, "words are hashed to no columns"
    )


def _check_encoder(encoder: Any) -> None:
    """Check that there is a column for each code of a category."""
    if "_n_features_outs" not in vars(encoder):
        return  # not fitted
    n_inputs = len(encoder.categories_)
    dropped, mappings = (
        [None] * n_inputs if (values := vars(encoder).get(name)) is None else values
        for name in ("_drop_idx_after_grouping", "_default_to_infrequent_mappings")
    )
    for names, n_columns, drop, mapping in zip(
        encoder.categories_, encoder._n_features_outs, dropped, mappings, strict=True
    ):
        codes = np.arange(len(names)) if mapping is None else mapping
        n_codes = codes.max(initial=-1) + 1 - (drop is not None)
        _require(
            len(codes) == len(names)
            and codes.min(initial=0) >= 0
            and n_columns >= n_codes
            and (drop is None or 0 <= drop <= n_codes),
            "categories have columns beyond those that there are",
        )


def _check_chain(chain: Any) -> None:
    """Check order and weights of a chain of labels, on which kernels rely."""
    if "order_" not in vars(chain):
        return  # not fitted
    n_labels = chain.n_labels_
    _require(
        np.issubdtype(chain.order_.dtype, np.integer)
        and chain.order_.shape == (n_labels,)
        and (np.sort(chain.order_) == np.arange(n_labels)).all(),
        "the order of a chain does not name each label once",
    )
    if (linear := chain._linear_weights) is not None:
        of_features, of_labels, intercepts = linear
        _require(
            of_features.shape == (n_labels, chain.n_features_in_)
            and of_labels.shape == (n_labels, n_labels)
            and intercepts.shape == (n_labels,),
            "the weights of a chain do not have the sizes that they state",
        )


def _check_precomputed(model: Any) -> None:
    """Numbers of labels and columns, of which a joint distribution has two to their power."""
    if "n_labels_" not in vars(model):
        return  # not fitted
    n_labels, n_columns = model.n_labels_, model.n_features_in_
    names = [some for some in (model.label_names_, model.column_names_) if some is not None]
    _require(
        n_columns > 0
        and n_labels == (math.log2(n_columns) if model.kind == "joint" else n_columns)
        and all(len(some) == n_labels for some in names),
        "precomputed probabilities do not have the labels that they state",
    )


def _check_tree(estimator: Any, tree: Any) -> None:
    """Check the indices of a decision tree, which scikit-learn follows unchecked."""
    _require(
        tree.n_features == estimator.n_features_in_,
        "a decision tree has another number of features than its estimator",
    )
    _require(
        tree.node_count == tree.capacity > 0,
        "a decision tree does not have the sizes that it states",
    )
    _require(
        tree.max_depth == _depth_of(tree), "a decision tree does not have the depth that it states"
    )
    features = tree.feature[tree.children_left != -1]
    _require(
        ((features >= 0) & (features < tree.n_features)).all(),
        "a decision tree asks for a feature beyond those that it has",
    )


def _check_ensemble(ensemble: Any) -> None:
    """Check the trees of an ensemble, which read rows that only the ensemble has checked."""
    members = vars(ensemble).get("estimators_", ())
    if "n_classes_" in vars(ensemble):
        classes = ensemble.classes_
        sizes = [len(some) for some in classes] if isinstance(classes, list) else len(classes)
        _require(
            np.array_equal(ensemble.n_classes_, sizes),
            "an ensemble has another number of classes than it lists",
        )
    flat = members.flat if isinstance(members, np.ndarray) else members
    trees = [(i, member) for i, member in enumerate(flat) if hasattr(member, "tree_")]
    columns = vars(ensemble).get("estimators_features_")
    for i, tree in trees:
        n_features = ensemble.n_features_in_ if columns is None else len(columns[i])
        _require(
            tree.n_features_in_ <= n_features, "a decision tree has more features than its ensemble"
        )
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


VALUE_CHECKS: dict[str, Callable[[Any], None]] = {
    "labelsure.classifiers._chain_classifiers.ProbabilisticClassifierChain": _check_chain,
    "labelsure.classifiers._precomputed.PrecomputedProbabilities": _check_precomputed,
    "numpy.random._generator.Generator": _check_random_state,
    "numpy.random.mtrand.RandomState": _check_random_state,
    "sklearn.cluster._kmeans._BaseKMeans": _check_centres,
    "sklearn.ensemble._base.BaseEnsemble": _check_ensemble,
    "sklearn.feature_extraction._dict_vectorizer.DictVectorizer": _check_vocabulary,
    "sklearn.feature_extraction._hash.FeatureHasher": _check_hashing,
    "sklearn.feature_extraction.text.CountVectorizer": _check_vocabulary,
    "sklearn.feature_extraction.text.HashingVectorizer": _check_hashing,
    "sklearn.neighbors._base.NeighborsBase": _check_neighbours,
    "sklearn.preprocessing._encoders.OneHotEncoder": _check_encoder,
    "sklearn.svm._base.BaseLibSVM": _check_support_vectors,
}
"""Check of each type, or base class, whose fitted values compiled code takes unchecked."""

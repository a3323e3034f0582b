"""`Dataset`: features, labelsets and their names, and its training and test parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from labelsure._runtime.limits import check_size
from labelsure._runtime.notebook import list_names, make_html
from labelsure._runtime.typing import Indices, Integers, LabelNames, RandomState
from labelsure.errors import InputError, missing_study_extra
from labelsure.labelsets.names import align_rows, list_some, read_labelsets
from labelsure.labelsets.rows import (
    as_table,
    check_shape,
    index_of,
    name_columns,
    names_in,
    read_rows,
    refuse_masked,
    row_keys,
    show_names,
)
from labelsure.tables.column_choice import LabelChoice, choose_labels

Features = Any
"""A DataFrame, or a scipy CSR matrix where the source is sparse."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labelsets and their names.

    Parameters
    ----------
    X
        (n, d) features: a DataFrame or scipy sparse matrix; an array becomes a DataFrame. The
        index of a DataFrame names the rows and goes along with their parts.
    Y
        (n, L) zeros and ones; a scipy sparse matrix becomes a `csr_array` of ones and stays
        sparse, so that there may be any number of labels. Where both are DataFrames with an index
        that does not only count the rows, those of `Y` are brought into the order of `X`, or
        refused if they are not the same. Dense labels keep their names as long as only rows are
        taken: `fit(data.X[:100], data.Y[:100])` knows them.
    label_names
        One for each label; by default the columns of `Y`, or None.
    feature_names
        One for each feature; by default the columns of `X`, or x0, x1, ...
    name
        What the data set is called.
    source
        Where it comes from, for people.
    checksum
        SHA-256 of the source file, or of the values where there is no file. A part of a data set
        keeps the checksum of the whole.

    See Also
    --------
    load_dataset : Load a built-in data set by name.
    read_dataset : Read a data set from a file.
    split_dataset : Split it into training and test rows.

    Examples
    --------
    >>> data = Dataset([[0.5], [1.5], [2.5]], [[1, 0], [1, 1], [0, 0]], ["sunny", "warm"])
    >>> data
    Dataset('unnamed', n_samples=3, n_labels=2, n_features=1)
    >>> data.describe()["label_cardinality"]
    1.0
    """

    X: Features
    Y: Any
    label_names: LabelNames = None
    feature_names: tuple[str, ...] = ()
    name: str = "unnamed"
    source: str = "memory"
    checksum: str = ""

    def __post_init__(self) -> None:
        X = _check_features(self.X, self.feature_names)
        read = read_labelsets(self.Y, self.label_names, sparse=sparse.issparse(self.Y))
        check_shape(read.labelsets.shape, "Y", X.shape[0], None)
        order = align_rows(read.index, index_of(self.X), name="Y", beside="`X`")
        object.__setattr__(self, "X", X)
        Y = read.labelsets if order is None else read.labelsets[order]
        object.__setattr__(self, "Y", name_columns(Y, read.label_names))
        object.__setattr__(self, "label_names", read.label_names)
        object.__setattr__(self, "feature_names", _read_feature_names(X, self.feature_names))

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return int(self.Y.shape[0])

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return int(self.Y.shape[1])

    @property
    def n_features(self) -> int:
        """The number of columns of `X`."""
        return len(self.feature_names)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, n_samples={self.n_samples}, n_labels={self.n_labels}, "
            f"n_features={self.n_features})"
        )

    def _repr_html_(self) -> str:
        described = {name: [value] for name, value in self.describe().items()}
        labels = list_names(show_names(self.label_names, self.n_labels))
        sentence = f"Data set {self.name!r} from {self.source}, with the labels {labels}."
        return make_html(sentence, pd.DataFrame(described))

    def describe(self) -> dict[str, Any]:
        """Return the numbers by which data sets are compared.

        Returns
        -------
        dict
            ``n_samples``, ``n_labels``, ``n_features``; ``label_cardinality``, the mean number of
            labels of an instance; ``label_density``, the same divided by the number of labels;
            ``n_labelsets``, how many different labelsets occur; ``constant_labels``, the names of
            labels that all or no instances have.
        """
        counts = self._count_instances()
        cardinality = float(counts.sum() / self.n_samples) if self.n_samples else float("nan")
        constant = (counts == 0) | (counts == self.n_samples)
        return {
            "n_samples": self.n_samples,
            "n_labels": self.n_labels,
            "n_features": self.n_features,
            "label_cardinality": cardinality,
            "label_density": cardinality / self.n_labels,
            "n_labelsets": len(np.unique(row_keys(self.Y))),
            "constant_labels": show_names(self.label_names, np.flatnonzero(constant)),
        }

    def _count_instances(self) -> Integers:
        """Return how many instances have each label, (L,)."""
        return np.asarray(self.Y.sum(axis=0, dtype=np.int64))

    def take(self, rows: Any) -> Dataset:
        """Return some of the instances.

        Parameters
        ----------
        rows
            Indices, a mask or a slice.
        """
        indices = np.arange(self.n_samples)[rows]
        if indices.ndim != 1:
            raise InputError(
                f"`rows` must be indices, a mask or a slice of the rows, got {rows!r}. "
                "For a single row write a list, e.g. `[3]`."
            )
        X = self.X[indices] if sparse.issparse(self.X) else self.X.iloc[indices]
        return replace(self, X=X, Y=self.Y[indices])

    def select_labels(self, labels: LabelChoice) -> Dataset:
        """Return the same instances with some of the labels.

        Parameters
        ----------
        labels
            Names or patterns (a list, or one string with commas), or ``"first20"``, ``"last20"``,
            ``"top20"``: the first, the last, the most frequent ones, in the order of the columns.

        Examples
        --------
        >>> data = Dataset([[0], [0]], [[1, 0, 1], [0, 0, 1]], ["a", "b", "c"])
        >>> data.select_labels("top2").label_names
        ('a', 'c')
        """
        counts = self._count_instances()
        names = show_names(self.label_names, self.n_labels)
        chosen = choose_labels(labels, names, what="label", counts=counts)
        return replace(self, Y=self.Y[:, chosen], label_names=tuple(names[j] for j in chosen))


def _check_features(X: Features, feature_names: Any) -> Features:
    if sparse.issparse(X):
        return sparse.csr_matrix(X)
    X = as_table(X)
    if isinstance(X, pd.DataFrame):
        return X.set_axis([str(column) for column in X.columns], axis=1)
    refuse_masked(X, "X")
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"`X` must have shape (n_samples, n_features), got shape {array.shape}. "
            "A single feature is one column: `X.reshape(-1, 1)`."
        )
    columns = list(feature_names)
    if len(columns) != array.shape[1]:  # where there are some, they are refused below
        columns = [f"x{j}" for j in range(array.shape[1])]
    return pd.DataFrame(array, columns=[str(column) for column in columns])


def _read_feature_names(X: Features, feature_names: Any) -> tuple[str, ...]:
    default = names_in(X) or [f"x{j}" for j in range(X.shape[1])]
    names = tuple(str(name) for name in (feature_names or default))
    if len(names) != X.shape[1] or len(set(names)) < len(names):
        raise InputError(
            f"`feature_names` must have one name for each of the {X.shape[1]} columns of `X`, all "
            f"different, got {list_some(names)}. Name every column, in order."
        )
    return names


def split_dataset(
    data: Dataset,
    test_size: float | int = 0.4,
    *,
    stratified: bool = False,
    random_state: RandomState = None,
) -> tuple[Dataset, Dataset]:
    """Split a data set into a training and a test part.

    Parameters
    ----------
    data
        The data set to split.
    test_size
        Share of the rows in the test part (float), or their number (int).
    stratified
        Whether to keep the frequency of each label nearly equal in both parts (iterative
        stratification, extra `study`). The sizes of the parts are then approximate.
    random_state
        Seed, generator or None. The same seed gives the same parts.

    Returns
    -------
    train, test : Dataset
        Their rows in the order of `data`. `labelsure.tables.dataset.split_rows` gives the row
        numbers.

    See Also
    --------
    Dataset : What is split.
    load_dataset : Load a built-in data set by name.

    Notes
    -----
    `stratified` uses iterative stratification: Sechidis, Tsoumakas and Vlahavas (2011), On the
    stratification of multi-label data, ECML PKDD.

    Examples
    --------
    >>> from labelsure import load_dataset
    >>> train, test = split_dataset(load_dataset("digits"), 0.4, random_state=0)
    >>> len(train), len(test)
    (1078, 719)
    """
    if not isinstance(data, Dataset):
        raise InputError(
            f"`data` must be a Dataset, got {type(data).__name__}. Make one with "
            "`Dataset(X, Y)`, or use `labelsure.tables.dataset.split_rows(Y)`."
        )
    train, test = split_rows(data.Y, test_size, stratified=stratified, random_state=random_state)
    return data.take(train), data.take(test)


def split_rows(
    Y: Any,
    test_size: float | int = 0.4,
    *,
    stratified: bool = False,
    random_state: RandomState = None,
) -> tuple[Indices, Indices]:
    """Return the row numbers of a training and a test part; arguments as in `split_dataset`.

    Examples
    --------
    >>> train, test = split_rows([[1, 0], [0, 1], [1, 1], [0, 0]], 0.5, random_state=0)
    >>> sorted([*train.tolist(), *test.tolist()])
    [0, 1, 2, 3]
    """
    rows = read_rows(Y)
    n_test = _count_test_rows(test_size, rows.shape[0])
    from labelsure.distributions._probabilities import (
        make_generator,
    )  # reading a file needs no kernels

    seed = int(make_generator(random_state).integers(2**32))
    split = _split_stratified if stratified else _split_shuffled
    return split(rows, n_test, seed)


def _count_test_rows(test_size: float, n_samples: int) -> int:
    is_count = isinstance(test_size, (int, np.integer)) and not isinstance(test_size, bool)
    if is_count and 1 <= test_size < n_samples:
        return int(test_size)
    if isinstance(test_size, float) and 0 < test_size < 1 and n_samples >= 2:
        return min(max(1, round(test_size * n_samples)), n_samples - 1)
    raise InputError(
        f"`test_size` must be a share between 0 and 1, or a number of instances from 1 to "
        f"{n_samples - 1}, got {test_size!r}."
    )


def _split_shuffled(Y: Any, n_test: int, seed: int) -> tuple[Indices, Indices]:
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(Y.shape[0]), test_size=n_test, random_state=seed)
    return np.sort(train), np.sort(test)


def _split_stratified(Y: Any, n_test: int, seed: int) -> tuple[Indices, Indices]:
    try:
        from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
    except ImportError as error:
        raise missing_study_extra("`stratified=True`") from error

    if sparse.issparse(Y):
        check_size(Y.shape[0] * Y.shape[1], "Labels as a splitter takes them", "Split without it.")
        Y = Y.toarray()
    # A single label looks like a binary problem to the splitter; its opposite adds nothing new.
    indicators = np.hstack([Y, 1 - Y]) if Y.shape[1] == 1 else Y
    splitter = MultilabelStratifiedShuffleSplit(n_splits=1, test_size=n_test, random_state=seed)
    train, test = next(splitter.split(np.zeros((len(Y), 1)), indicators))
    return train, test


def checksum_values(*arrays: Any) -> str:
    """Return the SHA-256 of the values of some arrays, for data that comes from no file."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

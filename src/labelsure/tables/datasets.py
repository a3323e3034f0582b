"""`Dataset`: read from files of all formats, loaded by name, simulated, split."""

from __future__ import annotations

import glob
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse
from scipy.special import expit

from labelsure._runtime import limits as _limits
from labelsure._runtime import storage
from labelsure._runtime.arguments import read_number, read_whole_number
from labelsure._runtime.limits import check_size
from labelsure._runtime.notebook import list_names, make_html
from labelsure._runtime.typing import (
    AnyPath,
    Column,
    Floats,
    Indices,
    Integers,
    JsonObject,
    LabelNames,
    LabelsetsLike,
    RandomState,
    RowsLike,
)
from labelsure.errors import DataError, InputError, TooLargeError, missing_study_extra, unknown_name
from labelsure.labelsets.codes import row_keys
from labelsure.labelsets.foreign import as_table, index_of, name_columns, names_in, refuse_masked
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import align_rows, list_some, read_labelsets
from labelsure.labelsets.reading import check_shape, read_rows
from labelsure.tables.arff import read_arff
from labelsure.tables.column_choice import (
    ColumnChoice,
    LabelChoice,
    choose_labels,
    encode_column,
    holds_containers,
    is_id_column,
    join_encoded,
    read_index,
    read_label_columns,
    read_labels,
    read_xml_labels,
    split_names,
)
from labelsure.tables.files import (
    BYTE_ORDER_MARK,
    KINDS,
    UNKNOWN,
    TextFormat,
    checksum_table,
    list_columns,
    list_index_columns,
    read_table,
)
from labelsure.tables.values import find_missing

if TYPE_CHECKING:
    from labelsure.distributions._base import LabelsetDistribution

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
        Name of the data set.
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
    Y: LabelsetsLike
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

    def describe(self) -> JsonObject:
        """Sizes, cardinality and density of the data set.

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
        """Number of instances with each label, (L,)."""
        return np.asarray(self.Y.sum(axis=0, dtype=np.int64))

    def take(self, rows: RowsLike) -> Dataset:
        """Data set of some of the instances.

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
        """Data set of the same instances with some of the labels.

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
    random_state: RandomState = None,
) -> tuple[Dataset, Dataset]:
    """Split a data set into a training and a test part.

    Parameters
    ----------
    data
        The data set to split.
    test_size
        Share of the rows in the test part (float), or their number (int).
    random_state
        Seed, generator or None. The same seed gives the same parts.

    Returns
    -------
    train, test : Dataset
        Their rows in the order of `data`. `labelsure.tables.datasets.split_rows` gives the row
        numbers.

    See Also
    --------
    Dataset : The class of both parts.
    load_dataset : Load a built-in data set by name.

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
            "`Dataset(X, Y)`, or use `labelsure.tables.datasets.split_rows(Y)`."
        )
    train, test = split_rows(data.Y, test_size, random_state=random_state)
    return data.take(train), data.take(test)


def split_rows(
    Y: LabelsetsLike,
    test_size: float | int = 0.4,
    *,
    random_state: RandomState = None,
) -> tuple[Indices, Indices]:
    """Row numbers of a training and a test part; arguments as in `split_dataset`.

    Examples
    --------
    >>> train, test = split_rows([[1, 0], [0, 1], [1, 1], [0, 0]], 0.5, random_state=0)
    >>> sorted([*train.tolist(), *test.tolist()])
    [0, 1, 2, 3]
    """
    from sklearn.model_selection import train_test_split

    from labelsure.distributions._probabilities import make_generator  # reading needs no kernels

    n_rows = read_rows(Y).shape[0]
    n_test = _count_test_rows(test_size, n_rows)
    seed = int(make_generator(random_state).integers(2**32))
    train, test = train_test_split(np.arange(n_rows), test_size=n_test, random_state=seed)
    return np.sort(train), np.sort(test)


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


def checksum_values(*arrays: object) -> str:
    """SHA-256 of the values of arrays, for data that comes from no file."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# Files

MAX_HEADER_BYTES = 100
"""More than three numbers need."""


def read_sparse_text(content: bytes, where: str) -> Dataset:
    """Data set in the format of the extreme-classification repository, sparse.

    `where` is the name of the file, for the messages.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    lines = io.BytesIO(content.removeprefix(b"\xef\xbb\xbf"))
    n_rows, n_features, n_labels = _read_header(lines.readline(), where)
    try:
        X, label_lists = load_svmlight_file(
            lines, n_features=n_features, multilabel=True, zero_based=True
        )
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{where} must have rows such as `4,7 0:1.5 2:1`, with features in ascending order: "
            f"{storage.first_line(error)}. Fix or drop that row."
        ) from error
    if X.shape[0] != n_rows:
        raise DataError(
            f"{where} must have {n_rows} rows, as its first line says, got {X.shape[0]}; blank "
            "rows do not count. Drop blank rows and correct the first line, or fetch a file that "
            "was cut off again."
        )
    labels = np.array([label for row in label_lists for label in row], dtype=np.float64)
    is_known = (labels >= 0) & (labels < n_labels) & (labels == np.floor(labels))
    if not is_known.all():
        raise DataError(
            f"{where} must list labels from 0 to {n_labels - 1}, as its first line says, got "
            f"{labels[~is_known][0]:g}. Correct the first line, or fix or drop that row."
        )
    ends = np.cumsum([0, *map(len, label_lists)])
    Y = sparse.csr_array(
        (np.ones(len(labels), dtype=np.int8), labels.astype(np.int64), ends),
        shape=(n_rows, n_labels),
    )
    if not Y.has_canonical_format:
        raise DataError(f"{where} must list each label of a row once. Drop repeated labels.")
    return Dataset(X, Y)


def _read_header(line: bytes, where: str) -> list[int]:
    words = line[:MAX_HEADER_BYTES].split()
    if len(words) != 3 or not all(word.isdigit() and int(word) for word in words):
        raise DataError(
            f"The first line of {where} must say how many instances, features and labels there "
            "are, three whole numbers from 1 on such as `1000 500 90`, got "
            f"{line[:40].decode(errors='replace').strip()!r}."
        )
    sizes = [int(word) for word in words]
    if max(sizes[1:]) > _limits.MAX_LISTED_COLUMNS:
        raise TooLargeError(
            f"The first line of {where} must say at most {_limits.MAX_LISTED_COLUMNS} features or "
            f"labels, got {max(sizes[1:])}. Leave out those that are not needed."
        )
    return sizes


def _read_text(place: Path, encoding: str | None) -> str:
    """Text of a file without its byte order mark."""
    content = storage.read_unpacked(place).removeprefix(BYTE_ORDER_MARK)
    try:
        return TextFormat(encoding=encoding).decode(content, "its text")
    except ValueError as error:
        raise DataError(f"The file {place.name!r} cannot be read: {error}.") from error


def read_label_file(path: AnyPath, encoding: str | None = None) -> list[str]:
    r"""Label names in a text file, one a line, in its order.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "names.txt"
    ...     _ = path.write_text("red shoes\nblue shoes\n")
    ...     names = read_label_file(path)
    >>> names
    ['red shoes', 'blue shoes']
    """
    place = storage.expand_path(path)
    text = _read_text(place, encoding).replace("\r\n", "\n").rstrip()
    names = [line.strip() for line in text.split("\n")]
    line_of: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name or line_of.setdefault(name, number) != number:
            got = f"{name!r} is also in line {line_of[name]}" if name else "it is blank"
            raise DataError(
                f"Line {number} of {place.name!r} must name a label of its own, {got}. Drop that "
                "line, or rename the label."
            )
    return names


TEXT = ".txt"
_PART = re.compile(r"(?<=.)[-_](train|test)$", re.IGNORECASE)


def read_dataset(
    path: AnyPath,
    labels: LabelChoice | Path | None = None,
    *,
    index: str | None = None,
    drop: str | Iterable[str] = (),
    sep: str | None = None,
    encoding: str | None = None,
) -> Dataset:
    r"""Read a data set from a table, an ARFF file or a sparse text file.

    Parameters
    ----------
    path
        A table as for `labelsure.tables.files.list_files`: a file (.csv, .tsv, .jsonl, .parquet,
        .feather, .npy or .npz), a folder, a pattern or an address. Or .arff, or .txt for a data
        file of the extreme-classification repository. Text may be compressed: .gz, .bz2 or .zst.
    labels
        Which columns are the labels: names or patterns such as ``"tag_*"`` (a list, or one string
        with commas), or a number, negative for the last columns. Or one column that holds the
        names of labels: as text with `sep`, or as lists (Parquet). For ARFF also the path of an
        xml that names them; None takes the .xml of the same name beside the file, or ``name.xml``
        beside ``name-train.arff`` (Mulan), or else the ``-C`` in the name of the relation (MEKA).
    index
        The column whose values name the rows. They become the index of `Dataset.X` and come along
        into distributions and tables: whole numbers as such, anything else as text.
    drop
        Columns that are left out: names or patterns (a list, or one string with commas). Numbers
        and patterns in `labels` do not count them, nor the column of `index`.
    sep
        Separator of names in a column of label names, e.g. ``";"``.
    encoding
        Encoding of a text file, such as "latin-1"; None: UTF-8.

    Returns
    -------
    Dataset
        Missing features are NaN and left to your pipeline; missing labels are refused.

    See Also
    --------
    load_dataset : Load a data set by name.
    read_labelsets : Read labelsets that are already in memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("degrees,sunny,warm\n12.5,1,0\n25,1,1\n")
    ...     data = read_dataset(path, labels="sunny,warm")
    >>> data
    Dataset('weather', n_samples=2, n_labels=2, n_features=1)

    The same from a column of label names, with names for the rows:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("day,degrees,tags\nMo,12.5,sunny\nTu,25,sunny;warm\n")
    ...     data = read_dataset(path, labels="tags", sep=";", index="day")
    >>> data.label_names, list(data.X.index)
    (('sunny', 'warm'), ['Mo', 'Tu'])
    """
    choice = ColumnChoice(labels, index, drop, sep)
    if storage.is_address(path):
        place, is_several = Path(storage.show_name(path)[1:-1]), True
    else:
        place = storage.expand_path(path)
        is_several = place.is_dir() or glob.has_magic(str(place))
    suffix = storage.suffix_of(place)
    if suffix == TEXT and choice != ColumnChoice():
        raise InputError(
            f"`labels`, `index`, `drop` and `sep` must not be given for {place.name}, which lists "
            "labels and features by number. Leave them out; `Dataset.select_labels` takes some "
            "labels."
        )
    if suffix == TEXT:
        data = read_sparse_text(storage.read_unpacked(place), place.name)
    elif suffix == ".arff":
        choice = replace(choice, labels=_resolve_labels(place, choice.labels))
        data = Dataset(*read_arff(_read_text(place, encoding), choice, place.name))
    elif suffix in KINDS or is_several:
        data = read_table_file(path, choice, TextFormat(encoding=encoding))
    else:
        raise unknown_name("format of file", place.name, [".arff", *KINDS, TEXT])
    is_table = suffix not in (TEXT, ".arff")
    checksum = checksum_table(path) if is_table else storage.checksum_file(place)
    return replace(data, name=storage.stem_of(place), source=place.name, checksum=checksum)


def _resolve_labels(path: Path, labels: object) -> Any:
    """Label names in the xml at `labels` or beside the file, otherwise `labels` itself."""
    xml = None
    if labels is None:  # Mulan has one xml for both parts of a data set
        stems = dict.fromkeys([storage.stem_of(path), _PART.sub("", storage.stem_of(path))])
        beside = (path.with_name(f"{stem}.xml") for stem in stems)
        xml = next((xml for xml in beside if xml.exists()), None)
    elif isinstance(labels, Path) or (isinstance(labels, str) and labels.lower().endswith(".xml")):
        xml = storage.expand_path(labels)
    if xml is None:
        return labels
    return frozenset(read_xml_labels(storage.read_bytes(xml), xml.name))


def read_table_file(path: AnyPath, choice: ColumnChoice, text: TextFormat = UNKNOWN) -> Dataset:
    """Data set in a table that `labelsure.tables.files` reads."""
    where = storage.show_name(path)
    if choice.labels is None:
        raise InputError(
            f"`labels` must say which columns of {where} are labels: names such as 'a,b,c', a "
            "pattern such as 'tag_*', a number (negative: the last columns), or one column of "
            "label names."
        )
    listed_columns = list_columns(path, text)
    frame = read_table(path, text=text) if listed_columns is None else None
    names = [str(name) for name in (listed_columns or () if frame is None else frame.columns)]
    index_columns = list_index_columns(path) - {choice.index, *split_names(choice.drop, [])}
    names = [name for name in names if name not in index_columns]
    columns = choice.assign(names)
    kept = {*columns.labels, *columns.features, columns.index}
    if frame is None:
        frame = read_table(path, [name for name in listed_columns or () if str(name) in kept], text)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    for name in (*columns.features, *([] if columns.index is None else [columns.index])):
        if holds_containers(frame[name]):
            raise DataError(
                f"Column {name!r} of {where} must hold one value in each row, it holds lists. Pass "
                f"labels={name!r} if these are the names of labels, write each part as a column, "
                f"or leave it out with drop=[{name!r}]."
            )
    Y, label_names = read_labels(frame[columns.labels], choice.sep, where)
    is_text = storage.suffix_of(Path(path)) in TEXT_TABLES
    X = pd.DataFrame({name: _typed(frame[name], is_text) for name in columns.features}, frame.index)
    if columns.index is not None:
        X = X.set_axis(read_index(frame[columns.index], where), axis=0)
    return Dataset(X, Y, label_names)


TEXT_TABLES = (".csv", ".tsv")
"""Formats without column types, which are inferred from all values."""


def _typed(column: Column, is_text: bool) -> Column:
    """Feature as numbers or truth values if all values are such, otherwise as text."""
    if isinstance(column.dtype, pd.StringDtype) and is_text:
        texts = pa.array(
            column.mask(find_missing(column), None).str.strip(), pa.string(), from_pandas=True
        )
        for kind in (pa.int64(), pa.float64(), pa.bool_()):
            try:
                values = texts.cast(kind)
            except pa.ArrowInvalid:
                continue
            return values.to_pandas().set_axis(column.index)
    if pd.api.types.is_extension_array_dtype(column.dtype) and column.dtype.kind in "iub":
        plain = getattr(column.dtype, "numpy_dtype", np.dtype(bool))
        return column.astype(np.dtype(float) if column.hasnans else plain)
    if column.dtype == object:
        return pd.Series(column.tolist(), column.index)
    return column.mask(find_missing(column), None)


DIGIT_TRAITS = {
    "even": {0, 2, 4, 6, 8},
    "prime": {2, 3, 5, 7},
    "at_least_five": {5, 6, 7, 8, 9},
    "has_loop": {0, 6, 8, 9},
    "has_straight_stroke": {1, 2, 4, 5, 7},
}
"""The digits that have each trait, as they are written in scikit-learn's images.

Four is written with an open top as often as with a closed one, and counts as having no loop. Two
has a straight base and five a straight top; the stem of nine is a curve.
"""

MAX_DEPENDENCE = 100
BYTES_OF_LABEL = 1024
BYTES_OF_CONDITIONALS = 64
"""Bytes of the true distribution for a label, and for a label of an instance."""

SIGNAL = 3.0
"""Standard deviation of the features' part of a logit without noise."""


def load_digits() -> Dataset:
    """scikit-learn's 1797 handwritten digits, 8 x 8 pixels, with their traits as labels."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    columns = [np.isin(bunch.target, list(digits)) for digits in DIGIT_TRAITS.values()]
    Y = np.stack(columns, axis=1).astype(np.int8)
    return Dataset(
        pd.DataFrame(bunch.data, columns=bunch.feature_names),
        Y,
        tuple(DIGIT_TRAITS),
        name="digits",
        source="scikit-learn",
        checksum=checksum_values(bunch.data, Y),
    )


def load_yeast() -> Dataset:
    """Yeast, 2417 genes with 14 functions, from the package river."""
    try:
        from river.datasets import Yeast
    except ImportError as error:
        raise missing_study_extra("`yeast` (or `data_dir`, or source='openml')") from error
    path = Path(Yeast().path)  # type: ignore[no-untyped-call]
    data = read_table_file(path, ColumnChoice("Class*"))
    checksum = checksum_values(data.X.to_numpy(), data.Y)
    return replace(data, name="yeast", source=f"river {version('river')}", checksum=checksum)


def load_simulated() -> Dataset:
    """Data set of `make_labelsets(random_state=0)`, without its true distribution."""
    return make_labelsets(random_state=0)[0]


def _chain_conditionals(logits: Floats, dependence: float) -> Floats:
    """P(y_j = 1 | x, y_{j-1}) for y_{j-1} = 0 and 1, (n, L, 2)."""
    coupling = np.full(logits.shape[1], dependence)
    coupling[0] = 0.0  # the first label has none before it
    return np.asarray(expit(np.stack([logits - coupling, logits + coupling], axis=2)))


def _forward_pass(conditionals: Floats, uniforms: Floats | None = None) -> Floats:
    """P(y_j = 1 | x), (n, L), by the forward recursion; with uniform numbers sampled labelsets."""
    values = np.zeros_like(conditionals[:, :, 0])
    previous = np.zeros(len(values))
    for j in range(conditionals.shape[1]):
        previous = (1 - previous) * conditionals[:, j, 0] + previous * conditionals[:, j, 1]
        if uniforms is not None:
            previous = (uniforms[:, j] < previous).astype(np.float64)
        values[:, j] = previous
    return values


def make_labelsets(
    n_samples: int = 1000,
    n_labels: int = 6,
    *,
    n_features: int = 10,
    dependence: float = 1.0,
    cardinality: float | None = None,
    noise: float = 0.5,
    random_state: RandomState = None,
) -> tuple[Dataset, LabelsetDistribution]:
    """Simulate a data set, and return it with the true P(Y|x).

    Features are standard normal. Each label depends on them and on the label before it, through
    a logistic function.

    Parameters
    ----------
    n_samples, n_labels, n_features
        The size of the data set.
    dependence
        How much the logit of a label rises if the label before it is set, and falls if it is not.
        0: labels are independent given the features. Negative: neighbours exclude each other.
        From -100 to 100.
    cardinality
        The expected number of labels of an instance, over the features drawn; strictly between 0
        and `n_labels`. None: a third of the labels.
    noise
        Share of the features' information to remove, from 0 to 1. At 1 the labels do not depend
        on the features.
    random_state
        Seed, generator or None.

    Returns
    -------
    data : Dataset
        Its `Y` is one draw from `truth` for each instance.
    truth : TrellisDistribution
        The distribution of each instance; exact for any number of labels.

    See Also
    --------
    load_dataset : Real data sets by name.
    expected_accuracy : The true expected accuracy, from `truth`.

    Examples
    --------
    >>> data, truth = make_labelsets(200, 4, cardinality=1.5, random_state=0)
    >>> data
    Dataset('simulated', n_samples=200, n_labels=4, n_features=10)
    >>> round(float(truth.marginals().sum(axis=1).mean()), 6)
    1.5
    """
    for name, size in (("samples", n_samples), ("labels", n_labels), ("features", n_features)):
        read_whole_number(size, f"n_{name}")
    bytes_of_labels = n_labels * (BYTES_OF_LABEL + BYTES_OF_CONDITIONALS * n_samples)
    check_size(
        8 * n_features * (n_samples + n_labels) + bytes_of_labels,
        f"{n_samples} simulated instances with {n_features} features and {n_labels} labels",
        "Ask for fewer.",
    )
    cardinality = n_labels / 3 if cardinality is None else cardinality
    read_number(dependence, "dependence", -MAX_DEPENDENCE, MAX_DEPENDENCE)
    read_number(cardinality, "cardinality", 0, n_labels, ends="()")
    read_number(noise, "noise", 0, 1)
    from labelsure.distributions._probabilities import make_generator  # reading needs no kernels

    generator = make_generator(random_state)
    X = generator.standard_normal((n_samples, n_features))
    directions = generator.standard_normal((n_features, n_labels))
    directions /= np.linalg.norm(directions, axis=0)
    offsets = generator.standard_normal(n_labels)
    logits = (1 - noise) * SIGNAL * (X @ directions) + offsets
    logits += _find_logit_shift(logits, dependence, cardinality)
    conditionals = _chain_conditionals(logits, dependence)
    Y = _forward_pass(conditionals, generator.random((n_samples, n_labels))).astype(np.int8)
    data = Dataset(X, Y, name="simulated", source="make_labelsets", checksum=checksum_values(X, Y))
    return data, _make_distribution(conditionals)


def _find_logit_shift(logits: Floats, dependence: float, cardinality: float) -> float:
    """Shift of all logits at which the expected number of labels is `cardinality`, by Brent."""
    from scipy.optimize import brentq  # slow to import, and only needed here

    def excess(shift: float) -> float:
        marginals = _forward_pass(_chain_conditionals(logits + shift, dependence))
        return float(marginals.sum(axis=1).mean() - cardinality)

    reach = float(np.abs(logits).max()) + abs(dependence) + 40.0  # expit(-40) is 4e-18
    if excess(-reach) >= 0 or excess(reach) <= 0:
        raise InputError(
            f"`cardinality` must not be as close to 0 or to the number of labels as {cardinality}. "
            "Choose one that leaves some instances with, and some without a label."
        )
    return float(brentq(excess, -reach, reach, xtol=1e-12, rtol=1e-14))


def _make_distribution(conditionals: Floats) -> LabelsetDistribution:
    """The chain as a trellis of width one: exact for any number of labels."""
    from labelsure.distributions._trellis import TrellisDistribution

    others = range(1, conditionals.shape[1])
    tables = [conditionals[:, 0, :1], *(conditionals[:, j] for j in others)]
    return TrellisDistribution(tables, [(), *((j - 1,) for j in others)], [0, *others])


DATA_VARIABLE = "LABELSURE_DATA"
SOURCES = ("file", "embedded", "openml")


@dataclass(frozen=True)
class NamedDataset:
    """One data set of the catalogue.

    Parameters
    ----------
    name
        Name for `load_dataset`.
    domain
        Kind of instances.
    n_samples, n_labels, n_features
        Its size; None if unknown.
    openml_id
        Its number on OpenML; None if OpenML does not have it.
    embedded
        Function that makes it from installed packages; None if these do not have it.
    """

    name: str
    domain: str
    n_samples: int | None = None
    n_labels: int | None = None
    n_features: int | None = None
    openml_id: int | None = None
    embedded: Callable[[], Dataset] | None = None


ENTRIES = {
    entry.name: entry
    for entry in (
        NamedDataset("digits", "image", 1797, 5, 64, embedded=load_digits),
        NamedDataset("simulated", "simulation", 1000, 6, 10, embedded=load_simulated),
        NamedDataset("emotions", "audio", 593, 6, 72, openml_id=40589),
        NamedDataset("scene", "image", 2407, 6, 294, openml_id=40595),
        NamedDataset("yeast", "biology", 2417, 14, 103, openml_id=40597, embedded=load_yeast),
        NamedDataset("stare", "medical", 373, 15, 44),
        NamedDataset("enron", "text", 1702, 53, 1001, openml_id=41466),
        NamedDataset("slashdot", "text", 3782, 22, 1079, openml_id=41472),
        NamedDataset("birds", "audio", openml_id=41464),
        NamedDataset("genbase", "biology", openml_id=41467),
        NamedDataset("image", "image", openml_id=41468),
        NamedDataset("langlog", "text", openml_id=41469),
    )
}


def list_datasets(data_dir: AnyPath | None = None) -> list[str]:
    """Names that `load_dataset` knows.

    Parameters
    ----------
    data_dir
        A folder whose ARFF files are listed too; by default the one in LABELSURE_DATA, if any.

    Returns
    -------
    list of str
        Names, in the order of the catalogue.

    See Also
    --------
    load_dataset : Load one of them.

    Examples
    --------
    >>> [name for name in list_datasets() if name.startswith("s")]
    ['simulated', 'scene', 'stare', 'slashdot']
    """
    folder = _find_data_folder(data_dir)
    return list(dict.fromkeys([*ENTRIES, *(_find_arff_files(folder) if folder else {})]))


def catalogue() -> pd.DataFrame:
    """Table of the named data sets: domain, size, number on OpenML, whether embedded.

    Examples
    --------
    >>> int(catalogue().loc["enron", "n_labels"])
    53
    """
    table = pd.DataFrame([asdict(entry) for entry in ENTRIES.values()]).set_index("name")
    counts = ["n_samples", "n_labels", "n_features", "openml_id"]
    table[counts] = table[counts].astype("Int64")  # whole numbers with gaps
    table["is_embedded"] = [entry.embedded is not None for entry in ENTRIES.values()]
    return table.drop(columns="embedded")


def load_dataset(
    name: str,
    data_dir: AnyPath | None = None,
    *,
    labels: LabelChoice | None = None,
    source: str | None = None,
) -> Dataset:
    """Load a data set by its name.

    It is taken from the first of these that has it: `data_dir`; the folder in the environment
    variable LABELSURE_DATA; installed packages; OpenML. Data from OpenML is cached in
    scikit-learn's data home (`sklearn.datasets.get_data_home`) and fetched once; nominal columns
    that name its rows are left out.

    Parameters
    ----------
    name
        One of `list_datasets()`.
    data_dir
        A folder with ``name.arff``, also as .gz or .bz2, and the .xml of the same name where the
        labels are named in one (``name.xml`` also for ``name-train`` and ``name-test``). If it is
        given, the data set must be there.
    labels
        Some of the labels: names or patterns, or ``"first20"``, ``"last20"`` (which are
        probably the labels of Enron in the paper) or ``"top20"``, the most frequent ones.
    source
        ``"file"``, ``"embedded"`` or ``"openml"`` to allow only that one.

    Returns
    -------
    Dataset
        Features, labelsets and their names.

    See Also
    --------
    list_datasets : The names.
    read_dataset : Read a data set of your own from a file.
    split_dataset : Split it into training and test rows.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', n_samples=1797, n_labels=5, n_features=64)
    """
    if source is not None and source not in SOURCES:
        raise unknown_name("source", source, SOURCES)
    folder = _find_data_folder(data_dir)
    files = (
        {stem.lower(): path for stem, path in _find_arff_files(folder).items()} if folder else {}
    )
    key = str(name).lower()
    if key not in files and key not in ENTRIES:
        raise unknown_name("data set", name, list_datasets(data_dir))
    entry = ENTRIES.get(key, NamedDataset(key, ""))
    allows_other_sources = source is not None or data_dir is None
    if key in files and source in (None, "file"):
        data = read_dataset(files[key])
    elif entry.embedded is not None and source in (None, "embedded") and allows_other_sources:
        data = entry.embedded()
    elif entry.openml_id is not None and source in (None, "openml") and allows_other_sources:
        data = _fetch_openml(entry.name, entry.openml_id)
    else:
        sources = {"embedded": entry.embedded, "openml": entry.openml_id}
        elsewhere = [f' or source="{home}"' for home, there in sources.items() if there is not None]
        parts = [stem for stem in files if stem in (f"{key}-train", f"{key}-test")]
        hint = f" There is {' and '.join(parts)}: load each by its name." if parts else ""
        raise DataError(
            f"{key!r} must be read from a file{''.join(elsewhere)}. Put {key}.arff into a folder "
            f"and name it with `data_dir` or the environment variable {DATA_VARIABLE}, got "
            f"{str(folder)!r}.{hint}"
        )
    return data if labels is None else data.select_labels(labels)


def _find_data_folder(data_dir: AnyPath | None) -> Path | None:
    if data_dir is not None:
        return storage.expand_path(data_dir)
    return storage.expand_path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None


def _find_arff_files(folder: Path) -> dict[str, Path]:
    """ARFF files of a folder by name; of several the one that is not compressed."""
    try:
        paths = sorted(path for path in folder.iterdir() if storage.suffix_of(path) == ".arff")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"The data folder {str(folder)!r} cannot be read ({reason}). Check "
            f"`data_dir` or the environment variable {DATA_VARIABLE}."
        ) from error
    files: dict[str, Path] = {}
    for path in paths:
        files.setdefault(storage.stem_of(path), path)
    return files


def _fetch_openml(name: str, data_id: int) -> Dataset:
    """Data set from OpenML, or from the cache of scikit-learn."""
    from sklearn import datasets

    where = f"OpenML data set {data_id}"
    try:
        datasets.get_data_home()  # makes the folder
        with warnings.catch_warnings():
            # scikit-learn warns at each retry; the error below says it once.
            warnings.filterwarnings("ignore", message="A network error occurred")
            bunch = datasets.fetch_openml(
                data_id=data_id,
                as_frame="auto",
                parser="liac-arff",  # the other one fails on TRUE and FALSE with pandas 3
            )
    except Exception as error:  # of the network, of the folder, of the parser
        reason = storage.first_line(getattr(error, "reason", None) or error)
        raise DataError(
            f"{name!r} must be fetched from OpenML (data set {data_id}) into scikit-learn's data "
            f"home, but that failed ({type(error).__name__}: {reason}). Connect to the internet, "
            "set the environment variable SCIKIT_LEARN_DATA to a folder of yours, or name a folder "
            f"that has {name}.arff with `data_dir` or {DATA_VARIABLE}."
        ) from error
    if bunch.target is None or np.size(bunch.target) == 0:
        raise DataError(f"{where} must say which columns are labels, it names none.")
    labels = bunch.target
    if not isinstance(labels, pd.DataFrame):
        columns = np.asarray(labels).reshape(len(labels), -1)
        labels = pd.DataFrame(columns, columns=list(bunch.target_names))
    Y = read_label_columns(labels, where)
    if sparse.issparse(bunch.data):
        X, values = bunch.data, bunch.data.data
    else:
        ids = [name for name, column in bunch.data.items() if is_id_column(column)]
        features = bunch.data.drop(columns=ids).items()
        encoded = (pair for one, column in features for pair in encode_column(one, column, where))
        X = join_encoded(encoded, where, bunch.data.index)
        where += f" without the id column {list_some(ids)}" if ids else ""
        values = X.select_dtypes("number").to_numpy()
    checksum = checksum_values(np.asarray(values, dtype=np.float64), Y)
    label_names, feature_names = (
        map(str, labels.columns),
        map(str, getattr(X, "columns", bunch.feature_names)),
    )
    return Dataset(X, Y, tuple(label_names), tuple(feature_names), name, where, checksum)

"""Text files of the extreme-classification repository, files of label names, sparse labels."""

import bz2
import gzip
import re
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from strategies import n_examples

import labelsure as ls
from labelsure.tables.datasets import read_label_file

DATA = "3 3 5\n4,0 0:-1e2 2:0.5\n 1:2\n3\n"
X = [[-100, 0, 0.5], [0, 2, 0], [0, 0, 0]]
Y = [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def assert_holds(data, X, Y):
    assert isinstance(data.Y, sparse.csr_array)
    assert data.Y.dtype == np.int8
    assert data.Y.has_canonical_format
    assert data.Y.data.all()
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


def test_a_data_file(tmp_path):
    data = ls.read_dataset(write(tmp_path, tags=DATA) / "tags.txt")
    assert_holds(data, X, Y)
    assert (data.name, data.source, len(data.checksum)) == ("tags", "tags.txt", 64)
    assert (data.label_names, data.n_labels) == (None, 5)


@pytest.mark.parametrize(
    "text",
    [
        DATA.replace("\n", "\r\n"),
        DATA + "\n\n",
        DATA.replace(" 1:2", "1:2"),
        DATA.replace(" 1:2", "\t0:0 1:2"),
        DATA.replace(" 2:0.5", "\t2:.5 # of shoes"),
        "\ufeff" + DATA,
    ],
)
def test_what_files_write_otherwise(tmp_path, text):
    assert_holds(ls.read_dataset(write(tmp_path, tags=text) / "tags.txt"), X, Y)


@pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, "gz"), (bz2.compress, "bz2")])
def test_compressed_files(tmp_path, compress, suffix):
    path = tmp_path / f"train.txt.{suffix}"
    path.write_bytes(compress(DATA.encode()))
    assert_holds(ls.read_dataset(path), X, Y)


HEADER = r"first line of f.txt must say how many instances, features and labels"
ROWS = r"f.txt must have rows such as `4,7 0:1.5 2:1`, with features in ascending order: "

DAMAGED = {
    "no header": ("1,2 0:1\n", HEADER),
    "nothing": ("", rf"{HEADER} .* `1000 500 90`, got ''"),
    "two numbers": ("4 3\n", rf"{HEADER} .* got '4 3'"),
    "a negative number": ("4 -3 2\n", rf"{HEADER} .* got '4 -3 2'"),
    "no labels at all": ("4 3 0\n", rf"{HEADER} .* whole numbers from 1 on"),
    "cut off": (DATA[:-2], r"f.txt must have 3 rows, as its first line says, got 2; blank rows do"),
    "a blank row": ("2 1 1\n0 0:1\n\n", r"f.txt must have 2 rows, .* got 1; blank rows do not"),
    "rows too many": (DATA + "1 0:1\n", r"f.txt must have 3 rows, .* got 4"),
    "a label beyond": (DATA.replace("4,0", "5,0"), r"f.txt must list labels from 0 to 4, .* got 5"),
    "a negative label": (DATA.replace("4,0", "4,-1"), r"labels from 0 to 4, .* got -1"),
    "half a label": (DATA.replace("4,0", "4,.5"), r"labels from 0 to 4, .* got 0.5"),
    "a label that is missing": (DATA.replace("4,0", "4,nan"), r"labels from 0 to 4, .* got nan"),
    "a label twice": (DATA.replace("4,0", "4,4"), r"f.txt must list each label of a row once"),
    "a name of a label": (DATA.replace("\n3\n", "\nred\n"), ROWS + r".*red.* Fix or drop that row"),
    "a feature beyond": (DATA.replace("1:2", "3:2"), ROWS + "n_features was set to 3"),
    "a feature twice": (DATA.replace("0:-1e2", "2:1"), ROWS + ".*sorted and unique"),
    "no number": (DATA.replace("1:2", "1:x"), ROWS),
    "no colon": (DATA.replace(" 1:2", " 1:2 7"), ROWS),
    "a long index": (DATA.replace("1:2", "9" * 30 + ":2"), ROWS),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files(tmp_path, text, message):
    with pytest.raises(ls.DataError, match=message):
        ls.read_dataset(write(tmp_path, f=text) / "f.txt")


def test_a_header_cannot_ask_for_any_memory(tmp_path):
    with pytest.raises(ls.TooLargeError, match="features"):
        ls.read_dataset(write(tmp_path, f=f"1 1 {10**17}\n0 0:1\n") / "f.txt")


def test_columns_are_not_chosen(tmp_path):
    with pytest.raises(ls.InputError, match="`sep`"):
        ls.read_dataset(write(tmp_path, f=DATA) / "f.txt", labels=2)


values = st.floats(-1e6, 1e6, allow_subnormal=False)
shapes = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 40))


@st.composite
def sparse_sets(draw):
    n_rows, n_features, n_labels = draw(shapes)
    pairs = st.dictionaries(st.integers(0, n_features - 1), values, max_size=n_features)
    labels = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=5)
    rows = draw(st.lists(st.tuples(labels, pairs), min_size=n_rows, max_size=n_rows))
    return n_rows, n_features, n_labels, rows


@n_examples(60)
@given(sparse_sets())
def test_what_was_written_is_read(drawn):
    n_rows, n_features, n_labels, rows = drawn
    X, Y = np.zeros((n_rows, n_features)), np.zeros((n_rows, n_labels), dtype=int)
    lines = [f"{n_rows} {n_features} {n_labels}"]
    for i, (has, pairs) in enumerate(rows):
        X[i, list(pairs)] = list(pairs.values())
        Y[i, has] = 1
        features = " ".join(f"{j}:{value!r}" for j, value in sorted(pairs.items()))
        lines.append(f"{','.join(map(str, has))} {features}")
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), f="\n".join(lines) + "\n") / "f.txt"
        if all(line.strip() for line in lines):
            assert_holds(ls.read_dataset(path), X, Y)
        else:
            with pytest.raises(ls.DataError, match="blank rows do not count"):
                ls.read_dataset(path)


PIECES = [
    " ",
    "\n",
    "\r\n",
    "\t",
    ",",
    ":",
    "0",
    "1",
    "2",
    "3",
    "1:1",
    "-",
    "1e5",
    "nan",
    "é",
    "\x00",
]


@n_examples(100)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("1:1\x00")
@example("0,1 0:1" * 2)
def test_pieces_of_text_load_or_are_refused(text):
    for header in ("", "2 3 4\n"):
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder), f=header + text) / "f.txt"
            try:
                data = ls.read_dataset(path)
            except ls.DataError:
                continue
        assert data.X.shape[0] == data.Y.shape[0] == len(data)


def test_memory_is_in_what_is_listed(tmp_path):
    rng = np.random.default_rng(0)
    n_rows, n_labels = 2000, 100_000
    labels = rng.integers(n_labels, size=n_rows)
    lines = [f"{label} {i % 50}:1" for i, label in enumerate(labels)]
    text = f"{n_rows} 50 {n_labels}\n" + "\n".join(lines) + "\n"
    path = write(tmp_path, train=text) / "train.txt"
    ls.read_dataset(path)
    tracemalloc.start()
    data = ls.read_dataset(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(data.Y.indices, labels)
    names = 80 * n_labels  # y0, y1, ...
    assert peak < names + 20 * len(text) < n_rows * n_labels / 10
    assert data.describe()["n_labelsets"] == len(set(labels.tolist()))
    assert data.describe()["label_cardinality"] == 1
    part = data.take([5, 1])
    np.testing.assert_array_equal(part.Y.indices, labels[[5, 1]])
    chosen = data.select_labels([f"y{labels[7]}"])
    np.testing.assert_array_equal(chosen.Y.toarray()[:, 0], labels == labels[7])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\nb\n", "Line 2 of 'names.txt' must name a label of its own, it is blank"),
        ("a\nb\na\n", "Line 3 of 'names.txt' must name a label of its own, 'a' is also in line 1"),
        (" \n", "Line 1 of 'names.txt' must name a label of its own, it is blank"),
    ],
)
def test_damaged_files_of_names(tmp_path, text, message):
    with pytest.raises(ls.DataError, match=re.escape(message)):
        read_label_file(write(tmp_path, names=text) / "names.txt")


def test_files_of_names(tmp_path):
    path = write(tmp_path, names="red shoes\r\n blue\r\n\r\n") / "names.txt"
    assert read_label_file(path) == ["red shoes", "blue"]


def test_sparse_labels_of_a_data_set():
    given = sparse.coo_matrix(([1.0, 1.0, 0.0], ([0, 1, 1], [2, 0, 1])), shape=(2, 3))
    data = ls.Dataset([[1.0], [2.0]], given, ["a", "b", "c"])
    assert data.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert isinstance(data.Y, sparse.csr_array)
    assert data.describe()["constant_labels"] == ["b"]
    with pytest.raises(ls.InputError, match="Write"):
        ls.Dataset([[1.0], [2.0]], given * 2)
    with pytest.raises(ls.InputError, match=r"must have 1 rows, got 2"):
        ls.Dataset([[1.0]], given)


def test_sparse_labels_are_split():
    Y = sparse.csr_array(np.tile(np.eye(4, dtype=int), (10, 1)))
    data = ls.Dataset(np.arange(40.0)[:, np.newaxis], Y)
    dense = ls.Dataset(data.X, Y.toarray())
    parts = ls.split_dataset(data, 0.5, random_state=0)
    same = ls.split_dataset(dense, 0.5, random_state=0)
    for part, other in zip(parts, same, strict=True):
        np.testing.assert_array_equal(part.X, other.X)
        np.testing.assert_array_equal(part.Y.toarray(), other.Y)

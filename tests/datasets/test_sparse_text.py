"""Text files and folders of the extreme-classification repository."""

import bz2
import gzip
import json
import re
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import labelsure as ls
from labelsure import _limits
from labelsure.cli import main
from labelsure.datasets import read_extreme_folder, read_label_file

DATA = "4 3 5\n4,0 2:0.5 0:-1e2\n 1:2\n3\n\n"
X = [[-100, 0, 0.5], [0, 2, 0], [0, 0, 0], [0, 0, 0]]
Y = [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]


def write(folder, **texts):
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '.')}.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def assert_holds(data, X, Y):
    assert isinstance(data.Y, sparse.csr_array)
    assert data.Y.dtype == np.int8
    assert data.Y.has_canonical_format
    assert data.Y.data.all()
    assert data.X.data.all()
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
        DATA.replace(" 1:2", "\t1:2 0:0"),
        DATA.replace(" 2:0.5", "\t2:.5 "),
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
    assert_holds(read_extreme_folder(tmp_path)["train"], X, Y)


DAMAGED = {
    "no header": ("1,2 0:1\n", r"Line 1 of f.txt must say how many instances, features and labels"),
    "nothing": ("", r"Line 1 of f.txt must say .* 3 whole numbers .* `1000 500 90`, got ''"),
    "two numbers": ("4 3\n", r"Line 1 of f.txt must say .* got '4 3'"),
    "a negative number": ("4 -3 2\n", r"Line 1 of f.txt must say .* got '4 -3 2'"),
    "no labels at all": ("4 3 0\n", r"Line 1 of f.txt must say .* whole numbers from 1 on"),
    "a long header": ("4 3 " + "9" * 99, r"Line 1 of f.txt must say .*'4 3 9{33}\.\.\.'"),
    "cut off": (DATA[:-1], r"f.txt must have 4 rows after line 1, which says so, it has 3. Is it"),
    "rows too many": (DATA + "1 0:1\n", r"f.txt must have 4 rows .* but line 6 is one more"),
    "a label beyond": (
        DATA.replace("4,0", "5,0"),
        r"Line 2 of f.txt must list labels from 0 to 4, of which line 1 speaks, got 5. Mend that",
    ),
    "a feature beyond": (
        DATA.replace("1:2", "3:2"),
        r"Line 3 of .* from 0 to 2, .* got 3",
    ),
    "a negative feature": (
        DATA.replace("1:2", "-1:2"),
        r"Line 3 of f.txt must write each feature as index:value, two numbers, got '-1:2'",
    ),
    "a label twice": (
        DATA.replace("4,0", "4,4"),
        r"Line 2 of .* each label once, 4 is there",
    ),
    "a feature twice": (DATA.replace(" 0:-1e2", " 2:1"), r"Line 2 of .* each feature once, 2 is"),
    "labels with spaces": (DATA.replace("4,0", "4, 0"), r"Line 2 of .* whole numbers .* got '4,'"),
    "a name of a label": (DATA.replace("\n3\n", "\nred\n"), r"Line 4 of .* whole numbers .*'red'"),
    "no number": (DATA.replace("1:2", "1:x"), r"Line 3 of .* index:value, two numbers, got '1:x'"),
    "no value": (DATA.replace("1:2", "1:"), r"Line 3 of .* index:value, two numbers, got '1:'"),
    "no index": (DATA.replace("1:2", " :2"), r"Line 3 of .* index:value, two numbers, got ':2'"),
    "no colon": (DATA.replace(" 1:2", " 1:2 7"), r"Line 3 of .* index:value, two numbers, got '7'"),
    "two colons": (DATA.replace("1:2", "1:2:3"), r"Line 3 of .* two numbers, got '1:2:3'"),
    "digits with lines": (DATA.replace("1:2", "1:2_0"), r"Line 3 of .* got '1:2_0'"),
    "a long index": (DATA.replace("1:2", "9" * 5000 + ":2"), r"Line 3 of .* got '9+\.\.\.'"),
    "not finite": (
        DATA.replace("1:2", "1:inf"),
        r"Line 3 of .* finite values, got inf of",
    ),
    "missing": (DATA.replace("1:2", "1:nan"), r"Line 3 of .* finite values, got nan of feature 1"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files(tmp_path, text, message):
    with pytest.raises(ls.DataError, match=message):
        ls.read_dataset(write(tmp_path, f=text) / "f.txt")


def test_a_header_cannot_ask_for_any_memory(tmp_path):
    with pytest.raises(ls.TooLargeError, match=r"must say at most 10000000 features or labels"):
        ls.read_dataset(write(tmp_path, f=f"1 1 {10**17}\n0 0:1\n") / "f.txt")


def test_columns_are_not_chosen(tmp_path):
    with pytest.raises(ls.InputError, match=r"`sep` are about tables, f.txt lists labels"):
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


@settings(deadline=None, max_examples=60)
@given(sparse_sets())
def test_what_was_written_is_read(drawn):
    n_rows, n_features, n_labels, rows = drawn
    X, Y = np.zeros((n_rows, n_features)), np.zeros((n_rows, n_labels), dtype=int)
    data, features, labels = [], [], []
    for i, (has, pairs) in enumerate(rows):
        X[i, list(pairs)] = list(pairs.values())
        Y[i, has] = 1
        features.append(" ".join(f"{j}:{value!r}" for j, value in pairs.items()))
        labels.append(" ".join(f"{j}:1.0" for j in has))
        data.append(f"{','.join(map(str, has))} {features[-1]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, all="\n".join([f"{n_rows} {n_features} {n_labels}", *data]) + "\n")
        assert_holds(read_extreme_folder(folder)["all"], X, Y)
        (folder / "all.txt").unlink()
        write(
            folder,
            tst_X_Xf="\n".join([f"{n_rows} {n_features}", *features]) + "\n",
            tst_X_Y="\n".join([f"{n_rows} {n_labels}", *labels]) + "\n",
        )
        assert_holds(read_extreme_folder(folder)["test"], X, Y)


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


@settings(deadline=None, max_examples=100)
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


SPLIT = {"tags": "3 1 2\n0 0:1\n1 0:2\n0,1 0:3\n", "tags_trSplit": "1 3\n3 1\n"}


def test_parts_of_a_folder(tmp_path):
    write(tmp_path, tags_train=DATA, tags_test="1 3 5\n2 1:7\n", readme="Train and test.\n")
    parts = read_extreme_folder(tmp_path, label_names=["a", "b", "c", "d", "e"])
    assert list(parts) == ["train", "test"]
    assert_holds(parts["train"], X, Y)
    assert_holds(parts["test"], [[0, 7, 0]], [[0, 0, 1, 0, 0]])
    assert parts["test"].name == f"{tmp_path.name}-test"
    assert parts["test"].source == "tags_test.txt"
    assert parts["test"].label_names == ("a", "b", "c", "d", "e")


def test_names_of_labels_from_a_file(tmp_path):
    write(tmp_path, train="1 1 2\n0 0:1\n", names="red shoes\nblue\n")
    parts = read_extreme_folder(tmp_path, label_names=tmp_path / "names.txt")
    assert parts["train"].label_names == ("red shoes", "blue")
    with pytest.raises(ls.InputError, match=r"one name for each of the 2 labels, got 1"):
        read_extreme_folder(tmp_path, label_names=write(tmp_path, few="red\n") / "few.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\nb\n", "Line 2 of 'names.txt' must name a label, it is blank"),
        ("a\nb\na\n", "'a' is in lines 1 and 3. Rename one of them"),
        (" \n", "The file 'names.txt' must name at least one label, it is empty"),
    ],
)
def test_damaged_files_of_names(tmp_path, text, message):
    with pytest.raises(ls.DataError, match=re.escape(message)):
        read_label_file(write(tmp_path, names=text) / "names.txt")


def test_files_of_names(tmp_path):
    path = write(tmp_path, names="red shoes\r\n blue\r\n\r\n") / "names.txt"
    assert read_label_file(path) == ["red shoes", "blue"]


@pytest.mark.parametrize(("split", "train", "test"), [(1, [1, 3], [2]), (2, [3, 1], [2])])
def test_split_files(tmp_path, split, train, test):
    write(tmp_path, **SPLIT, tags_tstSplit="2 2\n")
    parts = read_extreme_folder(tmp_path, split=split)
    assert parts["train"].X.toarray().ravel().tolist() == train
    assert parts["test"].X.toarray().ravel().tolist() == test
    assert parts["train"].checksum == parts["test"].checksum


FOLDERS = {
    "nothing": ({}, "must have a text file that begins with the numbers of instances"),
    "only text": ({"train_texts": "some words\n"}, "must have a text file that begins"),
    "two of a part": ({"a_train": DATA, "b_trn": DATA}, "got 'a_train.txt' and 'b_trn.txt'. Move"),
    "two of no part": ({"a": DATA, "b": DATA}, "one such file for the part 'all', got 'a.txt'"),
    "two forms": (
        {"train": DATA, "trn_X_Xf": "1 1\n\n", "trn_X_Y": "1 1\n\n"},
        "it has files of features and of labels and data files of parts",
    ),
    "parts and all": ({"train": DATA, "all": DATA}, "data files of parts and a data file of all"),
    "no labels": ({"trn_X_Xf": "1 1\n\n"}, "for the part 'train', it has features and no labels"),
    "no features": ({"tst_X_Y": "1 1\n\n"}, "for the part 'test', it has labels and no features"),
    "splits of parts": ({**SPLIT, "tags": "", "train": DATA}, "must have one data file for its"),
    "other labels": (
        {"train": DATA, "test": "1 3 6\n0 0:1\n"},
        "train: 3 features and 5 labels; test: 3 features and 6 labels. Are they of one",
    ),
    "other rows": (
        {"trn_X_Xf": "2 1\n0:1\n\n", "trn_X_Y": "1 1\n\n"},
        "trn_X_Xf.txt and trn_X_Y.txt must have the same number of rows, got 2 and 1",
    ),
    "weights of labels": (
        {"trn_X_Xf": "1 1\n0:1\n", "trn_X_Y": "1 2\n1:0.5\n"},
        "Line 2 of trn_X_Y.txt must have 1 as the value of each label, got 0.5 of 1",
    ),
    "three numbers": (
        {"trn_X_Xf": "1 1 1\n0:1\n", "trn_X_Y": "1 2\n1:1\n"},
        "Line 1 of trn_X_Xf.txt must say how many rows and columns there are",
    ),
    "a split from 0": (
        {**SPLIT, "tags_trSplit": "0\n1\n"},
        "Line 1 of tags_trSplit.txt must have numbers of rows from 1 to 3, got '0'. Rows count",
    ),
    "a split beyond": ({**SPLIT, "tags_trSplit": "1\n4\n"}, "Line 2 of tags_trSplit.* got '4'"),
    "a word in a split": ({**SPLIT, "tags_trSplit": "one\n"}, "Line 1 of tags_trSplit.* got 'one'"),
    "a row twice": ({**SPLIT, "tags_trSplit": "1\n\n1\n"}, "row 1 is in lines 1 and 3"),
    "an empty split": ({**SPLIT, "tags_trSplit": "\n"}, "tags_trSplit.txt must name at least one"),
    "shared rows": (
        {**SPLIT, "tags_tstSplit": "3\n"},
        "must name different rows, row 3 is in",
    ),
}


@pytest.mark.parametrize(("texts", "message"), FOLDERS.values(), ids=FOLDERS)
def test_folders_that_are_refused(tmp_path, texts, message):
    with pytest.raises(ls.DataError, match=message):
        read_extreme_folder(write(tmp_path, **texts))


def test_arguments_of_folders(tmp_path):
    write(tmp_path, **SPLIT)
    with pytest.raises(ls.InputError, match=re.escape("column of split files, 1, 2, ..., got 0")):
        read_extreme_folder(tmp_path, split=0)
    with pytest.raises(ls.DataError, match=r"must have a number for split 3, it has 2. Choose"):
        read_extreme_folder(tmp_path, split=3)
    with pytest.raises(
        ls.DataError, match=r"`folder` must be a folder of text files, got .*tags.t"
    ):
        read_extreme_folder(tmp_path / "tags.txt")


def test_a_damaged_archive_in_a_folder(tmp_path):
    write(tmp_path, train=DATA)
    (tmp_path / "test.txt.gz").write_bytes(gzip.compress(DATA.encode())[:15])
    with pytest.raises(ls.DataError, match="damaged or cut off"):
        read_extreme_folder(tmp_path)


@pytest.mark.parametrize("first", ["\n", "2 3\n", "x y z\n"])
def test_a_part_with_a_damaged_first_line_is_not_dropped(tmp_path, first):
    write(tmp_path, train=DATA, test=first + DATA)
    with pytest.raises(ls.DataError, match=r"Line 1 of test\.txt"):
        read_extreme_folder(tmp_path)


def test_a_part_with_a_byte_order_mark_is_read(tmp_path):
    write(tmp_path, train=DATA, test="\ufeff" + DATA)
    assert list(read_extreme_folder(tmp_path)) == ["train", "test"]


def test_sparse_labels_of_a_data_set():
    given = sparse.coo_matrix(([1.0, 1.0, 0.0], ([0, 1, 1], [2, 0, 1])), shape=(2, 3))
    data = ls.Dataset([[1.0], [2.0]], given, ["a", "b", "c"])
    assert data.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert isinstance(data.Y, sparse.csr_array)
    assert data.describe()["constant_labels"] == ["b"]
    with pytest.raises(ls.InputError, match=r"only 0 and 1, got 2.0 in row 0, column 2. Binarise"):
        ls.Dataset([[1.0], [2.0]], given * 2)
    with pytest.raises(ls.InputError, match=r"must have 1 rows, got 2. Pass one labelset"):
        ls.Dataset([[1.0]], given)


def test_sparse_labels_are_split(monkeypatch):
    Y = sparse.csr_array(np.tile(np.eye(4, dtype=int), (10, 1)))
    data = ls.Dataset(np.arange(40.0)[:, np.newaxis], Y)
    for stratified in (False, True):
        dense = ls.Dataset(data.X, Y.toarray())
        parts = ls.split_dataset(data, 0.5, stratified=stratified, random_state=0)
        same = ls.split_dataset(dense, 0.5, stratified=stratified, random_state=0)
        for part, other in zip(parts, same, strict=True):
            np.testing.assert_array_equal(part.X, other.X)
            np.testing.assert_array_equal(part.Y.toarray(), other.Y)
    monkeypatch.setattr(_limits, "MAX_ARRAY_BYTES", 100)
    with pytest.raises(ls.TooLargeError, match=r"Labels as a splitter takes them need 160.0 bytes"):
        ls.split_dataset(data, 0.5, stratified=True)


def test_the_command_describes_a_folder(tmp_path, capsys):
    write(tmp_path, train=DATA, test="1 3 5\n2 1:7\n")
    assert main(["data", "info", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    train, test = told["parts"]
    assert train.pop("checksum") != test.pop("checksum")
    assert train == {
        "part": "train",
        "source": "train.txt",
        "n_samples": 4,
        "n_features": 3,
        "n_labels": 5,
        "labels_that_occur": 3,
        "labels_per_instance": 3 / 4,
        "instances_per_label": 1.0,
        "features_per_instance": 3 / 4,
    }
    assert main(["data", "info", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"labels_that_occur +│ 3 +│ 1 ", shown)


def test_the_command_refuses_a_folder_without_data(tmp_path, capsys):
    assert main(["data", "info", str(tmp_path)]) == 2
    assert "must have a text file that begins" in " ".join(capsys.readouterr().err.split())

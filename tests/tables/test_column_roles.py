"""Columns that name rows, that are left out, that hold label names; and columns that are ids."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import labelsure as ls
from labelsure.tables.column_choice import read_labels

CSV = "id,degrees,notes,note_2,tags\nMo,12.5,x,1,sun\nTu,25,,2,warm;sun\nWe,?,y,3,\n"


def write(tmp_path, content, name="weather.csv"):
    path = tmp_path / name
    if isinstance(content, pa.Table):
        parquet.write_table(content, path)
    elif isinstance(content, pd.DataFrame):
        content.to_parquet(path)
    else:
        path.write_text(content)
    return path


def arff(rows, *attributes, relation="r"):
    declared = "".join(f"@attribute {attribute}\n" for attribute in attributes)
    return f"@relation '{relation}'\n{declared}@data\n" + "".join(f"{row}\n" for row in rows)


def as_arff(csv):
    head, *rows = csv.splitlines()
    kinds = {"degrees": "numeric", "note_2": "numeric"}
    filled = [",".join(value or "''" for value in row.split(",")) for row in rows]
    return arff(filled, *(f"{name} {kinds.get(name, 'string')}" for name in head.split(",")))


def as_parquet(csv):
    head, *rows = (line.split(",") for line in csv.splitlines())
    frame = pd.DataFrame(rows, columns=head)
    degrees = pd.to_numeric(frame["degrees"], errors="coerce")
    return frame.assign(degrees=degrees, note_2=frame["note_2"].astype(int))


FORMATS = {
    "weather.csv": lambda csv: csv,
    "weather.tsv": lambda csv: csv.replace(",", "\t"),
    "weather.arff": as_arff,
    "weather.parquet": as_parquet,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("drop", ["note*", ["notes", "note_2"], "notes, note_2"])
def test_every_format_takes_the_same_arguments(tmp_path, name, drop):
    path = write(tmp_path, FORMATS[name](CSV), name)
    data = ls.read_dataset(
        path, "tags", index="id", drop=iter(drop) if isinstance(drop, list) else drop, sep=";"
    )
    assert list(data.X.index) == ["Mo", "Tu", "We"]
    assert data.X.index.name == "id"
    assert data.feature_names == ("degrees",)
    np.testing.assert_array_equal(data.X["degrees"], [12.5, 25, np.nan])
    assert data.label_names == ("sun", "warm")
    assert isinstance(data.Y, np.ndarray)
    np.testing.assert_array_equal(data.Y, [[1, 0], [1, 1], [0, 0]])


@pytest.mark.parametrize("name", ["weather.csv", "weather.arff", "weather.parquet"])
def test_text_that_nobody_drops_stays_text(tmp_path, name):
    data = ls.read_dataset(write(tmp_path, FORMATS[name](CSV), name), "tags", sep=";")
    assert data.feature_names == ("id", "degrees", "notes", "note_2")
    assert data.X["id"].tolist() == ["Mo", "Tu", "We"]


def test_numbers_and_patterns_do_not_count_columns_that_are_taken_out(tmp_path):
    path = write(tmp_path, "id,a,b,b_old,x\n7,0,1,3,5\n8,1,1,3,6\n")
    options = {"index": "id", "drop": "b_old"}
    assert ls.read_dataset(path, 2, **options).label_names == ("a", "b")
    assert ls.read_dataset(path, -2, index="id", drop=["x", "b_*"]).label_names == ("a", "b")
    assert ls.read_dataset(path, "b*", **options).label_names == ("b",)
    assert ls.read_dataset(path, "a", index="id", drop="*_old").feature_names == ("b", "x")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["3", "1"], [3, 1]),
        (["007", "7"], ["007", "7"]),
        (["-2", "0"], [-2, 0]),
        (["1.5", "2"], ["1.5", "2"]),
        (["1.0", "1"], ["1.0", "1"]),
        (["2020-01-02", "2020-01-03"], ["2020-01-02", "2020-01-03"]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
    ],
)
def test_names_of_rows_are_what_the_file_says(tmp_path, values, names):
    path = write(tmp_path, "".join(["x,id,y\n", *(f"1,{value},1\n" for value in values)]))
    assert list(ls.read_dataset(path, "y", index="id").X.index) == names
    rows = [f"1,{value},1" for value in values]
    text = arff(rows, "x numeric", "id numeric", "y {0,1}")
    path = write(tmp_path, text, "weather.arff")
    assert list(ls.read_dataset(path, "y", index="id").X.index) == names


def test_the_index_of_a_frame_that_was_saved(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 0]}, index=pd.Index(["b", "a"], name="key"))
    path = write(tmp_path, frame, "t.parquet")
    assert list(ls.read_dataset(path, "y", index="key").X.index) == ["b", "a"]
    for options in ({}, {"drop": "key"}):
        data = ls.read_dataset(path, "y", **options)
        assert data.feature_names == ("x",)
        assert list(data.X.index) == [0, 1]


def test_an_index_that_pandas_wrote_without_a_name(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 0]}, index=["b", "a"])
    path = write(tmp_path, frame.to_csv())
    data = ls.read_dataset(path, "y", index="(unnamed)")
    assert list(data.X.index) == ["b", "a"]
    assert data.feature_names == ("x",)


def test_whole_numbers_that_parquet_keeps_as_floats(tmp_path):
    path = write(tmp_path, pa.table({"id": [4.0, 2.0], "y": [1, 0]}), "t.parquet")
    assert list(ls.read_dataset(path, "y", index="id").X.index) == [4, 2]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ([["sun"], ["warm", "sun"], []], ("sun", "warm")),
        ([[10], [9, 10], []], ("9", "10")),
    ],
)
def test_a_column_of_lists(tmp_path, column, names):
    path = write(tmp_path, pa.table({"x": [1.0, 2.0, 3.0], "tags": column}), "t.parquet")
    data = ls.read_dataset(path, "tags")
    assert data.label_names == names
    first = names.index(str(column[0][0]))
    np.testing.assert_array_equal(data.Y[:, first], [1, 1, 0])
    np.testing.assert_array_equal(data.Y[:, 1 - first], [0, 1, 0])


def test_lists_of_numbers_and_texts(tmp_path):
    path = write(tmp_path, '{"x": 1, "y": [10, "a"]}\n{"x": 2, "y": [9, "10"]}\n', "t.jsonl")
    data = ls.read_dataset(path, "y")
    assert data.label_names == ("9", "10", "a")
    np.testing.assert_array_equal(data.Y, [[0, 1, 1], [1, 1, 0]])


def test_names_of_labels_that_look_like_numbers(tmp_path):
    data = ls.read_dataset(write(tmp_path, "x,tags\n1,7\n2,007\n3,\n"), "tags", sep=";")
    assert data.label_names == ("007", "7")
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 0], [0, 0]])


def test_a_name_with_a_comma_stands_in_quotes(tmp_path):
    path = write(tmp_path, 'x,"a, b",c,d\n' + "1,0,1,1\n2,1,0,0\n" * 5)
    data = ls.read_dataset(path, 'c, "a, b"', drop='"d"')
    assert data.label_names == ("c", "a, b")
    assert list(data.X) == ["x"]
    assert ls.read_dataset(path, "a, b").label_names == ("a, b",)


def test_the_index_goes_with_parts_and_into_distributions(tmp_path):
    rows = "".join(f"r{i},{i % 5},{i % 2},{i % 3 == 0:d}\n" for i in range(40))
    path = write(tmp_path, "id,x,a,b\n" + rows)
    data = ls.read_dataset(path, "a,b", index="id")
    assert list(data.take([3, 1]).X.index) == ["r3", "r1"]
    assert list(data.select_labels("a").X.index) == [f"r{i}" for i in range(40)]
    train, test = ls.split_dataset(data, 0.4, random_state=0)
    assert sorted([*train.X.index, *test.X.index]) == sorted(data.X.index)
    for part in (train, test):
        assert isinstance(part.Y, np.ndarray)
        np.testing.assert_array_equal(part.Y, data.Y[data.X.index.get_indexer(part.X.index)])
    dist = ls.BinaryRelevance().fit(train.X, train.Y).predict_distribution(test.X)
    assert list(dist.index) == list(test.X.index)


def refusal(tmp_path, content, name="weather.csv", labels="y", **options):
    with pytest.raises(ls.InputError) as caught:
        ls.read_dataset(write(tmp_path, content, name), labels, **options)
    return str(caught.value)


SMALL = "id,x,y\na,1,0\nb,2,1\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (SMALL, {"index": "ids"}, "Unknown column 'ids'. Did you mean 'id'?"),
        (SMALL, {"drop": "not*"}, "Unknown column 'not*'. Known: id, x, y."),
        (SMALL, {"index": 0}, "`index` must be the name of one column, got 0."),
        (SMALL, {"drop": 3}, "`drop` must be names or patterns of columns, e.g. ['notes'], got 3."),
        (SMALL, {"sep": ""}, "`sep` must be the text between two label names, e.g. ';', got ''."),
        (
            SMALL,
            {"index": "id", "drop": ["id"]},
            "A column must have one role, 'id' is in `index` and in `drop`. Leave it out of one.",
        ),
        (SMALL, {"drop": "x,y"}, "A column must have one role, 'y' is in `drop` and in `labels`."),
        (SMALL, {"index": "y"}, "A column must have one role, 'y' is in `index` and in `labels`."),
        (
            SMALL,
            {"labels": "x,y", "sep": ";"},
            "`sep` needs one column that holds label names, `labels` stands for 2 columns. Name "
            "that column alone, e.g. labels='tags'.",
        ),
        (
            "id,y\na,0\nb,1\na,1\n",
            {"index": "id"},
            "Column 'id' of 'weather.csv' must have a different value in every row to be the "
            "`index`, 'a' is in rows 0 and 2 (rows count from 0). Name another column, or leave "
            "this one out with `drop`.",
        ),
        (
            "id,y\na,0\n,1\n",
            {"index": "id"},
            "Column 'id' of 'weather.csv' must name every row to be the `index`, it is missing in "
            "row 1 (rows count from 0). Fill it in or drop that row.",
        ),
        ("id,y\na,0\nNA,1\n", {"index": "id"}, "it is missing in row 1"),
        (
            "x,y\n1,a;b\n2,?\n",
            {"sep": ";"},
            "Column 'y' of 'weather.csv' must say for every row which labels it has, as names with "
            "';' between them, got '?' in row 1 (rows count from 0). Leave it empty where there "
            "are none, or fix or drop that row.",
        ),
        (
            "x,y\n1,\n2,;\n",
            {"sep": ";"},
            "Column 'y' of 'weather.csv' must name at least one label, it is empty in every row.",
        ),
        (
            "x,y\n1,a;b\n2,c\n",
            {},
            "of label 'y'. If that column is a feature, name the labels with `labels`; if it "
            "holds label names, say what separates them with `sep`, e.g. ';'.",
        ),
        (SMALL, {"labels": None}, "(negative: the last columns), or one column of label names."),
    ],
)
def test_what_is_refused(tmp_path, content, options, message):
    assert message in refusal(tmp_path, content, **options)


def test_columns_of_parquet_that_cannot_be_read(tmp_path):
    lists = pa.table({"x": [[1, 2], [3]], "y": [0, 1]})
    assert refusal(tmp_path, lists, "t.parquet") == (
        "Column 'x' of 't.parquet' must hold one value in each row, it holds lists. "
        "Pass labels='x' if these are the names of labels, write each part as a column, or leave "
        "it out with drop=['x']."
    )
    assert "Column 'x' of 't.parquet' must hold one" in refusal(
        tmp_path, lists, "t.parquet", index="x"
    )
    assert ls.read_dataset(tmp_path / "t.parquet", "y", drop="x").n_features == 0
    nowhere = pa.array([0, 1], pa.timestamp("us", tz="No/Where"))
    assert "Column 'when' of 't.parquet' cannot be read (" in refusal(
        tmp_path, pa.table({"when": nowhere, "y": [0, 1]}), "t.parquet"
    )
    assert ls.read_dataset(tmp_path / "t.parquet", "y", drop=["when"]).n_samples == 2
    message = refusal(tmp_path, pa.table({"y": [["a", None], []]}), "t.parquet")
    assert "as a list of names, got ['a', None] in row 0" in message
    message = refusal(tmp_path, pa.table({"y": [[], []]}), "t.parquet")
    assert "Column 'y' of 't.parquet' must name at least one label" in message
    message = refusal(tmp_path, pa.table({"y": [[], [[1, 2]]]}), "t.parquet")
    assert "as a list of names, got [[1, 2]] in row 1" in message
    message = refusal(tmp_path, pa.table({"y": [["a"]], "z": [1]}), "t.parquet", ["y", "z"])
    assert "must be 0 or 1 (or false and true, no and yes), got ['a'] in row 0" in message
    message = refusal(tmp_path, pa.table({"y": [3, 4]}), "t.parquet", sep=";")
    assert "as names with ';' between them, got 3 in row 0" in message


@pytest.mark.parametrize("row", ["1,'warm, or not',0", "{0 1, 1 'warm, or not'}"])
def test_a_numeric_column_of_arff_that_is_no_number(tmp_path, row):
    text = arff([row], "x numeric", "degrees numeric", "y {0,1}")
    assert refusal(tmp_path, text, "weather.arff") == (
        "Line 6 of weather.arff must have a finite number or ? in 'degrees', got 'warm, or not'. "
        "Fix or drop that line, or leave the column out with drop=['degrees']."
    )
    data = ls.read_dataset(tmp_path / "weather.arff", "y", drop="degrees")
    assert data.feature_names == ("x",)


def test_sparse_rows_have_no_names(tmp_path):
    text = arff(["{0 a,1 2}", "{2 1}"], "id string", "x numeric", "y {0,1}")
    message = refusal(tmp_path, text, "weather.arff", index="id")
    assert message == (
        "The rows of weather.arff must be dense to be named by `index`, a sparse matrix has no "
        "names of rows. Leave the column out with drop=['id']."
    )
    assert "or leave the column out with drop=['id']" in refusal(tmp_path, text, "weather.arff")
    data = ls.read_dataset(tmp_path / "weather.arff", "y", drop="id")
    np.testing.assert_array_equal(data.X.toarray(), [[2], [0]])


def proteins(n_rows, kind="nominal", is_sparse=False):
    names = [f"P{i}" for i in range(n_rows)]
    declared = f"{{{','.join(['none', *names])}}}" if kind == "nominal" else kind
    rows = [f"{{0 {name},2 1}}" if is_sparse else f"{name},1,1" for name in names]
    return arff(rows, f"protein {declared}", "x numeric", "y {0,1}")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_an_id_is_asked_about(tmp_path, is_sparse):
    text = proteins(20, is_sparse=is_sparse)
    assert refusal(tmp_path, text, "genes.arff") == (
        "The nominal column 'protein' of genes.arff must repeat some of its values to be a "
        "feature, all 20 are different, as those of an id are. Pass index='protein' to name the "
        "rows by it, or drop=['protein'] to leave it out."
    )
    path = tmp_path / "genes.arff"
    assert ls.read_dataset(path, "y", drop="protein").feature_names == ("x",)
    if not is_sparse:
        data = ls.read_dataset(path, "y", index="protein")
        assert data.feature_names == ("x",)
        assert list(data.X.index[:2]) == ["P0", "P1"]


def test_what_is_no_id(tmp_path):
    few = write(tmp_path, proteins(19), "few.arff")
    assert ls.read_dataset(few, "y").n_features == 21
    repeated = write(tmp_path, proteins(20) + "P3,1,0\n", "repeated.arff")
    assert ls.read_dataset(repeated, "y").n_features == 22
    # Texts differ in every row as ids do. Nothing is made of them here, so nothing is asked.
    text = write(tmp_path, proteins(20, "string"), "text.arff")
    assert ls.read_dataset(text, "y").feature_names == ("protein", "x")


def test_missing_values_do_not_hide_an_id(tmp_path):
    assert "all 20 are different" in refusal(tmp_path, proteins(20) + "?,1,0\n", "genes.arff")


XML = "<labels><label name='a'/><label name='b'/></labels>"
PART = arff(["1,0,5", "0,1,6"], "a {0,1}", "b {0,1}", "x numeric")


@pytest.mark.parametrize(
    "name",
    ["emotions-train.arff", "emotions-test.arff", "emotions_train.arff", "emotions-TEST.arff"],
)
def test_both_parts_share_an_xml(tmp_path, name):
    (tmp_path / "emotions.xml").write_text(XML)
    path = write(tmp_path, PART, name)
    assert ls.read_dataset(path).label_names == ("a", "b")
    loaded = ls.load_dataset(path.stem, tmp_path)
    assert loaded.label_names == ("a", "b")
    assert loaded.name == path.stem


def test_the_xml_of_a_part_itself_comes_first(tmp_path):
    (tmp_path / "emotions.xml").write_text(XML)
    (tmp_path / "emotions-train.xml").write_text("<labels><label name='b'/></labels>")
    assert ls.read_dataset(write(tmp_path, PART, "emotions-train.arff")).label_names == ("b",)
    (tmp_path / "x.xml").write_text(XML)
    message = refusal(tmp_path, PART, "x-ray.arff", labels=None)
    assert "labels of x-ray.arff must be named" in message


def test_parts_are_named_where_the_whole_is_not_there(tmp_path):
    for part in ("train", "test"):
        write(tmp_path, PART, f"emotions-{part}.arff")
    with pytest.raises(
        ls.DataError,
        match="There is emotions-test and emotions-train",
    ):
        ls.load_dataset("emotions", tmp_path)


def test_labels_that_a_file_declares_can_be_dropped(tmp_path):
    (tmp_path / "w.xml").write_text(XML)
    path = write(tmp_path, PART, "w.arff")
    assert ls.read_dataset(path, drop="a").label_names == ("b",)
    meka = write(tmp_path, PART.replace("'r'", "'r: -C 2'"), "meka.arff")
    data = ls.read_dataset(meka, drop="a")
    assert (data.label_names, data.feature_names) == (("b",), ("x",))
    with pytest.raises(ls.InputError, match="`drop`"):
        ls.read_dataset(meka, drop="a,b")


@pytest.fixture
def openml(monkeypatch):
    """Let OpenML answer with a data set whose first column is an id."""
    import sklearn.datasets
    from sklearn.utils import Bunch

    frame = pd.DataFrame(
        {"protein": pd.Categorical([f"P{i}" for i in range(25)]), "x": np.arange(25.0)}
    )
    answer = Bunch(
        data=frame,
        target=pd.DataFrame({"y": [0, 1] * 12 + [0]}),
        feature_names=["protein", "x"],
        target_names=["y"],
    )
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: answer)
    return answer


def test_an_id_on_openml(openml):
    data = ls.load_dataset("genbase")
    assert data.feature_names == ("x",)
    assert data.source.endswith("without the id column 'protein'")
    openml.data["protein"] = pd.Categorical([f"P{i // 2}" for i in range(25)])
    assert ls.load_dataset("genbase").n_features == 14


def test_a_sparse_data_set_on_openml(openml):
    openml.data = sparse.csr_matrix(np.arange(50.0).reshape(25, 2))
    data = ls.load_dataset("enron")
    np.testing.assert_array_equal(data.X.toarray().ravel(), np.arange(50))
    assert data.feature_names == ("protein", "x")


def test_a_plan_reads_columns_as_its_files_need(tmp_path):
    from labelsure.study.plan import DataSource

    write(tmp_path, CSV)
    table = {"file": "weather.csv", "labels": "tags", "sep": ";", "index": "id", "drop": ["notes"]}
    loaded = DataSource(**table).resolve_paths(tmp_path).load("weather")
    assert loaded.data.feature_names == ("degrees", "note_2")
    assert list(loaded.data.X.index) == ["Mo", "Tu", "We"]
    other = DataSource(**{**table, "drop": ["note_2"]}).resolve_paths(tmp_path).load("weather")
    assert other.data.n_features == loaded.data.n_features
    assert other.checksum != loaded.checksum


def test_a_text_among_lists_of_names_is_no_list_of_letters():
    column = pd.DataFrame({"tags": pd.Series([["ab", "c"], "ab", []], dtype=object)})
    with pytest.raises(ls.DataError, match="got 'ab' in row 1"):
        read_labels(column, None, "'t.jsonl'")
    rows, names = read_labels(column, ";", "'t.jsonl'")
    assert (rows.tolist(), names) == ([[1, 1], [1, 0], [0, 0]], ("ab", "c"))

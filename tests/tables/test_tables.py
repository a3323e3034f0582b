"""CSV and Parquet files, and how labels are named."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import labelsure as ls

CSV = "degrees,tag_sun,tag_warm,note\n12.5,1,0,a\n25,0,1,\n,1,1,?\n"


def write(tmp_path, text, name="weather.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_csv_file(tmp_path):
    data = ls.read_dataset(write(tmp_path, CSV), "tag_sun,tag_warm")
    assert data.label_names == ("tag_sun", "tag_warm")
    assert data.feature_names == ("degrees", "note")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1]])
    np.testing.assert_array_equal(data.X["degrees"], [12.5, 25, np.nan])
    assert data.X["note"].isna().tolist() == [False, True, True]
    assert len(data.checksum) == 64


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["tag_warm", "tag_sun"], ("tag_warm", "tag_sun")),
        ("tag_warm, tag_sun", ("tag_warm", "tag_sun")),
        ("tag_*", ("tag_sun", "tag_warm")),
        (["tag_warm", "tag_*"], ("tag_warm", "tag_sun")),
        (iter(["tag_warm"]), ("tag_warm",)),
        ("tag_[a-s]*", ("tag_sun",)),
    ],
)
def test_labels_by_name_or_pattern(tmp_path, labels, names):
    assert ls.read_dataset(write(tmp_path, CSV), labels).label_names == names


@pytest.mark.parametrize(
    ("labels", "names"), [(2, ("a", "b")), (-1, ("c",)), ("first1", ("a",)), ("last2", ("b", "c"))]
)
def test_labels_by_position(tmp_path, labels, names):
    assert ls.read_dataset(write(tmp_path, "a,b,c\n0,1,0\n1,1,1\n"), labels).label_names == names


def test_a_name_is_taken_before_what_it_could_mean(tmp_path):
    path = write(tmp_path, '"a,b",last1,x[1],x1\n0,1,0,7\n')
    for name in ("a,b", "last1", "x[1]"):
        assert ls.read_dataset(path, name).label_names == (name,)


@pytest.mark.parametrize("no_yes", [("0", "1"), ("FALSE", "TRUE"), ("no", "Yes"), ("0.0", "1.0")])
def test_spellings_of_no_and_yes(tmp_path, no_yes):
    no, yes = no_yes
    data = ls.read_dataset(write(tmp_path, f"x,y\n7,{no}\n8,{yes}\n"), "y")
    np.testing.assert_array_equal(data.Y, [[0], [1]])


def test_tabs_and_compression(tmp_path):
    path = write(tmp_path, gzip.compress(CSV.replace(",", "\t").encode()), "weather.tsv.gz")
    assert ls.read_dataset(path, "tag_*").n_labels == 2


def test_quotes_newlines_and_a_byte_order_mark(tmp_path):
    path = write(tmp_path, '﻿note,y\n"one\ntwo, ""three""",1\n"none",0\n')
    data = ls.read_dataset(path, "y")
    assert data.X["note"].tolist() == ['one\ntwo, "three"', "none"]


@pytest.mark.parametrize("spelling", ["", "?", "NA", '"NA"', " n/a", "NaN", "-nan", "NULL"])
def test_spellings_of_what_is_missing(tmp_path, spelling):
    data = ls.read_dataset(write(tmp_path, f"x,y\n{spelling},1\n2,0\n"), "y")
    np.testing.assert_array_equal(data.X["x"], [np.nan, 2])
    with pytest.raises(ls.DataError, match="missing"):
        ls.read_dataset(write(tmp_path, f"x,y\n2,{spelling}\n2,0\n"), "y")


def test_an_encoding_that_is_named(tmp_path):
    data = ls.read_dataset(
        write(tmp_path, "caf\xe9,y\n\xfc,1\n".encode("latin-1")), "y", encoding="latin-1"
    )
    assert data.X.to_dict("list") == {"caf\xe9": ["\xfc"]}


def test_a_parquet_file(tmp_path):
    frame = pd.DataFrame(
        {"x": [0.5, None], "text": ["a", "b"], "y0": [True, False], "y1": [0, 1]}, index=[7, 9]
    )
    frame.to_parquet(tmp_path / "t.parquet")
    data = ls.read_dataset(tmp_path / "t.parquet", "y?")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1]])
    assert data.feature_names == ("x", "text")
    assert data.X["x"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        (
            "a,y\n1,0\n2\n",
            "y",
            r"line 3 must have 2 values like the header, it has 1",
        ),
        ("a,y\n\n1,0\n1,2,3\n", "y", r"line 4 must have 2 values .* it has 3"),
        (
            "a;b, c;y\n1;2;0\n",
            "c;y",
            r"it has 1 \(';' may separate the columns: pass it as `csv_sep`",
        ),
        ("a,y\n1,0\n2,\n", "y", r"label 'y' is missing in row 1 \(rows count from 0\)"),
        ("a,y\n1,0\n2,2\n", "y", r"must be 0 or 1 .*, got 2 in row 1 .* of label 'y'"),
        ("a,y\n1,b\n", "y", r"must be 0 or 1 .*, got b in row 0"),
        ("", "y", r"'weather.csv' must begin with a header line, it is empty"),
        ("a,y\n", "y", r"must have at least one row, there is none in 'weather.csv'"),
        (
            "a,a\n1,0\n",
            "a",
            r"of 'weather.csv' must have names of their own, 'a' is there",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_file(tmp_path, text, labels, message):
    with pytest.raises(ls.DataError, match=message):
        ls.read_dataset(write(tmp_path, text), labels)


def test_a_header_that_is_cut_at_the_wrong_sign(tmp_path):
    message = r"Unknown column 'y'\..*';' may separate the columns: pass it as `csv_sep`"
    with pytest.raises(ls.InputError, match=message):
        ls.read_dataset(write(tmp_path, "a;b, c;y\n1;2,5;0\n"), "y")


def test_what_is_wrong_with_a_parquet_file(tmp_path):
    with pytest.raises(ls.DataError, match="Parquet"):
        ls.read_dataset(write(tmp_path, b"PAR1 is not enough", "t.parquet"), "y")


def test_a_parquet_file_with_names_that_are_no_text(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"columnZ": [1.0], "y": [1]}).to_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"columnZ", b"column\x80"))
    with pytest.raises(ls.DataError, match="decode"):
        ls.read_dataset(path, "y")


def test_wrong_notes_of_pandas_in_a_parquet_file(tmp_path):
    table = pa.table({"x": [1.0], "y": [1]}).replace_schema_metadata({"pandas": "{}"})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert ls.read_dataset(tmp_path / "t.parquet", "y").feature_names == ("x",)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "`labels` must say which columns of 'weather.csv' are labels"),
        ("tag_sum", "Unknown column 'tag_sum'. Did you mean 'tag_sun'?"),
        ("tag_sun,snow*", r"Unknown column 'snow\*'"),
        ([], "`labels` must name at least one column"),
        (5, "`labels` must be a number from 1 to 4, the number of columns"),
        (0, "`labels` must be a number from 1 to 4"),
        (True, "`labels` must be names, a pattern or a number of columns, got True"),
        (1.5, "`labels` must be names, a pattern or a number of columns, got 1.5"),
        ("last9", "`labels` must be a number from 1 to 4"),
        ("top2", "cannot be 'top2' before it is known which columns are labels"),
    ],
)
def test_labels_that_cannot_be(tmp_path, labels, message):
    with pytest.raises(ls.InputError, match=message):
        ls.read_dataset(write(tmp_path, CSV), labels)


def test_long_lists_of_names_are_cut(tmp_path):
    names = ",".join(f"c{j}" for j in range(1000))
    path = write(tmp_path, f"{names}\n{','.join(['0'] * 1000)}\n")
    with pytest.raises(ls.errors.UnknownNameError, match="c29 and 970 more") as caught:
        ls.read_dataset(path, "z")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weathr.csv", r"There is no file '.*weathr.csv'. Did you mean 'weather.csv'\?"),
        ("nothing/of/it.csv", r"There is no file .* The folder .* cannot be read either"),
        ("zzz.arff", r"There is no file .* Check the name and the folder"),
        ("folder.csv", r"folder.csv' must name files with a table, there is none"),
        ("nul\0.csv", r"cannot be read: .*null"),
        ("data.xlsx", r"Unknown format of file 'data.xlsx'. Known: .arff, .csv"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, message):
    write(tmp_path, CSV)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ls.InputError, match=message):
        ls.read_dataset(tmp_path / name, "tag_*")

"""ARFF as the field writes it."""

import bz2
import gzip
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import labelsure as ls
from labelsure.tables import arff

HEADER = """@relation 'Weather: -C 2'
@attribute sunny {0,1}
@attribute warm {0,1}
@attribute degrees numeric
@attribute sky {blue, grey, 'dark grey'}
@data
"""
ROWS = "1,0,12.5,blue\n0,1,25,'dark grey'\n1,1,?,grey\n"


def read(tmp_path, text, labels=None, name="weather.arff", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ls.read_dataset(path, labels, **options)


def test_a_small_file(tmp_path):
    data = read(tmp_path, HEADER + ROWS)
    assert data.name == "weather"
    assert data.source == "weather.arff"
    assert data.label_names == ("sunny", "warm")
    assert data.feature_names == ("degrees", "sky=blue", "sky=grey", "sky=dark grey")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1]])
    expected = [[12.5, 1, 0, 0], [25, 0, 0, 1], [np.nan, 0, 1, 0]]
    np.testing.assert_array_equal(data.X.to_numpy(), expected)
    assert list(data.X.columns) == list(data.feature_names)


def test_a_missing_nominal_feature_is_missing_in_all_its_columns(tmp_path):
    data = read(tmp_path, HEADER + "1,0,12.5,?\n1,0,12.5,grey\n")
    assert data.X.iloc[0, 1:].isna().all()
    np.testing.assert_array_equal(data.X.iloc[1, 1:], [0, 1, 0])


@pytest.mark.parametrize(
    ("values", "column", "numbers"),
    [
        ("{0,1}", "f", [1, 0]),
        ("{1,0}", "f", [1, 0]),
        ("{TRUE,FALSE}", "f", [1, 0]),
        ("{low,high}", "f=high", [0, 1]),
    ],
)
def test_two_values_are_one_column(tmp_path, values, column, numbers):
    first, second = ("1", "0") if "1" in values else values.strip("{}").split(",")
    text = f"@relation r\n@attribute f {values}\n@attribute y {{0,1}}\n@data\n{first},0\n{second},1"
    data = read(tmp_path, text, labels=-1)
    assert data.feature_names == (column,)
    np.testing.assert_array_equal(data.X[column], numbers)


@pytest.mark.parametrize(("count", "labels"), [(2, ("a", "b")), (-2, ("c", "d"))])
def test_meka_counts_from_either_end(tmp_path, count, labels):
    names = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    data = read(tmp_path, f"@relation 'x: -C {count} -split-number 3' %50\n{names}@data\n0,1,0,1\n")
    assert data.label_names == labels


def test_mulan_names_come_in_any_order_and_nesting(tmp_path):
    (tmp_path / "weather.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?><!-- ours -->'
        '<labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="warm"><label name="sunny"></label></label></labels>'
    )
    data = read(tmp_path, HEADER.replace(": -C 2", "") + ROWS)
    assert data.label_names == ("sunny", "warm")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1]])


def test_an_xml_elsewhere_can_be_named(tmp_path):
    xml = tmp_path / "some.xml"
    xml.write_text('<labels><label name="warm"/></labels>')
    for labels in (xml, str(xml)):
        assert read(tmp_path, HEADER + ROWS, labels).label_names == ("warm",)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_compressed_files(tmp_path, compress):
    name = "weather.arff" + (".gz" if compress is gzip.compress else ".bz2")
    data = read(tmp_path, compress((HEADER + ROWS).encode()), name=name)
    assert data.name == "weather"
    assert data.n_samples == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "﻿" + text,
        lambda text: text.replace("@attribute ", "@ATTRIBUTE\t").replace(" numeric", "\tREAL"),
        lambda text: text.replace("numeric", "integer [0, 40]"),
        lambda text: text.replace("{0,1}", "{0, 1} % a label"),
        lambda text: text.replace("{0,1}", "{ 0 , 1 }"),
        lambda text: text.replace("@data", "\n% rows\n@data  \n\n% more\n"),
        lambda text: text.replace("12.5,blue", "12.5 , blue % a comment"),
        lambda text: text.replace("sky {", "'sky'{"),
        lambda text: text.replace("-C 2'", "-C 2' %50"),
        lambda text: text.replace("'Weather: -C 2'", '"Weather: -C 2"'),
        lambda text: text.replace("'Weather: -C 2'", "Weather: -C 2"),
        lambda text: text.replace("'Weather: -C 2'", "'Wea\\qther: -C 2' %50"),
        lambda text: "% first\n\n" + text + "\n\n",
    ],
)
def test_spellings_that_mean_the_same(tmp_path, change):
    expected = read(tmp_path, HEADER + ROWS)
    data = read(tmp_path, change(HEADER + ROWS), name="other.arff")
    np.testing.assert_array_equal(data.Y, expected.Y)
    pd.testing.assert_frame_equal(data.X, expected.X)
    assert data.label_names == expected.label_names


def test_quoted_and_escaped_names(tmp_path):
    text = (
        "@relation r\n"
        "@attribute 'a name' numeric\n"
        '@attribute "it\'s" numeric\n'
        "@attribute 'it\\'s {100\\%}, \\\\ really' numeric\n"
        "@attribute it%s numeric\n"
        "@attribute 'yes, we can' {0,1}\n"
        "@data\n1,2,3,4,1\n"
    )
    data = read(tmp_path, text, labels=-1)
    assert data.feature_names == ("a name", "it's", "it's {100%}, \\ really", "it%s")
    assert data.label_names == ("yes, we can",)


def test_quoted_values_keep_commas_braces_and_percent_signs(tmp_path):
    text = (
        "@relation r\n@attribute v {'a, b', 'c } d', 'e %f', \"it's\", 'it\\'s not'}\n"
        "@attribute t string\n@attribute y {0,1}\n@data\n"
        "'a, b','one % two',0\n'c } d',\"a 'b'\",1\n'e %f',?,0\n'it\\'s','x',0 % c\n"
        '"it\'s not", bare ,0\n'
    )
    data = read(tmp_path, text, labels="y")
    np.testing.assert_array_equal(data.X.iloc[:, :5], np.eye(5))
    assert data.X["t"].iloc[[0, 1, 3, 4]].tolist() == ["one % two", "a 'b'", "x", "bare"]
    assert data.X["t"].isna().tolist() == [False, False, True, False, False]


def test_dates_and_strings_stay_text(tmp_path):
    text = (
        '@relation r\n@attribute day date "yyyy-MM-dd"\n@attribute y {0,1}\n@data\n"2020-01-02",1\n'
    )
    assert read(tmp_path, text, labels="y").X["day"].tolist() == ["2020-01-02"]


def test_an_encoding_that_is_named(tmp_path):
    text = "@relation r\n@attribute caf\xe9 numeric\n@attribute y {0,1}\n@data\n1,1\n"
    for encoding in ("utf-8", "latin-1"):
        path = tmp_path / f"{encoding}.arff"
        path.write_bytes(text.encode(encoding))
        data = ls.read_dataset(path, labels="y", encoding=encoding)
        assert data.feature_names == ("caf\xe9",)
    with pytest.raises(ls.DataError, match="must be UTF-8, but it has the byte 0xe9"):
        ls.read_dataset(path, labels="y")


SPARSE = """@relation 'tags: -C 2'
@attribute a {0,1}
@attribute b {1,0}
@attribute w1 numeric
@attribute colour {red, green, blue}
@attribute w2 numeric
@attribute flag {yes, no}
@data
{0 1, 2 3.5}
{1 0,3 blue,5 no}
{ }
{4 ?, 3 ?}
"""


def test_sparse_rows(tmp_path):
    data = read(tmp_path, SPARSE)
    assert sparse.issparse(data.X)
    assert data.X.format == "csr"
    # What is left out is 0, or the first declared value: 1 for b.
    np.testing.assert_array_equal(data.Y, [[1, 1], [0, 0], [0, 1], [0, 1]])
    names = ("w1", "colour=red", "colour=green", "colour=blue", "w2", "flag")
    assert data.feature_names == names
    nan = np.nan
    expected = [
        [3.5, 1, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1],
        [0, nan, nan, nan, nan, 1],
    ]
    np.testing.assert_array_equal(data.X.toarray(), expected)


def test_numeric_labels(tmp_path):
    head = "@relation 'r: -C 1'\n@attribute y numeric\n@attribute x numeric\n@data\n"
    for rows in ("1,0\n0,2\n", "{0 1}\n{1 2}\n"):
        np.testing.assert_array_equal(read(tmp_path, head + rows).Y, [[1], [0]])
    with pytest.raises(ls.DataError, match=r"must be 0 or 1 .*, got 3.0 in row 1 .* of label 'y'"):
        read(tmp_path, head + "{0 1}\n{0 3}\n")


def test_sparse_and_dense_rows_mean_the_same(tmp_path):
    dense = "1,1,3.5,red,0,yes\n0,0,0,blue,0,no\n0,1,0,red,0,yes\n0,1,0,?,?,yes\n"
    head = SPARSE[: SPARSE.index("{0 1,")]
    a, b = read(tmp_path, SPARSE), read(tmp_path, head + dense, name="dense.arff")
    np.testing.assert_array_equal(a.X.toarray(), b.X.to_numpy())
    np.testing.assert_array_equal(a.Y, b.Y)
    assert a.feature_names == b.feature_names


BROKEN = {
    "rows of the wrong length": (
        HEADER + "1,0,12.5,blue\n\n1,0,12.5\n",
        r"Line 9 of weather.arff must have a value for each of the 4 attributes, it has 3",
    ),
    "too many values": (HEADER + "1,0,12.5,blue,9\n", r"Line 7 of .* 4 attributes, it has 5"),
    "not a number": (HEADER + "1,0,warm,blue\n", r"Line 7 of .* must have a finite number or \?"),
    "not a number after words and a number": (
        "@relation 'r: -C -1'\n@attribute sky {blue, grey}\n@attribute degrees numeric\n"
        "@attribute rain numeric\n@attribute y {0,1}\n@data\nblue,3,much,1\n",
        r"Line 7 of .* must have a finite number .* in 'rain', got 'much'",
    ),
    "an undeclared value": (
        HEADER + "1,0,1,blue\n1,0,1,pink\n",
        r"Line 8 of weather.arff must have one .*\(blue, grey.*\) in 'sky', got 'pink'",
    ),
    "an open quote": (HEADER + "1,0,1,'blue\n", r"Line 7 of .* cannot be split into values"),
    "a sparse row among dense ones": (HEADER + "1,0,1,blue\n{0 1,x}\n", r"Line 8 of .* cannot be"),
    "a dense row among sparse ones": (SPARSE + "1,1,1,red,1,yes\n", r"Line 13 of .* cannot be"),
    "a column too many": (SPARSE + "{9 1}\n", r"Line 13 of .* each of the 6 attributes"),
    "a value twice in a sparse row": (
        SPARSE + "{0 1, 2 5, 0 0}\n",
        "Line 13 of weather.arff must give each of the 6 attributes at most one value, got 0, 2, 0",
    ),
    "a missing label": (
        HEADER + "1,0,1,blue\n?,0,1,blue\n",
        r"label 'sunny' is missing in row 1 \(rows count from 0\)",
    ),
    "a label that is no label": (
        HEADER.replace("-C 2", "-C 3") + "1,0,1,blue\n1,0,12.5,blue\n",
        r"Labels in weather.arff must be 0 or 1 .* got 12.5 in row 1 .* of label 'degrees'",
    ),
    "no rows": (HEADER, "must have rows after `@data`, it has none"),
    "no data line": (HEADER.replace("@data\n", ""), "must have a line `@data`"),
    "no attributes": ("@relation r\n@data\n1\n", "must declare its columns with @attribute"),
    "rows without a data line": (
        HEADER.replace("@data\n", "") + ROWS,
        r"header of weather.arff must consist of declarations.*'1,0,12.5,blue' in line 6",
    ),
    "another keyword": (
        "@relation r\n@end sub\n",
        "must consist of declarations .* got '@end sub' in line 2",
    ),
    "a name twice": (
        HEADER.replace("warm", "sunny") + ROWS,
        "'sunny' is there twice",
    ),
    "no type": ("@relation r\n@attribute a\n@data\n1\n", "declared like .* got 'a' in line 2"),
    "an unknown type": (
        HEADER.replace("numeric", "number") + ROWS,
        r"type of attribute 'degrees' in line 4 .* must be numeric, .* got 'number'",
    ),
    "a value twice": (HEADER.replace("grey,", "blue,") + ROWS, "list of different values"),
    "an open list": (HEADER.replace("grey'}", "grey'") + ROWS, "type of attribute 'sky' in line 5"),
    "blanks in a value": (HEADER.replace("{blue", "{light blue") + ROWS, "Quote values that have"),
    "labels that nobody names": (
        HEADER.replace(": -C 2", "") + ROWS,
        "labels of weather.arff must be named: in an .xml of the same name",
    ),
    "more labels than columns": (
        HEADER.replace("-C 2", "-C 20") + ROWS,
        "at most 4\\) in its relation, got 'Weather: -C 20'",
    ),
    "strings in sparse rows": (
        SPARSE.replace("w2 numeric", "w2 string") + "{4 'x'}\n",
        "sparse ARFF has no strings\\) in 'w2', got 'x'",
    ),
    "a one-hot column with a name that is taken": (
        HEADER.replace("degrees", "'sky=blue'") + ROWS,
        "'sky=blue' is there twice",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_with_a_file(tmp_path, case):
    text, message = BROKEN[case]
    with pytest.raises(ls.DataError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<labels><label name='warm'></labels>", "weather.xml must be xml that names labels"),
        ("<labels></labels>", "it has 0 such names for 0 labels"),
        ("<labels><label/><label name='warm'/></labels>", "it has 1 such names for 2 labels"),
        ("<labels><label name='warn'/></labels>", "'warn'. Did you mean 'warm'"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><labels/>", "must not have declarations"),
        ("", "weather.xml must be xml that names labels"),
    ],
)
def test_what_is_wrong_with_an_xml(tmp_path, xml, message):
    (tmp_path / "weather.xml").write_text(xml)
    with pytest.raises(ls.InputError, match=message):
        read(tmp_path, HEADER + ROWS)


def test_compressed_files_that_are_broken(tmp_path):
    whole = gzip.compress((HEADER + ROWS).encode())
    with pytest.raises(ls.DataError, match="weather"):
        read(tmp_path, whole[:-20], name="weather.arff.gz")
    with pytest.raises(ls.DataError, match=r"not compressed as its name says"):
        read(tmp_path, HEADER + ROWS, name="weather.arff.gz")
    short = bz2.compress((HEADER + ROWS).encode())[:-9]
    with pytest.raises(ls.DataError, match="weather"):
        read(tmp_path, short, name="weather.arff.bz2")


def test_lists_of_values_that_would_take_backtracking_for_ever(tmp_path):
    values = ",".join(f"v{i}" for i in range(60))
    text = f"@relation r\n@attribute a {{{values} x}}\n@data\nv1\n"
    with pytest.raises(ls.DataError, match="Quote values"):
        read(tmp_path, text, labels=1)


ROWS_OF_CELLS = [
    "{0 1,2 -3.5e1}",
    "{}",
    "{ 1 1 ,\t2  .5 }",
    "{2 ?, 0 0}",
    "{3 blue}",
    "{3 grey,1 1}",
]


@pytest.mark.parametrize("n_rows", [1, 2, 6])
def test_rows_that_are_split_at_once_are_those_that_are_split_one_by_one(
    n_rows, tmp_path, monkeypatch
):
    text = HEADER.replace("'dark grey'", "dark") + "\n".join(ROWS_OF_CELLS[:n_rows]) + "\n"
    at_once = read(tmp_path, text)
    monkeypatch.setattr(arff, "_split_plain", lambda text: (np.zeros(0, dtype=np.int64), []))
    one_by_one = read(tmp_path, text)
    np.testing.assert_array_equal(at_once.X.toarray(), one_by_one.X.toarray())
    np.testing.assert_array_equal(at_once.Y, one_by_one.Y)
    assert at_once.X.has_canonical_format


@pytest.mark.parametrize(
    "cells", ["0 1 2 1", "0 1 , , 2 1", "0 1,1", "0 1,0 1", "0 1,4 1", "0 1 1"]
)
def test_the_line_of_broken_cells_is_named(cells, tmp_path):
    with pytest.raises(ls.DataError, match="Line 8"):
        read(tmp_path, HEADER + "{0 1}\n{" + cells + "}\n{1 1}\n")


@pytest.mark.parametrize("tokens", [["1", "-2.5e3", "1e999"], ["1_0"], ["1-"], ["", "?"], ["'7'"]])
def test_numbers_are_read_the_same_in_both_ways(tokens, monkeypatch):
    numbers, is_bad = arff._read_numbers(tokens)
    monkeypatch.setattr(arff, "_DIGITS", re.compile("never"))
    expected = arff._read_numbers(tokens)
    np.testing.assert_array_equal(is_bad, expected[1])
    np.testing.assert_array_equal(numbers[~is_bad], expected[0][~is_bad])

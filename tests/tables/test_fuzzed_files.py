"""Whatever is in a file: it loads, or our error says why not."""

import io
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

import labelsure as ls

PIECES = [
    "@relation", "@attribute", "@data", "@DATA", " ", "\t", "\n", "\r\n", ",", "{", "}", "'", '"',
    "\\", "\\'", "%", "?", "0", "1", "{0,1}", "numeric", "string", "date", "a", "b", "'a b'",
    "-C 1", "-C", "1e5", "nan", "inf", "-", "\x00", "é", "\u2028", "\x0c", "1_0", "{0 1}",
    "{1 1, 0 0}", "'\\u00e9'", "\\777", "@end", "99999999999999999999", "﻿",
]  # fmt: skip
VALID = (
    "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@attribute t string\n@data\n"
)

texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
quick = settings(deadline=None, max_examples=200)


def assert_loads_or_refuses(content, suffix, labels):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fuzz{suffix}"
        path.write_bytes(content)
        try:
            data = ls.read_dataset(path, labels)
        except ls.LabelsureError:
            return
        assert data.n_samples >= 1
        assert data.Y.shape == (data.n_samples, data.n_labels)
        assert data.X.shape == (data.n_samples, data.n_features)


@quick
@given(texts, st.sampled_from([None, 1, -1, "*", "y"]))
@example("@attribute a {" + "a," * 200, 1)
@example("@relation r\n@attribute a {" + "a b," * 200 + "}\n@data\n1", 1)
@example("@relation r\n@attribute a string\n@data\n'" + "\\'" * 5000 + " %", 1)
def test_pieces_of_arff(text, labels):
    assert_loads_or_refuses(text.encode(), ".arff", labels)


@quick
@given(texts)
@example("1,1,'\\x'\n")
@example("1,1_0,a\n")
@example("{0 1, 2 x}\n")
@example("{0 1, 0 0}\n")
@example("1,1," + "a" * 200_000)
def test_rows_of_arff(rows):
    assert_loads_or_refuses((VALID + rows).encode(), ".arff", None)


@quick
@given(texts)
@example("'\\ud800' numeric")
@example("z {'\\ud800', 0, 1}")
def test_declarations_of_arff(declaration):
    text = VALID.replace("@data", f"@attribute {declaration}\n@data")
    assert_loads_or_refuses((text + "1,2,a,0\n").encode(), ".arff", None)


@quick
@given(st.binary(max_size=200), st.sampled_from([".arff", ".arff.gz", ".arff.bz2"]))
def test_bytes(content, suffix):
    assert_loads_or_refuses(content, suffix, 1)


@quick
@given(texts, st.sampled_from([1, -1, "a", "*"]))
def test_csv(text, labels):
    assert_loads_or_refuses(("a,b\n0,1\n" + text).encode(), ".csv", labels)
    assert_loads_or_refuses(text.encode(), ".csv", labels)


@quick
@given(st.integers(0, 2**31), st.integers(0, 255), st.integers(0, 2**31))
@example(1713, 43, 0)
@example(14825, 89, 0)
@example(313, 128, 0)
def test_parquet(position, value, end):
    content = bytearray(parquet_bytes())
    content[position % len(content)] = value
    assert_loads_or_refuses(bytes(content), ".parquet", "a")
    assert_loads_or_refuses(bytes(content[: end % len(content)]), ".parquet", "a")


@quick
@given(texts)
def test_xml(text):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "fuzz.arff").write_text(VALID + "1,2,a\n")
        Path(folder, "fuzz.xml").write_text(f"<labels><label name='y'/>{text}</labels>")
        try:
            assert ls.read_dataset(Path(folder, "fuzz.arff")).label_names == ("y",)
        except ls.DataError as error:
            message = str(error)
        else:
            message = "fuzz.xml"
        assert "fuzz.xml" in message


@cache
def parquet_bytes():
    file = io.BytesIO()
    pd.DataFrame({"a": [0, 1], "b": [0.5, 1.5], "c": ["x", "y"]}).to_parquet(file)
    return file.getvalue()

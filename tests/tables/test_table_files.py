"""Slices of files: every row in exactly one of them, whatever the format and the size."""

import bz2
import gzip
import json
import os
import pickle
import re
from unittest import mock

import numpy as np
import oracles_files
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import n_examples

import labelsure as ls
from labelsure.tables import files
from labelsure.tables.files import (
    TextFormat,
    find_rows,
    list_files,
    read_chunks,
    read_table,
    stack_rows,
)
from labelsure.tables.values import read_numbers

NAMES = ["wind", "rain", "sky"]


def chunks_of(inputs, columns=None, rows=files.CHUNK_ROWS, text=files.UNKNOWN):
    """The chunks of all files."""
    with mock.patch.object(files, "CHUNK_ROWS", rows):
        return [
            chunk
            for file in list_files(inputs, columns, text)
            for chunk in read_chunks(file, columns)
        ]


def frames_of(*arguments, **settings):
    """The rows of all chunks, none of which is bad."""
    found = [chunk.read() for chunk in chunks_of(*arguments, **settings)]
    assert not any(bad for _, bad in found)
    return [frame for frame, _ in found]


def frame_of(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    sky = rng.choice(["blue", "grey", 'a "b", c', "two\nlines", ""], size=n_rows)
    return pd.DataFrame(
        {"wind": rng.normal(size=n_rows), "rain": rng.integers(0, 2, n_rows), "sky": sky}
    )


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=7)
    elif path.suffix == ".feather":
        frame.to_feather(path, chunksize=7)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".feather"])
@pytest.mark.parametrize("rows", [1, 3, 7, 20, 100])
def test_chunks_hold_every_row_once(tmp_path, suffix, rows):
    frame = frame_of(20)
    path = write(frame, tmp_path / f"table{suffix}")
    chunks = chunks_of(path, rows=rows)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    found = pd.concat(frames_of(path, rows=rows))
    assert list(found.index) == list(range(20))
    assert list(found.columns) == NAMES
    pd.testing.assert_series_equal(
        found["wind"].astype(float), frame["wind"], rtol=1e-12, check_index_type=False
    )
    assert list(found["sky"]) == list(frame["sky"])
    assert list(found["rain"].astype(int)) == list(frame["rain"])
    whole = read_table(path)
    pd.testing.assert_frame_equal(whole, found, check_index_type=False)
    assert isinstance(whole.index, pd.RangeIndex)
    if suffix != ".feather":  # whose batches are chunks
        assert [(chunk.first_row, chunk.n_rows) for chunk in chunks] == oracles_files.cut(20, rows)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".feather", ".npy", ".npz"])
def test_a_chunk_can_be_sent(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    if suffix == ".npy":
        np.save(path, np.arange(6.0).reshape(3, 2))
    elif suffix == ".npz":
        sparse.save_npz(path, sparse.csr_array(np.eye(3)))
    else:
        write(frame_of(3), path)
    for chunk in chunks_of(path, rows=2):
        frame, _ = pickle.loads(pickle.dumps(chunk)).read()
        assert frame.to_dict() == chunk.read()[0].to_dict()


def test_files_have_some_chunks_that_processes_can_share(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.zeros((50_000, 2)))
    assert [chunk.n_rows for chunk in chunks_of(path)] == [3125] * 16
    pd.DataFrame({"x": np.arange(50_000) % 7}).to_parquet(tmp_path / "t.parquet")
    assert [chunk.n_rows for chunk in chunks_of(tmp_path / "t.parquet")] == [3125] * 16
    for suffix, line in ((".csv", "x,abcdefghij\n"), (".jsonl", '{"a": "abcdefgh"}\n')):
        text = "a,b\n" * (suffix == ".csv") + line * 500_000
        (tmp_path / f"t{suffix}").write_text(text)
        sizes = [chunk.n_rows for chunk in chunks_of(tmp_path / f"t{suffix}")]
        assert (16 <= len(sizes) <= 30, sum(sizes)) == (True, 500_000)


CELLS = st.text(st.sampled_from(list('a1,;"\n\r é')), max_size=5)


@n_examples(300)
@given(st.text(st.sampled_from(list('ab,"\n\r é')), max_size=40), st.integers(1, 4))
def test_rows_of_any_text_are_those_of_pythons_reader(tmp_path_factory, body, rows):
    """Also of text that no writer would write: quotes inside of values, line ends of all kinds."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    text = "one\n" + body.replace(",", "") + "\n"
    path.write_bytes(text.encode())
    _, expected = oracles_files.csv_rows(text, ",")
    if oracles_files.ends_in_quotes(text):
        with pytest.raises(ls.DataError, match="closed"):
            chunks_of(path, rows=rows)
        return
    chunks = chunks_of(path, rows=rows)
    found = [value for chunk in chunks for value in chunk.read()[0]["one"]]
    assert found == [row[0] for row in expected]
    assert [(u.first_row, u.n_rows) for u in chunks] == oracles_files.cut(len(expected), rows)


BODIES = st.text(st.sampled_from(list('ab,,"\n\r é')), max_size=120)


@n_examples(300)
@given(BODIES, st.integers(1, 4), st.sampled_from([8, 20, 64]))
def test_rows_and_bad_rows_do_not_depend_on_blocks(tmp_path_factory, body, rows, n_bytes):
    """Across blocks, in which rows are cut, and with rows that are longer than a block."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    text = "one,two\n" + body + "\n"
    path.write_bytes(text.encode())
    _, expected = oracles_files.csv_rows(text, ",")
    with mock.patch.multiple(files, BLOCK_BYTES=n_bytes, FEWEST_BYTES=n_bytes):
        if oracles_files.ends_in_quotes(text):
            with pytest.raises(ls.DataError, match="closed"):
                chunks_of(path, rows=rows)
            return
        read = [chunk.read() for chunk in chunks_of(path, rows=rows)]
        (file,) = list_files(path)
        again = {row: (line, values) for row, line, values in find_rows(file, range(99))}
    found = {row: list(own) for frame, _ in read for row, *own in frame.itertuples()}
    assert found == {i: row for i, row in enumerate(expected) if len(row) == 2}
    bad = {row: why for _, own in read for row, why in own.items()}
    assert set(bad) == {i for i, row in enumerate(expected) if len(row) != 2}
    assert {row: line for row, (line, _) in again.items()} == dict(
        enumerate(oracles_files.csv_lines(text, ","))
    )
    assert {row: [*values.values()] for row, (_, values) in again.items() if values} == found


def test_a_row_that_is_longer_than_a_block(tmp_path):
    path = tmp_path / "t.csv"
    cells = ["x" * 300, "a\nb" * 50_000, "", "z" * 2_000_000, "end"]
    pd.DataFrame({"n": range(5), "t": cells}).to_csv(path, index=False)
    with mock.patch.object(files, "BLOCK_BYTES", 1000):
        found = pd.concat(frames_of(path))
    assert found["t"].tolist() == cells
    assert found.index.tolist() == list(range(5))
    with (
        mock.patch.multiple(files, BLOCK_BYTES=1000, MAX_ROW_BYTES=10_000),
        pytest.raises(ls.DataError, match=r"Quotes in 't\.csv' must be closed.* Fix row 1 "),
    ):
        chunks_of(path)


@n_examples(200)
@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=8),
    st.integers(1, 3),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
)
def test_written_values_come_back(tmp_path_factory, cells, rows, line_end, block_bytes):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    frame = pd.DataFrame(cells, columns=["x", "y"], dtype=str)
    text = frame.to_csv(index=False, quoting=1, lineterminator=line_end)
    path.write_bytes(text.encode())
    with mock.patch.multiple(files, BLOCK_BYTES=block_bytes, FEWEST_BYTES=block_bytes):
        listed = frames_of(path, rows=rows)
    found = [tuple(row) for frame in listed for row in frame.to_numpy()]
    assert found == cells


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("cell", ["\r\n", "a\r\nb", "\r", "\n", "\r\r\n\n"])
def test_line_ends_in_cells_survive_blocks_of_every_size(tmp_path, cell, line_end):
    cells = [("x" * (row % 7) + cell, "y") for row in range(10)]
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(cells, columns=["x", "y"], dtype=str)
    path.write_bytes(frame.to_csv(index=False, quoting=1, lineterminator=line_end).encode())
    for size in range(1, 60):
        with mock.patch.multiple(files, BLOCK_BYTES=size, FEWEST_BYTES=size):
            found = pd.concat(frames_of(path))
        assert [tuple(row) for row in found.to_numpy()] == cells


def test_values_of_csv_are_text_in_every_unit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n,NA\n007,\n1.5,null\n")
    for frame in frames_of(path, rows=1):
        assert [str(dtype) for dtype in frame.dtypes] == ["str", "str"]
    assert read_table(path).to_numpy().tolist() == [
        ["1", "x"], ["", "NA"], ["007", ""], ["1.5", "null"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a;b\n1,5;2\n", {"a": "1,5", "b": "2"}),
        ("a\tb|c\n1;5\t2\n", {"a": "1;5", "b|c": "2"}),
        ("a|b\n1;5|2\n", {"a": "1;5", "b": "2"}),
        ("a;b,c\n1;2,3\n", {"a;b": "1;2", "c": "3"}),
        ("\ufeffa,b\n1,2\n", {"a": "1", "b": "2"}),
        ('\n\r\n"a, b" ,"c\nd"\n\n1,2\n\n', {"a, b": "1", "c\nd": "2"}),
        (",a\n0,1\n", {"(unnamed)": "0", "a": "1"}),
    ],
)
def test_headers(tmp_path, text, columns):
    path = tmp_path / "t.csv"
    path.write_text(text, newline="")
    assert read_table(path).iloc[0].to_dict() == columns


def test_columns_can_be_chosen(tmp_path):
    for suffix in (".csv", ".parquet", ".jsonl"):
        path = write(frame_of(5), tmp_path / f"t{suffix}")
        for wanted, expected in ((["sky", "wind"],) * 2, (["other", "sky"], ["sky"])):
            (frame,) = frames_of(path, wanted)
            assert list(frame.columns) == expected


def test_a_key_of_jsonl_may_be_in_other_units_only(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "\\"b\\""}\n{"b\\u00e9": 2}\n')
    first, second = frames_of(path, ["a", "b", "bé"], rows=1)
    assert first.to_dict("list") == {"a": ['"b"'], "bé": [None]}
    assert second.to_dict("list") == {"a": [None], "bé": [2]}
    (tmp_path / "u.jsonl").write_text('{"b": 1}\n')  # and in other files
    tables = frames_of([path, tmp_path / "u.jsonl"], ["b", "bé", "c"])
    assert [list(table.columns) for table in tables] == [["b", "bé"]] * 2


# JSONL


def test_rows_of_jsonl_are_objects_or_values(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [{"id": 1, "a": "x"}, {"id": 2, "b": [1, 2]}, [{"label": "u", "score": 0.5}], 3]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    found = read_table(path)
    assert list(found.columns) == ["id", "a", "b", "value"]
    assert set(found.dtypes) == {np.dtype(object)}
    assert found["id"].tolist()[:2] == [1, 2]
    assert found["b"][1] == [1, 2]
    assert found["value"][2] == [{"label": "u", "score": 0.5}]
    assert found["value"][3] == 3
    assert found["a"][1] is None
    texts = path.read_text()
    assert [list(row.values()) if isinstance(row, dict) else row for row in
            oracles_files.json_rows(texts)][2:] == lines[2:]  # fmt: skip


def test_a_line_that_is_no_json(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n\n{"a": }\n')
    message = "Row 1 of 't.jsonl' (rows count from 0) cannot be used: line 3 must be JSON, but"
    with pytest.raises(ls.DataError, match=re.escape(message)):
        read_table(path)
    path.write_text('{"a": ' + "[" * 100_000)
    with pytest.raises(ls.DataError, match=re.escape("Row 0 of 't.jsonl'")):
        read_table(path)


@pytest.mark.parametrize("blank", ["", " ", "\t", " \t \r"])
def test_blank_lines_of_jsonl_are_no_rows(tmp_path, blank):
    path = tmp_path / "t.jsonl"
    rows = [f'{{"a": {i}}}' for i in range(7)]
    path.write_text(f"{blank}\n" + f"\n{blank}\n  ".join(rows) + f"\n{blank}")
    assert read_table(path)["a"].tolist() == list(range(7))
    chunks = chunks_of(path, rows=2)
    assert [chunk.n_rows for chunk in chunks] == [2, 2, 2, 1]
    assert chunks[-1].read()[0].index.tolist() == [6]
    path.write_text(f"1\n{blank}\n{blank}\n2\nx\n")
    with pytest.raises(ls.DataError, match="line 5 must be JSON"):
        read_table(path)


def test_a_folder_holds_files_and_folders_only(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "_notes").mkdir()
    (tmp_path / "_notes" / "b.csv").write_text("y\n1\n")
    assert len(read_table(tmp_path)) == 1
    for make in (
        lambda path: path.symlink_to(tmp_path / "_notes"),
        lambda path: path.symlink_to("nothing"),
        lambda path: os.mkfifo(path),
    ):
        path = tmp_path / "b.csv"
        make(path)
        with pytest.raises(ls.DataError, match=r"'b\.csv' is a"):
            list_files(tmp_path)
        path.unlink()


def test_subfolders_and_what_their_names_say(tmp_path):
    for year, place in [("2024", "a%20b"), ("2023", "__HIVE_DEFAULT_PARTITION__")]:
        folder = tmp_path / f"year={year}" / f"place={place}"
        folder.mkdir(parents=True)
        (folder / "t.csv").write_text(f"x\n{year}-1\n{year}-2\n")
    expected = {
        "x": ["2023-1", "2023-2", "2024-1", "2024-2"],
        "year": ["2023", "2023", "2024", "2024"],
        "place": [None, None, "a b", "a b"],
    }
    for inputs in (tmp_path, tmp_path / "**" / "*.csv", tmp_path / "year=*"):
        found = read_table(inputs)
        assert found.astype(object).where(found.notna(), None).to_dict("list") == expected
    assert list(frames_of(tmp_path, ["year"])[-1].columns) == ["year"]
    (tmp_path / "t.csv").write_text("x\n0\n")
    with pytest.raises(ls.DataError, match=r"'year' is .*the name of a folder in "):
        list_files(tmp_path)
    with pytest.raises(ls.DataError, match="there is none"):
        list_files(tmp_path / "*.tsv")


def compress(content, suffix):
    if suffix == ".zst":
        return pa.compress(content, codec="zstd", asbytes=True)
    return (gzip if suffix == ".gz" else bz2).compress(content)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_compressed_text(tmp_path, name, suffix):
    frame = frame_of(20)
    plain = write(frame, tmp_path / name)
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(compress(plain.read_bytes(), suffix))
    found = pd.concat(frames_of(path, rows=7))
    pd.testing.assert_frame_equal(found, pd.concat(frames_of(plain, rows=7)))
    assert frames_of(path, ["wind"])[0]["wind"].tolist() == found["wind"].tolist()
    path.write_bytes(plain.read_bytes())
    with pytest.raises(ls.DataError, match="not compressed as its name says"):
        chunks_of(path)
    path.write_bytes(compress(plain.read_bytes(), suffix)[:-9])
    with pytest.raises(ls.DataError, match="is damaged, cut off"):
        chunks_of(path)


def test_addresses_are_read_by_fsspec():
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.pipe({"/data/b.csv": b"x\n2\n", "/data/a.csv.gz": gzip.compress(b"x\n1\n")})
    for address in ("memory://data", "memory://data/*.csv*"):
        assert [file.path for file in list_files(address)] == [
            "memory://data/a.csv.gz",
            "memory://data/b.csv",
        ]
        assert read_table(address)["x"].tolist() == ["1", "2"]
    store.pipe({"/data/b.csv": b"x\n3\n4\n"})
    assert read_table("memory://data/b.csv")["x"].tolist() == ["3", "4"]
    with pytest.raises(ls.DataError, match="memory"):
        list_files("memory://other.csv")
    with pytest.raises(ls.InputError, match="address"):
        list_files("nothing://x.csv")


BAD_TEXT = {
    ".csv": (b"t,n\n\xc3\xa9,1\ncaf\xe9,2\n\xe6\x97\xa5,3\n", 3),
    ".jsonl": (b'{"t": "\xc3\xa9"}\n{"t": "caf\xe9"}\n{"t": "\xe6\x97\xa5"}\n', 2),
}


@pytest.mark.parametrize("suffix", BAD_TEXT)
def test_a_row_that_is_not_utf_8_is_a_bad_row_and_changes_no_other(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    content, line = BAD_TEXT[suffix]
    path.write_bytes(content)
    (chunk,) = chunks_of(path)
    frame, reasons = chunk.read()
    bad = files.name_lines(chunk.file, reasons)
    assert (frame["t"].tolist(), frame.index.tolist()) == (["é", "日"], [0, 2])
    assert re.match(f"line {line} .*must be UTF-8, but it has the byte 0xe9; .*`encoding`", bad[1])
    if suffix == ".csv":  # only columns that are read
        assert frames_of(path, ["n"])[0]["n"].tolist() == ["1", "2", "3"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".csv.gz"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "shift_jis"])
def test_an_encoding_that_is_named(tmp_path, suffix, encoding):
    text = "日本" if encoding == "shift_jis" else "é"
    path = tmp_path / f"t{suffix}"
    body = f"{text}\nü {text}\n" if ".csv" in suffix else f'{{"{text}": "ü {text}"}}\n'
    content = body.replace("ü ", "" if encoding == "shift_jis" else "ü ").encode(encoding)
    path.write_bytes(gzip.compress(content) if ".gz" in suffix else content)
    found = read_table(path, text=TextFormat(encoding=encoding))[text].tolist()
    assert [value.removeprefix("ü ") for value in found] == [text]


@pytest.mark.parametrize("encoding", ["klingon", "hex", "", 3])
def test_no_encoding(encoding):
    with pytest.raises(ls.InputError, match="`encoding` must be an encoding of text"):
        TextFormat(encoding=encoding)


def test_a_header_that_is_not_utf_8(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"caf\xe9\n1\n")
    with pytest.raises(ls.DataError, match=r"'t\.csv' cannot be read: the header must be UTF-8"):
        read_table(tmp_path / "t.csv")


def test_files_of_a_table_may_differ_in_what_is_not_needed(tmp_path):
    """Numbers of several types are one column; others than the needed columns do not count."""
    tables = [
        {"n": pa.array([1], pa.int64()), "t": ["a"], "more": ["x"]},
        {"t": pa.array(["b"]).dictionary_encode(), "n": pa.array([0.5], pa.float32())},
        {"n": pa.nulls(1), "t": pa.array(["c"], pa.large_string()), "more": [1]},
    ]
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    found = read_table(tmp_path, ["n", "t"])
    assert (found["t"].tolist(), found["n"].tolist()[:2]) == (list("abc"), [1, 0.5])
    assert np.isnan(read_numbers(found["n"])[0][2])
    with pytest.raises(ls.DataError, match=r"'more' is string in .* and missing in"):
        read_table(tmp_path)
    pq.write_table(pa.table({"n": ["1"], "t": ["d"]}), tmp_path / "3.parquet")
    with pytest.raises(ls.DataError, match=r"'n' is int64 in .* and string in"):
        read_table(tmp_path, ["n", "t"])


def test_arrays_of_another_byte_order(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[1.5, 2], [3, 4]], dtype=">f8"))
    found = read_table(tmp_path / "t.npy")
    assert found.to_numpy().tolist() == [[1.5, 2], [3, 4]]
    assert {dtype.str for dtype in found.dtypes} == {np.dtype(float).str}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_names_of_files_that_are_not_utf_8(tmp_path, suffix):
    path = tmp_path / os.fsdecode(b"t\xff" + suffix.encode())
    written = write(frame_of(3), tmp_path / f"t{suffix}")
    written.rename(path)
    assert len(read_table(path)) == 3


# Parquet


def test_types_of_parquet_do_not_depend_on_the_rows(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {
            "i": pa.array([1, None, 3], pa.int16()),
            "u": pa.array([1, None, 3], pa.uint32()),
            "b": pa.array([True, None, False]),
            "f": pa.array([0.5, None, 1.0]),
            "c": pa.array(["x", "y", None]).dictionary_encode(),
            "l": pa.array([["x"], [], ["y", "z"]]),
        }
    )
    pq.write_table(table, path)
    dtypes = {tuple(map(str, frame.dtypes)) for frame in frames_of(path, rows=1)}
    assert dtypes == {("Int16", "UInt32", "boolean", "float64", "str", "object")}
    assert read_table(path)["l"].map(list).tolist() == [["x"], [], ["y", "z"]]


@pytest.mark.parametrize("group", [10, 6_000])
def test_chunks_do_not_depend_on_row_groups(tmp_path, group):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.arange(10_000)}).to_parquet(path, row_group_size=group)
    frames = frames_of(path, rows=700)
    assert [len(frame) for frame in frames] == [n for _, n in oracles_files.cut(10_000, 700)]
    assert pd.concat(frames)["x"].tolist() == list(range(10_000))


def test_an_index_without_a_name_is_no_column(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1, 2]}, index=[5, 7]).to_parquet(path)
    assert list(read_table(path).columns) == ["x"]
    pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 7], name="id")).to_parquet(path)
    assert sorted(read_table(path).columns) == ["id", "x"]


def test_chunks_have_few_bytes_of_the_columns_that_are_read(tmp_path):
    texts = [f"{i:01000d}" for i in range(9000)]
    pq.write_table(pa.table({"x": np.zeros(9000), "t": texts}), tmp_path / "t.parquet")
    with mock.patch.multiple(files, CHUNK_BYTES=100_000):  # a few bytes stand for all the zeros
        assert len(chunks_of(tmp_path / "t.parquet", ["x"])) == 5
        assert len(chunks_of(tmp_path / "t.parquet", ["t"])) > 90


def test_a_large_row_group_is_never_in_memory_as_a_whole(tmp_path):
    n_rows = 1_000_000
    values = np.random.default_rng(0).normal(size=n_rows)
    pq.write_table(
        pa.table({"x": values, "y": values}), tmp_path / "t.parquet", row_group_size=n_rows
    )
    before, seen = pa.total_allocated_bytes(), 0
    (file,) = list_files(tmp_path / "t.parquet")
    for chunk in read_chunks(file, ["x", "y"]):
        seen += len(chunk.read()[0])
        assert pa.total_allocated_bytes() - before < values.nbytes
    assert seen == n_rows


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 3)])
def test_arrays(tmp_path, order, shape):
    array = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    path = tmp_path / "t.npy"
    np.save(path, array)
    parts = frames_of(path, rows=2)
    assert [len(part) for part in parts] == [2, 2, 1]
    if array.ndim == 2:
        assert list(parts[0].columns) == [0, 1, 2]
        np.testing.assert_array_equal(np.concatenate([part.to_numpy() for part in parts]), array)
    else:
        values = [value for part in parts for value in part["value"]]
        np.testing.assert_array_equal(np.array(values), array)


# Sparse matrices


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices(tmp_path, layout, make):
    dense = np.array([[0, 0.5, 0, 1], [0, 0, 0, 0], [0.25, 0, 0, 0]])
    path = tmp_path / "t.npz"
    sparse.save_npz(path, make(dense).asformat(layout))
    parts = frames_of(path, rows=2)
    assert [len(part) for part in parts] == [2, 1]
    column = pd.concat([part["value"] for part in parts])
    for rows in (slice(None), slice(1, 3), [2, 0], [1]):
        found = stack_rows(column.iloc[rows])
        np.testing.assert_array_equal(found.toarray(), dense[rows])
        assert (found.dtype, found.has_canonical_format) == (np.float64, True)
    assert stack_rows(pd.Series([[1], [2]])) is None
    assert len(column.iloc[1]) == 0


def test_sparse_matrices_of_a_folder(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array([[0.5, 0]]))
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_array([[0, 1.0]]))
    assert stack_rows(read_table(tmp_path)["value"]).toarray().tolist() == [[0.5, 0], [0, 1]]
    sparse.save_npz(tmp_path / "c.npz", sparse.csr_array([[0, 1.0, 0]]))
    with pytest.raises(ls.DataError, match="lists"):
        list_files(tmp_path)
    np.savez(tmp_path / "c.npz", np.zeros((1, 2)))
    with pytest.raises(ls.DataError, match=r"'c.npz' must be a sparse matrix that"):
        list_files(tmp_path)


def save_parts(path, **changes):
    parts = {"format": b"csr", "shape": [2, 3], "data": [0.5, 1.0]}
    parts |= {"indices": [0, 2], "indptr": [0, 1, 2]}
    np.savez(path, **(parts | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 3]}, "must be a sparse matrix that .* cannot be read"),
        ({"indices": [0, -1]}, "cannot be read"),
        ({"indptr": [0, 1, 9]}, "cannot be read"),
        ({"indptr": [0, 2]}, "cannot be read"),
        ({"shape": [2]}, "cannot be read"),
        ({"format": b"odd"}, "cannot be read"),
        ({"data": ["a", "b"]}, "cannot be read|must hold numbers, got"),
        ({"data": [0.5, 1j]}, "The matrix in 't.npz' must hold numbers, got complex128"),
        (
            {"indices": [2, 2], "indptr": [0, 0, 2]},
            "list a column once, some list one twice. Save the matrix after",
        ),
        ({"shape": [2, 10**12]}, "must have at most 10000000 columns, it has 1000000000000"),
        (
            {"shape": [10**12, 3], "format": b"coo", "row": [0, 1], "col": [0, 1]},
            "Save its rows in",
        ),
    ],
)
def test_damaged_sparse_matrices(tmp_path, changes, message):
    with pytest.raises(ls.LabelsureError, match=message):
        chunks_of(save_parts(tmp_path / "t.npz", **changes))
    whole = save_parts(tmp_path / "t.npz")
    (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(ls.DataError, match="cannot be read"):
        chunks_of(tmp_path / "cut.npz")


# Folders and several paths


def test_a_folder_is_one_table_in_the_order_of_names(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{name},1\n{name},2\n")
    (tmp_path / "c.csv").write_text("y,x\n1,c\n2,c\n")  # another order of columns
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden").touch()
    chunks = chunks_of(tmp_path, rows=1)
    assert [(chunk.number, chunk.first_row) for chunk in chunks] == [(0, 0), (1, 1)] * 3
    assert read_table(tmp_path)["x"].tolist() == ["a", "a", "b", "b", "c", "c"]
    paths = [tmp_path / "c.csv", str(tmp_path / "a.csv")]
    assert read_table(paths)["x"].tolist() == ["c", "c", "a", "a"]


def save(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    elif isinstance(content, dict):
        pd.DataFrame(content).to_parquet(path)
    else:
        path.write_text(content)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.csv": "x\n1\n", "b.csv": "z\n1\n"},
            "All files of a table must have the same columns, but 'x' is text in 'a.csv' and "
            "missing in 'b.csv'. Make them alike",
        ),
        (
            {"a.parquet": {"x": [1]}, "b.parquet": {"x": ["1"]}},
            "but 'x' is int64 in 'a.parquet' and large_string in 'b.parquet'",
        ),
        (
            {"a.npy": np.zeros((2, 3)), "b.npy": np.zeros((2, 4))},
            "must have the same columns, but 'the number of columns' is 3 in 'a.npy' and 4 in "
            "'b.npy'.",
        ),
        (
            {"a.csv": "x\n", "b.tsv": "x\n"},
            "All files must have one format, got 'a.csv' and 'b.tsv'. Read them one after",
        ),
        ({}, "must name files with a table, there is none"),
        (
            {"a.xlsx": "x"},
            "The name of a table must end in one of .csv, .tsv, .parquet, .pq, .feather, .jsonl, "
            ".ndjson, .npy, .npz, also before .gz, .bz2 or .zst, got 'a.xlsx'. Save it in one",
        ),
        ({"a.csv": "x,x\n1,2\n"}, "The columns of 'a.csv' must have names of their own, 'x' is"),
        ({"a.csv": ""}, "The file 'a.csv' must begin with a header line, it is empty."),
        ({"a.csv": "x,y\n"}, "The table must have at least one row, there is none in 'a.csv'."),
        (
            {"a.csv": "x,y\n1,2\n1,2,3\n"},
            "a.csv' (rows count from 0) cannot be used: line 3 must have 2 values like "
            "the header, it has 3.",
        ),
        ({"a.csv": "x,y\n1\n"}, "a.csv' (rows count from 0) cannot be used: line 2 must"),
        (
            {"a.csv": 'x,y\n1,2\n3,"4\n5,6\n'},
            "Quotes in 'a.csv' must be closed, the file ends inside of them. Fix row 1 (rows count "
            "from 0), which has a single quotation mark",
        ),
        ({"a.csv": "x\n1\n".encode("utf-16")}, "'a.csv' must be text in UTF-8, it begins like UTF"),
        ({"a.csv": gzip.compress(b"x\n1\n")}, "let its name end in .gz or .zst."),
        ({"a.parquet": b"PAR1"}, "The file 'a.parquet' must be Parquet as its name says, but"),
        ({"a.npy": b"no"}, "The file 'a.npy' must be an array that `numpy.save` wrote, but"),
        ({"a.npz": b"no"}, "The file 'a.npz' must be a sparse matrix that `scipy.sparse"),
        (
            {"a.npy": np.array(["x"])},
            "The array in 'a.npy' must hold numbers in one, two or three axes, the first of which "
            "counts the rows; got <U1 with shape (1,).",
        ),
        ({"a.npy": np.zeros((1, 1, 1, 1))}, "got float64 with shape (1, 1, 1, 1)."),
        ({"a.npy": np.zeros((0, 3))}, "The table must have at least one row, there is none in"),
    ],
)
def test_what_cannot_be_read(tmp_path, files, message):
    for name, content in files.items():
        save(tmp_path / name, content)
    with pytest.raises(ls.InputError, match=re.escape(message)):
        read_table(tmp_path)


def test_paths_that_lead_nowhere(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    with pytest.raises(ls.DataError, match=re.escape("There is no file")):
        list_files(tmp_path / "tt.csv")
    with pytest.raises(ls.InputError, match=r"Each file must be given once, 't\.csv' is there twi"):
        list_files([path, tmp_path])
    with pytest.raises(ls.InputError, match="`inputs`"):
        list_files([])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_changes_while_it_is_read(tmp_path, suffix):
    path = write(frame_of(30), tmp_path / f"t{suffix}")
    (file,) = list_files(path)
    with mock.patch.object(files, "CHUNK_ROWS", 7):
        chunks = read_chunks(file)
        next(chunks)
        write(frame_of(3), path)
        with pytest.raises(ls.DataError, match=f"'t{suffix}' must stay as it is while it is read"):
            list(chunks)
    path.unlink()
    with pytest.raises(ls.DataError, match="There is no file"):
        list(read_chunks(file))


def test_too_many_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1,2,3\n")
    message = "The table 't.csv' must have at most 2 columns, it has 3. Leave out those"
    with (
        mock.patch("labelsure._runtime.limits.MAX_COLUMNS", 2),
        pytest.raises(ls.TooLargeError, match=message),
    ):
        chunks_of(path)
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_array(np.ones((5, 5))))
    with (
        mock.patch("labelsure._runtime.limits.MAX_ARRAY_BYTES", 100),
        pytest.raises(ls.TooLargeError, match=r"which are read as a whole, .*Save its rows"),
    ):
        chunks_of(tmp_path / "t.npz")

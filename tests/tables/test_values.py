"""Strict values: one table means the same in every format and type, or its row is refused."""

import json
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scored_files import make_model

from labelsure.errors import RowsError
from labelsure.tables.files import read_table
from labelsure.tables.inputs import ColumnRole, TableColumns
from labelsure.tables.scoring import score_files, score_frame
from labelsure.tables.values import spell, spell_number

TEXTS = ["café au lait", "grüne Wiese", "日本 語 の", "plain old words"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_bytes_are_text_in_utf_8(tmp_path, kind, suffix):
    content = [text.encode() for text in TEXTS]
    table = pa.table({"t": pa.array(content, kind), "l": [[one] for one in content]})
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    found = read_table(path)
    assert found["t"].tolist() == TEXTS
    assert [list(cell) for cell in found["l"]] == [[text] for text in TEXTS]
    spoiled = pa.table({"t": pa.array([b"x", b"caf\xe9"], kind)})
    pq.write_table(spoiled, tmp_path / "bad.parquet")
    message = "Row 1 of 'bad.parquet' (rows count from 0) cannot be used: 't' must be UTF-8, but it"
    with pytest.raises(RowsError, match=re.escape(message)):
        read_table(tmp_path / "bad.parquet")


@pytest.mark.parametrize("role", ["text", "category"])
@pytest.mark.parametrize("value", [["a"], ("a",), {"a": 1}, np.array(["a"]), b"caf\xe9"])
def test_containers_are_no_text(role, value):
    frame = pd.DataFrame({"t": ["one two", "three four", "one four"] * 8})
    columns = TableColumns([ColumnRole.of("t", role)]).fit(frame)
    odd = pd.DataFrame({"t": pd.Series(["one two", value], dtype=object)})
    with pytest.raises(RowsError) as caught:
        columns.convert(odd)
    assert set(caught.value.reasons) == {1}


@pytest.mark.parametrize("line", ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}'])
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson"])
def test_a_key_is_in_an_object_once(tmp_path, line, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text(f'{{"a": 1}}\n{line}\n')
    with pytest.raises(RowsError, match=r"line 2 must be JSON, .* key '[ab]' is there twice"):
        read_table(path)


NUMBERS = ["0.1", "10", "2.5"]
TYPED = {
    "float64": np.array([0.1, 10, 2.5]),
    "float32": np.array([0.1, 10, 2.5], np.float32),
    "decimal": np.array([Decimal("0.10"), Decimal("10.00"), Decimal("2.5")], dtype=object),
    "text": np.array(NUMBERS, dtype=object),
    "long text": np.array(["0.10", "10.00", "2.500"], dtype=object),
    "mixed": np.array([0.1, 10, "2.5"], dtype=object),
}


TYPES = ("float64", "float32", "decimal")


@pytest.mark.filterwarnings("ignore::labelsure.errors.UnseenValuesWarning")
@pytest.mark.parametrize("seen", TYPED)
@pytest.mark.parametrize("given", TYPED)
def test_number_like_categories_have_one_spelling(seen, given):
    """That of the type which training saw; text that is text in both is compared as such."""
    frame = pd.DataFrame({"c": np.tile(TYPED[seen], 8)})
    columns = TableColumns([ColumnRole.of("c", "category")]).fit(frame)
    found = columns.transform(pd.DataFrame({"c": TYPED[given]}))
    spelled = [*NUMBERS[:2], "2.5"] if seen == "mixed" else list(TYPED[seen])
    expected = [
        seen in TYPES or not isinstance(value, str) or value == text
        for value, text in zip(TYPED[given], spelled, strict=True)
    ]
    assert (found.sum(axis=1) == 1).tolist() == expected
    np.testing.assert_array_equal(found[expected], columns.transform(frame[:3])[expected])


def test_spellings():
    assert [spell(value) for value in (True, np.int64(2**62), 1e300, np.float32(0.1), "01 ")] == [
        "True", str(2**62), "1e+300", "0.1", "01",
    ]  # fmt: skip
    assert spell(pd.Timestamp("2024-01-05")) == "2024-01-05"
    assert spell(pd.Timestamp("2024-01-05 10:00")) == "2024-01-05 10:00:00"
    assert [spell_number(text) for text in ("007", "Infinity", "")] == ["7", "Infinity", ""]


def test_frames_with_bytes():
    table = pa.table({name: np.zeros(2) for name in "abcd"} | {"id": [b"x", b"caf\xe9"]})
    with pytest.raises(RowsError, match="'id' must be UTF-8"):
        score_frame(make_model(), table, id_column="id")
    assert score_frame(make_model(), table[:1], id_column="id")["id"].to_pylist() == ["x"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_slice_with_rows_that_are_bad_in_two_ways(tmp_path, suffix):
    make_model().save(tmp_path / "model.labelsure")
    if suffix == ".csv":
        text = "id,a,b,c,d\n1,2,3,1,1\n2,3\n3,1,1,1,1\n4,1,1,1,1\n5,zz,1,1,1\n"
    else:
        rows = [dict(zip("abcd", row, strict=True)) for row in np.ones((5, 4)).tolist()]
        lines = [json.dumps(row) for row in rows]
        lines[1], lines[4] = "{", lines[4].replace("1.0", '"zz"', 1)
        text = "\n".join(lines)
    (tmp_path / f"t{suffix}").write_text(text)
    run = score_files(
        tmp_path / "model.labelsure",
        tmp_path / f"t{suffix}",
        tmp_path / "out.jsonl",
        bad_rows=tmp_path / "bad.jsonl",
        n_jobs=1,
    )
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert (run.n_rows, run.n_bad, [row["row"] for row in bad]) == (3, 2, [1, 4])
    assert [row["line"] for row in bad] == ([3, 6] if suffix == ".csv" else [2, 5])


def test_other_files_of_a_folder_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "README.md").write_text("# x")
    with pytest.warns(UserWarning, match=r"no tables were left out: 'README\.md'"):
        assert len(read_table(tmp_path)) == 1


TRUTHS = {
    "bool": np.array([True, False]),
    "int": np.array([1, 0]),
    "float": np.array([1.0, 0.0]),
    "object": np.array([True, False], dtype=object),
    "words": np.array(["true", "False"], dtype=object),
    "digits": np.array(["1", "0"], dtype=object),
    "float text": np.array(["1.0", "0.0"], dtype=object),
}


@pytest.mark.parametrize("seen", TRUTHS)
@pytest.mark.parametrize("given", TRUTHS)
def test_truth_values_have_one_spelling(seen, given):
    frame = pd.DataFrame({"c": np.tile(TRUTHS[seen], 8)})
    columns = TableColumns([ColumnRole.of("c", "category")]).fit(frame)
    found = columns.transform(pd.DataFrame({"c": TRUTHS[given]}))
    np.testing.assert_array_equal(found, columns.transform(frame[:2]))
    assert (found.sum(axis=1) == 1).all()

"""One table in every format, type and encoding: the same predictions and estimates, or refused."""

import bz2
import gzip
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from scipy import sparse

import labelsure as ls
from labelsure.tables.estimates import monitor_files, report_files, sum_files
from labelsure.tables.scoring import score_files
from labelsure.tables.training import calibrate_model, train_model

N_ROWS = 240
WORDS = ["café trop froid", "grüne Wiese im Regen", "plain old words here", "façade déjà vue"]
IDS = [2**53 + 1 + i for i in range(N_ROWS)]


def make_columns():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, N_ROWS)
    odd = rng.random((2, N_ROWS)) < 0.2
    return {
        "id": IDS,
        "text": [WORDS[kind] for kind in kinds],
        "town": [["Köln", "Orléans", "Bonn"][k] for k in rng.integers(0, 3, N_ROWS)],
        "size": [["0.1", "10", "2.5"][k] for k in rng.integers(0, 3, N_ROWS)],
        "price": rng.integers(0, 400, N_ROWS) / 4,
        "day": [f"2024-01-{1 + i % 28:02d}" for i in range(N_ROWS)],
        "late": (kinds % 2 ^ odd[0]).astype(int),
        "paid": ((kinds > 1) ^ odd[1]).astype(int),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    frame = pd.DataFrame(make_columns())
    frame.to_parquet(folder / "train.parquet")
    model = train_model(
        folder / "train.parquet", labels="late,paid", id_column="id", classifier="br", cv=3
    )
    model.save(folder / "m.labelsure")
    held_out = train_model(
        folder / "train.parquet", labels="late,paid", id_column="id", classifier="br", cv=0.4
    )
    held_out.save(folder / "held_out.labelsure")
    return folder


def as_arrow(text, price, day):
    columns = make_columns()
    arrays = {name: pa.array(values) for name, values in columns.items()}
    for name in ("text", "town", "size"):
        values = columns[name]
        if text == pa.binary():
            values = [value.encode() for value in values]
        arrays[name] = pa.array(values, text)
    arrays["price"] = pa.array([price(value) for value in columns["price"]])
    if day is not None:
        arrays["day"] = pa.array(pd.to_datetime(columns["day"])).cast(day)
    return pa.table(arrays)


TEXTS = {
    "string": pa.string(),
    "large": pa.large_string(),
    "binary": pa.binary(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}
PRICES = {"double": float, "float": np.float32, "decimal": lambda value: Decimal(str(value))}


def write(folder, name):
    kind, _, of = name.partition(" ")
    frame = pd.DataFrame(make_columns())
    path = folder / f"{name.replace(' ', '_')}.{kind}"
    if kind == "csv":
        path.write_text(frame.to_csv(index=False), encoding=of)
    elif kind == "jsonl":
        lines = frame.to_dict("records")
        path.write_text(
            "".join(json.dumps(line, ensure_ascii=of == "ascii") + "\n" for line in lines),
            encoding="utf-8" if of == "ascii" else of,
        )
    else:
        text, price = of.split(" ")
        table = as_arrow(TEXTS[text], PRICES[price], pa.date32() if price == "float" else None)
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    return path


ENCODED = ["utf-8", "latin-1", "cp1252", "utf-16"]
NAMES = [
    *(f"{kind} {encoding}" for kind in ("csv", "jsonl") for encoding in ENCODED),
    "jsonl ascii",
    *(f"parquet {text} {price}" for text in TEXTS for price in PRICES),
    *(f"feather {text} double" for text in TEXTS),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_in_every_form(folder, name):
    path = write(folder, name)
    settings = {"n_jobs": 1}
    if name.split(" ")[1] in ENCODED[1:]:
        settings["encoding"] = name.split(" ")[1]
    tables = []
    for source, given in ((folder / "train.parquet", {"n_jobs": 1}), (path, settings)):
        out = folder / f"{source.name}.out.parquet"
        score_files(folder / "m.labelsure", source, out, overwrite=True, **given)
        tables.append(pd.read_parquet(out).drop(columns=["file"]))
    tables[1]["id"] = tables[1]["id"].astype("int64")
    pd.testing.assert_frame_equal(tables[1], tables[0], rtol=1e-12)
    assert tables[0]["estimated_accuracy"].nunique() > 10
    assert tables[1]["id"].tolist() == IDS
    found = sum_files(folder / "m.labelsure", path, **settings).estimate()
    whole = sum_files(folder / "m.labelsure", folder / "train.parquet", n_jobs=1).estimate()
    assert found.mean == pytest.approx(whole.mean, abs=1e-12)


def test_training_on_a_table_in_another_form(folder):
    path = write(folder, "csv utf-16")
    settings = {"labels": "late,paid", "id_column": "id", "classifier": "br", "cv": 3}
    model = train_model(path, encoding="utf-16", **settings)
    model.save(folder / "again.labelsure")
    tables = []
    for name in ("m", "again"):
        out = folder / f"{name}.parquet"
        score_files(folder / f"{name}.labelsure", folder / "train.parquet", out, n_jobs=1)
        tables.append(pd.read_parquet(out))
    pd.testing.assert_frame_equal(*tables, rtol=1e-12)


@pytest.mark.parametrize("name", ["csv latin-1", "parquet binary float"])
def test_monitor_and_report(folder, name):
    path, model = write(folder, name), folder / "held_out.labelsure"
    text = {"encoding": "latin-1"} if name == "csv latin-1" else {}
    train = folder / "train.parquet"
    found, whole = (
        monitor_files(model, source, time="day", every="W-MON", **given)
        for source, given in ((path, text), (train, {}))
    )
    assert len(found.to_frame()) == 4
    pd.testing.assert_frame_equal(found.to_frame(), whole.to_frame(), rtol=1e-12)
    pages = [
        report_files(model, source, id_column="id", title="T", n_jobs=1, **given).html
        for source, given in ((path, text), (train, {}))
    ]
    assert pages[0].replace(path.name, train.name) == pages[1]


CAFE = "caf\xe9"
REFUSED = {
    "latin-1.csv": (f"id,text,town,size,price,day\n1,{CAFE},Bonn,10,1,2024-01-01\n", "UTF-8"),
    "utf-16.csv": ("id,text,town,size,price,day\n1,a,Bonn,10,1,2024-01-01\n", "UTF-16"),
    "latin-1.jsonl": (f'{{"text": "{CAFE}", "town": "Bonn", "size": 1, "price": 1}}\n', "UTF-8"),
    "twice.jsonl": ('{"text": "a", "town": "b", "size": 1, "size": 2, "price": 1}\n', "twice"),
    "twice.csv": ("text,town,size,size,price,day\na,b,1,2,1,2024-01-01\n", "twice"),
    "quotes.csv": ('text,town,size,price,day\n"a,b,1,2,2024-01-01\n', "Quotes"),
    "bytes.parquet": ({"text": [b"caf\xe9"]}, "UTF-8"),
    "list.parquet": ({"text": [["a", "b"]]}, "'text'"),
    "struct.feather": ({"town": [{"a": 1}]}, "'town'"),
    "list.jsonl": ('{"text": ["a"], "town": "b", "size": 1, "price": 1}\n', "text"),
    "number.parquet": ({"price": ["1,5"]}, "'price'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_one_meaning_is_refused(folder, name):
    content, message = REFUSED[name]
    path = folder / name
    if isinstance(content, str):
        encoding = "latin-1" if name.startswith("latin") else "utf-16"
        path.write_text(content, encoding=encoding if CAFE in content or "16" in name else "utf-8")
    else:
        plain = {"text": ["a"], "town": ["b"], "size": ["10"], "price": [1.0]}
        day = {"day": ["2024-01-01"]}
        table = pa.table({**plain, **day, **content})
        (pq.write_table if path.suffix == ".parquet" else feather.write_feather)(table, path)
    model = folder / "m.labelsure"
    for run in (
        lambda: score_files(model, path, folder / f"{name}.out.csv", n_jobs=1),
        lambda: sum_files(model, path, n_jobs=1),
        lambda: monitor_files(folder / "held_out.labelsure", path),
        lambda: report_files(model, path, n_jobs=1),
    ):
        with pytest.raises(ls.LabelsureError, match=message):
            run()
    assert not (folder / f"{name}.out.csv").exists()


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Probabilities of another system, as an array and as a sparse matrix, and models of both."""
    folder = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(1)
    probabilities = rng.integers(0, 5, (N_ROWS, 4)) / 4
    truth = (rng.random((N_ROWS, 4)) < probabilities).astype(int)
    np.save(folder / "train.npy", probabilities)
    sparse.save_npz(folder / "train.npz", sparse.csr_array(probabilities))
    np.save(folder / "truth.npy", truth)
    sparse.save_npz(folder / "truth.npz", sparse.csr_array(truth))
    for suffix in (".npy", ".npz"):
        model = calibrate_model(folder / f"train{suffix}", folder / f"truth{suffix}")
        model.save(folder / f"{suffix[1:]}.labelsure")
    return folder, probabilities


ARRAYS = {
    "double": lambda rows: rows,
    "float": lambda rows: rows.astype(np.float32),
    "big-endian": lambda rows: rows.astype(">f8"),
    "half": lambda rows: rows.astype(np.float16),
    "columns first": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo float": lambda rows: sparse.coo_array(rows.astype(np.float32)),
}


def save_array(path, rows):
    if sparse.issparse(rows):
        sparse.save_npz(path, rows)
    else:
        np.save(path, rows)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_in_every_form(arrays, name):
    folder, probabilities = arrays
    rows = ARRAYS[name](probabilities)
    suffix = "npz" if sparse.issparse(rows) else "npy"
    model = folder / f"{suffix}.labelsure"
    save_array(path := folder / f"{name}.{suffix}", rows)
    tables, estimates = [], []
    for source in (path, folder / f"train.{suffix}"):
        out = folder / f"{source.name}.out.parquet"
        score_files(model, source, out, n_jobs=1, overwrite=True)
        tables.append(pd.read_parquet(out).drop(columns=["file"]))
        estimates.append(sum_files(model, source, n_jobs=1).estimate().mean)
    pd.testing.assert_frame_equal(*tables, rtol=1e-12)
    assert tables[0]["estimated_accuracy"].nunique() > 10
    assert estimates[0] == pytest.approx(estimates[1], abs=1e-12)


ODD_ARRAYS = {
    "complex.npy": (np.ones((2, 4), complex), "must hold numbers"),
    "text.npy": (np.full((2, 4), "1"), "must hold numbers"),
    "narrow.npy": (np.ones((2, 3)), "4 columns"),
    "one number.npy": (np.array(1.0), "axes"),
    "narrow.npz": (sparse.csr_array(np.ones((2, 3))), "4 columns"),
    "complex.npz": (sparse.csr_array(np.ones((2, 4), complex)), "must hold numbers"),
}


@pytest.mark.parametrize("name", ODD_ARRAYS)
def test_odd_arrays_are_refused(arrays, name):
    folder, _ = arrays
    rows, message = ODD_ARRAYS[name]
    save_array(folder / name, rows)
    model = folder / f"{name[-3:]}.labelsure"
    with pytest.raises(ls.LabelsureError, match=message):
        score_files(model, folder / name, folder / f"{name}.csv", n_jobs=1)
    with pytest.raises(ls.LabelsureError, match=message):
        sum_files(model, folder / name, n_jobs=1)


ROWS = {"text": WORDS[:3], "town": ["Bonn", "Köln", "Bonn"], "size": ["10", "0.1", "2.5"]}
PLAIN = {"id": ["a", "b", "c"], **ROWS, "price": [1.0, 2.0, 3.0], "day": ["2024-01-01"] * 3}
DAY = pa.array([1, 2, 3], pa.timestamp("s", "Europe/Berlin"))

ODD_COLUMNS = {
    "price decimal256": (pa.array([Decimal(k) for k in "123"], pa.decimal256(40, 3)), {}),
    "price half": (pa.array(np.array([1, 2, 3], np.float16)), {}),
    "price dictionary": (pa.array(["1", "2", "3"]).dictionary_encode(), {}),
    "price view": (pa.array(["1", " 2", "3.0"], pa.string_view()), {}),
    "price infinite": (pa.array([1.0, float("inf"), 3.0]), {1}),
    "price too large": (pa.array(["1", "1e400", "3"]), {1}),
    "price underscore": (pa.array(["1_000", "2", "3"]), {0}),
    "price thousands": (pa.array(["1", "2", "3,000"]), {2}),
    "price duration": (pa.array([1, 2, 3], pa.duration("s")), {0, 1, 2}),
    "price instant": (DAY, {0, 1, 2}),
    "price list": (pa.array([[1.0], None, [2.0]]), {0, 2}),
    "price struct": (pa.array([{"x": 1.0}] * 3), {0, 1, 2}),
    "town list": (pa.array([["Bonn", None], None, ["Köln"]]), {0, 2}),
    "town struct": (pa.array([{"x": 1}, None, None]), {0}),
    "town bytes": (pa.array([b"Bonn", b"K\xf6ln", b"Bonn"]), {1}),
    "text list": (pa.array([None, ["a"], None]), {1}),
    "id whole float": (pa.array([1.0, 2.0, 3.0]), {}, ["1", "2", "3"]),
    "id float": (pa.array([1.0, 2.5, None]), {}, ["1", "2.5", None]),
    "id decimal": (pa.array([Decimal("1.00"), None, Decimal("3.50")]), {}, ["1", None, "3.5"]),
    "id uint64": (pa.array([2**64 - 1, 1, 2], pa.uint64()), {}, [2**64 - 1, 1, 2]),
    "id twice": (pa.array(["x", "x", "y"]), {}, ["x", "x", "y"]),
    "id text": (pa.array(["007", " x", "NA"]), {}, ["007", " x", "NA"]),
    "id day": (pa.array([0, 1, 2], pa.date32()), {}, [f"1970-01-0{k}" for k in (1, 2, 3)]),
    "id bytes": (pa.array([b"x", b"\xff", b"z"]), {1}, ["x", "z"]),
    "id list": (pa.array([["x"], None, ["z"]]), {0, 2}, [None]),
    "id struct": (pa.array([{"x": 1}] * 3), {0, 1, 2}),
}


@pytest.mark.filterwarnings("ignore::labelsure.errors.UnseenValuesWarning")
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize("name", ODD_COLUMNS)
def test_odd_types_are_read_right_or_their_rows_set_aside(folder, tmp_path, name, suffix):
    values, bad, *ids = ODD_COLUMNS[name]
    column = name.partition(" ")[0]
    table = pa.table({**PLAIN, column: values})
    path, out = tmp_path / f"t.{suffix}", tmp_path / "out.parquet"
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)

    def run():
        aside = tmp_path / "bad.jsonl"
        return score_files(folder / "m.labelsure", path, out, bad_rows=aside, n_jobs=1)

    if len(bad) == 3:
        with pytest.raises(ls.LabelsureError, match="none can"):
            run()
        assert {path.name for path in tmp_path.glob("[!.]*")} == {path.name, "bad.jsonl"}
        return
    run()
    found = pq.read_table(out)
    lines = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert {json.loads(line)["row"] for line in lines} == set(bad)
    assert found["row"].to_pylist() == [row for row in range(3) if row not in bad]
    if ids:
        assert found["id"].to_pylist() == ids[0]
    if column == "price" and not bad:
        pq.write_table(pa.table(PLAIN), tmp_path / "plain.parquet")
        score_files(folder / "m.labelsure", tmp_path / "plain.parquet", out, overwrite=True)
        expected = pq.read_table(out)["estimated_accuracy"].to_numpy()
        np.testing.assert_allclose(found["estimated_accuracy"].to_numpy(), expected, rtol=1e-12)


TEXT = "id,text,town,size,price,day\n" + "".join(
    f"{k},{row},Bonn,10,1,2024-01-01\n" for k, row in enumerate(WORDS)
)
BOM = b"\xef\xbb\xbf"
RAW = {
    "marked.csv": (BOM + TEXT.encode(), {}, 4),
    "marked twice.csv": (BOM + TEXT.encode(), {"encoding": "utf-8-sig"}, 4),
    "utf-16 bare.csv": (TEXT.encode("utf-16-le"), {"encoding": "utf-16-le"}, 4),
    "utf-32.csv": (TEXT.encode("utf-32"), {"encoding": "utf-32"}, 4),
    "returns.csv": (TEXT.replace("\n", "\r").encode(), {}, 4),
    "mixed ends.csv": (TEXT.replace("\n", "\r\n", 2).encode(), {}, 4),
    "nul in a value.csv": (TEXT.replace("plain", "pla\0in").encode(), {}, 4),
    "long.csv": (TEXT.replace("plain", "w" * 10**7).encode(), {}, 4),
    "wide.csv": (
        "".join(
            line + "".join(f",{value}{k}" for k in range(5000)) + "\n"
            for line, value in zip(TEXT.splitlines(), "x0000", strict=True)
        ).encode(),
        {},
        4,
    ),
    "marked as another.csv": (BOM + TEXT.encode(), {"encoding": "latin-1"}, "byte order mark"),
    "utf-16 as another.csv": (TEXT.encode("utf-16"), {"encoding": "cp1252"}, "begins like UTF-16"),
    "utf-16 unnamed.csv": (TEXT.encode("utf-16-le"), {}, "NUL"),
    "nul in the header.csv": (TEXT.replace("town", "to\0wn").encode(), {}, "NUL"),
    "nul.csv": (bytes(100), {}, "NUL"),
    "nothing.csv": (b"", {}, "empty"),
    "a line.csv": (b"\n", {}, "empty"),
    "a mark.csv": (BOM, {}, "empty"),
    "a header.csv": (TEXT.splitlines()[0].encode(), {}, "at least one row"),
    "a header.jsonl": (b"", {}, "at least one row"),
    "packed.csv": (gzip.compress(TEXT.encode()), {}, "compressed"),
    "cut.csv.gz": (gzip.compress(TEXT.encode())[:-6], {}, "cut off"),
    "plain.csv.gz": (TEXT.encode(), {}, "not compressed"),
    "nothing.csv.gz": (b"", {}, "empty"),
    "two.csv.gz": (gzip.compress(TEXT[:50].encode()) + gzip.compress(TEXT[50:].encode()), {}, 4),
    "packed.csv.bz2": (bz2.compress(TEXT.encode()), {}, 4),
    "name\nof two lines.csv": (TEXT.encode(), {}, 4),
    "no text.csv": (TEXT.encode(), {"encoding": "rot13"}, "`encoding` must be"),
}


@pytest.mark.parametrize("name", RAW)
def test_odd_files_are_read_right_or_refused(folder, tmp_path, name):
    content, settings, expected = RAW[name]
    path, out = tmp_path / name, tmp_path / "out.parquet"
    path.write_bytes(content)
    if isinstance(expected, str):
        with pytest.raises(ls.LabelsureError, match=expected):
            score_files(folder / "m.labelsure", path, out, n_jobs=1, **settings)
        assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing is left behind
        return
    assert score_files(folder / "m.labelsure", path, out, n_jobs=1, **settings).n_rows == expected
    assert pq.read_table(out)["id"].to_pylist() == ["0", "1", "2", "3"]

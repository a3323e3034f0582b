"""One table in every format, type and encoding: the same predictions and estimates, or refused."""

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

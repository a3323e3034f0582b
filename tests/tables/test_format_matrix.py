"""One table in every format, type and encoding: the same predictions and estimates."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsure.tables.estimates import sum_files
from labelsure.tables.scoring import score_files
from labelsure.tables.training import train_model

N_ROWS = 240
WORDS = ["café trop froid", "grüne Wiese im Regen", "plain old words here", "façade déjà vue"]
IDS = [2**53 + 1 + i for i in range(N_ROWS)]


def make_columns():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, N_ROWS)
    return {
        "id": IDS,
        "text": [WORDS[kind] for kind in kinds],
        "town": [["Köln", "Orléans", "Bonn"][k] for k in rng.integers(0, 3, N_ROWS)],
        "size": [["0.1", "10", "2.5"][k] for k in rng.integers(0, 3, N_ROWS)],
        "price": rng.integers(0, 400, N_ROWS) / 4,
        "day": [f"2024-01-{1 + i % 28:02d}" for i in range(N_ROWS)],
        "late": (kinds % 2).astype(int),
        "paid": (kinds > 1).astype(int),
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
    assert tables[1]["id"].tolist() == IDS
    found = sum_files(folder / "m.labelsure", path, **settings).estimate()
    whole = sum_files(folder / "m.labelsure", folder / "train.parquet", n_jobs=1).estimate()
    assert found.mean == pytest.approx(whole.mean, abs=1e-12)

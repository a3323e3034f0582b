"""Damaged files of a run and of a model are refused, count as absent, or give what was written."""

import contextlib
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure._runtime.runs import PartStore
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import RunFolder, run_study

PLAN = Plan.from_dict(
    {
        **load_plan("quick").to_dict(),
        "classifiers": {"Indep": {"class": "BinaryRelevance"}},
        "datasets": {
            name: {"simulated": {"n_samples": 60, "n_labels": 3, "random_state": seed}}
            for seed, name in enumerate(["a", "b"])
        },
    }
)


def damage(path, generator):
    """Flip a bit, cut off the end, lose, repeat or overwrite a block; return what was there."""
    whole = path.read_bytes()
    content = bytearray(whole)
    start = generator.randrange(len(content))
    stop = start + generator.randrange(1, 64)
    kind = generator.randrange(5)
    if kind == 0:
        content[start] ^= 1 << generator.randrange(8)
    elif kind == 1:
        del content[start:]
    elif kind == 2:
        del content[start:stop]
    elif kind == 3:
        content[start:start] = content[start:stop]
    else:
        content[start:stop] = generator.randbytes(len(content[start:stop]))
    path.write_bytes(bytes(content))
    return whole


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_study(PLAN, tmp_path_factory.mktemp("run"), n_jobs=1)


def test_tables_of_a_run(run):
    generator = random.Random(0)
    folder, path = RunFolder(run.folder), run.folder / "scores.parquet"
    for _ in range(30):
        whole = damage(path, generator)
        with contextlib.suppress(ls.InputError):
            assert isinstance(folder.read_table("scores"), pd.DataFrame)
        path.write_bytes(whole)


def test_parts_with_their_notes(tmp_path):
    generator = random.Random(0)
    store, notes = PartStore(tmp_path), {"seconds": 1.5}
    store.write("a.parquet", pa.table({"x": range(100)}), "k", notes)
    for _ in range(120):
        whole = damage(tmp_path / "a.parquet", generator)
        is_same = (tmp_path / "a.parquet").read_bytes() == whole
        assert store.find("a.parquet", "k") == (notes if is_same else None)
        (tmp_path / "a.parquet").write_bytes(whole)
    assert store.find("a.parquet", "another") is None


def test_plans_and_notes_of_a_run(run):
    generator = random.Random(0)
    folder = RunFolder(run.folder)
    for name in ("plan.toml", "manifest.json", "failures.json"):
        for _ in range(30):
            whole = damage(run.folder / name, generator)
            with contextlib.suppress(ls.InputError):
                folder.read_plan()
            assert isinstance(folder.read_seconds(), float)
            assert isinstance(folder.read_failures(), dict)
            (run.folder / name).write_bytes(whole)


def test_saved_models(tmp_path):
    generator = random.Random(0)
    path = tmp_path / "model.labelsure"
    make_model().save(path)
    X = make_rows(5).drop(columns="id")
    expected = ls.load(path).predict(X)
    refused = 0
    for _ in range(60):
        whole = damage(path, generator)
        try:
            np.testing.assert_array_equal(ls.load(path).predict(X), expected)
        except ls.DataError:
            refused += 1
        path.write_bytes(whole)
    assert refused > 55


def test_a_run_goes_on_whatever_was_damaged(run):
    generator = random.Random(0)
    files = sorted(
        path for path in run.folder.rglob("*") if path.is_file() and path.name != ".lock"
    )
    for path in generator.sample(files, 4):
        damage(path, generator)
    again = run_study(PLAN, run.folder, n_jobs=1)
    pd.testing.assert_frame_equal(again.scores, run.scores, check_exact=True)
    written = pd.read_parquet(run.folder / "scores.parquet")
    pd.testing.assert_frame_equal(written, run.scores, check_exact=True)

"""What would take all memory or time is refused with a sentence, before anything is taken."""

import bz2
import gzip
import io
import os
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure._runtime.processes import count_workers
from labelsure._runtime.storage import read_bytes, read_unpacked
from labelsure.errors import InputError, TooLargeError
from labelsure.study.plan import load_plan
from labelsure.study.run import run_study
from labelsure.tables.datasets import make_labelsets

QUICK = load_plan("quick")


def test_repeats_of_a_plan_that_is_there():
    with pytest.raises(InputError, match="`n_repeats`"):
        QUICK.with_repeats(10**8)


TOO_MANY_JOBS = "`n_jobs` must be at most 1024, got 100000: each is a process"


def test_numbers_of_workers(tmp_path):
    assert [count_workers(n, 3) for n in (None, -1, 1, 3, 4, 1024)] == [None, -1, 1, 3, 3, 3]
    assert count_workers(5, 0) == 1
    for n_jobs in (1025, 100_000):
        with pytest.raises(TooLargeError, match=f"`n_jobs` must be at most 1024, got {n_jobs}"):
            count_workers(n_jobs, 3)
    with pytest.raises(TooLargeError, match=TOO_MANY_JOBS):
        run_study(QUICK, tmp_path / "run", n_jobs=100_000)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("classifier", [ls.BinaryRelevance, ls.EnsembleOfClassifierChains])
def test_workers_of_classifiers(classifier, monkeypatch):
    X, Y = np.arange(8.0).reshape(4, 2), [[0, 1], [1, 0], [1, 1], [0, 0]]
    with pytest.raises(TooLargeError, match=TOO_MANY_JOBS):
        classifier(n_jobs=100_000).fit(X, Y)


def test_workers_of_the_mixture():
    from score_tables import make_scores

    from labelsure.study.mixture import mixture_replicates

    with pytest.raises(TooLargeError, match=TOO_MANY_JOBS):
        mixture_replicates(make_scores(), n_jobs=100_000)


@pytest.mark.parametrize("n_chains", [_limits.MAX_CHAINS + 1, 10**12])
def test_numbers_of_chains(n_chains):
    with pytest.raises(InputError, match="`n_chains`"):
        ls.EnsembleOfClassifierChains(n_chains=n_chains).fit([[0.0], [1.0]], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_samples": 99_999_999_999_999},
        {"n_features": 10**12},
        {"n_labels": 10**9, "n_samples": 1, "n_features": 1},
        {"n_labels": 3 * 10**6, "n_samples": 1, "n_features": 1},
        {"n_labels": 40_000, "n_features": 10_000, "n_samples": 1},
        {"n_samples": 2**31, "n_labels": 2**31, "n_features": 2**31},
    ],
)
def test_simulated_sizes(sizes):
    with pytest.raises(TooLargeError, match="simulated"):
        make_labelsets(**sizes)


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_files_that_grow_when_they_are_unpacked(suffix, compress, tmp_path, monkeypatch):
    monkeypatch.setattr(_limits, "MAX_FILE_BYTES", 2**22)
    path = tmp_path / f"bomb.arff{suffix}"
    path.write_bytes(compress(bytes(2**22)))
    assert read_unpacked(path) == bytes(2**22)
    path.write_bytes(compress(b"a") + compress(b"b"))
    assert read_unpacked(path) == b"ab"
    path.write_bytes(compress(bytes(2**26)))
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="unpacked"):
        ls.read_dataset(path, 1)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_large_files_and_devices(tmp_path, monkeypatch):
    monkeypatch.setattr(_limits, "MAX_FILE_BYTES", 10)
    path = tmp_path / "a.csv"
    path.write_bytes(bytes(10))
    assert read_bytes(path) == bytes(10)
    path.write_bytes(bytes(11))
    with pytest.raises(TooLargeError, match="bytes"):
        read_bytes(path)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(InputError, match=f"{name}' cannot be read: it is a device or a pipe"):
            read_bytes(tmp_path / name)


ENTITIES = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 9))
BOMB = f'<!DOCTYPE labels [<!ENTITY e0 "lol">{ENTITIES}]><labels><label name="&e8;"/></labels>'
ARFF = "@relation r\n@attribute y {0,1}\n@attribute x numeric\n@data\n0,1\n1,2\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_xml_that_grows(encoding, tmp_path):
    (tmp_path / "a.arff").write_text(ARFF)
    declared = f'<?xml version="1.0" encoding="{encoding}"?>'
    if encoding.startswith("utf-16-"):
        declared = "\ufeff" + '<?xml version="1.0"?>'
    (tmp_path / "a.xml").write_bytes((declared + BOMB).encode(encoding))
    with pytest.raises(InputError, match="declarations"):
        ls.read_dataset(tmp_path / "a.arff")
    fine = '<!-- a list --><labels xmlns="http://mulan"><label name="y"></label></labels>'
    (tmp_path / "a.xml").write_bytes((declared + fine).encode(encoding))
    assert ls.read_dataset(tmp_path / "a.arff").label_names == ("y",)


def test_columns_of_arff(tmp_path):
    path = tmp_path / "wide.arff"
    lines = [f"@attribute a{j} numeric" for j in range(_limits.MAX_COLUMNS + 1)]
    path.write_text("\n".join(["@relation r", *lines, "no attribute"]))
    with pytest.raises(TooLargeError, match=r"wide.arff must have at most 200000 columns, it has"):
        ls.read_dataset(path, 1)


def test_columns_of_other_files(tmp_path, monkeypatch):
    monkeypatch.setattr(_limits, "MAX_COLUMNS", 3)
    path = tmp_path / "wide.csv"
    for names, is_fine in (("abc", True), ("abcd", False)):
        path.write_text("\n".join([",".join(names), ",".join("1" * len(names))]))
        table = pa.table({name: [1] for name in names})
        pq.write_table(table, tmp_path / "wide.parquet")
        for wide in (path, tmp_path / "wide.parquet"):
            if is_fine:
                assert ls.read_dataset(wide, "a").n_features == 2
                continue
            with pytest.raises(TooLargeError, match="must have at most 3 columns"):
                ls.read_dataset(wide, "a")


def test_values_of_parquet(tmp_path, monkeypatch):
    table = pa.table({"y": pa.array([1] * 10**6, pa.int8()), "x": pa.array([0] * 10**6, pa.int8())})
    file = io.BytesIO()
    pq.write_table(table, file)
    assert len(file.getvalue()) < 2**14
    path = tmp_path / "long.parquet"
    path.write_bytes(file.getvalue())
    # Two columns of a byte for the value and one for whether it is missing, and row numbers.
    monkeypatch.setattr(_limits, "MAX_ARRAY_BYTES", 4 * 10**6)
    with pytest.raises(TooLargeError, match=r"need 3.8 MiB, more than"):
        ls.read_dataset(path, "y")
    monkeypatch.setattr(_limits, "MAX_ARRAY_BYTES", 4 * 10**6 + 10**4)
    assert ls.read_dataset(path, "y").n_samples == 10**6


@pytest.mark.parametrize("rows", ["0,v{}\n", "{{0 0, 1 v{}}}\n"], ids=["dense", "sparse"])
def test_values_of_a_nominal_feature(rows, tmp_path, monkeypatch):
    values = ", ".join(f"v{k}" for k in range(30))
    head = f"@relation r\n@attribute y {{0,1}}\n@attribute x {{{values}}}\n@data\n"
    path = tmp_path / "a.arff"
    path.write_text(head + "".join(rows.format(k % 10) for k in range(40)))
    monkeypatch.setattr(_limits, "MAX_ARRAY_BYTES", 8 * 30 * 40)
    assert ls.read_dataset(path, 1).n_features == 30
    monkeypatch.setattr(_limits, "MAX_ARRAY_BYTES", 8 * 30 * 40 - 1)
    with pytest.raises(TooLargeError, match="Leave"):
        ls.read_dataset(path, 1)

"""Predictions in remote stores, scored by Spark, and by runs that are killed again and again."""

import contextlib
import gzip
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.fs
import pytest
from local_cluster import SOURCE, LocalCluster
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.tables import files, score_frame
from labelsure.tables.scoring import score_files

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "scoring.md"
N_ROWS = 100


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 30)
    make_model().save(tmp_path / "model.labelsure")
    make_rows(N_ROWS).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


@pytest.fixture
def memory():
    """An address in the memory of this process, which is empty."""
    pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    return f"memory://{uuid.uuid4()}/predictions"


def read_store(address, **settings):
    import fsspec

    system, place = fsspec.core.url_to_fs(address, **settings)
    names = sorted(name for name in system.find(place) if name.endswith(".parquet"))
    return pd.concat([pd.read_parquet(system.open(name)) for name in names], ignore_index=True)


def test_a_store_gets_what_a_folder_gets(folder, memory):
    import fsspec

    score_files(folder / "model.labelsure", folder / "new.csv", folder / "here", n_jobs=1)
    asked = (folder / "model.labelsure", folder / "new.csv", memory)
    run = score_files(*asked, n_jobs=1)
    assert (run.out, run.n_rows, run.n_parts, run.n_kept) == (memory, N_ROWS, 4, 0)
    pd.testing.assert_frame_equal(read_store(memory), pd.read_parquet(folder / "here"))
    system, place = fsspec.core.url_to_fs(memory)
    system.rm_file(f"{place}/part-00000-00001.parquet")
    system.pipe_file(f"{place}/part-00000-00002.parquet", b"cut off")
    assert score_files(*asked, n_jobs=1).n_kept == 2
    pd.testing.assert_frame_equal(read_store(memory), pd.read_parquet(folder / "here"))
    with pytest.raises(ls.InputError, match="another run"):
        score_files(*asked, n_jobs=1, top=1)
    assert score_files(*asked, n_jobs=1, top=1, overwrite=True).n_kept == 0
    assert "top_2" not in read_store(memory)
    assert len(read_store(memory)) == N_ROWS


def test_what_a_store_cannot_hold(folder, memory):
    import fsspec

    asked = (folder / "model.labelsure", folder / "new.csv")
    with pytest.raises(ls.InputError, match="must be a folder of Parquet files"):
        score_files(*asked, f"{memory}.csv", n_jobs=1)
    system, place = fsspec.core.url_to_fs(memory)
    system.pipe_file(f"{place}/mine.txt", b"mine")
    with pytest.raises(ls.InputError, match="holds something else"):
        score_files(*asked, memory, n_jobs=1, overwrite=True)
    with pytest.raises(ls.InputError, match="cannot be"):
        score_files(*asked, "nothing://here/out", n_jobs=1)


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    """A bucket of moto's server on the loopback device, which Arrow's own client of S3 talks to.

    The server needs packages that conflict with the pins of this project: install it into an
    environment of its own, and name its program by MOTO_SERVER.
    """
    program = os.environ.get("MOTO_SERVER")
    if program is None:
        pytest.skip("MOTO_SERVER does not name the program of moto's server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with open(tmp_path / "server.log", "wb") as log:
        server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", port], stdout=log, stderr=log)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                break
            time.sleep(0.2)
        client = pyarrow.fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True
        )
        client.create_dir("weather")
        yield client
    finally:
        server.terminate()
        server.wait(20)


@pytest.mark.slow
def test_processes_and_dask_read_and_write_s3(folder, bucket, tmp_path):
    rows = make_rows(N_ROWS)
    inputs = {
        "in/year=2023/a.csv": rows[:60].to_csv(index=False).encode(),
        "in/year=2024/b.csv": rows[60:].to_csv(index=False).encode(),
        "new.csv.gz": gzip.compress(rows.to_csv(index=False).encode()),
        "new.parquet": rows.to_parquet(row_group_size=40),
    }
    for name, content in inputs.items():
        with bucket.open_output_stream(f"weather/{name}", compression=None) as file:
            file.write(content)
    score_files(folder / "model.labelsure", folder / "new.csv", folder / "here", n_jobs=1)
    expected = pd.read_parquet(folder / "here").drop(columns=["file", "row"])

    def check(out):
        found = pd.read_parquet(f"weather/{out}", filesystem=bucket).drop(columns=["file", "row"])
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9)

    with LocalCluster(tmp_path) as cluster:
        cluster.add_worker()
        for number, name in enumerate(("in", "in/**/*.csv", "new.csv.gz", "new.parquet")):
            for how in ({"n_jobs": 2}, {"scheduler": cluster.address}):
                out = f"out{number}{next(iter(how))}"
                places = (f"s3://weather/{place}?scheme=http" for place in (name, out))
                asked = (folder / "model.labelsure", *places)
                assert score_files(*asked, **how).n_kept == 0
                check(out)
                again = score_files(*asked, **how)
                assert again.n_kept == again.n_parts


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Spark warns of pandas 3
def test_the_recipe_for_spark(folder, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    recipe = re.search(r"```\n(from pyspark.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, *sys.path]))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    rows = make_rows(N_ROWS).drop(columns="id")
    rows.to_parquet(folder / "new.parquet", index=False)
    for name in ("weather.labelsure", "new", "predictions"):
        ours = {"weather.labelsure": "model.labelsure", "new": "new.parquet"}.get(name, name)
        recipe = recipe.replace(f"/shared/{name}", str(folder / ours))
    spark = sql.SparkSession.builder.master("local[2]").getOrCreate()
    try:
        exec(recipe, {"spark": spark})
    finally:
        spark.stop()
    found = pd.read_parquet(folder / "predictions")
    expected = score_frame(make_model(), rows)
    assert list(found) == list(expected)
    order = np.lexsort(expected.select_dtypes("float").to_numpy().T)
    found = found.iloc[np.lexsort(found.select_dtypes("float").to_numpy().T)]
    for name in expected.select_dtypes("float"):
        np.testing.assert_allclose(found[name], expected[name].iloc[order], atol=1e-9)


N_MANY = 3000
RUN = (
    "import sys; from labelsure.tables import scoring\n"
    "words = dict(word.split('=') for word in sys.argv[4:])\n"
    "words = {name: int(text) if text.isdigit() else text for name, text in words.items()}\n"
    "scoring.score_files(*sys.argv[1:4], **words)"
)


class KilledRuns:
    """A run that is started anew until it is finished, and what was written so far."""

    def __init__(self, folder):
        self.folder, self.notes = folder, folder / "out.csv.parts"
        self.words = [str(folder / name) for name in ("model.labelsure", "many", "out.csv")]

    def start(self, *settings):
        code = [sys.executable, "-c", RUN, *self.words, *settings]
        return subprocess.Popen(code, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def n_finished(self):
        return len(list(self.notes.glob("part-*")))

    def wait(self, process, n_more):
        before = self.n_finished()
        while self.n_finished() < before + n_more and process.poll() is None:
            time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.jit_only
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_twelve_kills_lose_nothing_and_write_nothing_twice(folder):
    (folder / "many").mkdir()
    rows = make_rows(N_MANY)
    for at in range(150):
        rows[20 * at : 20 * at + 20].to_csv(folder / "many" / f"{at:03d}.csv", index=False)
    runs, generator = KilledRuns(folder), random.Random(0)
    for n_jobs in (1, 2, 1, 2):  # the process that hands out the work
        process = runs.start(f"n_jobs={n_jobs}")
        runs.wait(process, generator.randrange(1, 9))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    for round_ in range(4):
        (folder / f"cluster{round_}").mkdir()
        with LocalCluster(folder / f"cluster{round_}") as cluster:
            cluster.add_worker()
            cluster.add_worker()
            process = runs.start(f"scheduler={cluster.address}")
            runs.wait(process, generator.randrange(1, 9))
            cluster.workers[0].kill()  # a worker: the run goes on
            runs.wait(process, 2)
            cluster.processes[0].kill()  # the scheduler: the run ends with a sentence
            _, said = process.communicate(timeout=200)
            assert process.returncode == 0 or "went away" in said, said
    run = score_files(*runs.words, n_jobs=1)
    assert run.n_rows == N_MANY
    assert 0 < run.n_kept < run.n_parts == 150
    found = pd.read_csv(folder / "out.csv", keep_default_na=False)
    assert found["row"].tolist() == [*range(20)] * 150
    score_files(*runs.words[:2], folder / "whole.csv", n_jobs=1)
    assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()

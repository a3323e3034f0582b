"""Predictions in remote stores, scored by Spark, and by runs that are killed again and again."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from local_cluster import SOURCE, LocalCluster
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.tables import score_frame, scoring
from labelsure.tables.scoring import score_files

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "scoring.md"
N_ROWS = 100


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "PART_ROWS", 30)
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
    system.rm_file(f"{place}/part-00001.parquet")
    system.pipe_file(f"{place}/part-00002.parquet", b"cut off")
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
def bucket(monkeypatch):
    """A bucket of a server on the loopback device that speaks S3."""
    pytest.importorskip("s3fs", reason="s3fs of the extra `remote` is not installed")
    server = pytest.importorskip("moto.server", reason="moto's server is not installed")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = f"http://127.0.0.1:{running._server.server_port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": address,
    }.items():
        monkeypatch.setenv(name, value)
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir("predictions")
    yield "s3://predictions"
    running.stop()


@pytest.mark.slow
def test_processes_and_dask_write_to_s3(folder, bucket, tmp_path):
    asked = (folder / "model.labelsure", folder / "new.csv")
    score_files(*asked, folder / "here", n_jobs=1)
    expected = pd.read_parquet(folder / "here")
    score_files(*asked, f"{bucket}/processes", n_jobs=2)
    pd.testing.assert_frame_equal(read_store(f"{bucket}/processes"), expected)
    with LocalCluster(tmp_path) as cluster:
        cluster.add_worker()
        score_files(*asked, f"{bucket}/dask", scheduler=cluster.address)
        again = score_files(*asked, f"{bucket}/dask", scheduler=cluster.address)
    assert again.n_kept == again.n_parts == 4
    pd.testing.assert_frame_equal(read_store(f"{bucket}/dask"), expected)


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
    "import sys; from labelsure.tables import scoring; scoring.PART_ROWS = 20\n"
    "words = dict(word.split('=') for word in sys.argv[4:])\n"
    "words = {name: int(text) if text.isdigit() else text for name, text in words.items()}\n"
    "scoring.score_files(*sys.argv[1:4], **words)"
)


class KilledRuns:
    """A run that is started anew until it is finished, and what was written so far."""

    def __init__(self, folder):
        self.folder, self.notes = folder, folder / "out.csv.parts" / "_notes"
        self.words = [str(folder / name) for name in ("model.labelsure", "many.csv", "out.csv")]

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
def test_twelve_kills_lose_nothing_and_write_nothing_twice(folder, monkeypatch):
    monkeypatch.setattr(scoring, "PART_ROWS", 20)
    make_rows(N_MANY).to_csv(folder / "many.csv", index=False)
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
    assert found["row"].tolist() == list(range(N_MANY))
    score_files(*runs.words[:2], folder / "whole.csv", n_jobs=1)
    assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()

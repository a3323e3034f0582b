"""The recipe of the page on serving: log, load and score a model by MLflow; slow: serve it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

import labelsure as ls
from labelsure.tables import score_frame, score_schema

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "serve.md"
DEFINE, LOG = re.findall(r"```py\n(.*?)```", PAGE.read_text().split("## With MLflow")[1], re.DOTALL)


@pytest.fixture
def logged(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    data, _ = ls.make_labelsets(n_samples=300, n_labels=3, random_state=0)
    X = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    new = ls.Dataset(X[200:], data.Y[200:])
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", target=0.5, random_state=0)
    model.fit(X[:200], data.Y[:200]).save("digits.labelsure")
    (tmp_path / "labelsure_model.py").write_text(DEFINE)
    names = {"new": new, "mlflow": mlflow, "score_frame": score_frame}
    exec(compile(LOG, str(PAGE), "exec"), names)
    return names


def test_the_recipe_is_short():
    lines = [line for line in (DEFINE + LOG).splitlines() if line.strip()]
    assert len(lines) <= 20


@pytest.mark.filterwarnings("ignore")
def test_logged_and_loaded_it_scores_as_before(logged):
    pd.testing.assert_frame_equal(logged["found"], logged["scored"])
    signature = logged["logged"].signature
    types = {str(field.name): str(field.type) for field in score_schema("digits.labelsure")}
    same = {"list<item: string>": "Array(string)", "bool": "boolean"}
    found = {column.name: column.type for column in signature.outputs.inputs}
    assert {name: str(getattr(kind, "name", kind)) for name, kind in found.items()} == {
        name: same.get(kind, kind) for name, kind in types.items()
    }
    assert not list(Path.cwd().rglob("*.pkl"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_request_is_answered(logged):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--model-uri", logged["logged"].model_uri]
    settings = {**os.environ, "MLFLOW_TRACKING_URI": logged["mlflow"].get_tracking_uri()}
    body = json.dumps({"dataframe_split": logged["rows"].to_dict("split")}).encode()
    server = subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL)
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations", body, {"Content-Type": "application/json"}
        )
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    answer = json.load(response)["predictions"]
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(1)
        assert [row["predicted"] for row in answer] == list(
            map(list, logged["scored"]["predicted"])
        )
    finally:
        server.terminate()
        server.wait(timeout=30)

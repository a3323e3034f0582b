"""Where the field's own files are, and a data home that no test shares with its user."""

import os
from pathlib import Path

import pytest

FOLDERS = [
    os.environ.get("LABELSURE_DATA"),
    Path(__file__).resolve().parents[2].parent / "shared" / "data",
]


def pytest_configure(config):
    config.data_dir = next((Path(f) for f in FOLDERS if f and Path(f).is_dir()), None)


@pytest.fixture
def data_dir(pytestconfig):
    if pytestconfig.data_dir is None:
        pytest.skip("no folder with the field's data sets: set LABELSURE_DATA")
    return pytestconfig.data_dir


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("LABELSURE_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("home")))

"""Files that earlier versions wrote load, and their models answer as they did."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

import labelsure as ls

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("files/*/*.labelsure"))
spec = importlib.util.spec_from_file_location("make_files", HERE / "make_files.py")
make_files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_files)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_file_of_an_earlier_version(path):
    with warnings.catch_warnings():
        # Learners that another scikit-learn fitted: it warns, and the answers are compared.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = ls.load(path)
    found = make_files.answers(path.stem, model)
    expected = np.load(path.with_name("answers.npz"))
    assert len(found) == sum(key.rpartition(".")[0] == path.stem for key in expected.files)
    for i, answer in enumerate(found):
        np.testing.assert_allclose(answer, expected[f"{path.stem}.{i}"], rtol=1e-6, atol=1e-9)


def test_this_version_has_a_file_of_each_kind():
    names = {path.stem for path in FILES if path.parent.name == ls.__version__}
    assert names == make_files.MODELS.keys()
    assert sum(path.stat().st_size for path in FILES) < 10**6

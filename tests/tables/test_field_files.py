"""The six data sets of the paper, as the field has them."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles_datasets import read_plain_arff
from scipy import sparse

import labelsure as ls

# N, labels, features and label cardinality as the paper prints them; distinct labelsets counted.
COUNTS = {
    "emotions": (593, 6, 72, "1.87", 27),
    "scene": (2407, 6, 294, "1.07", 15),
    "yeast": (2417, 14, 103, "4.24", 198),
    "stare": (373, 15, 44, "1.32", 42),
    "enron": (1702, 53, 1001, "3.38", 753),
    "slashdot": (3782, 22, 1079, "1.18", 156),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(data_dir, name):
    n_samples, n_labels, n_features, cardinality, n_labelsets = COUNTS[name]
    found = ls.load_dataset(name, data_dir).describe()
    assert (found["n_samples"], found["n_labels"]) == (n_samples, n_labels)
    assert found["n_features"] == n_features
    assert f"{found['label_cardinality']:.2f}" == cardinality
    assert found["label_density"] == found["label_cardinality"] / n_labels
    assert found["n_labelsets"] == n_labelsets
    assert found["constant_labels"] == (["Main", "Meta"] if name == "slashdot" else [])


@pytest.mark.parametrize("name", COUNTS)
def test_every_value_is_the_one_in_the_file(data_dir, name):
    names, rows = read_plain_arff(data_dir / f"{name}.arff.gz")
    data = ls.load_dataset(name, data_dir)
    table = np.array(rows, dtype=float)
    in_file = [names.index(label) for label in data.label_names]
    assert in_file == sorted(in_file)
    np.testing.assert_array_equal(data.Y, table[:, in_file])
    X = data.X.toarray() if sparse.issparse(data.X) else data.X.to_numpy()
    np.testing.assert_array_equal(X, np.delete(table, in_file, axis=1))
    assert [n for n in names if n not in data.label_names] == list(data.feature_names)


def test_the_labels_of_enron_in_the_paper(data_dir):
    enron = ls.load_dataset("enron", data_dir)
    last, top = (
        ls.load_dataset("enron", data_dir, labels=chosen) for chosen in ("last20", "top20")
    )
    assert last.label_names == enron.label_names[-20:]
    assert f"{last.describe()['label_cardinality']:.2f}" == "0.72"
    assert 0.45 < (last.Y.sum(axis=1) == 0).mean() < 0.55
    assert f"{top.describe()['label_cardinality']:.2f}" == "3.02"
    least = top.Y.sum(axis=0).min()
    left_out = [j for j, name in enumerate(enron.label_names) if name not in top.label_names]
    assert enron.Y[:, left_out].sum(axis=0).max() <= least
    assert ls.load_dataset("enron", data_dir, labels="A.A8,B.B*").label_names[0] == "A.A8"


def test_yeast_is_the_same_in_river_and_in_its_file(data_dir):
    from_file = ls.load_dataset("yeast", data_dir)
    from_river = ls.load_dataset("yeast")
    assert from_river.source.startswith("river")
    assert from_file.label_names == from_river.label_names
    np.testing.assert_array_equal(from_file.Y, from_river.Y)
    pd.testing.assert_frame_equal(from_file.X, from_river.X)


def test_the_folder_can_be_an_environment_variable(data_dir, monkeypatch):
    monkeypatch.setenv("LABELSURE_DATA", str(data_dir))
    assert ls.load_dataset("stare").source == "stare.arff.gz"
    assert ls.load_dataset("digits").source == "scikit-learn"
    assert ls.load_dataset("yeast", source="embedded").source.startswith("river")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_flipped_bytes_load_or_raise_our_error(data_dir, tmp_path, data):
    """In what gz protects (nearly all is refused), and in the text itself."""
    name = data.draw(st.sampled_from(["emotions", "stare", "slashdot"]))
    content = (data_dir / f"{name}.arff.gz").read_bytes()
    in_text = data.draw(st.booleans())
    if in_text:
        text = gzip.decompress(content)
        content = text[: text.index(b"@data") + data.draw(st.integers(50, 3000))]
    broken = bytearray(content)
    for _ in range(data.draw(st.integers(1, 8))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / (f"{name}.arff" if in_text else f"{name}.arff.gz")
    path.write_bytes(broken)
    labels = data.draw(st.sampled_from([None, 6]))
    try:
        loaded = ls.read_dataset(path, labels)
    except ls.InputError as error:
        message = str(error)
    else:
        message = ""
        assert loaded.n_samples > 0
    assert "\n" not in message

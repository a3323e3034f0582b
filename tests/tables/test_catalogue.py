"""Data sets by name: embedded, in a folder, from OpenML."""

import builtins
import hashlib
import io
import json
import sys
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from scipy import sparse
from sklearn.utils import Bunch

import labelsure as ls
from labelsure.tables.datasets import catalogue

ARFF = "@relation 'mine: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@data\n1,2\n0,3\n"


def test_names():
    names = ls.list_datasets()
    assert names[:2] == ["digits", "simulated"]
    assert {"emotions", "scene", "yeast", "stare", "enron", "slashdot"} <= set(names)
    table = catalogue()
    assert list(table.index) == names
    assert table.loc["slashdot", "openml_id"] == 41472
    assert table["is_embedded"].sum() == 3


def test_digits():
    data = ls.load_dataset("digits")
    digit = sklearn.datasets.load_digits().target
    assert data.source == "scikit-learn"
    assert data.feature_names[:2] == ("pixel_0_0", "pixel_0_1")
    traits = {name: set(digit[data.Y[:, j] == 1]) for j, name in enumerate(data.label_names)}
    assert traits == {
        "even": {0, 2, 4, 6, 8},
        "prime": {2, 3, 5, 7},
        "at_least_five": {5, 6, 7, 8, 9},
        "has_loop": {0, 6, 8, 9},
        "has_straight_stroke": {1, 2, 4, 5, 7},
    }
    assert data.describe()["n_labelsets"] == 8


def test_loops_are_where_the_images_have_them():
    """A loop is a hole: background that is cut off from the border of the image."""
    from scipy import ndimage

    bunch = sklearn.datasets.load_digits()
    holes = [ndimage.label(np.pad(image, 1) < 7)[1] > 1 for image in bunch.images]
    share = np.array([np.mean(np.array(holes)[bunch.target == digit]) for digit in range(10)])
    data = ls.load_dataset("digits")
    has_loop = data.Y[:, data.label_names.index("has_loop")]
    with_loop = sorted(set(bunch.target[has_loop == 1]))
    assert share[with_loop].min() > 0.7
    assert np.delete(share, with_loop).max() < 0.5


def test_yeast_from_river():
    data = ls.load_dataset("yeast")
    found = data.describe()
    assert (found["n_samples"], found["n_labels"], found["n_features"]) == (2417, 14, 103)
    assert found["n_labelsets"] == 198
    assert f"{found['label_cardinality']:.3f}" == "4.237"
    assert data.label_names == tuple(f"Class{j}" for j in range(1, 15))


def test_embedded_sets_have_stable_checksums():
    for name in ("digits", "yeast", "simulated"):
        one, two = (ls.load_dataset(name) for _ in range(2))
        assert one.checksum == two.checksum
        assert len(one.checksum) == 64


def test_yeast_without_river(monkeypatch):
    real_import = builtins.__import__

    def without_river(name, *arguments, **options):
        if name.startswith("river"):
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_river)
    with pytest.raises(ls.InputError, match="installed"):
        ls.load_dataset("yeast")


def test_importing_loads_nothing_heavy():
    import subprocess

    code = (
        "import labelsure as ls, sys; ls.list_datasets(); "
        "print([m for m in ('river', 'sklearn', 'pyarrow.csv') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_of_ones_own(tmp_path):
    (tmp_path / "mine.arff").write_text(ARFF)
    assert ls.list_datasets(tmp_path)[-1] == "mine"
    assert ls.load_dataset("MINE", tmp_path).n_samples == 2
    (tmp_path / "digits.arff").write_text(ARFF)
    assert ls.load_dataset("digits", tmp_path).n_samples == 2
    assert ls.load_dataset("digits", tmp_path, source="file").source == "digits.arff"


def test_a_folder_does_not_hide_other_sources(tmp_path, monkeypatch):
    (tmp_path / "Digits.arff").write_text(ARFF)
    (tmp_path / "mine.arff").write_text(ARFF)
    assert ls.load_dataset("digits", tmp_path).n_samples == 2
    assert ls.load_dataset("digits", tmp_path, source="embedded").n_samples == 1797
    monkeypatch.setenv("LABELSURE_DATA", str(tmp_path))
    assert ls.load_dataset("digits", source="embedded").n_samples == 1797
    with pytest.raises(ls.DataError, match="'mine' must be read from a file"):
        ls.load_dataset("mine", source="openml")


def test_labels_are_chosen_after_loading():
    assert ls.load_dataset("digits", labels="has_*").label_names == (
        "has_loop",
        "has_straight_stroke",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "emotion"}, "Unknown data set 'emotion'. Did you mean 'emotions'?"),
        ({"name": 3}, "Unknown data set 3"),
        ({"name": "digits", "source": "disk"}, "Unknown source 'disk'. Known: file, embedded"),
        ({"name": "stare"}, "'stare' must be read from a file. Put stare.arff into a folder"),
        ({"name": "yeast", "source": "file"}, "must be read from a file or source=.*, got 'None'"),
        (
            {"name": "scene", "source": "embedded"},
            """'scene' must be read from a file or source="openml". Put scene.arff""",
        ),
        ({"name": "digits", "labels": "odd"}, "Unknown label 'odd'"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ls.InputError, match=message.replace("?", r"\?")):
        ls.load_dataset(**arguments)


def test_messages_about_folders(tmp_path):
    with pytest.raises(ls.DataError, match="folder"):
        ls.load_dataset("digits", tmp_path)
    with pytest.raises(ls.DataError, match="folder"):
        ls.load_dataset("digits", tmp_path / "gone")


def answer(**changes):
    """What fetch_openml returns for a dense data set."""
    bools = pd.CategoricalDtype(["FALSE", "TRUE"])
    frame = pd.DataFrame(
        {
            "energy": [0.1, 0.2, np.nan],
            "colour": pd.Categorical(["red", "blue", "red"], ["red", "green", "blue"]),
            "flag": pd.Categorical(["1", "0", "1"], ["0", "1"]),
            "happy.pleased": pd.Series(["TRUE", "FALSE", "TRUE"], dtype=bools),
            "sad.lonely": pd.Series(["FALSE", "FALSE", "TRUE"], dtype=bools),
        }
    )
    labels = ["happy.pleased", "sad.lonely"]
    bunch = Bunch(
        data=frame.drop(columns=labels),
        target=frame[labels],
        frame=frame,
        categories=None,
        feature_names=["energy", "colour", "flag"],
        target_names=labels,
        DESCR="Downloaded from openml.org.",
        details={"id": "40589", "name": "emotions", "format": "ARFF"},
        url="https://www.openml.org/d/40589",
    )
    return Bunch(**{**bunch, **changes})


@pytest.fixture
def openml(monkeypatch):
    """Replace the service by an answer or an error; return the calls that it got."""
    calls = []

    def install(result):
        def fetch_openml(**arguments):
            calls.append(arguments)
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
        return calls

    return install


def test_openml(openml):
    calls = openml(answer())
    data = ls.load_dataset("emotions")
    assert calls[0]["data_id"] == 40589
    assert data.source == "OpenML data set 40589"
    assert data.label_names == ("happy.pleased", "sad.lonely")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 0], [1, 1]])
    assert data.feature_names == ("energy", "colour=red", "colour=green", "colour=blue", "flag")
    expected = [[0.1, 1, 0, 0, 1], [0.2, 0, 0, 1, 0], [np.nan, 1, 0, 0, 1]]
    np.testing.assert_array_equal(data.X.to_numpy(), expected)


def test_a_data_home_that_cannot_be_made(openml, tmp_path, monkeypatch):
    calls = openml(answer())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "file" / "home"))
    with pytest.raises(ls.DataError, match="emotions"):
        ls.load_dataset("emotions")
    assert calls == []


def test_openml_sparse(openml):
    """Sparse data sets come as a matrix, and their labels as an array of strings."""
    X = sparse.csr_matrix([[0.0, 1.0], [2.0, 0.0]])
    target = np.array([["0", "1"], ["0", "0"]], dtype=object)
    names = {"feature_names": ["w0", "w1"], "target_names": ["a", "b"]}
    openml(answer(data=X, target=target, frame=None, **names))
    data = ls.load_dataset("enron")
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.Y, [[0, 1], [0, 0]])
    assert data.label_names == ("a", "b")
    assert data.feature_names == ("w0", "w1")


def test_yeast_comes_from_openml_only_by_choice(openml):
    calls = openml(answer())
    ls.load_dataset("yeast")
    assert calls == []
    ls.load_dataset("yeast", source="openml")
    assert calls[0]["data_id"] == 40597


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            URLError("[Errno -2] Name or service not known"),
            r"'scene' must be fetched from OpenML \(data set 40595\) .* that failed "
            r"\(URLError: \[Errno -2\] Name or service not known\). "
            r"Connect to the internet, .* or name a folder that has scene.arff",
        ),
        (TimeoutError("timed out"), r"that failed \(TimeoutError: timed out\)"),
        (
            ConnectionResetError(104, "reset"),
            r"that failed \(ConnectionResetError: \[Errno 104\] reset\)",
        ),
        (
            ValueError("md5 checksum of local file does not match description"),
            r"'scene' must be fetched from OpenML .* that failed \(ValueError: md5",
        ),
        (TypeError("expected string"), r"that failed \(TypeError: expected string"),
        (answer(target=None), "OpenML data set 40595 must say which columns are labels"),
    ],
)
def test_openml_messages(openml, result, message):
    openml(result)
    with pytest.raises(ls.DataError, match=message):
        ls.load_dataset("scene")


def test_openml_missing_labels(openml):
    bunch = answer()
    bunch.target.iloc[1, 0] = np.nan
    openml(bunch)
    with pytest.raises(ls.DataError, match="pleased"):
        ls.load_dataset("emotions")


def recorded(arff):
    """The four answers that OpenML gives for a data set with two labels, as it words them."""

    def column(index, name, values=None):
        kind = {"data_type": "numeric"}
        if values:
            kind = {"data_type": "nominal", "nominal_value": values}
        no = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
        is_target = "true" if values == ["FALSE", "TRUE"] else "false"
        return {"index": str(index), "name": name, "is_target": is_target, **kind, **no}

    features = [
        column(0, "energy"),
        column(1, "sky", ["clear", "grey", "dark"]),
        column(2, "happy.pleased", ["FALSE", "TRUE"]),
        column(3, "sad.lonely", ["FALSE", "TRUE"]),
    ]
    description = {
        "id": "40589",
        "name": "emotions",
        "version": "3",
        "description": "Multi-label.",
        "format": "ARFF",
        "status": "active",
        "file_id": "4644182",
        "url": "https://api.openml.org/data/v1/download/4644182/emotions.arff",
        "default_target_attribute": "happy.pleased,sad.lonely",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }
    qualities = [{"name": "NumberOfInstances", "value": "3"}]
    return {
        "data/40589": json.dumps({"data_set_description": description}).encode(),
        "features/40589": json.dumps({"data_features": {"feature": features}}).encode(),
        "qualities/40589": json.dumps({"data_qualities": {"quality": qualities}}).encode(),
        "emotions.arff": arff,
    }


def test_openml_on_recorded_answers(monkeypatch, tmp_path):
    """The whole way through scikit-learn, with only the network replaced."""
    from sklearn.datasets import _openml

    answers = recorded(
        b"@relation emotions\n@attribute energy numeric\n@attribute sky {clear,grey,dark}\n"
        b"@attribute happy.pleased {FALSE,TRUE}\n@attribute sad.lonely {FALSE,TRUE}\n@data\n"
        b"0.1,clear,TRUE,FALSE\n0.2,dark,FALSE,FALSE\n0.3,grey,TRUE,TRUE\n"
    )
    requests = []

    def urlopen(request, *_, **__):
        requests.append(request.full_url)
        (content,) = [c for end, c in answers.items() if request.full_url.endswith(end)]
        response = io.BytesIO(content)
        response.info = dict
        return response

    monkeypatch.setattr(_openml, "urlopen", urlopen)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    data = ls.load_dataset("emotions")
    assert data.label_names == ("happy.pleased", "sad.lonely")
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 0], [1, 1]])
    # scikit-learn hands values over in the order of the alphabet, not of their declaration.
    assert data.feature_names == ("energy", "sky=clear", "sky=dark", "sky=grey")
    np.testing.assert_array_equal(data.X["energy"], [0.1, 0.2, 0.3])
    n_requests = len(requests)
    assert n_requests == 4
    assert (tmp_path / "openml").is_dir()
    again = ls.load_dataset("emotions")  # from scikit-learn's own cache
    pd.testing.assert_frame_equal(again.X, data.X)
    assert again.checksum == data.checksum
    assert len(requests) == n_requests

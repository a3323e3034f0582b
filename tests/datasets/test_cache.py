"""What is kept on disk, and what happens when it cannot be."""

import os

import numpy as np
import pandas as pd
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows, get_win_folder_from_env_vars

import labelsure as ls
from labelsure.datasets import _cache, _reading

TEXT = """@relation 'r: -C 1'
@attribute y {0,1}
@attribute x numeric
@attribute note string
@data
1,0.1,'a note'
0,?,?
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "small.arff"
    path.write_text(TEXT)
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def parses(monkeypatch):
    """Count how often a file is parsed."""
    calls = []
    original = _reading.read_arff

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(_reading, "read_arff", counted)
    return calls


def same(a, b):
    pd.testing.assert_frame_equal(a.X, b.X)
    np.testing.assert_array_equal(a.Y, b.Y)
    return (a.name, a.label_names, a.source, a.checksum) == (
        (b.name, b.label_names, b.source, b.checksum)
    )


def test_a_second_load_parses_nothing(path, folder, parses):
    first, second = (ls.read_dataset(path, cache=folder) for _ in range(2))
    assert len(parses) == 1
    assert same(first, second)
    assert second.X["note"].isna().tolist() == [False, True]


def test_another_content_another_choice_another_encoding_are_parsed(path, folder, parses):
    ls.read_dataset(path, cache=folder)
    ls.read_dataset(path, labels="y", cache=folder)
    ls.read_dataset(path, nominal="ordinal", cache=folder)
    path.write_text(TEXT.replace("0.1", "0.2"))
    assert ls.read_dataset(path, cache=folder).X["x"].iloc[0] == 0.2
    (path.parent / "small.xml").write_text("<labels><label name='y'/></labels>")
    ls.read_dataset(path, cache=folder)
    assert len(parses) == 5


def test_another_version_of_the_reader_parses(path, folder, parses, monkeypatch):
    ls.read_dataset(path, cache=folder)
    monkeypatch.setattr(_cache, "READER_VERSION", _cache.READER_VERSION + 1)
    ls.read_dataset(path, cache=folder)
    assert len(parses) == 2


def test_nothing_is_kept_where_nobody_wants_it(path, parses, monkeypatch, tmp_path):
    monkeypatch.setenv("LABELSURE_CACHE", str(tmp_path / "never"))
    for _ in range(2):
        ls.read_dataset(path, cache=False)
    assert len(parses) == 2
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"not a zip at all",
        lambda content: content.replace(b"numbers", b"nvmbers"),
        lambda content: bytes(255 - byte if i > 200 else byte for i, byte in enumerate(content)),
    ],
)
def test_spoilt_files_are_read_again_and_mended(path, folder, parses, spoil):
    first = ls.read_dataset(path, cache=folder)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(spoil(whole))
    assert same(first, ls.read_dataset(path, cache=folder))
    assert len(parses) == 2
    assert [entry.name for entry in folder.iterdir()] == [kept.name]
    ls.read_dataset(path, cache=folder)
    assert len(parses) == 2


@pytest.mark.parametrize("change", [{"Y": lambda Y: 1 - Y}, {"numbers": lambda X: X + 1}, {}])
def test_a_whole_file_with_other_content_is_noticed(path, folder, parses, change):
    first = ls.read_dataset(path, cache=folder)
    (kept,) = folder.iterdir()
    with np.load(kept) as arrays:
        content = dict(arrays)
    np.savez(kept, **content)  # the same content in another file is taken
    assert same(first, ls.read_dataset(path, cache=folder))
    assert len(parses) == 1
    for name, function in change.items():
        content[name] = function(content[name])
    if not change:
        content.pop("content_checksum")  # as older versions wrote it
    np.savez(kept, **content)
    assert same(first, ls.read_dataset(path, cache=folder))
    assert len(parses) == 2


def test_pickled_objects_are_not_loaded(path, folder, parses):
    ls.read_dataset(path, cache=folder)
    (kept,) = folder.iterdir()
    np.savez(kept, Y=np.array([{"an": "object"}], dtype=object))
    ls.read_dataset(path, cache=folder)
    assert len(parses) == 2


def test_a_failed_write_leaves_nothing_behind(path, folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ls.InputError, match=r"cannot be written \(No space left on device\)"):
        ls.read_dataset(path, cache=folder)
    assert list(folder.iterdir()) == []


def test_an_explicit_folder_that_cannot_be_written_is_an_error(path):
    inside_a_file = path / "cache"
    with pytest.raises(
        ls.InputError, match=r"The cache folder '.*' cannot be written .*cache=False"
    ):
        ls.read_dataset(path, cache=inside_a_file)


def test_a_folder_from_the_environment_is_a_warning(path, monkeypatch):
    monkeypatch.setenv("LABELSURE_CACHE", str(path / "cache"))
    with pytest.warns(UserWarning, match=r"cannot be written .* Set LABELSURE_CACHE to another"):
        assert len(ls.read_dataset(path)) == 2


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_the_users_folder_is_used_and_done_without_when_it_cannot_be(
    path, tmp_path, monkeypatch, variable, parses
):
    for name in ("LABELSURE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", Unix)
    monkeypatch.setenv(variable, str(tmp_path / "home"))
    for _ in range(2):
        ls.read_dataset(path)
    assert len(parses) == 1
    assert len(list((tmp_path / "home").rglob("labelsure/small-*.npz"))) == 1
    monkeypatch.setenv(variable, str(path))
    assert len(ls.read_dataset(path)) == 2


@pytest.mark.parametrize(
    ("platform", "part"), [(MacOS, "Library/Caches"), (Windows, "AppData/Local")]
)
def test_users_folders_elsewhere(monkeypatch, tmp_path, platform, part):
    monkeypatch.delenv("LABELSURE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "AppData" / "Local"))
    monkeypatch.setattr("platformdirs.windows.get_win_folder", get_win_folder_from_env_vars)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.PlatformDirs", platform)
    assert _cache.cache_folder(True).path == tmp_path / part / "labelsure"


def test_a_user_without_a_home(path, monkeypatch, tmp_path):
    monkeypatch.delenv("LABELSURE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", Unix)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert _cache.cache_folder(True) is None
    assert len(ls.read_dataset(path)) == 2
    assert not (tmp_path / "~").exists()

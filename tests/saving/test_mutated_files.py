"""Whatever happens to a saved file: one of our errors refuses it, and nothing else is touched.

Damage that leaves the checksum as it was is always noticed. Someone who also changes the checksum
gets no further than the rules: a file is refused, or what it holds is a model of trusted types.
"""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
import saved_files as sf

import labelsure as ls

KINDS = [
    "AcceptPolicy",
    "ridge",
    "EnsembleOfClassifierChains",
    "AccuracyAwareClassifier",
]
N_DAMAGES = 130
N_EDITS = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder in which no process can be started."""
    inner = tmp_path / "work"
    inner.mkdir()
    monkeypatch.chdir(inner)
    for name in ("system", "posix_spawn", "fork", "execv"):
        monkeypatch.setattr(os, name, lambda *_, **__: pytest.fail("a process was started"))
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_, **__: pytest.fail("a process"))
    return inner


def flip_bit(content, rng):
    place, bit = rng.integers(len(content)), rng.integers(8)
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def cut_off(content, rng):
    return content[: rng.integers(len(content))]


def cut_beginning(content, rng):
    return content[rng.integers(1, len(content)) :]


def take_out(content, rng):
    start = rng.integers(len(content) - 1)
    return content[:start] + content[start + rng.integers(1, 50) :]


def put_in(content, rng):
    start = rng.integers(len(content) + 1)
    return content[:start] + rng.bytes(rng.integers(1, 50)) + content[start:]


def swap_blocks(content, rng):
    first, second, third = np.sort(rng.choice(np.arange(1, len(content)), 3, replace=False))
    return content[:first] + content[second:third] + content[first:second] + content[third:]


def fill_with_zeros(content, rng):
    start = rng.integers(len(content) - 100)
    changed = content[:start] + bytes(100) + content[start + 100 :]
    return changed if changed != content else changed[:-1]


def write_twice(content, rng):
    return content + content


def leave_out_an_entry(content, rng):
    entries = sf.split(content)
    del entries[str(rng.choice(list(entries)))]
    return sf.join(entries)


def empty_an_entry(content, rng):
    entries = sf.split(content)
    return sf.join({**entries, str(rng.choice(list(entries))): b""})


def cut_an_entry(content, rng):
    entries = sf.split(content)
    name = str(rng.choice(list(entries)))
    return sf.join({**entries, name: entries[name][:-1]})


def swap_json_entries(content, rng):
    entries = sf.split(content)
    header, schema = entries["labelsure.json"], entries["schema.json"]
    return sf.join({**entries, "labelsure.json": schema, "schema.json": header})


DAMAGES = [
    flip_bit,
    flip_bit,
    flip_bit,
    cut_off,
    cut_beginning,
    take_out,
    put_in,
    swap_blocks,
    fill_with_zeros,
    write_twice,
    leave_out_an_entry,
    empty_an_entry,
    cut_an_entry,
    swap_json_entries,
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_is_accepted(kind, folder):
    original = sf.content_of(kind, folder)
    (folder / "original.labelsure").unlink()
    rng = np.random.default_rng(0)
    for number in range(N_DAMAGES):
        damage = DAMAGES[number % len(DAMAGES)]
        content = damage(original, rng)
        if content == original:
            continue
        (folder / "x").write_bytes(content)
        with pytest.raises(ls.DataError) as caught:
            ls.load(folder / "x")
        assert "\n" not in str(caught.value), damage.__name__
    assert [path.name for path in folder.iterdir()] == ["x"]


NAMES = [
    ("subprocess", "Popen"),
    ("builtins", "eval"),
    ("os", "system"),
    ("labelsure", "AcceptPolicy"),
    ("builtins", "list"),
    ("numpy", "ndarray"),
    ("sklearn.linear_model._logistic", "LogisticRegression"),
    ("sklearn.utils._testing", "check_output"),
]
LOADERS = ["ObjectNode", "ListNode", "TypeNode", "FunctionNode", "PartialNode", "NdArrayNode", "X"]
VALUES = [None, -1, 10**30, 1.5, "nan", "", [], {}, True, "0.npy", [[1]]]


def edit_schema(schema, rng):
    """Change something at one node of the schema."""
    found = list(sf.nodes(schema))
    part = found[rng.integers(len(found))]
    what = rng.integers(6)
    if what == 0:
        part["__module__"], part["__class__"] = NAMES[rng.integers(len(NAMES))]
    elif what == 1:
        part["__loader__"] = LOADERS[rng.integers(len(LOADERS))]
    elif what == 2:
        del part[list(part)[rng.integers(len(part))]]
    elif what == 3:
        part[list(part)[rng.integers(len(part))]] = VALUES[rng.integers(len(VALUES))]
    elif what == 4:
        other = found[rng.integers(len(found))]
        kept = json.loads(json.dumps(other))
        part.clear()
        part.update(kept)
    elif part["__loader__"] == "JsonNode":
        part["content"] = json.dumps(VALUES[rng.integers(len(VALUES))])


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_file_is_refused_or_is_a_model(kind, folder):
    original = sf.content_of(kind, folder)
    (folder / "original.labelsure").unlink()
    rng = np.random.default_rng(1)
    refused = []
    for _ in range(N_EDITS):
        content = sf.change_json(original, "schema.json", lambda schema: edit_schema(schema, rng))
        (folder / "x").write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                loaded = ls.load(folder / "x")
        except ls.InputError as error:
            refused.append(str(error))
        else:
            assert type(loaded) is type(sf.fitted(kind))
    assert [path.name for path in folder.iterdir()] == ["x"]
    assert len(refused) > N_EDITS / 3
    assert not any("\n" in message for message in refused)


def test_the_original_is_accepted(folder):
    """So that the refusals above are for the damage."""
    for kind in KINDS:
        content = sf.content_of(kind, folder)
        (folder / "x").write_bytes(content)
        assert type(ls.load(folder / "x")) is type(sf.fitted(kind))
    shutil.rmtree(folder)

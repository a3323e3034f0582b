"""The reference documents every public name once, and every name that it documents exists."""

import importlib
import tomllib
from collections import Counter
from pathlib import Path

import labelsure

LIST = Path(__file__).parents[2] / "docs" / "dev" / "reference.toml"
NAMES = [
    name
    for group in tomllib.loads(LIST.read_text(encoding="utf-8"))["groups"]
    for name in group["names"]
]


def look_up(name):
    home, _, own = name.rpartition(".")
    return getattr(importlib.import_module(home), own)


def test_every_public_name_is_there():
    there = {id(look_up(name)) for name in NAMES}
    missing = [name for name in labelsure.__all__ if id(getattr(labelsure, name)) not in there]
    assert missing == []


def test_none_is_there_twice():
    pages = Counter(name.rpartition(".")[2] for name in NAMES)
    assert [name for name, n in pages.items() if n > 1] == []


def test_none_is_private_or_without_description():
    for name in NAMES:
        assert "._" not in name
        assert look_up(name).__doc__, name

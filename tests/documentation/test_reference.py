"""The reference pages have every public name, once, and nothing else."""

import importlib
import re
from collections import Counter
from pathlib import Path

import labelsure

PAGES = Path(__file__).parents[2] / "docs" / "reference"
ENTRY = re.compile(r"^::: ([\w.]+)\n((?: {4,}.*\n)*)", re.MULTILINE)


def names_on(page):
    """Return what a page documents: the members of each module, or the name itself."""
    for target, options in ENTRY.findall(page.read_text(encoding="utf-8") + "\n"):
        members = re.search(r" members: \[(.*)\]", options)
        if members:
            names = members.group(1).split(", ")
            yield from (getattr(importlib.import_module(target), name) for name in names)
            continue
        try:
            module = importlib.import_module(target)
        except ModuleNotFoundError:
            home, _, name = target.rpartition(".")
            yield getattr(importlib.import_module(home), name)
        else:
            yield from (getattr(module, name) for name in module.__all__)


def listed():
    return [thing for page in sorted(PAGES.glob("*.md")) for thing in names_on(page)]


def test_every_public_name_is_there():
    there = {id(thing) for thing in listed()}
    missing = [name for name in labelsure.__all__ if id(getattr(labelsure, name)) not in there]
    assert missing == []


def test_none_is_there_twice():
    names = {id(thing): getattr(thing, "__qualname__", repr(thing)) for thing in listed()}
    twice = [names[key] for key, n in Counter(map(id, listed())).items() if n > 1]
    assert twice == []


def test_no_name_is_private():
    private = [thing.__qualname__ for thing in listed() if hasattr(thing, "__qualname__")]
    assert [name for name in private if name.startswith("_")] == []


def test_the_first_page_leads_to_all_others():
    links = set(re.findall(r"\((\w+\.md)\)", (PAGES / "index.md").read_text(encoding="utf-8")))
    assert links == {page.name for page in PAGES.glob("*.md")} - {"index.md"}

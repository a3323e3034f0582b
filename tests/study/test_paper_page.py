"""The page from the paper to the code names what there is, and all of it."""

import re
from pathlib import Path

from labelsure.study.conclusions import published_table
from labelsure.study.figures import FIGURES
from labelsure.study.tables import PAPER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "understand" / "paper.md").read_text(encoding="utf-8")


def test_it_names_every_conclusion_and_every_table_of_the_paper():
    for name in published_table("conclusions")["name"]:
        assert f"`{name}`" in PAGE
    for name in PAPER:
        assert f"`tables/{name}.md`" in PAGE
    for name in re.findall(r"`figures/(\w+)\.svg`", PAGE):
        assert name in FIGURES


def test_every_test_that_it_names_is_there():
    named = re.findall(r"`(\w+/test_\w+\.py)`", PAGE)
    assert len(named) > 15
    for name in named:
        assert (ROOT / "tests" / name).is_file(), name

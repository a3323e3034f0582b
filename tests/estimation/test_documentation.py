"""The pages about estimation show what really happens."""

import doctest
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["estimation", "acceptance", "monitoring"])
def test_the_page(name):
    page = Path(__file__).resolve().parents[2] / "docs" / f"{name}.md"
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert result.failed == 0
    assert result.attempted > 7

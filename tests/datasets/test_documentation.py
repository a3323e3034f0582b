"""The page about data shows what really happens."""

import doctest
from pathlib import Path


def test_the_page_about_data():
    page = Path(__file__).resolve().parents[2] / "docs" / "data.md"
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert result.failed == 0
    assert result.attempted > 10

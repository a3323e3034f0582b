"""Every example on a page of the documentation prints what the page says (`page_examples`)."""

from pathlib import Path

import pytest
from page_examples import BLOCK, NEEDS, blocks, run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page(page, monkeypatch, tmp_path):
    monkeypatch.delenv("LABELSURE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_a_wrong_page_is_noticed(tmp_path):
    page = tmp_path / "wrong.md"
    page.write_text("```python\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Expected"):
        run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_example_stands_outside_of_a_block(page):
    text = page.read_text(encoding="utf-8")
    assert ">>>" not in BLOCK.sub("", text)
    assert text.count("```python") == len(BLOCK.findall(text))


def test_most_blocks_run():
    texts = [text for page in PAGES for _, text in blocks(page)]
    skipped = [text for text in texts if text.startswith(NEEDS)]
    assert len(texts) >= 20
    assert len(skipped) <= 3

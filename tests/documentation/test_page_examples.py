"""Every example on a page of the documentation shows what really happens.

A page is read from top to bottom: its blocks of Python share their names. A block with `>>>` must
print what stands below, any other must run. One that cannot run here says what it needs in its
first line: `# needs ...`; what it imports must be there all the same.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = "# needs "


def blocks(page):
    """Yield the number of its first line and the text of each block of Python."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def check_block(text, names, page, line):
    if text.startswith(NEEDS):
        imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
        exec(compile("\n".join(imports), str(page), "exec"), names)
        return
    if ">>>" not in text:
        exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line - 1)
    printed = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(test, out=printed.append, clear_globs=False)
    assert result.failed == 0, "".join(printed)
    names.update(test.globs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page(page, monkeypatch, tmp_path):
    monkeypatch.delenv("LABELSURE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, text in blocks(page):
        check_block(text, names, page, line)


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

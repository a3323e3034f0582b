"""Every example on a page of the documentation prints what the page says (`page_examples`)."""

import doctest
import re
import shlex
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest
from page_examples import BLOCK, NEEDS, OPTIONS, blocks, run_block, run_page

from labelsure.cli import main

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
    needs = Counter(text.splitlines()[0] for text in skipped)
    network = {"# needs torch": 2, "# needs torch and transformers": 2}
    assert network.items() <= needs.items()
    assert len(skipped) <= 3 + sum(network.values())


COMMANDS = re.compile(
    r"""^=== "Command line"\n\n    ```\n(.*?)^    ```$(?:\n    ```\n(.*?)^    ```$)?""", re.M | re.S
)


def test_the_commands_of_the_tutorial_print_what_it_says(monkeypatch, tmp_path, capsys):
    tutorial = ROOT / "docs/start/tutorial.md"
    monkeypatch.chdir(tmp_path)
    line, tables = next(blocks(tutorial))
    run_block(tables, {}, tutorial, line)
    tabs = COMMANDS.findall(tutorial.read_text(encoding="utf-8"))
    assert len(tabs) == 4
    for commands, expected in tabs:
        capsys.readouterr()
        joined = dedent(commands).replace("\\\n", "").strip()
        for command in re.split(r"\n(?=labelsure |python )", joined):
            program, *words = shlex.split(command, comments=True)
            if program == "labelsure":
                assert main(words) == 0
            else:
                assert (program, words[0]) == ("python", "-c")
                exec(words[1], {})
        if expected:
            found = capsys.readouterr().out
            assert doctest.OutputChecker().check_output(dedent(expected), found, OPTIONS), found

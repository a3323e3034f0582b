"""Run the Python examples of documentation pages; the standard library is all it needs.

    python tests/page_examples.py README.md docs/start/tutorial.md

runs these pages in the current folder and environment. The blocks of a page share their names. A
block with `>>>` must print what stands below, any other must run. One that cannot run here says
what it needs in its first line: `# needs ...`; only its imports are run.
"""

import doctest
import re
import sys
from pathlib import Path
from textwrap import dedent

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NEEDS = "# needs "


def blocks(page):
    """Yield the number of its first line and the text of each block of Python."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, dedent(match[2])


def run_page(page):
    """Run all blocks of a page; raise AssertionError with doctest's report where one differs."""
    names = {"__name__": "__main__"}
    for line, text in blocks(page):
        run_block(text, names, page, line)


def run_block(text, names, page, line):
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
    if result.failed:
        raise AssertionError("".join(printed))
    names.update(test.globs)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_page(Path(argument))
        print(f"{argument}: {len(list(blocks(Path(argument))))} blocks as printed", flush=True)

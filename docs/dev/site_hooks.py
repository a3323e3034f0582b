"""MkDocs hooks: KaTeX from npm, highlighted sessions, commands and options from the program."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from labelsure.cli._app import app

COMMANDS = "<!-- commands -->"
KATEX = Path(".venv/node/node_modules/katex/dist")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add KaTeX's script, style and fonts; without them formulas show as their source."""
    chosen = [KATEX / "katex.min.js", KATEX / "katex.min.css", *KATEX.glob("fonts/*.woff2")]
    for path in filter(Path.is_file, chosen):
        uri = f"assets/katex/{path.relative_to(KATEX)}"
        files.append(File.generated(config, uri, abs_src_path=str(path.resolve())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in the commands, and highlight sessions as sessions: outputs are not Python."""
    if COMMANDS in markdown:
        sections = describe_command(typer.main.get_command(app), "labelsure")
        markdown = markdown.replace(COMMANDS, "\n".join(sections))
    return re.sub(r"^( *)```python\n(?= *>>> )", r"\1```pycon\n", markdown, flags=re.MULTILINE)


def describe_command(command: Any, path: str) -> Iterator[str]:
    """Describe a command and those below it in Markdown: what it does, examples, options."""
    about, _, examples = (command.help or "").partition("[bold]Examples[/bold]")
    yield f"### `{path}`\n\n{about.strip()}\n"
    if examples.strip():
        lines = re.sub(r"\n\n+", "\n", examples.strip())
        yield f"```\n{lines}\n```\n"
    if command.params:
        yield "| argument or option | meaning |\n|---|---|"
        yield "".join(f"| {describe_option(option)} |\n" for option in command.params)
    for name, below in getattr(command, "commands", {}).items():
        yield from describe_command(below, f"{path} {name}")


def describe_option(option: Any) -> str:
    """Describe an argument or option in two cells: its names, then its meaning and default."""
    names = (
        option.opts if option.opts[0].startswith("-") else [option.metavar or option.name.upper()]
    )
    cells = [", ".join(f"`{name}`" for name in names), option.help or ""]
    if option.required:
        cells[1] += " Required."
    elif isinstance(option.default, str | int | float) and not isinstance(option.default, bool):
        cells[1] += f" Default: `{option.default}`."
    return " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)

"""MkDocs hooks: reference pages from docstrings and from the program, links between them, KaTeX."""

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

import labelsure
from labelsure.cli._app import app

COMMANDS = "<!-- commands -->"
NAMES = "<!-- names -->"
AMBIGUOUS = ("accuracy", "confidence", "load")  # parameters and methods, too: not linked alone
KATEX = Path(".venv/node/node_modules/katex/dist")
GROUPS = tomllib.loads(Path(__file__).with_name("reference.toml").read_text("utf-8"))["groups"]


def place_names() -> Iterator[tuple[str, str]]:
    """Yield each documented name and its page; names that differ by case alone share one."""
    pages: dict[str, str] = {}
    for group in GROUPS:
        for target in group["names"]:
            name = group["title"] if group.get("one_page") else target.rpartition(".")[2]
            yield target, f"reference/{pages.setdefault(name.lower(), name)}.md"


def shown(target: str) -> str:
    """Return the name that users import: `labelsure.NAME` where there is one."""
    name = target.rpartition(".")[2]
    return f"labelsure.{name}" if name in labelsure.__all__ else target


TARGETS = dict(place_names())
BY_NAME = {target.rpartition(".")[2]: target for target in TARGETS}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """State the version, and put the generated pages of the reference into the navigation."""
    project = tomllib.loads(Path(config.config_file_path).with_name("pyproject.toml").read_text())
    config.repo_url = project["tool"]["labelsure"]["repository"]
    if not config.repo_url:
        config.edit_uri = ""
    config.copyright = f"labelsure {labelsure.__version__}, BSD 3-Clause License"
    reference = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    pages = []
    for group in GROUPS:
        below = {TARGETS[target]: target.rpartition(".")[2] for target in reversed(group["names"])}
        listed = [{name: uri} for uri, name in reversed(below.items())]
        pages.append({group["title"]: next(iter(below)) if group.get("one_page") else listed})
    reference[1:1] = pages
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add KaTeX (without it formulas show as their source), the reference and the changelog."""
    chosen = [KATEX / "katex.min.js", KATEX / "katex.min.css", *KATEX.glob("fonts/*.woff2")]
    for path in filter(Path.is_file, chosen):
        uri = f"assets/katex/{path.relative_to(KATEX)}"
        files.append(File.generated(config, uri, abs_src_path=str(path.resolve())))
    for uri, text in reference_pages().items():
        files.append(File.generated(config, uri, content=text))
    changes = Path(config.config_file_path).with_name("CHANGELOG.md").read_text("utf-8")
    changes = changes.replace("(docs/reference/", "(").replace("(docs/", "(../")
    files.append(File.generated(config, "reference/changelog.md", content=changes))
    return files


def reference_pages() -> dict[str, str]:
    """Return the Markdown of each page of the reference: one for each name or group."""
    pages: dict[str, str] = {}
    for group in GROUPS:
        for target in group["names"]:
            uri, level = TARGETS[target], 2 if group.get("one_page") else 1
            if level == 2:
                pages.setdefault(uri, f"# {group['title']}\n\n{group['about']}\n\n")
            pages[uri] = pages.get(uri, "") + entry(target, level) + "\n"
    return pages


def entry(target: str, level: int) -> str:
    """Return the lines that make mkdocstrings document a name under the name that users import."""
    return (
        f"::: {target}\n    options:\n      heading: {shown(target)}\n"
        f"      toc_label: {target.rpartition('.')[2]}\n      heading_level: {level}\n"
    )


def summary_of(target: str) -> str:
    """Return the first sentence of a docstring."""
    home, _, name = target.rpartition(".")
    return (getdoc(getattr(import_module(home), name)) or "").partition("\n")[0]


def list_names() -> Iterator[str]:
    """Yield the tables of all documented names."""
    for group in GROUPS:
        yield f"\n## {group['title']}\n\n{group['about']}\n\n| name | |\n|---|---|"
        for target in group["names"]:
            page = TARGETS[target].rpartition("/")[2]
            anchor = f"#{target}" if group.get("one_page") else ""
            name = shown(target).removeprefix("labelsure.")
            yield f"| [`{name}`]({page}{anchor}) | {summary_of(target)} |"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in commands and names, and highlight sessions as sessions: outputs are not Python."""
    if COMMANDS in markdown:
        sections = describe_command(typer.main.get_command(app), "labelsure")
        markdown = markdown.replace(COMMANDS, "\n".join(sections))
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, "\n".join(list_names()))
    return re.sub(r"^( *)```python\n(?= *>>> )", r"\1```pycon\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Link each documented name where a page first mentions it, and the names of See Also."""
    linked: set[str] = set()

    def link(name: str, text: str) -> str:
        first, _, method = re.sub(r"^(ls|labelsure)\.", "", name).partition(".")
        target = BY_NAME.get(first if method in ("", *METHODS.get(first, ())) else "")
        if target is None or TARGETS[target] == page.file.src_uri or name in linked:
            return text
        if name in AMBIGUOUS and text == f"<code>{name}</code>":
            return text
        linked.add(name)
        url = TARGETS[target].removesuffix(".md") + "/"
        anchor = f"#{target}.{method}" if method else f"#{target}"
        return f'<a href="{get_relative_url(url, page.url)}{anchor}">{text}</a>'

    def see_also(match: re.Match[str]) -> str:
        names = r"(?<=[>\n])([\w.]+)(?= : )"
        return re.sub(names, lambda name: link(name[1], f" <code>{name[1]}</code>"), match[0])

    html = re.sub(r'<details class="see-also".*?</details>', see_also, html, flags=re.DOTALL)
    kept = r"<a\b.*?</a>|<b>.*?</b>|<h\d\b.*?</h\d>|<pre\b.*?</pre>"
    return re.sub(
        rf"{kept}|<code>([\w.]+)(?:\(\))?</code>",
        lambda found: link(found[1], found[0]) if found[1] else found[0],
        html,
        flags=re.DOTALL,
    )


def public_methods(target: str) -> tuple[str, ...]:
    """Return the methods and properties of a class that users call."""
    home, _, name = target.rpartition(".")
    thing = getattr(import_module(home), name)
    return tuple(m for m in dir(thing) if not m.startswith("_")) if isinstance(thing, type) else ()


METHODS = {name: public_methods(target) for name, target in BY_NAME.items()}


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

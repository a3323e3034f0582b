"""MkDocs hooks: reference pages from docstrings and from the program, links between them, KaTeX."""

import math
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import griffe
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
DOCS = Path(__file__).parents[1]
TYPES = "reference/types.md"  # names of types of arguments
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


def read_titles(folders: tuple[str, ...] = ("start", "howto", "understand")) -> dict[str, str]:
    """Titles of the guides, by their addresses, in the order of the navigation's folders."""
    pages = [page for folder in folders for page in sorted((DOCS / folder).glob("*.md"))]
    return {
        str(page.relative_to(DOCS)): page.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        for page in pages
    }


TARGETS = dict(place_names())
BY_NAME = {target.rpartition(".")[2]: target for target in TARGETS}
TITLES = read_titles()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """State the version, and put the generated pages of the reference into the navigation."""
    os.environ["PYTHONPATH"] = str(DOCS / "examples")  # notebooks import modules beside them
    project = tomllib.loads(Path(config.config_file_path).with_name("pyproject.toml").read_text())
    config.repo_url = project["tool"]["labelsure"]["repository"]
    if not config.repo_url:
        config.edit_uri = ""
    config.site_name = f"labelsure {labelsure.__version__}"
    config.copyright = f"{config.site_name}, BSD 3-Clause License"
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
    """The lines that make mkdocstrings document a name under the name that users import."""
    members = f"      members: {found}\n" if (found := order_members(target)) else ""
    return (
        f"::: {target}\n    options:\n      heading: {shown(target)}\n"
        f"      toc_label: {target.rpartition('.')[2]}\n      heading_level: {level}\n{members}"
    )


@cache
def read_source() -> griffe.Object:
    """The package as mkdocstrings sees it: parsed, not imported."""
    return griffe.load("labelsure", search_paths=[str(DOCS.parent / "src")], resolve_aliases=True)


def order_members(target: str) -> list[str]:
    """Members of a class in the order of their use.

    Of an estimator `fit`, its other methods, inherited ones such as `save`, then fitted attributes;
    of a result its fields, then its methods.
    """
    found = read_source()[target.removeprefix("labelsure.")]
    if not found.is_class:
        return []
    hidden = re.compile(r"_|check_|get_metadata_routing$|label_names_of$")
    members = [
        member
        for member in found.all_members.values()
        if member.has_docstring and not hidden.match(member.name)
    ]
    is_estimator = any(member.name == "fit" for member in members)

    def place(member: griffe.Object | griffe.Alias) -> tuple[bool, bool, bool, int]:
        is_late = member.is_attribute == is_estimator
        return is_late, member.name != "fit", member.inherited, member.lineno or 0

    return [member.name for member in sorted(members, key=place)]


@cache
def guides_of(name: str) -> str:
    """Links to the guides that mention a name most often, as HTML relative to the reference."""
    mention = re.compile(rf"\b(?:ls\.)?{name}\b")
    code = r"```.*?```|`[^`\n]+`"
    counts = {
        uri: sum(
            len(mention.findall(text))
            for text in re.findall(code, (DOCS / uri).read_text("utf-8"), re.DOTALL)
        )
        for uri in TITLES
    }
    chosen = sorted((uri for uri in counts if counts[uri]), key=lambda uri: -counts[uri])[:3]
    links = (f'<a href="../../{uri.removesuffix(".md")}/">{TITLES[uri]}</a>' for uri in chosen)
    return f'<p class="guides">Read more: {", ".join(links)}.</p>' if chosen else ""


@cache
def values_of_constants() -> dict[str, str]:
    """Numbers and texts of the package's constants, which signatures show by name."""
    found: dict[str, str] = {}
    for info in walk_packages(labelsure.__path__, "labelsure."):
        if not info.name.endswith("__main__"):
            for name, value in vars(import_module(info.name)).items():
                if re.fullmatch(r"[A-Z][A-Z_]+", name) and isinstance(value, int | float | str):
                    found[name] = (
                        show_number(value) if isinstance(value, int | float) else repr(value)
                    )
    return found


def show_number(value: float) -> str:
    """A number, by a power of two where it is a large or a small one."""
    power = math.log2(value) if value > 0 else 0.0
    return f"2**{power:g}" if power.is_integer() and abs(power) > 16 else repr(value)


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

    if page.file.src_uri.startswith("reference/"):
        html = complete_reference(html, page)
    html = html.replace("<th></th>", "<td></td>")  # a heading must say something
    html = re.sub(r'<details class="see-also".*?</details>', see_also, html, flags=re.DOTALL)
    kept = r"<a\b.*?</a>|<b>.*?</b>|<h\d\b.*?</h\d>|<pre\b.*?</pre>"
    return re.sub(
        rf"{kept}|<code>([\w.]+)(?:\(\))?</code>",
        lambda found: link(found[1], found[0]) if found[1] else found[0],
        html,
        flags=re.DOTALL,
    )


def complete_reference(html: str, page: Page) -> str:
    """Link guides and types of arguments, and show defaults as values."""
    shown_here = [target for target, uri in TARGETS.items() if uri == page.file.src_uri]
    if len(shown_here) == 1:
        guides = guides_of(shown_here[0].rpartition(".")[2])
        summary = r'(<div class="doc doc-contents first">\s*<p>.*?</p>)'
        html = re.sub(summary, lambda found: found[1] + guides, html, count=1, flags=re.DOTALL)
    types = get_relative_url(TYPES.removesuffix(".md") + "/", page.url)
    cells = re.findall(r"^\| (`.*?) \|", (DOCS / TYPES).read_text("utf-8"), re.MULTILINE)
    known = "|".join(re.findall(r"\w+", " ".join(cells)))
    named = rf"<(autoref|span)[^>]*>({known})</\1>"
    html = re.sub(named, rf'<a href="{types}">\2</a>', html)
    constants = values_of_constants()
    return re.sub(
        r'(<span class="o">=</span><span class="n">|default:\s*<code>(?:<[^>]*>)?)([A-Z][A-Z_]+)\b',
        lambda found: found[1] + constants.get(found[2], found[2]),
        html,
    )


def public_methods(target: str) -> tuple[str, ...]:
    """Return the methods and properties of a class that users call."""
    home, _, name = target.rpartition(".")
    thing = getattr(import_module(home), name)
    return tuple(m for m in dir(thing) if not m.startswith("_")) if isinstance(thing, type) else ()


METHODS = {name: public_methods(target) for name, target in BY_NAME.items()}


def describe_command(command: Any, path: str) -> Iterator[str]:
    """Describe a command and those below it in Markdown: what it does, examples, options."""
    about, examples = [*re.split(r"\[bold\]Examples?\[/bold\]", command.help or ""), ""][:2]
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

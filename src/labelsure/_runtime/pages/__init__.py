"""Pages: results as one self-contained HTML file.

A page is made from a plain dict, which holds all its numbers and is tested by itself. The template
only prints it; the charts are SVG, and a small script redraws them after input. The page's content
security policy allows this one script, by its hash, and nothing from the network.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from labelsure._runtime.storage import expand_path, write_output
from labelsure._runtime.typing import JsonObject

if TYPE_CHECKING:
    from jinja2 import Environment

    from labelsure._runtime.typing import AnyPath


@dataclass(frozen=True, eq=False)
class Page:
    """A page, as data and as HTML.

    Parameters
    ----------
    template
        The name of the template, "model" or "study".
    data
        Content of the page: numbers, texts, lists and dicts.

    Examples
    --------
    >>> Page("model", {"title": "Tickets"}).data["title"]
    'Tickets'
    """

    template: str
    data: JsonObject

    @property
    def html(self) -> str:
        """The whole page, in one file."""
        template = _templates().get_template(f"{self.template}.html")
        return template.render(data=self.data, json=encode_json(self.data))

    def save(self, path: AnyPath) -> Path:
        """Write the page to a file, as a whole, and return its path."""
        path = expand_path(path)
        write_output(
            path, lambda place: place.write_bytes(self.html.encode(errors="backslashreplace"))
        )
        return path

    def __repr__(self) -> str:
        return f"Page({self.template!r}, {self.data.get('title', '')!r})"

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own: its styles change nothing else."""
        frame = '<iframe srcdoc="{}" style="width: 100%; height: 48em; border: 0"></iframe>'
        return frame.format(escape(self.html, quote=True))


def encode_json(data: object) -> str:
    r"""JSON that is safe inside a script element, for any texts.

    Examples
    --------
    >>> print(encode_json({"label": "</script>"}))
    {"label":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("labelsure._runtime", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("labelsure._runtime.pages")
    for name in ("page.css", "page.js"):
        # Both are ours: they are put into the page as they are.
        text = folder.joinpath(name).read_text(encoding="utf-8")
        environment.globals[name.replace(".", "_")] = Markup(text)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        environment.globals[f"{name.replace('.', '_')}_hash"] = f"sha256-{digest}"
    environment.filters["share"] = _format_share
    environment.filters["number"] = "{:,}".format
    environment.filters["short"] = _format_short
    environment.filters["raw_json"] = Markup
    environment.filters["code"] = lambda text: Markup(_mark_code(str(text)))
    return environment


def _mark_code(text: str) -> str:
    """Escaped text, with names of code between backticks as HTML has them.

    Examples
    --------
    >>> _mark_code("pass `labels=`"), _mark_code("1 < 2 `")
    ('pass <code>labels=</code>', '1 &lt; 2 `')
    """
    parts = escape(text, quote=True).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _format_share(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _format_short(n: int) -> str:
    """Count as a text that fits on a bar."""
    return f"{n:,}" if n < 10_000 else f"{n / 1000:,.0f}k"

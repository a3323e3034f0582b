"""MkDocs hooks: KaTeX served from the site itself, as npm installed it; sessions highlighted."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

KATEX = Path(".venv/node/node_modules/katex/dist")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add KaTeX's script, style and fonts; without them formulas show as their source."""
    chosen = [KATEX / "katex.min.js", KATEX / "katex.min.css", *KATEX.glob("fonts/*.woff2")]
    for path in filter(Path.is_file, chosen):
        uri = f"assets/katex/{path.relative_to(KATEX)}"
        files.append(File.generated(config, uri, abs_src_path=str(path.resolve())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Highlight sessions as sessions: prompts and outputs are not Python."""
    return re.sub(r"^( *)```python\n(?= *>>> )", r"\1```pycon\n", markdown, flags=re.MULTILINE)

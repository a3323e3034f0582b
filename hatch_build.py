"""Metadata of a distribution that depend on the repository's address in `pyproject.toml`."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r'(\]\(|src="|href="|srcset=")(?!https?:|#)([^)"]+)')


class CustomMetadataHook(MetadataHookInterface):
    """README with absolute links, and `[project.urls]`; without an address neither."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["labelsure"]
        text, urls = describe(settings["repository"], (root / "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if urls:
            metadata["urls"] = urls


def describe(repository: str, readme: str) -> tuple[str, dict[str, str]]:
    """README whose links and pictures name the repository, and the URLs of the project."""
    if not repository:
        return readme, {}
    address = repository.rstrip("/")

    def make_absolute(link: re.Match[str]) -> str:
        view = "raw" if re.search(r"\.(png|svg)$", link[2]) else "blob"
        return f"{link[1]}{address}/{view}/main/{link[2]}"

    urls = {
        "Repository": address,
        "Documentation": f"{address}/blob/main/docs/index.md",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    return RELATIVE.sub(make_absolute, readme), urls

"""What a distribution says of the repository: nothing without an address, all of it with one."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
describe = runpy.run_path(str(ROOT / "hatch_build.py"))["describe"]


def test_nothing_is_invented_without_an_address():
    assert describe("", README) == (README, {})


def test_links_and_pictures_become_absolute():
    address = "https://example.org/labelsure"
    text, urls = describe(f"{address}/", README)
    links = re.findall(r'\]\(([^)]+)\)|(?:src|href|srcset)="([^"]+)"', text)
    targets = [first or second for first, second in links]
    assert all(target.startswith(("https://", "#")) for target in targets)
    files = [t.removeprefix(f"{address}/") for t in targets if t.startswith(address)]
    assert any(file.startswith("raw/main/docs/images/") for file in files)
    assert all((ROOT / file.split("/main/")[1].split("#")[0]).exists() for file in files)
    assert urls["Repository"] == address

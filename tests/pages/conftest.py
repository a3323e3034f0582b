"""A real browser: Debian's Chromium, driven by playwright, and axe-core's rules.

Both are found where `.ci/run` installs them; tests that need them are skipped where there are none.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARTEFACTS = Path(os.environ.get("LABELSURE_ARTEFACTS", ROOT / "build" / "screenshots"))
AXE = Path(".venv/node/node_modules/axe-core/axe.min.js")

# Nothing that a browser asks of the network by itself.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe():
    """Return the script that looks for barriers to people who use a keyboard or a screen reader."""
    found = [base / AXE for base in (ROOT, Path.cwd()) if (base / AXE).is_file()]
    given = os.environ.get("LABELSURE_AXE")
    found += [Path(given)] if given else []
    if not found:
        pytest.skip("axe-core is not installed: npm install --prefix .venv/node axe-core")
    return found[0].read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def artefacts():
    """Return the folder that screenshots are kept in."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    return ARTEFACTS

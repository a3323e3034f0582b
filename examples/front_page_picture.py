"""The picture of the front page: the report that the code of README.md makes.

    python examples/front_page_picture.py [FILE]

It needs Chromium and playwright (`make browser`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

import labelsure as ls


def make_report():
    """Return the report of README.md."""
    train, rest = ls.split_dataset(ls.load_dataset("digits"), 0.8, random_state=0)
    cal, new = ls.split_dataset(rest, 0.5, random_state=0)
    clf = RandomForestClassifier(random_state=0).fit(train.X, train.Y)
    model = ls.AccuracyAwareClassifier(
        FrozenEstimator(clf), "jaccard", target=0.98, random_state=0
    ).fit(cal.X, cal.Y)
    return model.report(new.X, new.Y)


def photograph(page, path):
    """Open a page in a browser and take a picture up to its second section."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        saved = page.save(Path(folder) / "report.html")
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        opened = browser.new_page(viewport={"width": 1120, "height": 1330})
        opened.goto(saved.as_uri())
        second = opened.locator("section").nth(1).bounding_box()
        clip = {"x": 0, "y": 0, "width": 1120, "height": second["y"] + 560}
        opened.screenshot(path=path, clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    photograph(make_report(), *(sys.argv[1:] or ["docs/images/report.png"]))

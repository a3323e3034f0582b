"""The pictures of the front page: the report that the code of README.md makes.

    python examples/front_page_picture.py [FOLDER]

`report.png` and `report_dark.png` show its first two sections, `report_whole.png` all of it;
`report.sha256` is a digest of what they show. It needs Chromium and playwright (`make browser`).
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

import labelsure as ls
from labelsure._runtime import pages


def make_report():
    """Return the report of README.md."""
    train, rest = ls.split_dataset(ls.load_dataset("digits"), 0.8, random_state=0)
    cal, new = ls.split_dataset(rest, 0.5, random_state=0)
    clf = RandomForestClassifier(random_state=0).fit(train.X, train.Y)
    model = ls.AccuracyAwareClassifier(
        FrozenEstimator(clf), "jaccard", target=0.98, random_state=0
    ).fit(cal.X, cal.Y)
    return model.report(new.X, new.Y)


def digest(page):
    """Hexadecimal digest of the templates of a report and of its sentences."""
    folder = Path(pages.__file__).parent
    names = ("base.html", "model.html", "charts.html", "page.css")
    shown = [(folder / name).read_text("utf-8") for name in names]
    shown += [page.data["title"], *page.data["answer"], *page.data["notes"]]
    return hashlib.sha256("\n".join(shown).encode()).hexdigest()


def photograph(page, folder):
    """Open a page in a browser and take its pictures: light, dark and whole."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as saved_in, sync_playwright() as playwright:
        saved = page.save(Path(saved_in) / "report.html")
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        for name, scheme in {"report": "light", "report_dark": "dark"}.items():
            size = {"width": 1000, "height": 1000}
            opened = browser.new_page(viewport=size, color_scheme=scheme)
            opened.goto(saved.as_uri())
            second = opened.locator("section").nth(1).bounding_box()
            clip = {"x": 0, "y": 0, "width": size["width"], "height": second["y"] - 20}
            opened.screenshot(path=folder / f"{name}.png", clip=clip, full_page=True)
            if scheme == "light":
                opened.screenshot(path=folder / "report_whole.png", full_page=True)
        browser.close()
    for picture in folder.glob("report*.png"):  # 64 colours are enough, and a third of the size
        Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    report, folder = make_report(), Path((sys.argv[1:] or ["docs/images"])[0])
    photograph(report, folder)
    (folder / "report.sha256").write_text(digest(report) + "\n")

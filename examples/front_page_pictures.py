"""The two pictures of the front page: a report, and an acceptance curve.

    python examples/front_page_pictures.py [FOLDER]

The picture of the report needs Chromium and playwright (`make browser`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls


def fit_model():
    """Return a model of handwritten digits, and instances that are new to it."""
    train, rest = ls.split_dataset(ls.load_dataset("digits"), 0.7, random_state=1)
    known, new = ls.split_dataset(rest, 0.5, random_state=1)
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    fitted = MultiOutputClassifier(learner).fit(train.X, train.Y)
    model = ls.AccuracyAwareClassifier(FrozenEstimator(fitted), target=0.9, random_state=1)
    return model.fit(known.X, known.Y), new


def draw_curve(model, new, path):
    """Draw accuracy against coverage, for predictions whose truth is known."""
    accuracy = ls.accuracy(new.Y, model.predict(new.X), "jaccard")
    axes = ls.accept_curve(model.predict_accuracy(new.X), accuracy).plot(target=0.9)
    axes.figure.set_size_inches(6.4, 3.6)
    axes.figure.savefig(path, dpi=110)


def photograph(page, path):
    """Open a page in a browser and take a picture of its upper part."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        saved = page.save(Path(folder) / "report.html")
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        opened = browser.new_page(viewport={"width": 1120, "height": 1330})
        opened.goto(saved.as_uri())
        opened.screenshot(path=path)
        browser.close()


def main(folder: str = "docs/images") -> None:
    """Write both pictures."""
    model, new = fit_model()
    draw_curve(model, new, Path(folder) / "acceptance_curve.png")
    page = model.report(new.X, new.Y, title="Traits of handwritten digits")
    photograph(page, Path(folder) / "report.png")


if __name__ == "__main__":
    main(*sys.argv[1:])

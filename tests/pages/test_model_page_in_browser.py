"""The page of a model as a person uses it, in a real browser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator

import labelsure as ls

pytestmark = pytest.mark.jit_only

NAMES = [f"label {letter}" for letter in "abcdefgh"]
N = 10_000
INSTANCES = "JSON.parse(document.getElementById('data').textContent).explorer.instances"


def draw(n, seed):
    rng = np.random.default_rng(seed)
    P = rng.beta(0.5, 0.9, size=(n, len(NAMES)))
    ids = pd.Index([f"ticket-{i}" for i in range(n)])
    Y = (rng.random(P.shape) < P).astype(int)
    return pd.DataFrame(P, ids, NAMES), pd.DataFrame(Y, ids, NAMES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a model, instances, their truth, and the page of them as a file."""
    P, Y = draw(2000, 0)
    fitted = FrozenEstimator(ls.PrecomputedProbabilities().fit(P, Y))
    model = ls.AccuracyAwareClassifier(fitted, "jaccard", target=0.6, random_state=0).fit(P, Y)
    P, Y = draw(N, 1)
    path = tmp_path_factory.mktemp("pages") / "model.html"
    model.report(P, Y, title="Tickets of a week").save(path)
    return model, P, Y, path


@pytest.fixture
def page(browser, made):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    said, asked = [], []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(made[3].as_uri())
    yield opened
    assert said == []  # no error, and nothing else either, in the console
    assert all(url.startswith(("file:", "data:")) for url in asked)
    context.close()


def text_of(page, selector):
    """Return the first text of an element, without that of the small print inside of it."""
    return page.eval_on_selector(selector, "element => element.firstChild.textContent")


@pytest.mark.parametrize("metric", ["jaccard", "exact"])
def test_the_slider_shows_what_the_score_table_says(page, made, metric):
    model, P, Y, _ = made
    page.select_option("#metric", metric)
    dist = model.predict_distribution(P)
    table = ls.ScoreTable.from_distribution(dist, Y, model.predict(P), metrics=[metric])
    estimated, accuracy = model.predict_accuracy(P), table.accuracy(metric, 1.0)
    slider = page.locator("#threshold")
    for key in ("Home", "ArrowRight", "PageUp", "PageUp", "PageUp", "ArrowLeft"):
        slider.press(key)
        threshold = float(page.inner_text("#threshold-value"))
        taken = estimated >= threshold
        assert text_of(page, "#accepted-share") == f"{taken.mean():.1%}"
        assert page.inner_text("#accepted-count") == f"{taken.sum():,} of {N:,}"
        assert page.inner_text("#referred-count") == f"{N - taken.sum():,}"
        assert float(text_of(page, "#accepted-accuracy")) == pytest.approx(
            accuracy[taken].mean(), abs=6e-4
        )
    page.click("#to-guarantee")
    assert float(page.inner_text("#threshold-value")) == pytest.approx(
        model.policy_.threshold_, abs=6e-4
    )
    assert page.inner_text("#accepted-count").startswith(f"{model.accept(P).sum():,} ")


def test_an_instance_can_be_found_and_looked_at(page, made):
    model, P, Y, _ = made
    first = page.inner_text("#instances tbody tr:first-child button")
    assert page.inner_text("#detail h3:first-child") == first  # shown before anyone chooses
    page.locator("#instances tbody tr:nth-child(2) button").click()
    assert page.inner_text("#detail h3:first-child") != first
    page.fill("#search", first)
    n_found = page.evaluate(f"{INSTANCES}.filter(i => i.id.includes('{first}')).length")
    assert int(page.inner_text("#found").split()[0]) == n_found > 0
    page.select_option("#metric", "hamming")
    page.focus("#instances tbody tr:first-child button")
    page.keyboard.press("Enter")
    assert page.inner_text("#detail h3:first-child") == first
    row = P.loc[[first]]
    dist = model.predict_distribution(row)
    best = dist.top(1)
    cells = page.locator("#detail tbody tr:first-child td").all_inner_texts()
    chosen = [name for name, bit in zip(NAMES, best.labelsets[0, 0], strict=True) if bit]
    assert cells[0] == (", ".join(chosen) or "no label")
    assert float(cells[1]) == pytest.approx(best.probabilities[0, 0], abs=6e-4)
    expected = ls.expected_accuracy(dist, best.labelsets[:, 0], metric="hamming").value[0]
    assert float(cells[2]) == pytest.approx(expected, abs=6e-4)
    missed = [n for n in NAMES if Y.loc[first, n] and not model.predict(row)[0, NAMES.index(n)]]
    assert [
        tag.removesuffix(" (missed)") for tag in page.locator(".tag.missed").all_inner_texts()
    ] == missed
    page.select_option("#metric", "exact")  # the open instance follows
    assert "Exact" in page.inner_text("#detail thead") or "exact" in page.inner_text(
        "#detail thead"
    )


def test_filters_and_orders(page):
    def estimates():
        return [
            float(t) for t in page.locator("#instances tbody td:nth-child(3)").all_inner_texts()
        ]

    shown = estimates()
    assert shown == sorted(shown)
    page.select_option("#order", "sure")
    shown = estimates()
    assert shown == sorted(shown, reverse=True)
    for kind, advice in (("accepted", "accept"), ("referred", "refer")):
        page.select_option("#show", kind)
        told = set(page.locator("#instances tbody td:nth-child(4)").all_inner_texts())
        assert told == {advice}
    page.select_option("#show", "all")
    page.fill("#search", "label c")
    with_label = page.evaluate(
        f"{INSTANCES}.filter(i => i.predicted.includes(2) || i.truth.includes(2)).length"
    )
    assert page.inner_text("#found").replace(",", "").startswith(f"{with_label} found")
    page.fill("#search", "there is no such label")
    assert page.inner_text("#found") == "0 found"
    assert page.locator("#instances tbody tr").count() == 0


def test_it_opens_in_less_than_two_seconds(browser, made):
    """A limit of the page's own work in the browser, far above what it needs (some 0.1 s)."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(made[3].as_uri())
    seconds = opened.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
    context.close()
    assert 0 < seconds < 2


@pytest.mark.parametrize(
    ("look", "scheme", "width"),
    [("light", "light", 1280), ("dark", "dark", 1280), ("narrow", "light", 390)],
)
def test_nobody_is_kept_out(browser, made, axe, artefacts, look, scheme, width):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    opened = context.new_page()
    opened.goto(made[3].as_uri())
    opened.click("#instances tbody tr:first-child button")
    opened.evaluate(axe)
    found = opened.evaluate("axe.run()")
    serious = [
        (rule["id"], rule["nodes"][0]["html"])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    too_wide = opened.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    opened.screenshot(path=artefacts / f"model_{look}.png", full_page=True)
    context.close()
    assert serious == []
    assert too_wide <= 0

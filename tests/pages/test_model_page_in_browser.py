"""The page of a model as a person uses it, in a real browser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import labelsure as ls

pytestmark = pytest.mark.jit_only

NAMES = [*(f"label {letter}" for letter in "abcdefg"), "<script>label h</script>"]
N = 2_000
ODD = "=cmd|' /C calc'!A0"
HIDDEN = "\ufeff＝cmd"  # noqa: RUF001, begins with a byte order mark and has a full-width operator


KEEP_FEW_ROWS = """
for (const row of [...document.querySelectorAll("#instances tbody tr")].slice(12)) row.remove()
"""
"""For the audit, which takes seconds for a hundred rows: all of them are made in the same way."""


def draw(n, seed):
    rng = np.random.default_rng(seed)
    P = rng.beta(0.5, 0.9, size=(n, len(NAMES)))
    ids = pd.Index([f"ticket-{i}" for i in range(n)])
    Y = (rng.random(P.shape) < P).astype(int)
    return pd.DataFrame(P, ids, NAMES), pd.DataFrame(Y, ids, NAMES)


def with_texts(P):
    texts = [f"message {i:04d} <script>document.title = 'changed'</script>" for i in range(len(P))]
    texts[::50] = [f"{ODD}{i:04d}" for i in range(0, len(P), 50)]  # some are in the sample
    texts[25::50] = [f"{HIDDEN}{i:04d}" for i in range(25, len(P), 50)]
    return P.assign(message=texts)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a model, instances, their truth, the page of them as a file, and its data."""
    P, Y = draw(2000, 0)
    columns = FunctionTransformer(lambda X: X[NAMES])
    inner = make_pipeline(columns, ls.PrecomputedProbabilities()).fit(with_texts(P), Y)
    model = ls.AccuracyAwareClassifier(FrozenEstimator(inner), target=0.62, random_state=0)
    P, Y = draw(N, 1)
    X = with_texts(P)
    path = tmp_path_factory.mktemp("pages") / "model.html"
    page = model.fit(with_texts(draw(2000, 0)[0]), draw(2000, 0)[1]).report(
        X, Y, show=["message"], title="Tickets of a week"
    )
    return model, X, Y, page.save(path), page.data


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


def columns_of(page, place):
    return page.locator(
        f"#instances tbody tr:not([hidden]) td:nth-child({place})"
    ).all_inner_texts()


def test_the_slider_shows_what_the_model_accepts_and_what_holds_there(page, made):
    model, X, Y, _, data = made
    estimated = model.predict_accuracy(X)
    accuracy = ls.accuracy(Y, model.predict(X), "jaccard")
    slider = page.locator("#threshold")

    def check():
        place = page.evaluate("Number(document.getElementById('threshold').value)")
        stops = sorted(map(int, data["acceptance"]["stops"]))
        place = place if page.is_checked("#between") else stops[place]
        taken = estimated >= data["acceptance"]["thresholds"][place]
        share = float(text_of(page, "#accepted-share").removesuffix("%"))
        assert share == pytest.approx(100 * taken.mean(), abs=0.051)
        assert page.inner_text("#accepted-count") == f"{taken.sum():,} of {N:,} rows"
        assert page.inner_text("#referred-count") == f"{N - taken.sum():,}"
        if taken.any():
            for name, values in (("estimated", estimated), ("actual", accuracy)):
                shown = float(text_of(page, f"#accepted-{name}"))
                assert shown == pytest.approx(values[taken].mean(), abs=6e-4)
        by_id = dict(zip(X.index, taken, strict=True))
        for name, verdict in zip(columns_of(page, 1), columns_of(page, 6), strict=True):
            assert verdict == ("accept" if by_id[name] else "refer")
        return page.inner_text("#holds")

    assert check().startswith("Guaranteed: predictions accepted here average at least 0.62")
    said = []
    slider.press("Home")
    for _ in range(len(data["acceptance"]["stops"])):
        said.append(check())
        slider.press("ArrowRight")
    assert sum(text.startswith("Guaranteed") for text in said) == 1
    assert sum(text.startswith("Bound") for text in said) == len(said) - 2
    assert said[-1] == "Nothing is accepted."
    page.check("#between")
    slider.press("Home")
    slider.press("ArrowRight")
    assert check() == "No guarantee at this threshold."
    page.click("#to-own")
    assert check().startswith("Guaranteed")
    page.uncheck("#between")
    assert check().startswith("Guaranteed")


def test_search_and_filters(page, made):
    instances = made[4]["explorer"]["instances"]

    def n_found():
        n = int(page.inner_text("#found").split()[0])
        assert n == len(columns_of(page, 1))
        return n

    def has(instance, label):
        return label in instance["predicted"] or label in instance["truth"]

    assert n_found() == len(instances) == 500
    page.select_option("#label", "label c")
    assert n_found() == sum(has(i, "label c") for i in instances)
    page.select_option("#verdict", "wrong")
    assert n_found() == sum(has(i, "label c") and i["predicted"] != i["truth"] for i in instances)
    page.select_option("#label", "")
    for verdict in ("accept", "refer"):
        page.select_option("#verdict", verdict)
        assert set(columns_of(page, 6)) == {verdict}
    page.select_option("#verdict", "")
    page.fill("#search", instances[7]["shown"][0])
    assert columns_of(page, 1) == [instances[7]["id"]]
    page.fill("#search", "LABEL C")
    assert n_found() == sum(has(i, "label c") for i in instances)
    page.fill("#search", "there is no such label")
    assert n_found() == 0


def test_tables_sort_by_a_click_on_a_head(page):
    shown = [float(text) for text in columns_of(page, 5)]
    assert shown == sorted(shown)  # the most doubtful first
    for head, place in (("estimated Jaccard", 5), ("id", 1)):
        button = page.locator("#instances thead").get_by_role("button", name=head, exact=True)
        for direction in ("ascending", "descending"):
            button.click()
            cell = button.locator("xpath=..")
            if cell.get_attribute("aria-sort") != direction:
                button.press("Enter")
            values = columns_of(page, place)
            values = values if place == 1 else [float(value) for value in values]
            assert values == sorted(values, reverse=direction == "descending")
    cells = "#labels table >> nth=0 >> tbody td:nth-child(2)"
    page.locator("#labels table").first.get_by_role("button", name="predicted rows").click()
    values = [int(text.replace(",", "")) for text in page.locator(cells).all_inner_texts()]
    assert values == sorted(values)


def test_a_prediction_beside_its_input_truth_and_runner_up(page, made):
    _, X, _, _, data = made
    for instance in data["explorer"]["instances"][:20]:
        page.fill("#search", instance["shown"][0])
        row = page.locator("#instances tbody tr:not([hidden])")
        own, true, other = (set(instance[key]) for key in ("predicted", "truth", "runner_up"))
        for kind, labels in (("right", own & true), ("added", own - true), ("missed", true - own)):
            tags = row.locator(f".tag.{kind}").all_inner_texts()
            assert sorted(tag.split(",")[0].strip() for tag in tags) == sorted(labels)
        text = row.locator("td:nth-child(4)").inner_text()
        for word, labels in (("without", own - other), ("with", other - own)):
            named = ", ".join(name for name in NAMES if name in labels)
            assert (f"{word} {named}" in text) == bool(labels)
        p = instance["probability"], instance["runner_up_probability"]
        if min(p) >= 0.005:
            assert text.endswith(f" ({p[1]:.2f}; predicted {p[0]:.2f})")
        assert row.locator("td:nth-child(2)").inner_text() == X.loc[instance["id"], "message"]
    opener = row.locator("button.open")
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    assert row.locator(".bars").is_visible()
    page.keyboard.press("Enter")
    assert row.locator(".bars").count() == 0


def test_what_is_shown_can_be_downloaded_and_computes_nothing(page, made, tmp_path):
    instances = made[4]["explorer"]["instances"]
    with page.expect_download() as started:
        page.click("#download")
    started.value.save_as(tmp_path / "all.csv")
    frame = pd.read_csv(tmp_path / "all.csv", index_col="id", keep_default_na=False)
    assert list(frame.index) == columns_of(page, 1)
    for instance in instances:
        row = frame.loc[instance["id"]]
        for column in ("predicted", "truth", "runner_up"):
            assert row[column] == ";".join(instance[column])
        assert row["estimated"] == instance["estimated"]
        (text,) = instance["shown"]
        assert row["message"] == (f"'{text}" if text.startswith((ODD, HIDDEN)) else text)
    for odd in (ODD, HIDDEN):
        assert frame["message"].str.startswith(f"'{odd}").sum() > 1
    page.fill("#search", instances[3]["shown"][0])
    with page.expect_download() as started:
        page.click("#download")
    started.value.save_as(tmp_path / "one.csv")
    assert list(pd.read_csv(tmp_path / "one.csv")["id"]) == [instances[3]["id"]]


def test_texts_and_names_are_only_text(page):
    assert page.title() == "Tickets of a week"
    assert "<script>document.title" in page.inner_text("#instances")
    assert "<script>label h</script>" in page.inner_text("#labels")
    assert page.locator("script").count() == 2


def test_the_browser_runs_no_script_but_the_page_s_own(browser, made, tmp_path):
    """Should a text ever get into the page unescaped, its content security policy is left."""
    hostile = (
        "<script>document.title = 'script'</script><img src=x onerror=\"document.title = 'image'\">"
        "<svg onload=\"document.title = 'drawing'\"></svg>"
    )
    changed = tmp_path / "changed.html"
    text = made[3].read_text(encoding="utf-8")
    changed.write_text(text.replace("</header>", f"</header>{hostile}"), encoding="utf-8")
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(changed.as_uri())
    assert opened.title() == "Tickets of a week"
    assert opened.locator("#instances tbody tr").count() > 0  # the page's own script has run
    context.close()


@pytest.mark.parametrize(
    ("look", "scheme", "width"),
    [("light", "light", 1280), ("dark", "dark", 1280), ("narrow", "light", 420)],
)
def test_nobody_is_kept_out(browser, made, axe, artefacts, look, scheme, width):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    opened = context.new_page()
    opened.goto(made[3].as_uri())
    opened.locator("#instances tbody button.open").first.click()
    opened.evaluate(KEEP_FEW_ROWS)
    opened.evaluate(axe)
    found = opened.evaluate("axe.run()")
    barriers = [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]
    too_wide = opened.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    opened.screenshot(path=artefacts / f"model_{look}.png", full_page=True)
    context.close()
    assert barriers == []
    assert too_wide <= 0


def test_rows_outside_of_the_input_ranges_count_as_referred(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = (X[:, :2] + rng.normal(size=(400, 2)) > 0).astype(int)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "hamming", 0.5, random_state=0)
    model.fit(X[:300], Y[:300])
    batch = np.concatenate([X[300:], np.full((5, 3), 1e6)])
    path = model.report(batch).save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator("#threshold").press("Home")
    assert page.inner_text("#accepted-count") == "100 of 105 rows"
    assert page.inner_text("#referred-count") == "5"
    page.close()

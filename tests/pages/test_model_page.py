"""The page of a model: its numbers against loops, its size, and what texts cannot do to it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from oracles_pages import accept_by_loops, count_confusions_by_loops
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import labelsure as ls
from labelsure._runtime.pages import Page, encode_json
from labelsure.model import _model_report as explorer
from labelsure.model._model_report import PageBatch, make_model_report

NAMES = ["red", "green", "</script><b>blue", "dark & 'deep'"]


def draw(n, seed, names=NAMES):
    rng = np.random.default_rng(seed)
    ids = pd.Index([f"t{i}" for i in range(n)])
    P = rng.beta(0.5, 0.6, size=(n, len(names)))
    Y = (rng.random(P.shape) < P).astype(int)
    return pd.DataFrame(P, ids, names), pd.DataFrame(Y, ids, names)


def named(row):
    """Return the names of the labels that are set."""
    return [name for name, is_set in zip(NAMES, row, strict=True) if is_set]


def make_model(target=0.75, n=1000, names=NAMES, **settings):
    P, Y = draw(n, 0, names)
    fitted = FrozenEstimator(ls.PrecomputedProbabilities().fit(P, Y))
    settings = {"metric": "jaccard", "target": target, "random_state": 0, **settings}
    return ls.AccuracyAwareClassifier(fitted, decision="mode", **settings).fit(P, Y)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def batch():
    return draw(300, 1)


def test_numbers_of_the_slider_are_those_of_loops(model, batch):
    P, Y = batch
    accept = model.report(P, Y).data["acceptance"]
    estimated = model.predict_accuracy(P)
    actual = ls.accuracy(Y, model.predict(P), "jaccard")
    assert len(accept["thresholds"]) > 200
    for values, shown in ((estimated, "estimated"), (actual, "actual")):
        for i, threshold in enumerate(accept["thresholds"]):
            n, mean = accept_by_loops(estimated, values, threshold)
            assert accept["n"][i] == n
            assert accept[shown][i] == pytest.approx(mean, abs=6e-5)
    assert model.report(P).data["acceptance"]["actual"] is None


def test_the_slider_stops_at_the_policys_threshold_and_at_those_of_its_path(model, batch):
    accept = model.report(*batch).data["acceptance"]
    own = accept["own"]
    assert accept["thresholds"][own] == model.policy_.threshold_
    assert accept["n"][own] == model.accept(batch[0]).sum()
    assert accept["stops"][str(own)]["holds"] == (
        "Guaranteed: predictions accepted here average at least 0.75 Jaccard (95% confidence)."
    )
    path = model.policy_.path().to_frame()
    held = {
        accept["thresholds"][int(place)]: stop["holds"]
        for place, stop in accept["stops"].items()
        if int(place) != own
    }
    for threshold, bound in zip(path["threshold"].clip(0), path["bound"], strict=True):
        said = held.pop(threshold)
        assert said.startswith("Bound: ")
        assert float(re.search("at least (.*) Jaccard", said)[1]) <= bound
        assert float(re.search("at least (.*) Jaccard", said)[1]) > bound - 0.001
    assert held == {2.0: "Nothing is accepted."}
    assert accept["elsewhere"] == "No guarantee at this threshold."
    assert sum("uaranteed" in stop["holds"] for stop in accept["stops"].values()) == 1


@pytest.mark.filterwarnings("ignore::labelsure.ShiftWarning")
def test_intervals_of_the_accepted_are_those_of_a_batch_of_them(model, batch):
    # A share is reached by the score of a calibration row, which is accepted itself.
    for fitted, P in ((model, batch[0]), (make_model(target=None, share=0.7), draw(800, 0)[0])):
        accept = fitted.report(P).data["acceptance"]
        estimated = fitted.predict_accuracy(P)
        for place, stop in accept["stops"].items():
            taken = estimated >= accept["thresholds"][int(place)]
            assert accept["n"][int(place)] == taken.sum()
            if not taken.any():
                assert stop["interval"] is None
                continue
            found = fitted.estimate(P[taken], shift="ignore")
            assert [found.low, found.high] == pytest.approx(stop["interval"], abs=5.1e-4)
            if stop["own"]:
                first = fitted.report(P).data["answer"][1]
                assert f"{found.low:.3f} to {found.high:.3f}" in first
    assert (estimated == fitted.policy_.threshold_).any()


def test_a_threshold_between_two_steps_is_there_too(batch):
    model = make_model(target=None, share=0.7)
    data = model.report(*batch).data
    accept = data["acceptance"]
    assert accept["n"][accept["own"]] == model.accept(batch[0]).sum()
    assert data["answer"][1].startswith("The share to accept was set to 70%.")


def tell(model, P, Y=None):
    data = model.report(P, Y).data
    return data, *data["answer"]


def test_the_first_sentence_says_what_can_go_out(model, batch):
    P, _ = batch
    n, found = int(model.accept(P).sum()), model.estimate(P[model.accept(P)], shift="ignore")
    _, first, second = tell(model, P)
    assert first == (
        f"{n} of 300 predictions ({n / 300:.0%}) can go out unreviewed; {300 - n} need review."
    )
    assert second == (
        "Predictions accepted by this rule average at least 0.75 Jaccard (95% confidence); "
        f"estimated for these {n}: {found.low:.3f} to {found.high:.3f}."
    )
    accepted = P[model.accept(P)]
    assert tell(model, accepted[:29])[1] == "All 29 predictions can go out unreviewed."
    assert (
        "(95% confidence) if this batch is like the calibration set;"
        in (tell(model, accepted[:29])[2])
    )
    _, first, second = tell(model, P[~model.accept(P)][:29])
    assert first.startswith("All 29 predictions need review: none reaches the threshold 0.")
    assert second.endswith(f"of {model.policy_.n_samples_} calibration rows do.")


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_the_first_sentence_where_nothing_is_guaranteed(batch):
    P, Y = batch
    data, first, second = tell(make_model(target=0.999), P)
    assert (first, second[:35]) == (
        "All 300 predictions need review.",
        "No threshold reaches a mean Jaccard",
    )
    assert data["acceptance"]["own"] is None
    assert any(stop["holds"].startswith("Bound") for stop in data["acceptance"]["stops"].values())
    _, first, second = tell(make_model(target=None), P)
    assert first.startswith("300 predictions, estimated mean Jaccard 0.")
    assert second.startswith("No target was set")
    folds = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), target=0.4, cv=3, random_state=0, decision="mode"
    ).fit(P, Y)
    data, first, second = tell(folds, P)
    assert "unreviewed" not in first
    assert second.startswith("No guarantee, as the model was cross-fitted; estimated for these")
    said = {stop["holds"] for stop in data["acceptance"]["stops"].values()}
    assert said == {"No guarantee: the model was cross-fitted.", "Nothing is accepted."}
    assert any(note.startswith("Not tested for shift") for note in data["notes"])


@pytest.mark.filterwarnings("ignore::labelsure.ShiftWarning")
def test_nothing_is_guaranteed_on_a_page_whose_batch_has_shifted(model):
    P = draw(300, 4)[0].clip(0.3, 0.7)
    P.iloc[:100] = 0.999
    page = model.report(P)
    assert page.data["alert"].startswith("Do not rely on this. The batch differs from")
    assert page.data["answer"][0].startswith("Do not send out any prediction unreviewed: 1")
    shown = page.html.partition("<script")[0]
    assert shown.index('role="alert"') < shown.index("<h1>")
    assert "uaranteed" not in shown
    assert not any("uaranteed" in s["holds"] for s in page.data["acceptance"]["stops"].values())
    assert not any("least" in s["holds"] for s in page.data["acceptance"]["stops"].values())


@pytest.mark.parametrize(
    ("part", "whole", "said"), [(1, 999, "1%"), (998, 999, "99%"), (3, 3, "100%")]
)
def test_shares_are_not_rounded_to_none_or_all(part, whole, said):
    assert explorer._percent(part, whole) == said


def test_bounds_are_never_rounded_up():
    assert [explorer._format_bound(b) for b in (0.98, 0.9999, 0.57, 0.1234)] == [
        "0.98",
        "0.999",
        "0.57",
        "0.123",
    ]


def test_labels_and_confusions_are_those_of_loops(model, batch):
    P, Y = batch
    Y_true, Y_pred = Y.to_numpy(), model.predict(P)
    data = model.report(P, Y).data
    by_name = {row["name"]: row for row in data["labels"]["rows"]}
    for j, name in enumerate(NAMES):
        hit, n_predicted, n_true = (
            x.sum() for x in (Y_true[:, j] & Y_pred[:, j], Y_pred[:, j], Y_true[:, j])
        )
        row = by_name[name]
        assert row["n_predicted"] == n_predicted
        actual = (n_true / 300, hit / n_predicted, hit / n_true, 2 * hit / (n_predicted + n_true))
        for measure, value in zip(("prevalence", "precision", "recall", "f1"), actual, strict=True):
            assert row[f"actual_{measure}"] == pytest.approx(value, abs=6e-4)
    counts = count_confusions_by_loops(Y_true, Y_pred)
    shown = {(r["missed"], r["added"]): r["n"] for r in data["confusions"]}
    assert shown == {(NAMES[i], NAMES[j]): n for (i, j), n in counts.items()}


def test_labels_are_estimated_without_truth_as_estimate_labels_does(model, batch):
    P, _ = batch
    labels = model.report(P).data["labels"]
    assert (labels["is_estimated"], labels["n_rows"]) == (True, 300)
    table = model.estimate_labels(P).to_frame()
    for row in labels["rows"]:
        assert "actual_f1" not in row
        for measure, name, scale in (("prevalence", "n_true", 300), ("f1", "f1", 1)):
            exact = table.loc[row["name"], [name, f"{name}_low", f"{name}_high"]] / scale
            assert row[measure] == pytest.approx(exact.tolist(), abs=6e-4)


def test_a_page_without_truth_says_nothing_of_confusions(model, batch):
    report = model.report(batch[0])
    assert report.data["confusions"] == []
    assert "confused" not in report.html
    assert "Labels that are confused" in model.report(*batch).html


def test_instances_hold_what_the_distribution_says(model, batch):
    P, Y = batch
    data = model.report(P, Y).data
    shown = {entry["id"]: entry for entry in data["explorer"]["instances"]}
    assert len(shown) == 300
    assert data["explorer"]["note"] == "All 300 predictions."
    dist, found = model.predict_distribution(P), model.assess(P)
    for i in range(0, 300, 7):
        entry = shown[f"t{i}"]
        assert entry["predicted"] == named(found.Y_pred[i])
        assert entry["truth"] == named(Y.iloc[i])
        assert entry["estimated"] == round(float(found.accuracy[i]), 3)
        assert (entry["step"] >= data["acceptance"]["own"]) == found.accepted[i]
        reached = found.accuracy[i] >= np.array(data["acceptance"]["thresholds"])
        assert entry["step"] == np.flatnonzero(reached)[-1]
        assert dict(map(tuple, entry["probabilities"])) == {
            name: round(float(P.loc[f"t{i}", name]), 3) for name in NAMES
        }
        best = dist[i].top(2)  # the mode is predicted, so that the second is the runner-up
        assert entry["runner_up"] == named(best.labelsets[0, 1])
        assert [entry["probability"], entry["runner_up_probability"]] == pytest.approx(
            best.probabilities[0], abs=6e-4
        )


def test_only_named_columns_of_the_input_are_in_the_file(batch):
    P, Y = batch
    X = P.assign(message=["secret " * 99] * 300, name="Ada")
    pipeline = make_pipeline(FunctionTransformer(lambda X: X[NAMES]), ls.BinaryRelevance())
    model = ls.AccuracyAwareClassifier(pipeline, random_state=0).fit(X, Y)
    assert "secret" not in model.report(X).html
    page = model.report(X, show=["message"])
    assert "Ada" not in page.html
    assert page.data["explorer"]["columns"] == ["message"]
    (text,) = page.data["explorer"]["instances"][0]["shown"]
    assert (len(text), text[-1]) == (200, "…")
    assert explorer._truncate("x" * 200) == "x" * 200
    assert len(explorer._truncate("x" * 201)) == 200
    with pytest.raises(ls.InputError, match="'massage'"):
        model.report(X, show=["massage"])
    with pytest.raises(ls.InputError, match="DataFrame"):
        explorer.choose_columns(P.to_numpy(), ["message"])


def test_texts_that_are_the_input_are_shown():
    texts = [f"{'wet' * (i % 2)} {'hot' * (i % 3)} day {i}" for i in range(200)]
    Y = [[i % 2, int(i % 3 > 0)] for i in range(200)]
    pipeline = make_pipeline(CountVectorizer(), KNeighborsClassifier())
    model = ls.AccuracyAwareClassifier(pipeline, random_state=0).fit(texts, Y)
    for X in (texts, np.array(texts), pd.Series(texts)):
        shown = model.report(X).data["explorer"]
        assert shown["columns"] == ["text"]
        assert [row["shown"] for row in shown["instances"]] == [[text] for text in texts]


def test_batches_add_up(model, batch):
    P, Y = batch
    whole = model.report(P, Y, title="x").data
    parts = [
        PageBatch(model.fitted_.predictor.predict(P[rows]), Y[rows].to_numpy(dtype=np.int8))
        for rows in (slice(0, 120), slice(120, 300))
    ]
    joined = make_model_report(model.fitted_, parts, "x").data
    whole["explorer"]["instances"].sort(key=lambda entry: entry["id"])
    joined["explorer"]["instances"].sort(key=lambda entry: entry["id"])
    for key in ("acceptance", "labels", "confusions", "explorer", "batch", "reliability"):
        assert joined[key] == whole[key]


def test_reliability_is_that_of_the_batch_where_its_truth_is_known(model, batch):
    P, Y = batch
    found = model.report(P, Y).data["reliability"]
    exact = ls.reliability(model.predict_accuracy(P), ls.accuracy(Y, model.predict(P), "jaccard"))
    assert found["error"] == pytest.approx(exact.expected_calibration_error)
    assert [row["n_samples"] for row in found["rows"]] == exact.to_frame()["n_samples"].tolist()
    without = model.report(P).data["reliability"]
    assert "when the model was made" in without["source"]
    assert [row["n_samples"] for row in without["rows"]] == model.card_.calibration["n_samples"]


def test_a_page_of_the_model_alone(model):
    page = model.report()
    assert page.data["batch"] is None
    assert "A model of 4 labels: estimated mean Jaccard 0." in page.html
    assert 'id="threshold"' not in page.html


def test_the_model_is_named_as_its_user_knows_it(model):
    P, Y = draw(60, 2)
    here = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=5, random_state=0).fit(P, Y)
    classifiers = [dict(each.report().data["facts"])["classifier"] for each in (model, here)]
    assert classifiers == ["PrecomputedProbabilities, fitted beforehand", "BinaryRelevance"]


def test_the_sample_is_drawn_at_random_and_said_to_be_one(model, monkeypatch):
    counts = np.zeros(1000)
    for seed in range(40):
        sample = explorer.RowSample(50, seed)
        for first, stop in ((0, 10), (10, 600), (600, 1000)):
            part = list(range(first, stop))
            sample.add(len(part), lambda rows, part=part: [part[i] for i in rows])
        assert len(set(sample.rows)) == 50
        counts[sample.rows] += 1
    for part in (slice(0, 200), slice(400, 600), slice(800, 1000)):
        assert counts[part].sum() == pytest.approx(400, abs=5 * 400**0.5)
    monkeypatch.setattr(explorer, "MAX_INSTANCES", 50)
    shown = model.report(draw(1000, 2)[0]).data["explorer"]
    assert shown["note"] == "A random sample: 50 of 1,000 predictions."


def test_the_page_stays_small_whatever_the_number_of_rows(monkeypatch):
    names = [f"a rather long name of a label, number {i}" for i in range(14)]
    model = make_model(target=0.6, n=400, names=names)
    page = model.report(*draw(5000, 3, names))
    assert len(page.html.encode()) < 1_000_000
    instances = page.data["explorer"]["instances"]
    assert len(encode_json(instances).encode()) <= explorer.MAX_BYTES + len(instances) + 2
    assert f"A random sample: {len(instances):,} of 5,000" in page.html
    monkeypatch.setattr(explorer, "MAX_BYTES", 2000)
    few = model.report(*draw(500, 3, names)).data["explorer"]
    assert 0 < len(few["instances"]) < 10


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href", "srcset", "action")]


def test_names_of_labels_are_only_text_and_nothing_is_asked_of_the_network(model, batch):
    page = model.report(*batch, title="<b>mine</b>")
    html = page.html
    found = Collector()
    found.feed(html)
    assert "b" not in found.tags
    assert found.tags.count("script") == 2
    assert all(a.startswith(("#", "data:")) for a in found.addresses)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", html)
    embedded = re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1)
    assert json.loads(embedded) == json.loads(
        json.dumps(model.report(*batch, title="<b>mine</b>").data)
    )


def test_a_page_is_saved_as_a_whole_and_shown_in_notebooks(model, tmp_path):
    page = model.report(title="Tickets")
    path = page.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert "<h1>" not in page._repr_html_()
    assert repr(page) == "Page('model', 'Tickets')"


def test_one_label_and_a_vector_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), metric="exact", random_state=0)
    data = model.fit(X, y).report(X[:100], y[:100]).data
    accuracy = (model.predict(X[:100]) == y[:100]).mean()
    assert data["acceptance"]["actual"][0] == pytest.approx(accuracy, abs=6e-5)
    html = Page("model", data).html
    assert "No target was set" in html
    assert "estimated mean exact match" in html


def test_the_explorer_says_which_labels_are_better_left_open(model, batch):
    P, _ = batch
    answers = model.assess(P).leave_open(0.2)
    shown = model.report(P, open_cost=0.2).data["explorer"]["instances"]
    assert [one["open"] for one in shown] == [named(row) for row in answers.is_open]
    assert [one["decided"] for one in shown] == [named(row) for row in answers.is_certain]
    assert "open" not in model.report(P).data["explorer"]["instances"][0]


def test_labels_that_do_not_occur_are_counted(monkeypatch):
    monkeypatch.setattr(explorer, "N_LABELS", 2)
    names = [f"label {j}" for j in range(6)]
    rows = explorer.PageRows(make_model(target=None, n=100, names=names).fitted_, None)
    rows.n_predicted += np.array([0, 3, 0, 0, 1, 0])
    rows.n_true[5] = 2
    described = rows._describe_labels(10)
    assert [row["name"] for row in described["rows"]] == ["label 1", "label 5"]
    assert (described["n_left_out"], described["n_absent"]) == (1, 3)
    assert not described["is_estimated"]

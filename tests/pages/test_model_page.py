"""The page of a model: its numbers against loops, its size, and what texts cannot do to it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from oracles_pages import accept_by_loops, count_confusions_by_loops
from sklearn.frozen import FrozenEstimator

import labelsure as ls
from labelsure._runtime.pages import Page, encode_json
from labelsure.metrics.registry import JACCARD
from labelsure.model import _model_report as explorer
from labelsure.model._model_report import BatchTotals, make_model_report

NAMES = ["red", "green", "</script><b>blue", "dark & 'deep'"]
METRICS = ("exact", "hamming", "jaccard", "f1", "recall", "precision")


def draw(n, seed, names=NAMES):
    rng = np.random.default_rng(seed)
    ids = pd.Index([f"t{i}" for i in range(n)])
    P = rng.beta(0.5, 0.6, size=(n, len(names)))
    Y = (rng.random(P.shape) < P).astype(int)
    return pd.DataFrame(P, ids, names), pd.DataFrame(Y, ids, names)


def make_model(target=0.6, n=800, names=NAMES, **settings):
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
    data = model.report(P, Y).data
    estimated, Y_pred = model.predict_accuracy(P), model.predict(P)
    accept = data["acceptance"]
    assert set(accept["accuracy"]) == set(METRICS)
    for metric in METRICS:
        accuracy = ls.accuracy(Y, Y_pred, metric)
        shown = accept["accuracy"][metric]
        assert shown["source"] == "actual, by the truth"
        for i, threshold in enumerate(accept["thresholds"]):
            n, mean = accept_by_loops(estimated, accuracy, threshold)
            assert accept["n"][i] == n
            assert shown["values"][i] == pytest.approx(mean, abs=6e-5)


def test_without_a_truth_the_estimate_or_the_models_belief_is_shown(model, batch):
    P, _ = batch
    data = model.report(P).data
    estimated = model.predict_accuracy(P)
    assert not data["batch"]["has_truth"]
    for metric in METRICS:
        shown = data["acceptance"]["accuracy"][metric]
        expected = ls.expected_accuracy(ls.as_distribution(P), metric=metric).value
        values = estimated if metric == "jaccard" else expected
        assert shown["source"].startswith("estimated" if metric == "jaccard" else "what the model")
        for i in (0, 60, 120, 180):
            threshold = data["acceptance"]["thresholds"][i]
            n, mean = accept_by_loops(estimated, values, threshold)
            assert (data["acceptance"]["n"][i], shown["values"][i]) == (
                n,
                pytest.approx(mean, abs=6e-5),
            )


def test_the_policys_threshold_is_one_of_the_slider(model, batch):
    accept = model.report(*batch).data["acceptance"]
    assert accept["thresholds"][accept["policy"]] == model.policy_.threshold_
    assert accept["n"][accept["policy"]] == model.accept(batch[0]).sum()


def test_a_threshold_between_two_steps_is_there_too(batch):
    model = make_model(target=None, share=0.7)
    accept = model.report(*batch).data["acceptance"]
    assert len(accept["thresholds"]) == 202
    assert accept["n"][accept["policy"]] == model.accept(batch[0]).sum()


def test_labels_and_confusions_are_those_of_loops(model, batch):
    P, Y = batch
    Y_true, Y_pred = Y.to_numpy(), model.predict(P)
    data = model.report(P, Y).data
    by_name = {row["name"]: row for row in data["labels"]["rows"]}
    for j, name in enumerate(NAMES):
        hit = (Y_true[:, j] & Y_pred[:, j]).sum()
        row = by_name[name]
        assert row["n_predicted"] == Y_pred[:, j].sum()
        assert row["n_true"] == Y_true[:, j].sum()
        assert row["precision"] == pytest.approx(hit / Y_pred[:, j].sum())
        assert row["recall"] == pytest.approx(hit / Y_true[:, j].sum())
        assert row["sum_probability"] == pytest.approx(P[name].sum(), abs=0.06)
    counts = count_confusions_by_loops(Y_true, Y_pred)
    shown = {(r["missed"], r["added"]): r["n"] for r in data["confusions"]}
    assert shown == {(NAMES[i], NAMES[j]): n for (i, j), n in counts.items()}


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
    for i in (0, 17, 299):
        entry = shown[f"t{i}"]
        assert entry["predicted"] == np.flatnonzero(found.Y_pred[i]).tolist()
        assert entry["truth"] == np.flatnonzero(Y.iloc[i]).tolist()
        assert entry["is_exact"] == (entry["truth"] == entry["predicted"])
        assert entry["estimated"] == round(float(found.accuracy[i]), 3)
        assert entry["advice"] == ("accept" if found.accepted[i] else "refer")
        assert dict(map(tuple, entry["probabilities"])) == {
            j: round(float(P.iloc[i, j]), 3) for j in range(4)
        }
        best = dist[i].top(5)
        for (labels, probability, expected), rows, p in zip(
            entry["best"], best.labelsets[0], best.probabilities[0], strict=True
        ):
            assert (labels, probability) == (np.flatnonzero(rows).tolist(), round(float(p), 3))
            for metric, value in zip(data["metrics"], expected, strict=True):
                exact = ls.expected_accuracy(dist[i], [rows], metric=metric["name"]).value[0]
                assert value == pytest.approx(exact, abs=6e-4)


def test_batches_add_up(model, batch):
    P, Y = batch
    whole = model.report(P, Y, title="x").data
    parts = [
        (model.predict_distribution(P[rows]), None, Y[rows].to_numpy(dtype=np.int8))
        for rows in (slice(0, 120), slice(120, 300))
    ]
    joined = make_model_report(model, parts, "x").data
    whole["explorer"]["instances"].sort(key=lambda entry: entry["id"])
    joined["explorer"]["instances"].sort(key=lambda entry: entry["id"])
    found, expected = (data["batch"].pop("estimate") for data in (joined, whole))
    assert found == pytest.approx(expected, rel=1e-13)  # sums of parts differ by rounding
    for key in ("acceptance", "labels", "confusions", "explorer", "batch", "tiles", "reliability"):
        assert joined[key] == whole[key]


def test_reliability_is_that_of_the_batch_where_its_truth_is_known(model, batch):
    P, Y = batch
    found = model.report(P, Y).data["reliability"]
    exact = ls.reliability(model.predict_accuracy(P), ls.accuracy(Y, model.predict(P), "jaccard"))
    assert found["error"] == pytest.approx(exact.expected_calibration_error)
    assert [row["n"] for row in found["rows"]] == exact.table["n_samples"].tolist()
    without = model.report(P).data["reliability"]
    assert "when the model was made" in without["source"]
    assert [row["n"] for row in without["rows"]] == model.card_.calibration["n_samples"]


def test_a_page_of_the_model_alone(model):
    page = model.report()
    assert page.data["batch"] is None
    assert "A model of 4 labels." in page.html
    assert 'id="threshold"' not in page.html


def test_the_model_is_named_as_its_user_knows_it(model):
    P, Y = draw(60, 2)
    here = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=5, random_state=0).fit(P, Y)
    classifiers = [dict(each.report().data["facts"])["classifier"] for each in (model, here)]
    assert classifiers == ["PrecomputedProbabilities, fitted beforehand", "BinaryRelevance"]


def test_the_sample_is_drawn_at_random_and_said_to_be_one(model, monkeypatch):
    monkeypatch.setattr(explorer, "MAX_INSTANCES", 50)
    P, _ = draw(1000, 2)
    counts = np.zeros(1000)
    for seed in range(40):
        sample = explorer.InstanceSample([JACCARD], 1.0, 4, seed=seed)
        for rows in (slice(0, 10), slice(10, 600), slice(600, 1000)):
            sample.add(model.assess(P[rows]), None)
        shown = sample.describe(NAMES, 4)
        counts[[int(entry["id"][1:]) for entry in shown["instances"]]] += 1
    assert shown["note"] == "A random sample: 50 of 1,000 predictions."
    assert counts.sum() == 40 * 50
    for part in (slice(0, 200), slice(400, 600), slice(800, 1000)):
        assert counts[part].sum() == pytest.approx(400, abs=5 * 400**0.5)


def test_the_page_stays_small_whatever_the_number_of_rows(monkeypatch):
    names = [f"a rather long name of a label, number {i}" for i in range(14)]
    model = make_model(n=400, names=names)
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
    page = model.report(*batch, title="<i>mine</i>")
    html = page.html
    found = Collector()
    found.feed(html)
    assert not {"b", "i"} & set(found.tags)
    assert found.tags.count("script") == 2
    assert all(a.startswith(("#", "data:")) for a in found.addresses)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", html)
    embedded = re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1)
    assert json.loads(embedded) == json.loads(
        json.dumps(model.report(*batch, title="<i>mine</i>").data)
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
    assert data["policy"] is None
    accuracy = (model.predict(X[:100]) == y[:100]).mean()
    assert data["acceptance"]["accuracy"]["exact"]["values"][0] == pytest.approx(accuracy, abs=6e-5)
    assert "No target was set" in Page("model", data).html


def test_many_labels_get_fewer_instances():
    assert explorer.InstanceSample([], 1.0, 51).size == explorer.FEW_INSTANCES
    assert explorer.InstanceSample([], 1.0, 50).size == explorer.MAX_INSTANCES


def test_the_explorer_says_which_labels_are_better_left_open(model, batch):
    P, _ = batch
    answers = model.assess(P).leave_open(0.2)
    shown = model.report(P, open_cost=0.2).data["explorer"]["instances"]
    assert [one["open"] for one in shown] == [
        np.flatnonzero(row).tolist() for row in answers.is_open
    ]
    assert [one["decided"] for one in shown] == [
        np.flatnonzero(row).tolist() for row in answers.is_certain
    ]
    assert "open" not in model.report(P).data["explorer"]["instances"][0]


@pytest.mark.filterwarnings("ignore::labelsure.ShiftWarning")
def test_of_many_labels_those_that_are_shown_have_names(monkeypatch):
    names = [f"label {j}" for j in range(30)]
    model, (P, Y) = make_model(target=None, n=100, names=names), draw(40, 1, names)
    P.iloc[:, 10:] = 1e-4 / np.outer(np.arange(1, 41), np.arange(1, 21))  # the last are the least
    Y.iloc[:, 10:] = 0
    Y.iloc[3, 29] = 1
    few = model.report(P, Y, open_cost=0.2).data["explorer"]
    assert few["labels"] == names
    monkeypatch.setattr(explorer, "N_NAMES", 20)
    many = model.report(P, Y, open_cost=0.2).data["explorer"]
    assert set(many["labels"]) >= {*names[:10], names[29]}
    assert len(many["labels"]) < 30
    for one, other in zip(few["instances"], many["instances"], strict=True):
        for field in ("predicted", "truth", "open", "decided"):
            told = [many["labels"][label] for label in other[field]]
            assert told == [names[label] for label in one[field]]
        assert [[many["labels"][label], p] for label, p in other["probabilities"]] == [
            [names[label], p] for label, p in one["probabilities"]
        ]
        assert [[many["labels"][j] for j in labels] for labels, *_ in other["best"]] == [
            [names[j] for j in labels] for labels, *_ in one["best"]
        ]


def test_labels_that_do_not_occur_are_counted():
    names = [f"label {j}" for j in range(6)]
    totals = BatchTotals([], 1.0, names, 6, None, has_truth=True)
    totals.n_predicted += np.array([0, 3, 0, 0, 1, 0])
    totals.sum_probability += np.array([0.0, 2.0, 0.25, 0.0, 0.5, 0.0])
    totals.n_true[5] = 2
    described = totals.describe_labels()
    assert [row["name"] for row in described["rows"]] == [
        "label 1",
        "label 4",
        "label 2",
        "label 5",
    ]
    assert (described["n_left_out"], described["n_absent"]) == (0, 2)

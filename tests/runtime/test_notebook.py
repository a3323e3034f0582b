"""What notebooks show: a sentence and a few rows, in which names are only text."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure._runtime.notebook import make_html
from labelsure.study.plan import load_plan
from labelsure.study.run import StudyRun

NAMES = ["<b>cat</b>", "dog & co"]
DIST = ls.IndependentLabels(np.full((30, 2), 0.8), NAMES)
DATA = ls.Dataset(np.zeros((30, 1)), DIST.mode(), NAMES, name="<i>", source="a & b")


class Reader(HTMLParser):
    """Collects the text, and checks that every tag that opens is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.n_rows = [], [], 0

    def handle_starttag(self, tag, attrs):
        assert tag in ("p", "table", "thead", "tbody", "tr", "th", "td")
        self.open.append(tag)
        self.n_rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


def shown(thing):
    reader = Reader()
    reader.feed(thing._repr_html_())
    assert reader.open == []
    assert reader.n_rows <= 12
    return " ".join(text for text in reader.text if text)


NEW = np.random.default_rng(1).normal(size=(100, 2))


def model(target=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    Y = pd.DataFrame((X + rng.normal(size=X.shape) > 0).astype(int), columns=NAMES)
    return ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(LogisticRegression()), "hamming", target=target, random_state=0
    ).fit(X, Y)


def assessment(target=None):
    fitted = model(target)
    return fitted.assess(np.random.default_rng(0).normal(size=(200, 2)))


def study_run():
    scores = ls.ScoreTable.from_distribution(DIST).to_frame()
    return StudyRun(load_plan("quick"), "<folder>", scores, scores, {"cell": {}})


THINGS = {
    "distribution": (lambda: DIST, r"IndependentLabels: 30 instances, 2 labels \(<b>cat</b>, dog"),
    "profile": (lambda: DIST.profile(), "Profile of 30 distributions. top runner_up"),
    "labelsets": (
        lambda: ls.labelsets.NamedLabelsets(DIST.mode(), tuple(NAMES)),
        r"30 labelsets of 2 labels. labels 0 \(<b>cat</b>, dog & co\) 1",
    ),
    "labelsets without names": (
        lambda: ls.labelsets.NamedLabelsets(DIST.mode()[:1], None, pd.Index(["<p>"])),
        r"1 labelset of 2 labels. labels <p> \(y0, y1\)",
    ),
    "partial labelsets": (
        lambda: ls.PartialLabelsets(np.full((30, 2), [1, -1]), NAMES),
        r"30 answers about 2 labels, 50.0% of the labels open. certain possible open 0 \(<b>cat<",
    ),
    "score table": (lambda: ls.ScoreTable.from_distribution(DIST), "A score table of 30 predict"),
    "data set": (
        lambda: DATA,
        r"Data set '<i>' from a & b, with the labels <b>cat</b>, dog & co. n_samples",
    ),
    "estimate": (
        lambda: ls.Estimate(0.8615, 0.8412, 0.883, 1000, 0.95, 0.1),
        r"Mean accuracy 0.862 \(95% interval 0.841 to 0.883, n = 1,000\). mean accuracy low high n "
        "0.862 0.841 0.883 1000",
    ),
    "reliability": (
        lambda: ls.reliability([0.25, 0.75], [0, 1]),
        r"Expected calibration error 0.250 \(2 rows\). low high",
    ),
    "curve": (
        lambda: ls.accept_curve(np.arange(40), np.ones(40)),
        r"Area under the acceptance curve 1.000 \(40 rows\). threshold .* 0 39.000 1 .*"
        " 39 0.000 40 1.000",
    ),
    "empty curve": (lambda: ls.accept_curve([], []), "An acceptance curve of no rows."),
    "assessment": (
        assessment,
        r"200 predictions, mean estimated Hamming accuracy 0.[78]\d\d; no target or share was set. "
        "Accuracy is that of the labelsets that maximise expected Hamming accuracy. "
        "No sign that .* "
        "predicted .*&?.*dog & co.*no target or share was set",
    ),
    "accepted": (
        lambda: assessment(0.4),
        r"mean estimated Hamming accuracy 0.[78]\d\d; \d+ accepted. Accuracy is",
    ),
    "model": (
        lambda: model(0.4),
        r"Accept scores of .* labels calibration rows estimated hamming low high threshold "
        r"accepted bound 2 \d+ 0.\d",
    ),
    "card": (
        lambda: model(0.4).card_,
        r"BinaryRelevance. model classifier Bin.* labels 2 \(<b>cat",
    ),
    "policy": (
        lambda: model(0.4).policy_,
        r"Accept scores .* threshold share bound n_samples 0.\d+ .* 0.400 \d+",
    ),
    "path": (
        lambda: model(0.4).policy_.path(),
        r"10 thresholds with lower bounds .* accepted. threshold share mean bound 0 0.\d+",
    ),
    "labels": (
        lambda: model(0.4).estimate_labels(NEW),
        r"Estimated F1 of 2 labels, 0.\d+ on average. n_predicted n_true",
    ),
    "prevalence": (
        lambda: model(0.4).estimate_prevalence(NEW),
        r"Prevalence of 2 labels \(assumes label shift\). .*calibration prevalence low high",
    ),
    "monitored": (lambda: model(0.4).monitor([NEW]), r"No alarm in 1 chunk. Nothing .* chunk n_s"),
    "policy by group": (
        lambda: ls.ByGroup(ls.AcceptPolicy(0.4)).fit(
            np.ones(90), np.ones(90), ["<a>", "b", "b"] * 30
        ),
        "(?s)Group '<a>': .*Group 'b': ",
    ),
    "unfitted policy": (lambda: ls.AcceptPolicy(0.4), r"AcceptPolicy\(target=0.4\)"),
    "study": (study_run, "Study 'quick' in <folder>: 30 predictions, 1 failed cell. n_labels"),
}


@pytest.mark.parametrize("name", THINGS)
def test_a_sentence_and_a_few_rows(name):
    make, expected = THINGS[name]
    assert re.search(expected, shown(make()))


def test_a_long_list_of_labels_is_counted():
    dist = ls.IndependentLabels(np.full((1, 500), 0.5))
    assert shown(dist) == "IndependentLabels: 1 instance, 500 labels."
    named = ls.IndependentLabels(np.full((1, 500), 0.5), [f"t{j}" for j in range(500)])
    assert (
        shown(named)
        == "IndependentLabels: 1 instance, 500 labels (t0, t1, t2, t3, t4 and 495 more)."
    )


def test_many_columns_are_not_all_shown():
    text = make_html("Wide.", pd.DataFrame(np.zeros((1, 500))))
    assert text.count("<td>") < 30


def test_an_estimate_prints_as_a_sentence():
    one = ls.Estimate(0.5, 0.0, 1.0, 1, 0.9, 0.0)
    assert str(one) == ("Mean accuracy 0.500 (90% interval 0.000 to 1.000, n = 1).")


def test_a_notebook_computes_nothing_of_a_distribution():
    def fail(*_):
        raise AssertionError

    chain = ls.distributions.PrefixChain(range(3), fail, 5)
    assert shown(ls.distributions.ChainMixture([chain])).startswith(
        "ChainMixture: 5 instances, 3 labels"
    )


def test_a_model_that_is_not_fitted_shows_its_parameters():
    bundle = ls.AccuracyAwareClassifier(target=0.9)._repr_mimebundle_()
    assert "target=0.9" in bundle["text/plain"]
    assert "0.9" in bundle["text/html"]


def test_what_is_printed_fits_on_a_screen():
    fitted, X = model(0.4), np.random.default_rng(0).normal(size=(200, 2))
    found = [fitted, fitted.card_, fitted.policy_, fitted.assess(X), fitted.estimate(X), DIST, DATA]
    found += [fitted.report(X), fitted.monitor([X]), fitted.predict_region(X)]
    for thing in found:
        for text in (str(thing), repr(thing)):
            assert len(text.splitlines()) <= 24, thing
            assert len(text) < 2500, thing


def test_axes_are_shown_by_notebooks():
    fitted, X = model(0.4), np.random.default_rng(0).normal(size=(200, 2))
    estimated = fitted.predict_accuracy(X)
    drawn = [
        DIST.plot(),
        fitted.assess(X).plot(3),
        ls.reliability(estimated, estimated).plot(),
        ls.accept_curve(estimated, estimated).plot(target=0.5),
    ]
    for ax in drawn:
        assert ax._repr_png_().startswith(b"\x89PNG")
    given = drawn[0].figure.add_subplot()
    assert DIST.plot(ax=given) is given
    assert not hasattr(given, "_repr_png_")  # the caller shows it


def test_a_plot_marks_what_is_predicted():
    dist = ls.IndependentLabels([[0.6, 0.3]])
    found = ls.model.Assessment(
        dist, np.array([[0, 1]], np.int8), np.ones(1), np.ones(1), None, np.array([""])
    )
    ax = found.plot(k=2)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["y0", "(none)", "y1\n(predicted)", "all others together"]
    assert [bar.get_width() for bar in ax.patches[:3]] == pytest.approx([0.42, 0.28, 0.12])
    assert [text.get_text() for text in found[0].plot(k=4).get_yticklabels()].count(
        "y1\n(predicted)"
    )

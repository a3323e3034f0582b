"""From a model to a table: what `assess` returns, and its rows."""

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier

import labelsure as ls
from labelsure.labelsets.lists import to_names

NAMES = ["a", "b", "c"]
INDEX = pd.Index([f"r{i}" for i in range(900)], name="id")


def make_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    Y = (X[:, :3] + 0.7 * rng.normal(size=(900, 3)) > 0).astype(int)
    return pd.DataFrame(X, INDEX, list("wxyz")), pd.DataFrame(Y, INDEX, NAMES)


X, Y = make_data()
NEW = X[800:]


def fit(estimator=None, **settings):
    estimator = KNeighborsClassifier(9) if estimator is None else estimator
    model = ls.AccuracyAwareClassifier(estimator, random_state=0, **settings)
    return model.fit(X[:800], Y[:800])


@pytest.fixture(scope="module")
def model():
    return fit(metric="jaccard", target=0.65)


@pytest.mark.parametrize("decision", ["mode", "best", "predict"])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_every_column_is_what_the_parts_say(decision, empty):
    model = fit(metric="jaccard", target=0.6, decision=decision, empty=empty)
    table = model.assess(NEW).to_frame(k=2)
    dist, Y_pred = model.predict_distribution(NEW), model.predict(NEW)
    assert table["predicted"].tolist() == to_names(Y_pred, NAMES)
    np.testing.assert_allclose(table["probability"], np.exp(dist.log_prob(Y_pred)))
    np.testing.assert_allclose(table["estimated_accuracy"], model.predict_accuracy(NEW))
    expected = ls.expected_accuracy(dist, Y_pred, metric="jaccard", empty=empty).value
    np.testing.assert_allclose(table["expected_accuracy"], expected)
    assert table["accept"].tolist() == model.accept(NEW).tolist()
    for name in ("top_1", "top_2_probability", "probability_a", "probability_c"):
        assert table[name].tolist() == dist.to_frame(2)[name].tolist()
    assert list(table)[:6] == [
        "predicted", "probability", "estimated_accuracy", "expected_accuracy", "accept", "reason",
    ]  # fmt: skip


def test_the_index_is_that_of_X(model):
    shuffled = NEW.sample(frac=1, random_state=0)
    table = model.assess(shuffled).to_frame()
    assert table.index.equals(shuffled.index)
    assert table.index.name == "id"
    in_order = model.assess(NEW).to_frame()
    pd.testing.assert_frame_equal(table.loc[NEW.index], in_order, rtol=1e-12)


def test_reasons_are_few_and_agree_with_the_policy(model):
    found = model.assess(NEW)
    threshold = f"{model.policy_.threshold_:g}"
    table = found.to_frame(0, probabilities=False)
    reasons = table.groupby("accept")["reason"].unique()
    assert reasons[True].tolist() == [f"estimated accuracy at least the threshold {threshold}"]
    assert reasons[False].tolist() == [f"estimated accuracy below the threshold {threshold}"]
    assert (table["estimated_accuracy"] >= model.policy_.threshold_).equals(
        table["accept"].astype(bool)
    )


def test_without_a_target_nothing_is_said_of_acceptance():
    found = fit(metric="hamming").assess(NEW)
    table = found.to_frame()
    assert table["accept"].isna().all()
    assert table["accept"].dtype == "boolean"
    assert set(table["reason"]) == {"no target or share was set"}
    assert "; no target or share was set." in str(found)
    assert repr(found) == "Assessment(n_samples=100, n_accepted=None)"


def test_a_target_out_of_reach_is_the_reason():
    with pytest.warns(ls.TargetWarning):
        model = fit(metric="exact", target=0.99, cv=0.5)
    table = model.assess(NEW).to_frame()
    assert not table["accept"].any()
    assert set(table["reason"]) == {"no threshold is proved to reach the target 0.99"}


def test_a_frozen_model_and_probabilities_alone_give_the_same_table():
    fitted = KNeighborsClassifier(9).fit(X[:400], Y[:400])
    P = pd.DataFrame(ls.as_distribution(fitted, X).marginals(), INDEX, NAMES)
    settings = {"metric": "jaccard", "target": 0.5, "random_state": 0}
    frozen = ls.AccuracyAwareClassifier(FrozenEstimator(fitted), **settings)
    other = ls.AccuracyAwareClassifier(
        FrozenEstimator(ls.PrecomputedProbabilities().fit(P[:400], Y[:400])), **settings
    )
    first = frozen.fit(X[400:800], Y[400:800]).assess(NEW).to_frame()
    second = other.fit(P[400:800], Y[400:800]).assess(P[800:]).to_frame()
    pd.testing.assert_frame_equal(first.drop(columns="own_predicted"), second)


@pytest.mark.parametrize("cv", [3, 0.5])
def test_rows_of_both_sides_have_names_where_nothing_is_frozen(cv):
    noise = np.random.default_rng(0).random(Y.shape)
    P = pd.DataFrame(np.clip(Y.to_numpy() * 0.4 + 0.6 * noise, 0, 1), INDEX, NAMES)
    shuffled = Y.sample(frac=1, random_state=0)
    model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), cv=cv, random_state=0)
    by_position = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), cv=cv, random_state=0)
    found = model.fit(P, shuffled).assess(P[:5])
    expected = by_position.fit(P.to_numpy(), Y.to_numpy()).assess(P[:5].to_numpy())
    np.testing.assert_array_equal(found.accuracy, expected.accuracy)


@pytest.mark.parametrize("rows", [3, slice(2, 5), [7, 1], np.arange(100) % 9 == 0])
def test_some_rows_alone(model, rows):
    found = model.assess(NEW)
    table = found.to_frame()
    some = found[rows]
    expected = table.iloc[[rows]] if isinstance(rows, int) else table.iloc[rows]
    assert len(some) == len(expected)
    pd.testing.assert_frame_equal(some.to_frame(), expected)


def test_no_instances_at_all(model):
    none = model.assess(NEW)[:0]
    assert str(none) == "No predictions."
    assert none.to_frame().shape == (0, 6 + 6 + 3)


def test_an_assessment_prints_as_a_sentence(model):
    found = model.assess(NEW)
    n_accepted = int(found.accepted.sum())
    assert 0 < n_accepted < 100
    mean = f"{found.accuracy.mean():.3f}"
    assert str(found).startswith(
        f"100 predictions, mean estimated Jaccard {mean}; {n_accepted} accepted. Accuracy "
        "is that of the labelsets that maximise expected Jaccard. No sign that"
    )
    assert repr(found) == f"Assessment(n_samples=100, n_accepted={n_accepted})"


def test_one_sweep_is_enough(model, monkeypatch):
    """The mode comes with the profile; neither labelsets nor marginals wait for a table."""
    asked = []
    for name in ("_summary", "_top", "_mode", "_marginals"):
        original = getattr(ls.IndependentLabels, name)
        monkeypatch.setattr(
            ls.IndependentLabels,
            name,
            lambda self, *given, _name=name, _original=original: (
                asked.append(_name) or _original(self, *given)
            ),
        )
    found = model.assess(NEW)
    assert asked.count("_summary") == 1
    assert "_top" not in asked
    before = list(asked)
    found.to_frame(0, probabilities=False)
    assert asked == before


def test_a_score_table_keeps_the_index_too():
    dist = ls.IndependentLabels([[0.9, 0.2], [0.1, 0.1]])._with_index(pd.Index(["p", "q"]))
    table = ls.ScoreTable.from_distribution(dist, [[1, 1], [0, 0]], metrics=["jaccard"])
    assert table.to_frame().index.tolist() == ["p", "q"]
    assert ls.ScoreTable(table.to_frame()).index.tolist() == ["p", "q"]
    np.testing.assert_array_equal(
        ls.ScoreTable(table.to_frame()).accuracy("jaccard", 1.0), table.accuracy("jaccard", 1.0)
    )


@pytest.mark.parametrize("metric", ["f1", "hamming"])
def test_labels_that_are_better_left_open_stand_in_the_table(metric):
    """They follow Hamming's rule, whatever the metric of the model."""
    model = fit(metric=metric)
    found = model.assess(NEW)
    answers = ls.decide(model.predict_distribution(NEW), "hamming", open_cost=0.1).abstentions
    assert answers.is_open.any()
    assert (found.leave_open(0.1).values == answers.values).all()
    table = found.to_frame(k=0, open_cost=0.1)
    assert table["decided"].tolist() == answers.certain
    assert table["open"].tolist() == answers.open
    assert found[5:9].to_frame(open_cost=0.1)["open"].tolist() == answers.open[5:9]
    text = found.to_frame(k=0, open_cost=0.1, sep=";")["open"]
    assert text.tolist() == [";".join(names) for names in answers.open]
    assert "open" not in found.to_frame()


def test_certain_and_possible_labels_where_the_model_has_a_region():
    data, _ = ls.make_labelsets(600, 3, random_state=0)
    X, Y = data.X.to_numpy(), data.Y
    names = ["cat", "dog", "owl"]
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "hamming", cv=0.5, region=0.8, random_state=0
    ).fit(X[:500], pd.DataFrame(Y[:500], columns=names))
    assert model.region_.n_samples_ == 125  # half of what is held out, as of a policy
    found = model.assess(X[500:])
    answer = model.region_.predict(model.predict_distribution(X[500:]))
    np.testing.assert_array_equal(found.region.values, answer.values)
    table = found.to_frame(sep=";")
    assert table["certain"].tolist() == [";".join(labels) for labels in answer.certain]
    assert table["possible"].tolist() == [";".join(labels) for labels in answer.possible]
    assert list(table)[list(table).index("reason") + 1] == "certain"
    assert found[[3, 1]].to_frame()["possible"].tolist() == [answer.possible[3], answer.possible[1]]
    (instances,) = [
        model.report(X[500:], pd.DataFrame(Y[500:], columns=names)).data["explorer"]["instances"]
    ]
    assert [entry["certain"] for entry in instances] == [
        [names[j] for j in np.flatnonzero(row == 1)] for row in answer.values
    ]
    assert [entry["possible"] for entry in instances] == [
        [names[j] for j in np.flatnonzero(row == -1)] for row in answer.values
    ]
    plain = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "hamming", cv=0.5, random_state=0)
    assert "certain" not in plain.fit(X[:500], Y[:500]).assess(X[500:]).to_frame()


def test_regions_that_an_aware_classifier_cannot_have():
    data, _ = ls.make_labelsets(60, 3, random_state=0)

    def fit(**settings):
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(), **settings).fit(data.X, data.Y)

    with pytest.raises(ls.InputError, match="`region`"):
        fit(region="0.9", cv=0.5)
    with pytest.raises(ls.InputError, match="`coverage`"):
        fit(region=1.5, cv=0.5)
    with pytest.raises(ls.InputError, match="`region`"):
        fit(region=ls.LabelsetRegion(recall=0.9), cv=3)


def test_own_arrays_are_not_checked_again():
    """Labelsets enter through `read_rows`, none of which a prediction with a region passes."""
    model = fit(ls.BinaryRelevance(), region=0.9)
    calls = Counter()

    def count(frame, event, arg):
        calls[frame.f_code.co_name] += event == "call"

    sys.setprofile(count)
    try:
        model.assess(NEW).to_frame()
    finally:
        sys.setprofile(None)
    assert calls["name_rows"] == 7
    assert calls["read_rows"] == 0
    assert calls["check_label_names"] <= 4

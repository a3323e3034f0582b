"""Answers as lists of label names: read as votes, smoothed, and calibrated."""

import json

import numpy as np
import oracles_classifiers as slow
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelsure as ls
from labelsure.classifiers import VoteSmoothing
from labelsure.errors import DataError, InputError, UnseenValuesWarning

LABELS = ["billing", "login", "urgent"]

answer = st.lists(st.sampled_from(LABELS), max_size=4)
tickets = st.lists(st.lists(answer, min_size=1, max_size=5), min_size=1, max_size=6)


def tagged(n=400, seed=0, k=(3, 6)):
    """Tickets with votes of a tagger that is right, and their truth."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.8, size=(n, 3))
    Y = pd.DataFrame((rng.uniform(size=p.shape) < p).astype(int), columns=LABELS)
    answers = [
        [[LABELS[j] for j in range(3) if rng.uniform() < row[j]] for _ in range(rng.integers(*k))]
        for row in p
    ]
    return answers, Y


@given(tickets)
def test_answers_are_shares_of_labelsets(answers):
    found = ls.LabelsetTable.from_samples(answers, LABELS).probabilities()
    np.testing.assert_allclose(found, slow.shares_of_answers(answers, LABELS), atol=1e-12)


@given(tickets, st.randoms(use_true_random=False))
def test_order_and_spelling_do_not_matter(answers, random):
    shuffled = [[random.sample(labels, len(labels)) for labels in row] for row in answers]
    as_json = [[json.dumps(labels) for labels in row] for row in answers]
    series = pd.Series([json.dumps(row) for row in answers], index=range(7, 7 + len(answers)))
    as_sets = [[set(labels) for labels in row] for row in answers]
    expected = ls.LabelsetTable.from_samples(answers, LABELS).probabilities()
    for form in (shuffled, as_json, series, as_sets):
        found = ls.LabelsetTable.from_samples(form, LABELS).probabilities()
        np.testing.assert_array_equal(found, expected)


def test_weights_are_those_of_repeated_answers():
    weighted = [[{"labels": ["login"], "weight": 3}, {"labels": [], "weight": 1}]]
    repeated = [[["login"]] * 3 + [[]]]
    found, expected = (ls.LabelsetTable.from_samples(a, LABELS) for a in (weighted, repeated))
    np.testing.assert_allclose(found.probabilities(), expected.probabilities())
    assert found._n_votes.tolist() == [1.6]  # Kish: 4**2 / (3**2 + 1**2)
    with pytest.raises(DataError, match="weight of an answer"):
        ls.LabelsetTable.from_samples([[{"labels": [], "weight": -1}]], LABELS)


def test_one_answer_per_row_is_grouped_by_pandas():
    said = pd.DataFrame({"ticket": [7, 9, 7], "labels": [["login"], [], ["login", "urgent"]]})
    dist = ls.LabelsetTable.from_samples(said.groupby("ticket")["labels"].agg(list), LABELS)
    np.testing.assert_allclose(dist.marginals(), [[0, 1, 0.5], [0, 0, 0]])


ODD = [[["login"], None, "I cannot answer that.", float("nan")], [["login", "chitchat"], []]]


def test_what_is_no_vote_is_counted_and_said():
    with pytest.warns(UnseenValuesWarning) as caught:
        dist = ls.LabelsetTable.from_samples(ODD, LABELS)
    said = str(caught[0].message)
    for part in (
        "2 answers null",
        "1 answer that cannot be parsed",
        "'chitchat'",
        "1 answer empty",
    ):
        assert part in said
    np.testing.assert_allclose(dist.marginals(), [[0, 1, 0], [0, 0.5, 0]])


def test_unknown_names_are_refused_or_kept_by_choice():
    with pytest.raises(DataError, match=r"Row 1 .*'chitchat'"):
        ls.LabelsetTable.from_samples(ODD, LABELS, unknown="refuse")
    with pytest.warns(UnseenValuesWarning, match="null"):
        kept = ls.LabelsetTable.from_samples(ODD, LABELS, unknown="keep")
    assert kept.label_names == (*LABELS, "chitchat")
    with pytest.raises(InputError, match="unknown"):
        ls.LabelsetTable.from_samples(ODD, LABELS, unknown="ignore")
    with pytest.raises(InputError, match="unknown"):
        ls.PrecomputedProbabilities("votes", unknown="keep").fit([[["login"]]], [[1]])


@pytest.mark.parametrize("row", [[None], ["sorry"], [], 3, [3]])
def test_an_instance_without_a_vote_is_refused(row):
    with pytest.raises(DataError, match="Row 1"):
        ls.LabelsetTable.from_samples([[["login"]], row], LABELS)


def test_labels_are_not_taken_from_answers_beside_a_truth():
    answers, Y = tagged(20)
    with pytest.raises(InputError, match="label_names"):
        ls.PrecomputedProbabilities("votes").fit(answers, Y.to_numpy())
    model = ls.PrecomputedProbabilities("votes", LABELS).fit(answers, Y.to_numpy())
    assert model.label_names_ == tuple(LABELS)
    model.predict([[[]]])  # one ticket, one empty answer


def test_entropy_estimators_need_equal_numbers_of_votes():
    with pytest.raises(InputError, match="same number of draws"):
        ls.LabelsetTable.from_samples([[["a"], ["b"]], [["a"]] * 3], entropy="miller_madow")


def test_the_flagship_takes_answers(tmp_path):
    answers, Y = tagged()
    model = ls.AccuracyAwareClassifier(
        ls.PrecomputedProbabilities("votes"), "jaccard", target=0.5, random_state=0
    ).fit(answers[:200], Y[:200])
    found = model.assess(answers[200:])
    low, high = model.estimate(answers[200:]).low, model.estimate(answers[200:]).high
    assert low <= ls.accuracy(Y[200:].to_numpy(), found.Y_pred, "jaccard").mean() <= high
    assert isinstance(model.recalibration_, VoteSmoothing)
    model.save(tmp_path / "m.labelsure")
    again = ls.load(tmp_path / "m.labelsure")
    pd.testing.assert_frame_equal(again.assess(answers[200:]).to_frame(), found.to_frame())
    as_bits = np.array([[[int(x in a) for x in LABELS] for a in row[:3]] for row in answers[200:]])
    np.testing.assert_array_equal(
        model.predict_proba(as_bits), model.predict_proba([row[:3] for row in answers[200:]])
    )


@given(st.integers(1, 4), st.floats(0.05, 20))
def test_smoothing_is_the_formula(k, strength):
    votes = np.random.default_rng(k).integers(0, 2, size=(4, k, 3))
    prevalence = np.array([0.1, 0.5, 0.7])
    dist = ls.LabelsetTable.from_samples(votes)
    found = VoteSmoothing()._apply(dist, (strength, prevalence)).probabilities()
    expected = slow.smoothed_votes(votes.tolist(), prevalence.tolist(), strength)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_second_source_takes_the_place_of_the_prevalence(tmp_path):
    answers, Y = tagged(n=400, k=(3, 4))
    noise = np.random.default_rng(5).normal(size=Y.shape)
    second = pd.DataFrame(1 / (1 + np.exp(-(2 * Y - 1 + noise))), columns=LABELS)
    X = second.assign(answers=answers)[["urgent", "answers", "billing", "login"]]
    sources = ls.PrecomputedProbabilities("votes")
    model = ls.AccuracyAwareClassifier(
        sources, "jaccard", recalibration=VoteSmoothing(gate=False), random_state=0
    ).fit(X[:200], Y[:200])
    smoothing = model.recalibration_
    found = model.predict_distribution(X[200:205]).probabilities()
    votes = [[[int(x in a) for x in LABELS] for a in row] for row in answers[200:205]]
    prior = second[200:205].to_numpy().tolist()
    expected = [
        slow.smoothed_votes([v], p, smoothing.strength_)[0]
        for v, p in zip(votes, prior, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    alone = ls.AccuracyAwareClassifier(sources, "jaccard", random_state=0)
    alone.fit(answers[:200], Y[:200])
    auto = ls.AccuracyAwareClassifier(sources, "jaccard", random_state=0).fit(X[:200], Y[:200])
    assert isinstance(auto.recalibration_, VoteSmoothing)
    truth = Y[200:].to_numpy()
    both, one = (
        m.predict_distribution(x).log_prob(truth).mean()
        for m, x in ((model, X[200:]), (alone, answers[200:]))
    )
    assert both > one
    model.save(tmp_path / "m.labelsure")
    np.testing.assert_array_equal(
        ls.load(tmp_path / "m.labelsure").predict_proba(X[200:]), model.predict_proba(X[200:])
    )


def test_the_strength_maximises_the_likelihood():
    answers, Y = tagged(k=(3, 4))
    dist = ls.LabelsetTable.from_samples(answers, LABELS)
    smoothing = VoteSmoothing().fit(dist, Y)

    def likelihood(strength):
        changed = smoothing._apply(dist, (strength, smoothing.prevalence_))
        return changed.log_prob(Y.to_numpy()).mean()

    best = likelihood(smoothing.strength_)
    assert best >= max(likelihood(smoothing.strength_ * factor) for factor in (0.8, 1.25))
    assert smoothing.n_impossible_ == 0
    assert smoothing.gain_low_ > 0
    np.testing.assert_allclose(smoothing.prevalence_, (Y.sum() + 0.5) / (len(Y) + 1))
    with pytest.raises(InputError, match="votes"):
        VoteSmoothing().fit(ls.IndependentLabels(np.full((9, 2), 0.5)), np.zeros((9, 2), int))

"""Regions of every kind of distribution against loops over all labelsets."""

import numpy as np
import oracles
import oracles_regions
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import KINDS, batches, linear_chains, many, predictions

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.guarantees._labelset_region import MassScore, _find_open, mark_labels, mix_votes

for_each_kind = pytest.mark.parametrize("kind", KINDS)
SHARE = 0.1


def meant(batch):
    """The probabilities that regions go by: those of votes have others mixed in."""
    if isinstance(batch.dist, ls.LabelsetTable):
        return [oracles_regions.mixed_votes(P, SHARE) for P in batch.P]
    return batch.P


@for_each_kind
@given(st.data())
@settings(max_examples=30)
def test_certain_and_possible_labels_against_loops(kind, data):
    batch = data.draw(batches(kind, least=1))
    Y = data.draw(predictions(batch))
    region = ls.LabelsetRegion(coverage=0.5, independent_share=SHARE).fit(batch.dist, Y)
    answer = region.predict(batch.dist)
    scores = [
        -np.log(P[oracles.code_of(y)]) if P[oracles.code_of(y)] else np.inf
        for P, y in zip(meant(batch), Y, strict=True)
    ]
    quantile = oracles_regions.conformal_quantile(scores, 0.5)
    assert region.quantile_ == pytest.approx(quantile, rel=1e-11, abs=1e-11)
    threshold = np.exp(-quantile) * (1 - 1e-10)  # what is equal but for rounding is inside
    for i, P in enumerate(meant(batch)):
        codes = oracles_regions.region(P, threshold)
        assert answer.values[i].tolist() == oracles_regions.marked_labels(codes, batch.n_labels)
        assert answer.is_empty[i] == (not codes)
        assert answer.n_labelsets[i] == len(codes)
        listed, probabilities = answer.list_labelsets().of(i)
        likely = [code for code in codes if P[code] > 0]
        assert sorted(oracles.code_of(y) for y in listed.tolist()) == likely
        assert (np.diff(probabilities) <= 0).all()
    assert answer.is_counted.all()


@pytest.mark.parametrize("kind", ["dense", "table", "independent", "trellis", "mixture"])
@given(st.data())
@settings(max_examples=20)
def test_mass_regions_against_loops(kind, data):
    batch = data.draw(batches(kind, least=1, most=2))
    quantile = data.draw(st.sampled_from([0.05, 0.3, 0.8, 0.99]))
    source = mix_votes(batch.dist, SHARE) if kind == "table" else batch.dist
    found = MassScore().log_thresholds(source, np.full(len(batch), quantile), 0)
    for i, P in enumerate(meant(batch)):
        codes = oracles_regions.mass_region(P, quantile)
        logs = np.log(np.maximum(P, 1e-320))
        assert [c for c in range(len(P)) if P[c] > 0 and logs[c] >= found[i]] == [
            c for c in codes if P[c] > 0
        ]
    Y = data.draw(predictions(batch))
    scores = MassScore().score(source, Y, 0)
    for i, P in enumerate(meant(batch)):
        expected = oracles_regions.mass_score(P, oracles.code_of(Y[i]))
        assert scores[i] == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([3, 8, 30]))
@settings(max_examples=60)
def test_mass_regions_by_draws_against_loops(seed, quantile, n_draws):
    """With quarters, so that draws tie with each other and with labelsets that were not drawn."""
    rng = np.random.default_rng(seed)
    P = rng.choice([1.0, 2.0, 3.0, 6.0], size=8)
    P /= P.sum()
    dist = ls.DenseDistribution([P])
    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patched:
        patched.setattr(_limits, "CHEAP_DENSE_LABELS", 2)
        score = MassScore(n_draws)
        found = score.log_thresholds(dist, np.array([quantile]), seed)
        ((_, logs, _),) = score._ranked(dist, seed)
        drawn = [int(np.argmin(np.abs(np.log(P) - log))) for log in logs[0]]  # or one as probable
        # A labelset is in the region if, with the same draws, its score is at most the quantile.
        for code in range(8):
            y = np.array([oracles.all_labelsets(3)[code]], dtype=np.int8)
            expected = oracles_regions.drawn_mass_score(P, drawn, code)
            assert score.score(dist, y, seed)[0] == pytest.approx(expected)
            assert (np.log(P[code]) >= found[0]) == (expected <= quantile)


@for_each_kind
def test_the_truth_is_in_the_region_if_its_score_is_low_enough(kind):
    dist = many(kind, 60)
    Y = dist.sample(1, 0)[:, 0]
    for score in ("probability", "mass"):
        region = ls.LabelsetRegion(coverage=0.8, score=score).fit(dist, Y)
        answer = region.predict(dist)
        inside = answer.contains(Y)
        assert answer.agrees(Y)[inside].all()
        assert_array_equal(answer[:7].n_labelsets, answer.n_labelsets[:7])
        if score == "probability":
            assert inside.sum() == 49 if "dense" in kind else inside.sum() >= 49
            n = np.array([answer.contains(np.tile(y, (60, 1))) for y in oracles.all_labelsets(5)])
            assert_array_equal(n.sum(axis=0), answer.n_labelsets)


def test_votes_mixed_with_independent_labels():
    dist = many("table", 5, L=3)
    source = mix_votes(dist, 0.2)
    P = np.array([oracles_regions.mixed_votes(row, 0.2) for row in dist.probabilities()])
    np.testing.assert_allclose(source.probabilities(), P, rtol=1e-12)
    np.testing.assert_allclose(source.probabilities().sum(axis=1), 1)
    np.testing.assert_allclose(
        source.marginals(), [oracles.marginals(row.tolist()) for row in P], rtol=1e-12
    )
    for code, y in enumerate(oracles.all_labelsets(3)):
        np.testing.assert_allclose(np.exp(source.log_prob([y] * 5)), P[:, code], rtol=1e-12)
    best = source.top(8)
    np.testing.assert_allclose(best.probabilities, -np.sort(-P, axis=1), rtol=1e-12)
    draws = source[[0] * 4000].sample(1, 0)[:, 0]
    shares = np.bincount(draws @ [1, 2, 4], minlength=8) / 4000
    np.testing.assert_allclose(shares, P[0], atol=0.03)


def test_regions_are_listed_as_far_as_asked():
    dist = ls.IndependentLabels(np.full((3, 20), [[0.5], [0.9], [0.999]]))
    region = ls.LabelsetRegion(coverage=0.5).fit(dist[[1] * 9], np.zeros((9, 20)))
    answer = region.predict(dist)  # all labelsets: the threshold is P of 20 wrong labels
    listed = answer.list_labelsets(50)
    assert listed.labelsets.lengths.tolist() == [50, 50, 50]
    assert listed.is_complete.tolist() == [False] * 3
    assert answer.n_labelsets.tolist() == [1000, 1000, 1000]
    assert not answer.is_counted.any()
    few = ls.LabelsetRegion(coverage=0.5).fit(dist[[1] * 9], np.eye(20)[[0] * 9] * 0 + 1)
    answer = few.predict(dist)
    assert answer.n_labelsets.tolist() == [0, 1, 1]
    assert answer.is_counted.all()
    assert answer.is_empty.tolist() == [True, False, False]
    assert answer.certain[0] == ()
    assert answer.possible[0] == answer.open[0] == tuple(f"y{j}" for j in range(20))
    frame = answer.to_frame(sep=";")
    assert frame["n_labelsets"].tolist() == [0, 1, 1]
    assert list(frame) == [
        "certain",
        "possible",
        "open",
        "is_empty",
        "n_labelsets",
        "is_counted",
    ]
    assert "n_labelsets" not in answer.to_frame(count=False)


def test_exactly_as_many_labelsets_as_asked_for_are_all():
    dist = ls.DenseDistribution([[0.4, 0.3, 0.2, 0.1]])
    region = ls.LabelsetRegion(coverage=0.5).fit(dist[[0] * 3], [[0, 1]] * 3)
    answer = region.predict(dist)
    assert answer.list_labelsets(3).is_complete.tolist() == [True]
    assert answer.list_labelsets(2).is_complete.tolist() == [False]
    assert answer.list_labelsets(1).of(0)[0].tolist() == [[0, 0]]


def test_thousands_of_labels():
    p = np.full((4, 3000), 0.3)
    dist = ls.IndependentLabels(p)
    region = ls.LabelsetRegion(coverage=0.5).fit(dist, dist.sample(1, 0)[:, 0])
    answer = region.predict(dist)
    assert (answer.values == -1).all()
    assert answer.is_counted.tolist() == [False] * 4


@pytest.mark.parametrize("score", ["probability", "marginal"])
def test_recall_and_precision(score):
    data, truth = ls.make_labelsets(3000, 5, random_state=1)
    Y = np.asarray(data.Y)
    region = ls.LabelsetRegion(recall=0.9, precision=0.8, score=score)
    region.fit(truth[:1500], Y[:1500])
    answer = region.predict(truth[1500:])
    new = Y[1500:] == 1
    some = new.any(axis=1)
    found = (answer.is_possible & new).sum(axis=1)[some] / new.sum(axis=1)[some]
    assert found.mean() == pytest.approx(0.9, abs=0.05)
    certain = answer.is_certain
    has = certain.any(axis=1)
    right = (certain & new).sum(axis=1)[has] / certain.sum(axis=1)[has]
    assert right.mean() > 0.78
    assert certain.any()
    assert "at least 80.0% are right, averaged over instances that have any" in str(region)
    marginals = truth[1500:].marginals()
    assert_array_equal(certain, marginals >= region.certain_from_)
    if score == "marginal":
        assert_array_equal(answer.is_possible, (marginals >= region.quantile_) | certain)
        with pytest.raises(ls.InputError, match="of single labels"):
            answer.list_labelsets()
    else:
        high = truth[1500:]._max_marginals().high[:, :, 1]
        assert_array_equal(answer.is_possible, (high >= region.quantile_ - 1e-9) | certain)
    plain = ls.LabelsetRegion(recall=0.9, score=score).fit(truth[:1500], Y[:1500])
    assert not plain.predict(truth[1500:]).is_certain.any()


def test_a_low_recall_leaves_instances_without_possible_labels():
    dist = ls.IndependentLabels([[0.9, 0.1]] * 20 + [[0.6, 0.6]] * 20)
    region = ls.LabelsetRegion(recall=0.3).fit(dist, [[1, 0]] * 20 + [[1, 1]] * 20)
    answer = region.predict(dist)
    assert answer.possible == [("y0",)] * 20 + [()] * 20
    assert answer.n_labelsets.tolist() == [1] * 20 + [0] * 20


def test_groups_have_thresholds_of_their_own():
    rng = np.random.default_rng(0)
    p = rng.random((400, 3))
    dist = ls.IndependentLabels(p)
    Y = dist.sample(1, 0)[:, 0]
    Y[200:] = rng.integers(0, 2, (200, 3))
    groups = np.repeat(["known", "new"], 200)
    region = ls.LabelsetRegion(coverage=0.8).fit(dist, Y, groups)
    assert list(region.quantile_) == ["known", "new"]
    assert region.n_samples_ == {"known": 200, "new": 200}
    for name in ("known", "new"):
        rows = groups == name
        alone = ls.LabelsetRegion(coverage=0.8).fit(dist[rows], Y[rows])
        assert region.quantile_[name] == alone.quantile_
        assert_array_equal(
            region.predict(dist, groups).values[rows], alone.predict(dist[rows]).values
        )
    assert "Group 'known': Regions hold" in region.message_
    mixed = region.predict(dist, pd.Series(groups[::-1], index=range(399, -1, -1)))
    assert_array_equal(mixed.values, region.predict(dist, groups[::-1]).values)
    with pytest.raises(ls.InputError, match="`groups`"):
        region.predict(dist)
    with pytest.raises(ls.InputError, match="`fit`"):
        region.predict(dist, np.full(400, "x"))
    with pytest.raises(ls.InputError, match="entry"):
        region.predict(dist, ["x"])


def test_rows_and_labels_keep_their_names():
    index = pd.Index(list("abcdef"))
    dist = ls.IndependentLabels(pd.DataFrame(np.full((6, 2), 0.8), index, ["cat", "dog"]))
    Y = pd.DataFrame({"dog": [1, 1, 1, 0, 1, 1], "cat": 1}, index[::-1])
    region = ls.LabelsetRegion(coverage=0.5).fit(dist, Y)
    answer = region.predict(dist)
    assert answer.certain == [("cat", "dog")] * 6
    assert list(answer.to_frame().index) == list("abcdef")
    groups = pd.Series(list("xxyyxx"), index[::-1])
    by_group = ls.LabelsetRegion(coverage=0.5).fit(dist, Y, groups)
    assert by_group.n_samples_ == {"x": 4, "y": 2}
    assert by_group.quantile_["x"] < by_group.quantile_["y"]  # the one without dog is in y
    with pytest.raises(ls.InputError, match="region"):
        region.predict(ls.IndependentLabels([[0.5, 0.5]], ["dog", "cat"]))


def test_too_few_labelled_instances():
    dist = ls.IndependentLabels(np.full((5, 2), 0.9))
    region = ls.LabelsetRegion(coverage=0.9).fit(dist, np.ones((5, 2)))
    assert region.quantile_ == np.inf
    assert "5 labelled instances are too few" in str(region)
    assert "Label at least 9." in str(region)
    assert (region.predict(dist).values == -1).all()
    assert not region.predict(dist).is_empty.any()
    assert region.predict(dist).n_labelsets.tolist() == [4] * 5
    found = ls.LabelsetRegion(recall=0.9).fit(dist, np.ones((5, 2)))
    assert "too few for a recall of 90.0%: all labels are possible" in str(found)
    assert (found.predict(dist).values == -1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "`coverage` or `recall` must be given, and not both"),
        ({"coverage": 0.9, "recall": 0.9}, "`coverage` or `recall` must be given, and not both"),
        ({"coverage": 1.0}, "`coverage`"),
        ({"recall": 0}, "`recall`"),
        ({"recall": 0.9, "precision": "high"}, "`precision`"),
        ({"coverage": 0.9, "precision": 0.9}, "`precision` must stand beside a `recall`"),
        ({"coverage": 0.9, "score": "marginal"}, "score for a coverage"),
        ({"recall": 0.9, "score": "mass"}, "score for a recall"),
        ({"coverage": 0.9, "level": 2}, "`level`"),
        ({"coverage": 0.9, "independent_share": 0}, "`independent_share` must be a number"),
    ],
)
def test_wrong_parameters(settings, message):
    with pytest.raises(ls.InputError, match=message):
        ls.LabelsetRegion(**settings).fit(ls.IndependentLabels([[0.5]]), [[1]])


def test_wrong_use():
    region = ls.LabelsetRegion(coverage=0.5)
    dist = ls.IndependentLabels([[0.5]] * 3)
    with pytest.raises(ls.InputError, match="needs"):
        region.fit(dist[:0], np.empty((0, 1)))
    with pytest.raises(ls.InputError, match="`max_labelsets`"):
        region.fit(dist, [[1]] * 3).predict(dist).list_labelsets(0)
    assert repr(ls.LabelsetRegion(coverage=0.5)) == str(ls.LabelsetRegion(coverage=0.5))
    assert "<p>Regions hold" in region._repr_html_()


@pytest.mark.parametrize("spread", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("score", ["probability", "mass"])
def test_chains_that_are_searched_leave_nothing_out(spread, score, monkeypatch):
    """With enough budget as all labelsets say; with less, more is possible and less certain."""
    dist = ls.distributions.ChainMixture(
        linear_chains(1, 7, 3, spread, n_samples=40), engine="certified"
    )
    Y = dist.sample(1, 0)[:, 0]
    for coverage in (0.3, 0.8):
        region = ls.LabelsetRegion(coverage, score=score).fit(dist, Y)
        exact = region.predict(dist.with_engine(engine="dense"))
        thresholds = exact.log_thresholds
        for budget in (0, 5, 2**7):
            with monkeypatch.context() as patched:
                patched.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
                values, is_empty = mark_labels(dist.with_engine(budget=budget), thresholds)
            if budget == 2**7:
                assert_array_equal(values, exact.values)
                assert_array_equal(is_empty, exact.is_empty)
            assert ((values == exact.values) | (values == -1)).all()
            assert (exact.is_empty | ~is_empty).all()
            if budget == 0 and spread == 0.2 and coverage == 0.8:
                assert_array_equal(values, -np.ones_like(values))


def test_flips_of_one_labelset_show_that_all_labels_are_open(monkeypatch):
    dist = ls.distributions.ChainMixture(linear_chains(2, 6, 2, 1.0, n_samples=30))
    P = dist.probabilities()
    monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
    for log_threshold in (-1.0, -5.0, -8.0, -20.0):
        found = _find_open(dist, np.full(30, log_threshold))
        for i, row in enumerate(P):
            top = int(np.argmax(row))
            expected = all(
                row[top ^ flip] >= np.exp(log_threshold) for flip in (0, 1, 2, 4, 8, 16, 32)
            )
            assert found[i] == expected
    assert not _find_open(ls.IndependentLabels([[0.5]]), np.array([-50.0])).any()


@pytest.mark.parametrize("score", ["probability", "mass"])
def test_a_region_without_a_seed(score):
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.random((80, 3)))
    Y = dist.sample(1, random_state=1)[:, 0]
    region = ls.LabelsetRegion(coverage=0.8, score=score, random_state=None).fit(dist, Y)
    assert region.predict(dist).values.shape == (80, 3)


def test_answers_are_shown_on_one_line():
    """However many rows they have: everything in them would fill hundreds of lines."""
    dist = ls.IndependentLabels(np.random.default_rng(0).uniform(size=(300, 4)))
    found = ls.LabelsetRegion(0.8).fit(dist, dist.sample(1, 0)[:, 0]).predict(dist)
    assert repr(found) == str(found) == "RegionLabelsets(n_samples=300, n_labels=4)"
    listed = found.list_labelsets()
    n_listed = int(found.n_labelsets.sum())
    assert repr(listed) == f"ListedLabelsets(n_samples=300, n_labelsets={n_listed})"

"""Regions of every kind of distribution against loops over all labelsets."""

import numpy as np
import oracles
import oracles_regions
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import KINDS, batches, linear_chains, many, n_examples, predictions

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.guarantees._labelset_region import FEW, INDEPENDENT_SHARE, mix_votes

for_each_kind = pytest.mark.parametrize("kind", KINDS)


def meant(batch):
    """The probabilities that regions go by: those of votes have others mixed in."""
    if isinstance(batch.dist, ls.LabelsetTable):
        return [oracles_regions.mixed_votes(P, INDEPENDENT_SHARE) for P in batch.P]
    return batch.P


@for_each_kind
@given(st.data())
@n_examples(30)
def test_labels_are_closed_as_loops_close_them(kind, data):
    batch = data.draw(batches(kind, least=1))
    Y = data.draw(predictions(batch))
    region = ls.LabelsetRegion(coverage=0.5).fit(batch.dist, Y)
    marginals = [oracles.marginals(P) for P in batch.P]
    values = [oracles_regions.least_probable_value(p, y) for p, y in zip(marginals, Y, strict=True)]
    threshold = min(oracles_regions.conformal_threshold(values, 0.5), 0.5)
    assert region.threshold_ == pytest.approx(threshold, rel=1e-9, abs=1e-9)
    answer = region.predict(batch.dist)
    for i, p in enumerate(marginals):
        if min(abs(q - threshold) for q in [*p, *(1 - q for q in p)]) > 1e-9:
            assert answer.values[i].tolist() == oracles_regions.closed_labels(p, threshold)
        assert answer.n_labelsets[i] == 2 ** answer.n_open[i]
    inside = answer.contains(Y)
    assert_array_equal(inside, answer.agrees(Y))
    assert inside.sum() >= (len(batch) + 1) // 2
    assert answer.is_counted.all()


@for_each_kind
@given(st.data())
@n_examples(30)
def test_probable_labelsets_against_loops(kind, data):
    batch = data.draw(batches(kind, least=1))
    Y = data.draw(predictions(batch))
    region = ls.LabelsetRegion(coverage=0.5, score="probability").fit(batch.dist, Y)
    answer = region.predict(batch.dist)
    logs = [
        np.log(P[oracles.code_of(y)]) if P[oracles.code_of(y)] else -np.inf
        for P, y in zip(meant(batch), Y, strict=True)
    ]
    least = oracles_regions.conformal_threshold(logs, 0.5)
    assert region.threshold_ == pytest.approx(least, rel=1e-11, abs=1e-11)
    threshold = np.exp(least) * (1 - 1e-10)  # what is equal but for rounding is inside
    for i, P in enumerate(meant(batch)):
        codes = oracles_regions.region(P, threshold)
        likely = [code for code in codes if P[code] > 0]
        if len(likely) == len(codes):  # impossible labelsets are not listed
            expected = oracles_regions.marked_labels(codes, batch.n_labels)
            assert answer.values[i].tolist() == expected
        assert answer.n_labelsets[i] == len(codes)
        listed, probabilities = answer.list_labelsets().of(i)
        assert sorted(oracles.code_of(y) for y in listed.tolist()) == likely
        assert (np.diff(probabilities) <= 0).all()
    assert answer.is_counted.all()


@for_each_kind
def test_the_truth_is_in_the_region_if_its_score_is_low_enough(kind):
    dist = many(kind, 60)
    Y = dist.sample(1, 0)[:, 0]
    region = ls.LabelsetRegion(coverage=0.8, score="probability").fit(dist, Y)
    answer = region.predict(dist)
    inside = answer.contains(Y)
    assert answer.agrees(Y)[inside].all()
    assert_array_equal(answer[:7].n_labelsets, answer.n_labelsets[:7])
    assert inside.sum() == 49 if "dense" in kind else inside.sum() >= 49
    n = np.array([answer.contains(np.tile(y, (60, 1))) for y in oracles.all_labelsets(5)])
    assert_array_equal(n.sum(axis=0), answer.n_labelsets)


@pytest.mark.parametrize("score", ["labels", "probability"])
def test_another_coverage_needs_no_other_fit(score):
    dist = many("mixture", 80)
    Y = dist.sample(1, 0)[:, 0]
    region = ls.LabelsetRegion(0.9, score=score).fit(dist, Y)
    for coverage in (0.3, 0.6):
        other = ls.LabelsetRegion(coverage, score=score).fit(dist, Y)
        found = region.predict(dist, coverage=coverage)
        assert_array_equal(found.values, other.predict(dist).values)
        assert_array_equal(found.contains(Y), other.predict(dist).contains(Y))
    with pytest.raises(ls.InputError, match="`coverage`"):
        region.predict(dist, coverage=1.5)
    with pytest.raises(ls.InputError, match="recall"):
        ls.LabelsetRegion(recall=0.9).fit(dist, Y).predict(dist, coverage=0.5)


def test_large_regions_leave_all_labels_open():
    dist = ls.IndependentLabels(np.tile([0.999, *[0.5] * 7], (9, 1)))
    for n_half, closes in ((6, True), (7, False)):
        some = ls.IndependentLabels(dist.marginals()[:, : n_half + 1])
        region = ls.LabelsetRegion(0.5, score="probability").fit(some, np.ones((9, n_half + 1)))
        answer = region.predict(some)
        assert (answer.n_labelsets[0] <= FEW) == closes
        assert answer.certain[0] == (("y0",) if closes else ())


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
    region = ls.LabelsetRegion(0.5, score="probability").fit(dist[[1] * 9], np.zeros((9, 20)))
    answer = region.predict(dist)  # all labelsets: the threshold is P of 20 wrong labels
    listed = answer.list_labelsets(50)
    assert listed.labelsets.lengths.tolist() == [50, 50, 50]
    assert listed.is_complete.tolist() == [False] * 3
    assert answer.n_labelsets.tolist() == [1000, 1000, 1000]
    assert not answer.is_counted.any()
    few = ls.LabelsetRegion(0.5, score="probability").fit(dist[[1] * 9], np.ones((9, 20)))
    answer = few.predict(dist)
    assert answer.n_labelsets.tolist() == [0, 1, 1]
    assert answer.is_counted.all()
    assert answer.certain[0] == ()
    assert answer.possible[0] == answer.open[0] == tuple(f"y{j}" for j in range(20))
    frame = answer.to_frame(sep=";")
    assert frame["n_labelsets"].tolist() == [0, 1, 1]
    assert list(frame) == ["certain", "possible", "open", "n_labelsets", "is_counted"]
    assert "n_labelsets" not in answer.to_frame(count=False)


def test_exactly_as_many_labelsets_as_asked_for_are_all():
    dist = ls.DenseDistribution([[0.4, 0.3, 0.2, 0.1]])
    region = ls.LabelsetRegion(0.5, score="probability").fit(dist[[0] * 3], [[0, 1]] * 3)
    answer = region.predict(dist)
    assert answer.list_labelsets(3).is_complete.tolist() == [True]
    assert answer.list_labelsets(2).is_complete.tolist() == [False]
    assert answer.list_labelsets(1).of(0)[0].tolist() == [[0, 0]]


def test_thousands_of_labels():
    p = np.full((4, 3000), 0.3)
    dist = ls.IndependentLabels(p)
    for score in ("labels", "probability"):
        region = ls.LabelsetRegion(0.5, score=score).fit(dist, dist.sample(1, 0)[:, 0])
        answer = region.predict(dist)
        assert (answer.values == -1).all()
        assert not answer.is_counted.any()


def test_recall():
    data, truth = ls.make_labelsets(3000, 5, random_state=1)
    Y = np.asarray(data.Y)
    region = ls.LabelsetRegion(recall=0.9).fit(truth[:1500], Y[:1500])
    answer = region.predict(truth[1500:])
    new = Y[1500:] == 1
    some = new.any(axis=1)
    found = (answer.is_possible & new).sum(axis=1)[some] / new.sum(axis=1)[some]
    assert found.mean() == pytest.approx(0.9, abs=0.05)
    assert_array_equal(answer.is_possible, truth[1500:].marginals() >= region.threshold_)
    assert not answer.is_certain.any()
    with pytest.raises(ls.InputError, match="of single labels"):
        answer.list_labelsets()
    assert str(region).startswith("The possible labels hold 90.0% of the true ones on average")


def test_a_low_recall_leaves_instances_without_possible_labels():
    dist = ls.IndependentLabels([[0.9, 0.1]] * 20 + [[0.6, 0.6]] * 20)
    region = ls.LabelsetRegion(recall=0.3).fit(dist, [[1, 0]] * 20 + [[1, 1]] * 20)
    answer = region.predict(dist)
    assert answer.possible == [("y0",)] * 20 + [()] * 20


def test_groups_have_thresholds_of_their_own():
    rng = np.random.default_rng(0)
    p = rng.random((400, 3))
    dist = ls.IndependentLabels(p)
    Y = dist.sample(1, 0)[:, 0]
    Y[200:] = rng.integers(0, 2, (200, 3))
    groups = np.repeat(["known", "new"], 200)
    region = ls.ByGroup(ls.LabelsetRegion(coverage=0.8)).fit(dist, Y, groups)
    assert list(region.parts_) == ["known", "new"]
    assert region.n_samples_ == 400
    for name in ("known", "new"):
        rows = groups == name
        alone = ls.LabelsetRegion(coverage=0.8).fit(dist[rows], Y[rows])
        assert region.parts_[name].threshold_ == alone.threshold_
        assert f"Group {name!r}: {alone.message_}" in str(region)
        assert_array_equal(
            region.parts_[name].predict(dist[rows]).values, alone.predict(dist[rows]).values
        )
        assert_array_equal(
            region.predict(dist, groups).values[rows], alone.predict(dist[rows]).values
        )
    mixed = region.predict(dist, pd.Series(groups[::-1], index=range(399, -1, -1)))
    assert_array_equal(mixed.values, region.predict(dist, groups[::-1]).values)
    wide = region.predict(dist, groups, coverage=0.95)
    assert_array_equal(wide.values[rows], alone.predict(dist[rows], coverage=0.95).values)
    with pytest.raises(ls.InputError, match="coverage"):
        region.predict(dist, groups, coverage=2)
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
    by_group = ls.ByGroup(ls.LabelsetRegion(coverage=0.5)).fit(dist, Y, groups)
    x, y = (by_group.parts_[name] for name in "xy")
    assert (x.n_samples_, y.n_samples_) == (4, 2)
    assert x.threshold_ > y.threshold_  # the one without dog is in y
    with pytest.raises(ls.InputError, match="region"):
        region.predict(ls.IndependentLabels([[0.5, 0.5]], ["dog", "cat"]))


@pytest.mark.parametrize("score", ["labels", "probability"])
def test_too_few_labelled_instances(score):
    dist = ls.IndependentLabels(np.full((5, 2), 0.9))
    region = ls.LabelsetRegion(coverage=0.9, score=score).fit(dist, np.ones((5, 2)))
    assert region.threshold_ == -np.inf
    assert "5 calibration rows are too few for a coverage of 0.9" in str(region)
    assert "Label at least 9." in str(region)
    assert (region.predict(dist).values == -1).all()
    assert region.predict(dist).n_labelsets.tolist() == [4] * 5


def test_too_few_for_a_recall():
    dist = ls.IndependentLabels(np.full((5, 2), 0.9))
    found = ls.LabelsetRegion(recall=0.9).fit(dist, np.ones((5, 2)))
    assert "too few for a recall of 0.9: all labels are open" in str(found)
    assert (found.predict(dist).values == -1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Either `coverage` or `recall` must be given"),
        ({"coverage": 0.9, "recall": 0.9}, "Either `coverage` or `recall` must be given"),
        ({"coverage": 1.0}, "coverage"),
        ({"recall": 0}, "recall"),
        ({"coverage": 0.9, "score": "marginal"}, "score for a coverage"),
        ({"recall": 0.9, "score": "probability"}, "score for a recall"),
    ],
)
def test_wrong_parameters(settings, message):
    with pytest.raises(ls.InputError, match=message):
        ls.LabelsetRegion(**settings).fit(ls.IndependentLabels([[0.5]]), [[1]])


def test_wrong_use():
    region = ls.LabelsetRegion(coverage=0.5, score="probability")
    dist = ls.IndependentLabels([[0.5]] * 3)
    with pytest.raises(ls.InputError, match="needs"):
        region.fit(dist[:0], np.empty((0, 1)))
    with pytest.raises(ls.InputError, match="`max_labelsets`"):
        region.fit(dist, [[1]] * 3).predict(dist).list_labelsets(0)
    assert repr(ls.LabelsetRegion(coverage=0.5)) == str(ls.LabelsetRegion(coverage=0.5))
    assert "<p>Regions hold" in region._repr_html_()


@pytest.mark.parametrize("spread", [0.2, 1.0, 3.0])
def test_chains_that_are_searched_leave_nothing_out(spread, monkeypatch):
    """With enough budget as all labelsets say; with less, no label is closed wrongly."""
    members = linear_chains(1, 7, 3, spread, n_samples=40)
    dist = ls.distributions.ChainMixture(members, engine="certified")
    Y = dist.sample(1, 0)[:, 0]
    for coverage in (0.3, 0.8):
        region = ls.LabelsetRegion(coverage, score="probability").fit(dist, Y)
        exact = region.predict(dist.with_engine(engine="dense"))
        for budget in (0, 5, 2**7):
            with monkeypatch.context() as patched:
                patched.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
                found = region.predict(dist.with_engine(budget=budget))
            if budget == 2**7:
                assert_array_equal(found.values, exact.values)
            assert ((found.values == exact.values) | (found.values == -1)).all()


def test_answers_are_shown_on_one_line():
    """However many rows they have: everything in them would fill hundreds of lines."""
    dist = ls.IndependentLabels(np.random.default_rng(0).uniform(size=(300, 4)))
    region = ls.LabelsetRegion(0.8, score="probability").fit(dist, dist.sample(1, 0)[:, 0])
    found = region.predict(dist)
    assert repr(found) == str(found) == "RegionLabelsets(n_samples=300, n_labels=4)"
    listed = found.list_labelsets()
    n_listed = int(found.n_labelsets.sum())
    assert repr(listed) == f"ListedLabelsets(n_samples=300, n_labelsets={n_listed})"


def test_the_message_says_how_large_regions_are_and_what_to_use():
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.uniform(0.2, 0.8, size=(300, 8)))
    Y = dist.sample(1, 0)[:, 0]
    boxes = ls.LabelsetRegion(coverage=0.9).fit(dist, Y)
    n_open = boxes.predict(dist[:200]).n_open.mean()
    assert f"On average {n_open:.1f} of 8 labels are open. That is most" in str(boxes)
    assert "`recall=`" in str(boxes)
    sure = ls.LabelsetRegion(coverage=0.5).fit(
        ls.IndependentLabels(np.full((300, 8), 0.99)), np.ones((300, 8), dtype=int)
    )
    assert str(sure).endswith("On average 0.0 of 8 labels are open.")
    listed = ls.LabelsetRegion(coverage=0.9, score="probability").fit(dist, Y)
    mean = listed.predict(dist[:200]).n_labelsets.mean()
    assert f"On average regions hold {mean:,.1f} labelsets. They are large because" in str(listed)
    dense = ls.DenseDistribution(dist.probabilities())
    joint = ls.LabelsetRegion(coverage=0.9, score="probability").fit(dense, Y)
    assert "They are large" not in str(joint)
    recall = ls.LabelsetRegion(recall=0.9).fit(dist, Y)
    n_possible = recall.predict(dist[:200]).is_possible.sum(axis=1).mean()
    assert str(recall).endswith(f"On average {n_possible:.1f} labels are possible.")

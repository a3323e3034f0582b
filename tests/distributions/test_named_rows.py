"""Rows go by index: everything that has one is aligned, or refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls
from labelsure.labelsets.names import align_rows, align_values

N, NAMES = 90, ["sea", "sky", "sun"]
INDEX = pd.Index([f"r{i}" for i in range(N)])
_rng = np.random.default_rng(3)
P = _rng.uniform(0.05, 0.95, (N, 3))
Y = (_rng.random((N, 3)) < P).astype(int)
SHUFFLED = _rng.permutation(N)
PROBABILITIES = pd.DataFrame(P, INDEX, NAMES)
TRUTH = pd.DataFrame(Y, INDEX, NAMES)
DIST = ls.IndependentLabels(PROBABILITIES)
X = pd.DataFrame(np.column_stack([P, _rng.normal(size=N)]), INDEX, list("uvwx"))
WEIGHTS = pd.Series(_rng.uniform(0.1, 3, N), INDEX)


def shuffle(values):
    return values.iloc[SHUFFLED]


class TestTwoIndices:
    def test_a_permutation_of_a_default_index_is_refused(self):
        default, other = pd.RangeIndex(4), pd.Index([2, 0, 1, 3])
        for own, wanted in ((default, other), (other, default)):
            with pytest.raises(ls.InputError, match="the same numbers in another order"):
                align_rows(own, wanted, name="Y", beside="it")

    def test_other_entries_beside_a_default_index_go_by_position(self):
        default = pd.RangeIndex(3)
        for other in (pd.Index(["b", "a", "c"]), pd.Index([7, 5, 9]), pd.Index([1, 2, 3])):
            assert align_rows(default, other, name="Y", beside="it") is None
            assert align_rows(other, default, name="Y", beside="it") is None

    def test_names_are_aligned(self):
        order = align_rows(pd.Index(list("abc")), pd.Index(list("cab")), name="Y", beside="it")
        assert order.tolist() == [2, 0, 1]
        assert (
            align_values(pd.Series([1, 2, 3], list("abc")), pd.Index(list("cab")), name="v")[0] == 3
        )

    def test_indices_of_other_levels_are_refused(self):
        pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
        with pytest.raises(ls.InputError, match="levels"):
            align_rows(pairs, pd.Index(["a", "b"]), name="Y", beside="it")
        frame = pd.DataFrame([[1], [0]], columns=["sea"])
        with pytest.raises(ls.InputError, match="levels"):
            ls.accuracy(frame.set_axis(pairs), frame.set_axis(["a", "b"]), "f1")


def test_shuffled_truth_is_not_compared_by_position():
    frame = pd.DataFrame(Y, columns=NAMES)
    with pytest.raises(ls.InputError, match="the same numbers in another order"):
        ls.accuracy(frame.sample(frac=1, random_state=0), frame, "f1")
    with pytest.raises(ls.InputError, match="the same numbers in another order"):
        ls.IndependentLabels(pd.DataFrame(P, columns=NAMES)).log_prob(frame.iloc[::-1])
    assert (ls.accuracy(shuffle(TRUTH), TRUTH, "exact") == 1).all()


def test_a_polars_frame_of_one_column_is_read():
    assert ls.accuracy(pl.DataFrame({"a": [1, 0]}), [[1], [1]], "hamming").tolist() == [1, 0]


@pytest.mark.parametrize(
    "make",
    [
        ls.BinaryRelevance,
        lambda: ls.EnsembleOfClassifierChains(n_chains=2, random_state=0),
        lambda: ls.LabelPowerset(random_state=0),
        lambda: ls.classifiers.ClassifierTrellis(random_state=0),
        lambda: ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=2, random_state=0),
        lambda: ls.RecalibratedClassifier(random_state=0),
        lambda: ls.AccuracyAwareClassifier(
            MultiOutputClassifier(LogisticRegression()), cv=2, random_state=0
        ),
    ],
)
def test_truth_and_weights_of_classifiers_go_by_index(make):
    expected = make().fit(X, TRUTH)
    found = make().fit(X, shuffle(TRUTH))
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.score(X, shuffle(TRUTH)) == expected.score(X, Y)
    weighted = make().fit(X, TRUTH, sample_weight=WEIGHTS.to_numpy())
    again = make().fit(X, TRUTH, sample_weight=shuffle(WEIGHTS))
    np.testing.assert_array_equal(again.predict_proba(X), weighted.predict_proba(X))
    assert again.score(X, Y, shuffle(WEIGHTS)) == weighted.score(X, TRUTH, WEIGHTS.to_numpy())


def test_scores_of_precomputed_probabilities_go_by_index():
    model = ls.PrecomputedProbabilities().fit(PROBABILITIES, TRUTH)
    expected = model.score(PROBABILITIES, Y)
    assert model.score(PROBABILITIES, shuffle(TRUTH)) == expected
    assert model.score(shuffle(PROBABILITIES), TRUTH) == expected
    assert list(model.predict_distribution(PROBABILITIES).index) == list(INDEX)
    assert list(ls.DenseDistribution(pd.DataFrame([[0.5, 0.5]], ["a"])).index) == ["a"]


def test_weights_of_a_recalibration_go_by_index():
    by_position = ls.LabelwiseCalibration(gate=False).fit(DIST, Y, WEIGHTS.to_numpy())
    by_index = ls.LabelwiseCalibration(gate=False).fit(DIST, TRUTH, shuffle(WEIGHTS))
    np.testing.assert_array_equal(
        by_index.transform(DIST).marginals(), by_position.transform(DIST).marginals()
    )


def test_a_mask_is_no_positions_of_labelled_rows():
    estimator = ls.AccuracyEstimator("f1").fit(DIST, Y)
    mask = pd.Series(np.arange(N) < 40, INDEX)
    with pytest.raises(ls.InputError, match="`rows` must be the positions"):
        estimator.estimate(DIST, Y_true=TRUTH[:40], rows=shuffle(mask))


def test_a_mask_picks_rows_by_index():
    mask = pd.Series(P[:, 0] > 0.5, INDEX)
    np.testing.assert_array_equal(DIST[shuffle(mask)].marginals(), P[mask.to_numpy()])
    answers = ls.PartialLabelsets(Y, NAMES, INDEX)
    np.testing.assert_array_equal(answers[shuffle(mask)].values, Y[mask.to_numpy()])


def test_scores_of_accepted_labels_go_by_index():
    score = pd.Series(P[:, 0], INDEX)
    policy = ls.AcceptPolicy(share=0.5).fit(score, P[:, 0])
    answers = ls.PartialLabelsets(Y, NAMES, INDEX)
    np.testing.assert_array_equal(
        policy.accept_labels(shuffle(score), answers).values,
        policy.accept_labels(score.to_numpy(), answers).values,
    )


class TestParts:
    def test_rows_of_parts_are_aligned_and_other_labels_refused(self):
        first = pd.DataFrame([[0.9, 0.1], [0.2, 0.3]], ["a", "b"], ["sea", "sky"])
        second = first.iloc[::-1]
        turned = ls.IndependentLabels(first[["sky", "sea"]])
        votes = ls.LabelsetTable([[[1, 0]], [[0, 1]]], [[1.0], [1.0]], ["sea", "sky"])
        votes = votes._with_index(first.index)
        smooth = ls.distributions.SmoothedTable(votes, ls.IndependentLabels(second), 0.5)
        np.testing.assert_allclose(smooth.marginals(), (votes.marginals() + first) / 2)
        with pytest.raises(ls.InputError, match="'sky' instead of 'sea'"):
            ls.distributions.SmoothedTable(votes, turned, 0.5)

    @pytest.mark.parametrize("kind", ["marginal", "logit"])
    @pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
    def test_names_beside_a_frame_order_its_columns(self, kind, convert):
        numbers = PROBABILITIES if kind == "marginal" else 6 * PROBABILITIES - 3
        frame = convert(numbers[["sun", "sea", "sky"]])
        dist = ls.as_distribution(frame, kind=kind, label_names=NAMES)
        expected = ls.as_distribution(numbers.to_numpy(), kind=kind)
        np.testing.assert_allclose(dist.marginals(), expected.marginals())
        assert dist.label_names == tuple(NAMES)
        if kind == "marginal":
            np.testing.assert_allclose(ls.IndependentLabels(frame, NAMES).marginals(), P)
        with pytest.raises(ls.InputError, match="unknown are 'sun'"):
            ls.as_distribution(frame, kind=kind, label_names=["sea", "sky", "moon"])


class TestVectors:
    @pytest.mark.parametrize(
        "make", [ls.BinaryRelevance, lambda: ls.AccuracyAwareClassifier(cv=2, random_state=0)]
    )
    def test_other_classes_and_missing_ones_are_refused(self, make):
        y = pd.Series(np.where(Y[:, 0], "yes", "no"), INDEX)
        model = make().fit(X, y)
        assert model.score(X, shuffle(y)) == model.score(X, y.to_numpy())
        with pytest.raises(ls.InputError, match=r"'no'.* and .*'yes'.*, got 'YES' in row"):
            model.score(X, y.replace("yes", "YES"))
        with pytest.raises(ls.InputError, match="got nan in row 3"):
            model.score(X, y.mask(np.arange(N) == 3))
        with pytest.raises(ls.InputError, match="must have 90 rows, got 80"):
            model.score(X, y[:80])

    @pytest.mark.parametrize(
        "make", [ls.BinaryRelevance, lambda: ls.AccuracyAwareClassifier(cv=2, random_state=0)]
    )
    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.full(N, np.nan), "`sample_weight`.*nan in row 0"),
            (-np.ones(N), "`sample_weight`.*-1"),
            (np.zeros(N), "`sample_weight`.*above zero"),
            (np.ones(3), "`sample_weight` .*90"),
        ],
    )
    def test_weights_that_are_none_are_refused(self, make, weights, message):
        model = make().fit(X, TRUTH)
        with pytest.raises(ValueError, match=message):
            model.score(X, TRUTH, weights)


def test_names_of_the_truth_reach_regions():
    region = ls.LabelsetRegion(0.8).fit(ls.IndependentLabels(P), TRUTH)
    assert region.label_names_ == tuple(NAMES)
    answer = region.predict(ls.IndependentLabels(P))
    assert answer.label_names == tuple(NAMES)
    model = ls.AccuracyAwareClassifier(
        MultiOutputClassifier(LogisticRegression()), cv=0.6, region=0.8, random_state=0
    ).fit(X, TRUTH)
    assert model.predict_distribution(X).label_names == tuple(NAMES)
    assert model.assess(X).region.label_names == tuple(NAMES)

"""`PrecomputedProbabilities`: what another system predicted, as a classifier."""

import pickle

import numpy as np
import oracles as slow
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from skops.io import dumps, get_untrusted_types, loads

import labelsure as ls

RNG = np.random.default_rng(0)
N, L = 40, 3
P = RNG.uniform(0.01, 0.99, size=(N, L))
Y = (RNG.uniform(size=(N, L)) < P).astype(int)
VOTES = (RNG.uniform(size=(N, 5, L)) < P[:, np.newaxis]).astype(int)
LABELS = ["sea", "sky", "sun"]
FRAME, TRUTH = pd.DataFrame(P, columns=LABELS), pd.DataFrame(Y, columns=LABELS)


def joint_of(p):
    return [
        [np.prod([q if bit >> j & 1 else 1 - q for j, q in enumerate(row)]) for bit in range(2**L)]
        for row in p
    ]


X_OF_KIND = {
    "marginal": P,
    "logit": np.log(P / (1 - P)),
    "joint": np.array(joint_of(P)),
    "votes": VOTES,
}
MARGINALS = dict.fromkeys(X_OF_KIND, P) | {"votes": VOTES.mean(axis=1)}
every_kind = pytest.mark.parametrize("kind", list(X_OF_KIND))


def fitted(kind):
    return ls.PrecomputedProbabilities(kind).fit(X_OF_KIND[kind], Y)


@every_kind
def test_the_distribution_is_what_x_says(kind):
    model, X = fitted(kind), X_OF_KIND[kind]
    dist = model.predict_distribution(X)
    np.testing.assert_allclose(dist.marginals(), MARGINALS[kind], atol=1e-12)
    expected = joint_of(P)
    if kind == "votes":
        expected = np.zeros((N, 2**L))
        for i, votes in enumerate(VOTES.tolist()):
            for vote in votes:
                expected[i, sum(bit << j for j, bit in enumerate(vote))] += 1 / 5
    np.testing.assert_allclose(dist.probabilities(), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), MARGINALS[kind], atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), dist.mode())
    np.testing.assert_array_equal(model.predict(X[:2]), dist.mode()[:2])
    assert model.label_names_ is dist.label_names is None
    assert model.n_labels_ == 3
    assert [known.tolist() for known in model.classes_] == [[0, 1]] * L
    assert model.score(X, Y) == (dist.mode() == Y).all(axis=1).mean()
    np.testing.assert_array_equal(
        ls.as_distribution(model, X).probabilities(), dist.probabilities()
    )


@every_kind
def test_clones_frozen_pickles_and_pipelines(kind):
    model, X = fitted(kind), X_OF_KIND[kind]
    expected = model.predict_proba(X)
    assert is_classifier(model)
    assert clone(model).get_params() == {
        "kind": kind,
        "label_names": None,
        "floor": None,
        "unknown": "drop",
    }
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    frozen = FrozenEstimator(model).fit(X, 1 - Y)
    np.testing.assert_array_equal(frozen.predict_proba(X), expected)
    np.testing.assert_allclose(ls.as_distribution(frozen, X).marginals(), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    data = dumps(model)
    untrusted = get_untrusted_types(data=data)
    assert [name.rsplit(".", 1)[-1] for name in untrusted] == ["PrecomputedProbabilities"]
    np.testing.assert_array_equal(loads(data, trusted=untrusted).predict_proba(X), expected)
    pipeline = make_pipeline(FunctionTransformer(), clone(model)).fit(X, Y)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected)
    np.testing.assert_allclose(ls.as_distribution(pipeline, X).marginals(), expected)
    np.testing.assert_array_equal(cross_val_predict(clone(model), X, Y, cv=3), model.predict(X))


@every_kind
def test_tags(kind):
    tags = get_tags(ls.PrecomputedProbabilities(kind))
    assert tags.classifier_tags.multi_label
    assert tags.target_tags.required
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert tags.input_tags.three_d_array == (kind == "votes")
    assert tags.input_tags.two_d_array == (kind != "votes")


def test_what_happens_to_logits_before_is_searched_for():
    pipeline = make_pipeline(FunctionTransformer(), ls.PrecomputedProbabilities("logit"))
    grid = {"functiontransformer__func": [np.positive, np.negative]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X_OF_KIND["logit"], Y)
    assert search.best_params_["functiontransformer__func"] is np.positive
    assert cross_val_score(search, X_OF_KIND["logit"], Y, cv=2).mean() > 0


@pytest.mark.parametrize("kind", ["marginal", "logit"])
def test_columns_are_matched_by_name(kind):
    X = pd.DataFrame(X_OF_KIND[kind], columns=LABELS)
    model = ls.PrecomputedProbabilities(kind).fit(X, TRUTH)
    assert model.label_names_ == tuple(LABELS)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[["sun", "sea", "sky"]]), expected)
    # As for any classifier, predictions have the order of y.
    other = ls.PrecomputedProbabilities(kind).fit(X, TRUTH[["sun", "sea", "sky"]])
    assert other.label_names_ == ("sun", "sea", "sky")
    for again in (X, X[["sky", "sun", "sea"]], X.to_numpy()):
        np.testing.assert_array_equal(other.predict_proba(again), expected[:, [2, 0, 1]])
        assert other.predict_distribution(again).label_names == ("sun", "sea", "sky")
    assert other.score(X, TRUTH[["sun", "sea", "sky"]]) == model.score(X, TRUTH)


@every_kind
def test_given_names_say_which_column_is_which_label(kind):
    X, given = X_OF_KIND[kind], ["sun", "sea", "sky"]
    model = ls.PrecomputedProbabilities(kind, given).fit(X, TRUTH)
    dist = model.predict_distribution(X)
    assert model.label_names_ == dist.label_names == tuple(LABELS)
    np.testing.assert_allclose(dist.marginals(), MARGINALS[kind][:, [1, 2, 0]], atol=1e-12)
    same = ls.as_distribution(X, kind=kind, label_names=given)
    np.testing.assert_allclose(dist.log_prob(TRUTH), same.log_prob(TRUTH), atol=1e-12)


def test_given_names_of_listed_labels():
    listed = sp.csr_array(np.where(P > 0.5, P, 0))
    model = ls.PrecomputedProbabilities(label_names=["sun", "sea", "sky"]).fit(listed, TRUTH)
    found = model.predict_distribution(listed).listed_marginals().toarray()
    np.testing.assert_array_equal(found, listed.toarray()[:, [1, 2, 0]])


def test_where_the_names_come_from():
    assert ls.PrecomputedProbabilities().fit(FRAME, Y).label_names_ == tuple(LABELS)
    model = ls.PrecomputedProbabilities().fit(P, TRUTH)
    assert model.label_names_ == tuple(LABELS)
    np.testing.assert_array_equal(
        model.predict_proba(FRAME[["sun", "sea", "sky"]]), model.predict_proba(P)
    )
    names = [[label for label, bit in zip(LABELS, row, strict=True) if bit] for row in Y]
    assert ls.PrecomputedProbabilities().fit(FRAME, names).label_names_ == tuple(LABELS)
    # Where nobody named the labels, a DataFrame goes by position.
    np.testing.assert_array_equal(fitted("marginal").predict_proba(FRAME), P)
    for kind in ("joint", "votes"):
        model = ls.PrecomputedProbabilities(kind).fit(X_OF_KIND[kind], TRUTH)
        assert model.predict_distribution(X_OF_KIND[kind]).label_names == tuple(LABELS)


def test_names_that_look_like_numbers_of_labels_are_names():
    X = pd.DataFrame(P, columns=["y0", "y1", "y2"])
    model = ls.PrecomputedProbabilities().fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X[["y2", "y0", "y1"]]), P)


@pytest.mark.parametrize(
    "truth",
    [Y, Y.astype(bool), Y.tolist(), sp.csr_array(Y), TRUTH, Y.astype(float)],
    ids=["array", "booleans", "lists", "sparse", "frame", "floats"],
)
def test_every_form_of_truth(truth):
    model = ls.PrecomputedProbabilities().fit(P, truth)
    np.testing.assert_array_equal(model.predict(P), P > 0.5)


def test_one_label():
    for truth in (Y[:, 0], Y[:, 0].tolist(), pd.Series(Y[:, 0], name="sea")):
        model = ls.PrecomputedProbabilities().fit(P[:, :1], truth)
        np.testing.assert_array_equal(model.predict(P[:, :1]), P[:, 0] > 0.5)
        np.testing.assert_allclose(
            model.predict_proba(P[:, :1]), np.column_stack([1 - P[:, 0], P[:, 0]])
        )
    assert model.label_names_ == ("sea",)
    words = np.array(["no", "yes"])
    joint = np.column_stack([1 - P[:, 0], P[:, 0]])
    model = ls.PrecomputedProbabilities("joint").fit(joint, words[Y[:, 0]])
    np.testing.assert_array_equal(model.predict(joint), words[(P[:, 0] > 0.5).astype(int)])
    column = pd.DataFrame({"sea": Y[:, 0]})
    assert ls.PrecomputedProbabilities().fit(P[:, :1], column).predict(P[:, :1]).shape == (N, 1)


def test_weights_change_nothing_but_are_checked():
    model = ls.PrecomputedProbabilities().fit(P, Y, sample_weight=np.arange(N))
    np.testing.assert_array_equal(model.predict_proba(P), P)
    with pytest.raises(ls.InputError, match=f"`sample_weight`.*{N}"):
        model.fit(P, Y, sample_weight=[1.0])


def test_the_estimator_works_on_it():
    model = ls.PrecomputedProbabilities().fit(FRAME, TRUTH)
    dist = model.predict_distribution(FRAME)
    estimated = ls.AccuracyEstimator("jaccard").fit(dist, Y).estimate(dist)
    expected = [
        slow.accuracy(tuple(truth), tuple(row), "jaccard")
        for truth, row in zip(Y.tolist(), model.predict(FRAME).tolist(), strict=True)
    ]
    assert estimated.low <= np.mean(expected) <= estimated.high
    np.testing.assert_allclose(ls.accuracy(Y, model.predict(FRAME), "jaccard"), expected)


@pytest.mark.parametrize(
    ("kind", "X", "y", "message"),
    [
        ("marginals", P, Y, "Unknown kind 'marginals'. Did you mean 'marginal'"),
        ("marginal", P, None, "requires y to be passed.*`as_distribution"),
        (
            "marginal",
            P[:, 0],
            Y,
            r"must have shape \(n_samples, n_columns\) for kind='mar",
        ),
        ("marginal", VOTES, Y, r"for kind='marginal', got shape \(40, 5, 3\)"),
        ("votes", P, Y, r"must have shape \(n_samples, n_votes, n_columns\) for kind='votes'"),
        ("votes", VOTES * 2, Y, "must contain only 0 and 1, got 2"),
        ("joint", P, Y, r"\(n_samples, 2\*\*n_labels\)"),
        ("joint", np.full((N, 8), 0.2), Y, "must sum to one for each instance, row 0 sums to 1.6"),
        ("marginal", P * 2, Y, r"must lie in \[0, 1\].*logit"),
        (
            "marginal",
            np.where(P > 0.9, np.nan, P),
            Y,
            r"`X` must lie in .*, got nan",
        ),
        ("logit", np.where(P > 0.9, np.nan, P), Y, "logits that are numbers, got NaN in row"),
        ("joint", sp.csr_array(P), Y, "`X` must be a dense array, got a csr_array"),
        ("marginal", P, Y[:-1], "`y` must have 40 rows, got 39"),
        ("marginal", P, Y[:, :2], r"`y` must have 3 labels \(columns\), got 2"),
        ("marginal", P, Y[:, 0], r"`y` must have 3 labels \(columns\), got 1"),
        ("marginal", P, Y + 1, "`y` must contain only 0 and 1, got 2"),
        (
            "marginal",
            FRAME,
            TRUTH.rename(columns={"sun": "ice"}),
            "The columns of `y` must be the labels of `X`.*missing are 'sun'; unknown are 'ice'",
        ),
        ("marginal", FRAME, [["sea"], ["ice"]] * 20, "Unknown label in row 1 of `y`: 'ice'"),
        (
            "marginal",
            P,
            [["sea"], ["sky", "sun"]] * 20,
            "lists names, and the model has none",
        ),
        (
            "marginal",
            FRAME.set_index(np.arange(N) + 1),
            TRUTH.set_index(np.arange(N) + 5),
            "The rows of `y` must be those of `X`, in any order",
        ),
        (
            "marginal",
            FRAME[["sea"]].set_index(np.arange(N) + 1),
            TRUTH["sea"].set_axis(np.arange(N) + 5),
            "The rows of `y` must be those of `X`, in any order",
        ),
    ],
)
def test_what_is_refused_in_fit(kind, X, y, message):
    with pytest.raises(ValueError, match=message):
        ls.PrecomputedProbabilities(kind).fit(X, y)


def test_what_is_refused_in_predict():
    model = ls.PrecomputedProbabilities().fit(FRAME, TRUTH)
    with pytest.raises(ls.InputError, match="model"):
        model.predict(FRAME.rename(columns={"sun": "ice"}))
    with pytest.raises(ls.InputError, match="missing are 'sun'"):
        model.predict(FRAME[["sea", "sky"]])
    with pytest.raises(ls.InputError, match="`X`"):
        model.predict(P[:, :2])
    with pytest.raises(ls.InputError, match="`X`"):
        fitted("joint").predict(X_OF_KIND["joint"][:, :4])
    with pytest.raises(ls.InputError, match="predictions"):
        fitted("votes").predict(VOTES[:, :, :2])
    assert fitted("votes").predict_distribution(VOTES[:, :2]).n_labels == 3  # fewer votes are fine


def test_a_softmax_is_noticed():
    softmax = P / P.sum(axis=1, keepdims=True)
    with pytest.warns(ls.ProbabilityWarning, match="softmax"):
        model = ls.PrecomputedProbabilities().fit(softmax, Y)
    with pytest.warns(ls.ProbabilityWarning, match="softmax"):
        model.predict(softmax)


def test_sparse_scores_with_names_and_a_floor():
    P = sp.csr_array([[0.9, 0, 0.2], [0, 0.75, 0]])
    Y = sp.csr_array([[1, 0, 0], [0, 1, 1]])
    names = ["cat", "dog", "owl"]
    model = ls.PrecomputedProbabilities("marginal", names, floor=0.01).fit(P, Y)
    dist = model.predict_distribution(P)
    assert (model.label_names_, dist.label_names, dist.floor) == (tuple(names),) * 2 + (0.01,)
    logits = P.copy()
    logits.data = np.log(P.data / (1 - P.data))
    same = ls.PrecomputedProbabilities("logit", names, floor=0.01).fit(logits, Y)
    np.testing.assert_allclose(
        same.predict_distribution(logits).log_prob(Y), dist.log_prob(Y), rtol=1e-12
    )
    default = ls.PrecomputedProbabilities().fit(P, Y).predict_distribution(P)
    assert (default.floor, default.label_names) == (2.0**-24, None)
    with pytest.raises(ls.InputError, match="3 distinct names"):
        ls.PrecomputedProbabilities("marginal", names[:2]).fit(P, Y)


def test_names_of_frames_count_more_than_given_ones():
    P = pd.DataFrame([[0.9, 0.2], [0.1, 0.8]], columns=["cat", "dog"])
    model = ls.PrecomputedProbabilities("marginal", ["a", "b"]).fit(P, [[1, 0], [0, 1]])
    assert model.label_names_ == ("cat", "dog")


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([[[1, 0], [1, 0, 1]], [[1, 0], [0, 1]]], "different lengths"),
        ([[[1, 0]], [[1, 0], [0, 1]]], "1 in row 0, 2 in row 1"),
        ([[[1, 0]], [[1, 0, 1]]], "different lengths"),
    ],
)
def test_ragged_votes_are_refused(votes, message):
    with pytest.raises(ls.InputError, match=message):
        ls.PrecomputedProbabilities("votes").fit(votes, [[1, 0], [0, 1]])


def test_votes_and_truths_of_names_need_names_of_the_labels():
    votes, y = np.array([[[1, 0], [1, 0]], [[0, 1], [1, 1]]]), [["b"], ["a"]]
    with pytest.raises(ls.InputError, match="lists names"):
        ls.PrecomputedProbabilities("votes").fit(votes, y)
    model = ls.PrecomputedProbabilities("votes", ["b", "a"]).fit(votes, y)
    assert model.label_names_ == ("b", "a")
    assert model.score(votes, [["b"], ["a"]]) == model.score(votes, [[1, 0], [0, 1]])


def test_votes_are_a_kind_of_arrays():
    """As the table of kinds says; a row of NaN is a vote that was not cast."""
    model = ls.PrecomputedProbabilities(kind="votes").fit(VOTES, Y)
    dist = ls.as_distribution(VOTES, kind="votes")
    np.testing.assert_array_equal(
        dist.probabilities(), model.predict_distribution(VOTES).probabilities()
    )
    fewer = ls.as_distribution([[[1, 0], [1, 1], [np.nan, np.nan]]], kind="votes")
    np.testing.assert_allclose(fewer.probabilities(), [[0, 0.5, 0, 0.5]])
    with pytest.raises(ls.InputError, match="must have at least one vote, row 1 has none"):
        ls.as_distribution([[[1.0, 0]], [[np.nan, np.nan]]], kind="votes")

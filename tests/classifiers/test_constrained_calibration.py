"""`ConstrainedCalibration`: both forms against enumeration, the choice between them, every kind."""

import numpy as np
import oracles_rules as oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from strategies import KINDS, bound_rules, many, n_examples, random_rules

import labelsure as ls
from labelsure.classifiers.recalibration._constrained import RuledCurves, RuledLinks
from labelsure.distributions._constrained import HardLinks, log_likelihood

SEEDS = st.integers(0, 2**32 - 1)
NAMES = ["animal", "cat", "dog", "day", "night"]
TREE = ls.LabelConstraints({"cat": "animal", "dog": "animal"})
PATHS = ls.LabelConstraints(
    {"cat": "animal", "dog": "animal"}, [["cat", "dog"]], [["day", "night"]]
)


def named(parents, groups):
    """The same rules by name: labels are called by their positions."""
    return ls.LabelConstraints(
        {str(j): [str(p) for p in some] for j, some in enumerate(parents) if some},
        exclusive=[[str(j) for j in members] for members, required in groups if not required],
        exactly_one=[[str(j) for j in members] for members, required in groups if required],
    )


def draw_valid(rng, n_samples, parents, groups):
    valid = [y for y in oracles.all_labelsets(len(parents)) if oracles.is_valid(y, parents, groups)]
    return np.array(valid)[rng.integers(0, len(valid), n_samples)]


def noisy(rng, Y, strength=2.0, noise=1.5):
    """Independent labels that see the truth through noise."""
    logits = strength * (2 * Y - 1) + noise * rng.normal(size=Y.shape)
    return expit(logits)


def images(rng, n_samples):
    """Animals, at most one of cat and dog, by day or by night."""
    Y = np.zeros((n_samples, 5), dtype=int)
    kind = rng.integers(0, 4, n_samples)
    Y[:, 0], Y[:, 1], Y[:, 2] = kind > 0, kind == 1, kind == 2
    Y[:, 3] = rng.integers(0, 2, n_samples)
    Y[:, 4] = 1 - Y[:, 3]
    return Y


def copies(rng, n_samples):
    """Cats and dogs that come together, below animals, seen through noise that knows neither."""
    Y = np.zeros((n_samples, 5), dtype=int)
    Y[:, 0] = rng.random(n_samples) < 0.8
    Y[:, 1] = Y[:, 0] * (rng.random(n_samples) < 0.5)
    Y[:, 2] = Y[:, 1]
    Y[:, 3] = rng.random(n_samples) < 0.5
    Y[:, 4] = Y[:, 3]
    return Y


# Formulas against enumeration.


@n_examples(30)
@given(SEEDS, st.sampled_from(["forest", "graph", "overlapping"]))
def test_likelihood_and_gradient_are_those_of_the_enumeration(seed, form):
    rng = np.random.default_rng(seed)
    parents, groups = random_rules(rng, 4, form == "graph")
    if form == "overlapping":
        groups = [((0, 1, 2), False), ((2, 3), False)]
        parents = [()] * 4
    rules, Y = bound_rules(parents, groups), draw_valid(rng, 3, parents, groups)
    z = rng.normal(size=(3, 4))
    logs, gradient = log_likelihood(rules, Y, z)
    assert_allclose(logs, oracles.ruled_log_likelihood(z, Y, parents, groups), atol=1e-9)
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        ahead = oracles.ruled_log_likelihood(z + step, Y, parents, groups)
        behind = oracles.ruled_log_likelihood(z - step, Y, parents, groups)
        assert_allclose(gradient[:, j], (np.array(ahead) - behind) / 2e-5, atol=1e-6)


def test_curves_have_the_highest_penalised_likelihood():
    rng = np.random.default_rng(0)
    parents, groups = [(), (0,), (0,)], [((1, 2), False)]
    Y = draw_valid(rng, 60, parents, groups)
    dist = ls.IndependentLabels(noisy(rng, Y))
    form = RuledCurves(named(parents, groups)).fit(dist, Y)
    logits = np.log(dist.marginals() / (1 - dist.marginals()))

    def log_likelihood_of(curves):
        return sum(oracles.ruled_log_likelihood(curves[0] * logits + curves[1], Y, parents, groups))

    best = log_likelihood_of(form.curves_)
    assert best > log_likelihood_of(np.array([[1.0] * 3, [0.0] * 3])) + 1
    # Far enough that the penalty, at most of order 1, does not matter.
    for place in np.ndindex(2, 3):
        for change in (-1.5, 1.5):
            moved = form.curves_.copy()
            moved[place] += change
            assert log_likelihood_of(moved) < best
    P = form._apply(dist, form._parameters()).probabilities()
    for row, z in zip(P[:5], form.curves_[0] * logits + form.curves_[1], strict=False):
        weights = oracles.independent_weights(z)
        assert_allclose(row, oracles.restricted(weights, parents, groups), atol=1e-12)


@n_examples(30)
@given(SEEDS)
def test_links_learn_from_rows_that_rules_leave_open(seed):
    rng = np.random.default_rng(seed)
    parents, groups = random_rules(rng, 5)
    groups = [(members, required and not parents[members[0]]) for members, required in groups]
    rules, Y = bound_rules(parents, groups), draw_valid(rng, 6, parents, groups)
    links = HardLinks.of(rules, np.array(rules.order))
    wanted = [oracles.free_labels(y, rules.order, parents, groups) for y in Y]
    assert_array_equal(links.force(Y[:, rules.order]) == 0, wanted)


def test_links_are_logistic_regressions_on_these_rows():
    rng = np.random.default_rng(1)
    Y = copies(rng, 200)
    dist = ls.IndependentLabels(noisy(rng, Y, 0.5), NAMES)
    form = RuledLinks(TREE).fit(dist, Y)
    order = form._rules.order
    place = order.index(1)
    has_parent = Y[:, 0] == 1
    logits = np.log(dist.marginals() / (1 - dist.marginals()))
    known = np.column_stack([logits[:, 1], Y[:, order[:place]]])[has_parent]
    by_hand = LogisticRegression(max_iter=1000).fit(known, Y[has_parent, 1])
    assert_allclose(form.curves_[0, place], by_hand.coef_[0, 0], atol=1e-6)
    assert_allclose(form.weights_[place, :place], by_hand.coef_[0, 1:], atol=1e-6)


# The choice.


def test_through_the_rules_where_these_hold_all_there_is():
    rng = np.random.default_rng(0)
    Y = images(rng, 200)
    dist = ls.IndependentLabels(noisy(rng, Y, 1.0, 2.5), NAMES)
    found = ls.ConstrainedCalibration(PATHS).fit(dist, Y)
    curves, links = (form(PATHS).fit(dist, Y) for form in (RuledCurves, RuledLinks))
    assert curves.is_kept_
    assert links.is_kept_
    assert found.gain_ == curves.gain_ > links.gain_
    assert isinstance(found.form_, RuledCurves)
    assert "2 parents, 1 exclusive group, 1 exactly-one group" in str(found)
    assert "calibrated through the rules: kept" in str(found)


def test_links_where_labels_depend_beyond_the_rules():
    rng = np.random.default_rng(0)
    Y = copies(rng, 500)
    dist = ls.IndependentLabels(noisy(rng, Y, 0.3), NAMES)
    found = ls.ConstrainedCalibration(TREE).fit(dist, Y)
    assert isinstance(found.form_, RuledLinks)
    assert "dependence with the rules as links: kept" in str(found)
    one_form = RuledCurves(TREE).fit(dist, Y)
    assert found.gain_ > one_form.gain_


@pytest.mark.parametrize("calibrate", [True, False])
def test_restricted_alone_where_nothing_helps(calibrate):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, (300, 5))
    dist = ls.IndependentLabels(p, NAMES)
    restricted = PATHS.apply(dist)
    Y = restricted.sample(1, 0)[:, 0]
    found = ls.ConstrainedCalibration(PATHS, calibrate).fit(dist, Y)
    assert found.form_ is None
    assert found.is_kept_
    assert_array_equal(found.transform(dist).marginals(), restricted.marginals())
    assert "not calibrated" in str(found)
    share = np.mean([not oracles.is_valid(y, *PARTS) for y in dist.mode().tolist()])
    assert found.broken_ == share > 0
    assert f"{share:.1%} of the model's own predictions" in str(found)


PARTS = [(), (0,), (0,), (), ()], [((1, 2), False), ((3, 4), True)]


def test_rules_that_chains_cannot_have_leave_the_other_form():
    rules = ls.LabelConstraints({"cat": "animal", "dog": "animal"}, exactly_one=[["cat", "dog"]])
    rng = np.random.default_rng(0)
    Y = images(rng, 200)
    Y[:, 0] = Y[:, 1] | Y[:, 2]
    found = ls.ConstrainedCalibration(rules).fit(ls.IndependentLabels(noisy(rng, Y), NAMES), Y)
    assert isinstance(found.form_, RuledCurves)


def test_few_rows_are_restricted_alone():
    Y = images(np.random.default_rng(0), 6)
    dist = ls.IndependentLabels(np.full((6, 5), 0.5), NAMES)
    assert ls.ConstrainedCalibration(PATHS).fit(dist, Y).form_ is None


# Every kind of distribution.


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_valid_labelsets_alone(kind):
    rng = np.random.default_rng(0)
    parents, groups = [(), (0,), (0,), (), ()], [((1, 2), False), ((3, 4), True)]
    rules, dist = named(parents, groups), many(kind, 40, seed=1)
    Y = draw_valid(rng, 40, parents, groups)
    found = ls.ConstrainedCalibration(rules).fit(dist, Y)
    valid = [oracles.is_valid(y, parents, groups) for y in oracles.all_labelsets(5)]
    for ruled in (found.transform(dist), found.transform(dist).temper(5.0)):
        P = ruled.probabilities()
        assert_allclose(P.sum(axis=1), 1, atol=1e-9)
        assert P[:, ~np.array(valid)].max() < 1e-15
        assert ruled.rules is not None
        for metric in ("exact", "hamming", "jaccard", "f1"):
            assert not len(rules.check(ls.decide(ruled, metric)))
    assert len(found.transform(dist[:0])) == 0
    parts = [part.dist for part in cross_parts(found, dist, Y)]
    assert all(part.rules is not None for part in parts)


def cross_parts(found, dist, Y):
    from labelsure.classifiers.recalibration._base import Part

    parts = [Part(dist[:20], Y[:20]), Part(dist[20:], Y[20:])]
    return [
        Part(ruled, part.truth)
        for ruled, part in zip(found.cross_transform(parts), parts, strict=True)
    ]


def test_smoothed_votes_keep_to_the_rules():
    rng = np.random.default_rng(0)
    Y = images(rng, 200)
    answers = [(Y ^ (rng.random(Y.shape) < 0.15)).tolist() for _ in range(3)]
    votes = ls.LabelsetTable.from_samples(np.swapaxes(answers, 0, 1), NAMES)
    with pytest.warns(UserWarning, match="distinct answers"):
        found = ls.ConstrainedCalibration(PATHS).fit(votes, Y)
    with pytest.warns(UserWarning, match="distinct answers"):
        ruled = found.transform(votes)
    assert isinstance(found.form_, ls.classifiers.VoteSmoothing)
    assert np.isfinite(ruled.log_prob(Y)).all()
    P = ruled.probabilities()
    valid = np.array([oracles.is_valid(y, *PARTS) for y in oracles.all_labelsets(5)])
    assert_allclose(P[:, valid].sum(axis=1), 1)
    assert P[:, valid].min() > 0


def test_sets_of_votes_hold_valid_labelsets_alone():
    rng = np.random.default_rng(0)
    Y = images(rng, 100)
    votes = ls.LabelsetTable.from_samples([[row, row] for row in Y.tolist()], NAMES)
    ruled = PATHS.apply(votes)
    region = ls.LabelsetRegion(coverage=0.95, score="probability").fit(ruled, Y)
    every = np.array(oracles.all_labelsets(5))
    inside = [region.predict(ruled[:1]).contains(y[np.newaxis])[0] for y in every]
    valid = [oracles.is_valid(y, *PARTS) for y in every.tolist()]
    assert any(inside)
    assert not any(one and not rule for one, rule in zip(inside, valid, strict=True))
    assert ruled[:1].rules is not None


def test_very_many_labels_have_their_ancestors_raised():
    names = [f"l{j}" for j in range(6000)]
    p = sparse.csr_array(([0.9, 0.4], ([0, 1], [2, 3])), shape=(2, 6000))
    dist = ls.SparseIndependentLabels(p, label_names=names)
    truth = sparse.csr_array(([1, 1], ([0, 0], [2, 4])), shape=(2, 6000))
    rules = ls.LabelConstraints({"l2": "l4", "l3": "l2"})
    found = ls.ConstrainedCalibration(rules).fit(dist, truth)
    raised = found.transform(dist).listed_marginals()
    assert_allclose(raised[[0], :][:, [2, 3, 4]].toarray(), [[0.9, 0, 0.9]])
    with pytest.raises(ls.InputError, match=r"'l2' needs 'l4'.*close"):
        ls.ConstrainedCalibration(rules).fit(dist, p > 0.5)


# In models.

MODELS = {
    "frozen": lambda X, Y: FrozenEstimator(MultiOutputClassifier(LogisticRegression()).fit(X, Y)),
    "probabilities": lambda X, Y: ls.PrecomputedProbabilities(),
    "chains": lambda X, Y: ls.EnsembleOfClassifierChains(n_chains=2, random_state=0),
    "powerset": lambda X, Y: ls.LabelPowerset(),
    "trellis": lambda X, Y: ls.classifiers.ClassifierTrellis(),
    "recalibrated": lambda X, Y: ls.RecalibratedClassifier(
        None, ls.ConstrainedCalibration(PATHS), random_state=0
    ),
}


def data(n_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    Y = images(rng, n_samples)
    return noisy(rng, Y), pd.DataFrame(Y, columns=NAMES)


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_and_estimate_valid_labelsets(name, tmp_path):
    X, Y = data()
    rules = None if name == "recalibrated" else PATHS
    model = ls.AccuracyAwareClassifier(
        MODELS[name](X[:100], Y[:100]), "f1", region=0.8, constraints=rules, random_state=0
    )
    model = model.fit(X[100:230], Y[100:230])
    found = model.assess(X[230:], shift="ignore")
    assert not len(PATHS.check(found.Y_pred, NAMES))
    assert not len(PATHS.check(found.distribution.sample(20, 0).reshape(-1, 5), NAMES))
    certain = found.region.is_certain.astype(int)
    assert_array_equal(PATHS.close(certain, NAMES).labelsets, certain)
    assert model.score(X[230:], Y[230:]) > 0.6
    estimate = model.estimate(X[230:], shift="ignore")
    assert estimate.low <= np.mean(ls.accuracy(Y[230:], found.Y_pred, "f1")) <= estimate.high
    model.save(tmp_path / "model.labelsure")
    loaded = ls.load(tmp_path / "model.labelsure")
    assert str(clone(model).constraints) == str(model.constraints)
    assert_array_equal(loaded.predict(X[200:]), model.predict(X[200:]))
    if rules is not None:
        assert "valid labelsets only" in model.summary_
        assert "valid labelsets only" in str(found)
        assert "2 parents, 1 exclusive group" in str(loaded.card_)
        assert "of the model's own predictions would break" in str(loaded.card_)
        assert "2 parents, 1 exclusive group" in str(loaded.constraints)


ROWS = np.arange(0, 60, 2)

LATER_TRUTHS = {
    "score": lambda model, X, Y: model.score(X, Y),
    "report": lambda model, X, Y: model.report(X, Y),
    "estimate": lambda model, X, Y: model.estimate(X, rows=ROWS, Y_true=Y.iloc[ROWS]),
    "compare": lambda model, X, Y: model.compare(model, X, rows=ROWS, Y_true=Y.iloc[ROWS]),
    "doubly robust": lambda model, X, Y: model.estimate(
        X, metric="macro-f1", rows=ROWS, Y_true=Y.iloc[ROWS]
    ),
    "monitor": lambda model, X, Y: model.monitor([X], labels={0: (ROWS, Y.iloc[ROWS], 0.5)}),
    "calibrate": lambda model, X, Y: ls.AccuracyEstimator().fit(model.predict_distribution(X), Y),
    "score table": lambda model, X, Y: ls.ScoreTable.from_distribution(
        model.predict_distribution(X), Y
    ),
    "region": lambda model, X, Y: ls.LabelsetRegion(0.8).fit(model.predict_distribution(X), Y),
    "thresholds": lambda model, X, Y: ls.LabelThresholds().fit(model.predict_distribution(X), Y),
    "recalibrate": lambda model, X, Y: ls.TemperatureScaling().fit(
        model.predict_distribution(X), Y
    ),
    "refit": lambda model, X, Y: clone(model).fit(X, Y),
}


@pytest.mark.parametrize("entrance", LATER_TRUTHS)
def test_truths_that_break_a_rule_are_refused_wherever_they_come_in(entrance):
    X, Y = data()
    model = ls.AccuracyAwareClassifier(
        ls.PrecomputedProbabilities(),
        constraints=PATHS,
        random_state=0,
    ).fit(pd.DataFrame(X[:200], columns=NAMES), Y[:200])
    ask = LATER_TRUTHS[entrance]
    index = [f"r{i}" for i in range(100)]
    X_new = pd.DataFrame(X[200:], index, NAMES)
    leaf = int(ROWS[np.flatnonzero(Y["cat"].to_numpy()[200:][ROWS])[0]])
    for place, column, rule in (
        (leaf, "animal", "'cat' needs 'animal'.*Add the ancestors"),
        (4, ["day", "night"], "one of 'day', 'night'.*use `exclusive`"),
    ):
        broken = Y[200:].set_axis(index)
        broken.iloc[place, broken.columns.get_indexer(np.atleast_1d(column))] = 0
        with pytest.raises(ls.InputError, match=rule) as error:
            ask(model, X_new, broken)
        if entrance != "refit":
            assert f"first r{place}:" in str(error.value)
    ask(model, X_new, Y[200:].set_axis(index))


def test_a_report_shows_the_rules():
    X, Y = data()
    model = ls.AccuracyAwareClassifier(
        ls.PrecomputedProbabilities(), constraints=PATHS, random_state=0
    )
    page = str(model.fit(X[:200], Y[:200]).report(X[200:]).html)
    assert "2 parents, 1 exclusive group, 1 exactly-one group" in page
    assert "model&#x27;s own predictions would break" in page or "own predictions would" in page


@pytest.mark.parametrize(
    "settings",
    [
        {"decision": "mode"},
        {"cv": 5},
        {"recalibration": None},
        {"metric": "exact"},
        {"decision": "thresholds"},
    ],
    ids=str,
)
def test_every_setting_keeps_to_the_rules(settings):
    X, Y = data()
    rules = PATHS
    if settings.get("decision") == "thresholds":
        # Thresholds may close ancestors, but not choose within a group.
        thresholds = ls.LabelThresholds().fit(ls.IndependentLabels(X, NAMES), Y)
        settings, rules = {"decision": thresholds}, TREE
    estimator = ls.BinaryRelevance() if "cv" in settings else ls.PrecomputedProbabilities()
    model = ls.AccuracyAwareClassifier(
        estimator, **{"metric": "f1", "constraints": rules, "random_state": 0, **settings}
    )
    model = model.fit(X[:200], Y[:200])
    assert not len(rules.check(model.predict(X[200:]), NAMES))
    assert "valid labelsets only" in model.judged_
    if settings == {"recalibration": None}:
        assert model.recalibration_.form_ is None
        assert model.region_.n_samples_ == 200  # no row was needed for a recalibration


def test_own_predictions_are_judged_as_they_are():
    X, Y = data()
    frozen = MODELS["frozen"](X[:100], Y[:100])
    model = ls.AccuracyAwareClassifier(frozen, constraints=PATHS, decision="predict")
    model = model.fit(X[100:], Y[100:])
    assert_array_equal(model.predict(X), frozen.predict(X))
    assert "valid labelsets only" not in model.judged_


def test_truths_that_break_a_rule_are_refused_before_anything_is_fitted():
    X, Y = data()
    Y.loc[7, ["animal", "cat"]] = 0, 1
    for model in (
        ls.AccuracyAwareClassifier(None, constraints=PATHS),
        ls.RecalibratedClassifier(None, ls.ConstrainedCalibration(PATHS)),
    ):
        with pytest.raises(ls.InputError, match=r"1 of 300 rows.*first 7: 'cat' needs.*close"):
            model.fit(X, Y)
        assert not hasattr(model, "fitted_")
        assert not hasattr(model, "estimator_") or model.estimator_ is None
    closed = PATHS.close(Y)
    ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), constraints=PATHS).fit(X, closed)


@pytest.mark.parametrize(
    ("settings", "telling"),
    [
        ({"constraints": {"cat": "animal"}}, "must be LabelConstraints, got dict"),
        (
            {"constraints": PATHS, "recalibration": ls.TemperatureScaling()},
            "with `constraints`, got a TemperatureScaling",
        ),
    ],
)
def test_wrong_constraints_are_refused(settings, telling):
    X, Y = data()
    with pytest.raises(ls.InputError, match=telling):
        ls.AccuracyAwareClassifier(**settings).fit(X, Y)

"""The ridge fit: glmnet's objective is minimised, and scikit-learn agrees."""

import numpy as np
import oracles_estimation as oracles
import pytest
from simulated_population import random_dist, score_frame
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure.estimation import _ridge
from labelsure.estimation._design import RESPONSES, Layout, make_blocks
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.metrics.registry import get_metric

CASES = [
    ("exact", "value"),
    ("hamming", "value"),
    ("jaccard", "value"),
    ("jaccard", "rates"),
    ("f1", "rates"),
]


@pytest.fixture(scope="module")
def table():
    dist = random_dist(300)
    table = score_frame(dist, dist.sample(1, random_state=1)[:, 0])
    rng = np.random.default_rng(2)
    return table.assign(
        dataset=rng.choice(["emotions", "scene", "yeast"], size=300),
        classifier=rng.choice(["Indep", "ECC"], size=300),
    )


def groups_of(grouped):
    return {"slope_groups": "dataset", "offset_groups": "classifier"} if grouped else {}


def written_out(estimator, table):
    """Standardised dense columns, intercept last, made without the package's blocks."""
    features = np.column_stack(
        [ls.confidence(random_dist(300), [name])[name] for name in estimator.features_]
    )
    columns = []
    if estimator.slope_levels_.names is None:
        columns += list(features.T)
    else:
        for name in ("emotions", "scene", "yeast"):
            columns += list((features * (table["dataset"] == name).to_numpy()[:, None]).T)
        columns += [(table["dataset"] == n).to_numpy(float) for n in ("emotions", "scene", "yeast")]
        columns += [(table["classifier"] == n).to_numpy(float) for n in ("ECC", "Indep")]
    return np.column_stack(columns)


def targets_of(estimator, table):
    tp, fp, fn, tn = (table[name].to_numpy(float) for name in ("tp", "fp", "fn", "tn"))
    value = get_metric(estimator.metric).values(tp, fp, fn, tn, empty=1.0)
    if estimator.model_.response == "fractional":
        return np.column_stack([value, 1 - value])
    if estimator.model_.response == "binomial":
        return np.column_stack([tp + tn, fp + fn])
    return np.column_stack([tp, fp, fn, tn])


def standardised(X, targets):
    w = targets.sum(axis=1)
    mean = np.average(X, axis=0, weights=w)
    return X / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("metric", "response"), CASES)
def test_coefficients_minimise_glmnets_objective(table, metric, response, grouped):
    estimator = AccuracyEstimator(metric, "mix", response=response).fit(table, **groups_of(grouped))
    targets = targets_of(estimator, table)
    X = np.column_stack([standardised(written_out(estimator, table), targets), np.ones(300)])
    model = estimator.model_
    gradient = oracles.ridge_gradient(
        X.tolist(),
        targets.tolist(),
        model.coefficients.tolist(),
        estimator.penalty_,
        RESPONSES[model.response].n_free,
    )
    assert np.abs(gradient).max() < 1e-6


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("metric", "response"), CASES)
def test_agrees_with_scikit_learn_on_the_same_c(table, metric, response, grouped):
    penalty = 3e-3
    estimator = AccuracyEstimator(metric, ("HP", "SE"), response=response, penalty=penalty)
    estimator.fit(table, **groups_of(grouped))
    targets = targets_of(estimator, table)
    X = standardised(written_out(estimator, table), targets)
    n_classes = targets.shape[1]
    C = 1 / (penalty * targets.sum())
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=500, solver="newton-cholesky")
    peer.fit(
        np.repeat(X, n_classes, axis=0),
        np.tile(np.arange(n_classes)[::-1], 300),
        sample_weight=targets.ravel(),
    )
    ours = estimator.model_.coefficients
    theirs = np.column_stack([peer.coef_, peer.intercept_])[::-1]
    if n_classes > 2:  # a common shift of the intercepts changes nothing
        ours, theirs = ours.copy(), theirs.copy()
        ours[:, -1] -= ours[:, -1].mean()
        theirs[:, -1] -= theirs[:, -1].mean()
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_predictions_follow_from_the_coefficients(table):
    estimator = AccuracyEstimator("exact", ("HP", "SE")).fit(table, **groups_of(True))
    (values,) = estimator.model_.coefficients / estimator.model_.scales
    logits = np.column_stack([written_out(estimator, table), np.ones(300)]) @ values
    estimates = estimator.predict(table, **groups_of(True))
    np.testing.assert_allclose(estimates, 1 / (1 + np.exp(-logits)), rtol=1e-9)


def test_by_rates_it_predicts_the_ratio_of_rates(table):
    estimator = AccuracyEstimator("jaccard", "SE", response="rates", penalty=1e-3).fit(table)
    slopes, intercepts = (estimator.model_.coefficients / estimator.model_.scales).T
    se = ls.confidence(random_dist(300), "SE")["SE"].to_numpy()[:5]
    tp, fp, fn, _ = np.exp(intercepts + np.outer(se, slopes)).T
    expected = tp / (tp + fp + fn)
    np.testing.assert_allclose(estimator.predict(table[:5]), expected, rtol=1e-9)


def test_the_penalty_has_the_least_held_out_deviance(table):
    estimator = AccuracyEstimator("exact", "mix", penalty="paper").fit(table)
    path, chosen = estimator.model_.path, estimator.penalty_
    assert len(path["penalty"]) == 20
    assert chosen == path["penalty"][np.argmin(path["deviance"])]
    assert (np.diff(path["penalty"]) < 0).all()


def test_held_out_deviance_is_that_of_scikit_learn_folds(table):
    # One fold of the path redone by a peer: the deviance must be about the same for each fold.
    estimator = AccuracyEstimator("exact", ("HP", "SE"), penalty="paper").fit(table)
    folds = estimator._make_folds(300)
    targets = targets_of(estimator, table)
    X = standardised(written_out(estimator, table), targets)
    y = targets[:, 0]
    for position in (5, 15):
        penalty = estimator.model_.path["penalty"][position]
        deviance = 0.0
        for fold in range(10):
            train = folds != fold
            peer = LogisticRegression(C=1 / (penalty * train.sum()), solver="newton-cholesky")
            p = peer.fit(X[train], y[train]).predict_proba(X[~train])[:, 1]
            deviance -= 2 * (y[~train] * np.log(p) + (1 - y[~train]) * np.log(1 - p)).sum()
        np.testing.assert_allclose(
            estimator.model_.path["deviance"][position], deviance / 300, rtol=1e-4
        )


def test_a_row_of_many_labels_weighs_as_many_trials(table):
    # Hamming of 4 labels is four trials: doubling every count changes no rate.
    estimator = AccuracyEstimator("hamming", "SE", penalty=0.01).fit(table)
    assert estimator.model_.response == "binomial"
    doubled = table.assign(**{name: 2 * table[name] for name in ("tp", "fp", "fn", "tn")})
    twice = AccuracyEstimator("hamming", "SE", penalty=0.01).fit(doubled)
    np.testing.assert_allclose(twice.model_.coefficients, estimator.model_.coefficients, atol=1e-9)


def test_a_constant_feature_gets_no_coefficient(table):
    constant = table.assign(entropy=0.3)
    estimator = AccuracyEstimator("exact", ("SE", "HP"), penalty=1e-3).fit(constant)
    assert estimator.model_.coefficients[0, 0] == 0


@pytest.mark.parametrize("value", [0, 1])
def test_accuracies_that_are_all_alike(table, value):
    alike = table.assign(tp=2 * value, fp=2 * (1 - value), fn=0, tn=2)
    estimator = AccuracyEstimator("exact", "mix").fit(alike)
    np.testing.assert_allclose(estimator.predict(table), value, atol=1e-6)
    batch = estimator.estimate(alike)
    assert batch.high - batch.low > 0.005  # 300 of 300 do not prove certainty


def test_blocks_cover_all_rows_once():
    rng = np.random.default_rng(0)
    for n_slopes in (0, 3):
        features, slope = rng.normal(size=(9000, 2)), rng.integers(3, size=9000)
        offset = rng.integers(2, size=9000)
        layout = Layout(2, n_slopes, 2)
        seen = np.zeros(9000)
        dense = np.zeros((9000, layout.n_columns))
        for block in make_blocks(features, slope, offset, layout):
            seen[block.rows] += 1
            rows = np.arange(9000)[block.rows]
            dense[np.ix_(rows, block.columns)] = block.values
        assert (seen == 1).all()
        assert (dense[:, -1] == 1).all()
        difference = dense.sum(axis=1) - features.sum(axis=1) - (2 + bool(n_slopes))
        assert (np.abs(difference) < 1e-9).all()


@pytest.mark.parametrize("n_samples", [2, 3, 5, 12])
@pytest.mark.parametrize("response", ["value", "rates"])
def test_few_instances_and_perfect_separation(table, n_samples, response):
    # Rates of 0 and 1 to rounding on the way must not stop the fit.
    few = table[:n_samples].assign(fn=0, tn=2)
    right = few["top"] >= few["top"].median()
    few = few.assign(tp=np.where(right, 2, 0), fp=np.where(right, 0, 2))
    for metric in ("exact", "jaccard"):
        estimator = AccuracyEstimator(metric, "mix", response=response).fit(few)
        estimated = estimator.predict(few)
        assert ((estimated >= 0) & (estimated <= 1)).all()
        batch = estimator.estimate(few, shift="ignore")
        assert 0 <= batch.low <= batch.mean <= batch.high <= 1


@pytest.mark.parametrize("response", ["value", "rates"])
def test_folds_that_go_by_another_fits_curvature_end_where_their_own_leads(
    table, response, monkeypatch
):
    """The deviances are those of Newton's method for every fold, however far it goes."""

    def path_of():
        estimator = AccuracyEstimator("jaccard", features="mix", response=response, random_state=0)
        return estimator.fit(table).model_.path["deviance"]

    usual = path_of()
    monkeypatch.setattr(_ridge, "_minimise_alike", lambda *given: None)
    np.testing.assert_allclose(usual, path_of(), rtol=1e-5)
    monkeypatch.setattr(_ridge, "PATH_STEP", 1e-7)
    np.testing.assert_allclose(usual, path_of(), rtol=1e-5)


def test_a_curvature_that_does_not_fit_is_given_up(table, monkeypatch):
    """Steps that are ten times too short leave nine tenths: Newton's method does the rest."""
    estimator = AccuracyEstimator("exact", features="mix", random_state=0)
    usual = estimator.fit(table).model_.path["deviance"]
    shared, given_up = _ridge._minimise_alike, []

    def with_wrong_curvature(parts, start, ridge, hessian, share):
        found = shared(parts, start, ridge, 10 * hessian, share)
        given_up.append(found is None)
        return found

    monkeypatch.setattr(_ridge, "_minimise_alike", with_wrong_curvature)
    again = estimator.fit(table).model_.path["deviance"]
    assert sum(given_up) > 5
    np.testing.assert_allclose(again, usual, rtol=3e-5)


def test_estimates_do_not_leave_the_range_of_the_accuracies_fitted_to():
    """Few instances of high accuracy, then a batch of which the classifier knows nothing."""
    rng = np.random.default_rng(0)
    easy = ls.IndependentLabels(rng.beta(0.15, 1.5, size=(80, 40)))
    Y = easy.sample(1, random_state=1)[:, 0]
    values = ls.accuracy(Y, easy.mode(), "hamming")
    hard = ls.IndependentLabels(rng.uniform(0.2, 0.8, size=(200, 40)))
    for settings in ({}, {"features": "mix"}, {"penalty": 1e-3}):
        estimates = AccuracyEstimator("hamming", **settings).fit(easy, Y).predict(hard)
        assert estimates.min() >= values.min() > 0.8
        assert estimates.max() <= values.max()
    paper = AccuracyEstimator("hamming", penalty="paper").fit(easy, Y)
    assert paper.predict(hard).min() < 0.5


def test_a_chosen_penalty_is_not_below_the_floor(table):
    # Features that explain everything ask for no penalty at all.
    is_right = (table["entropy"] < table["entropy"].median()).astype(int)
    right = table.assign(tp=is_right, fp=0, fn=1 - is_right, tn=0)
    plain = AccuracyEstimator("exact", "mix").fit(right)
    paper = AccuracyEstimator("exact", "mix", penalty="paper").fit(right)
    assert plain.penalty_ >= 3e-4 > paper.penalty_
    assert len(paper.model_.path["penalty"]) == 20
    kept = plain.model_.path["penalty"]
    np.testing.assert_allclose(kept, paper.model_.path["penalty"][: len(kept)])

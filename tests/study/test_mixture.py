import numpy as np
import oracles_estimation
import oracles_study as oracles
import pandas as pd
import pytest
from scipy.optimize import minimize
from score_tables import make_scores

import labelsure as ls
from labelsure.study.conclusions import published_table
from labelsure.study.mixture import (
    FIRST_PENALTY,
    PENALTIES,
    _halves,
    _interval_means,
    _Regression,
    interval_table,
    mark_intervals,
    mixture_replicates,
)
from labelsure.study.plan import Settings

SCORES = make_scores(n=80, n_repeats=2)
ONE = Settings(metrics=("exact",), candidates=("SE",), empty=0.0, n_replicates=1)


def with_(**changes):
    return ONE.model_copy(update=changes)


@pytest.fixture(scope="module")
def replicates():
    return mixture_replicates(SCORES, Settings(candidates=("HP",), empty=0.0, n_replicates=2))


def test_every_held_out_row_is_counted_once(replicates):
    n = replicates.groupby(["metric", "model", "replicate"])["n"].sum()
    assert (n == 3 * 3 * 80 / 2).all()
    assert len(n) == 3 * 2 * 2


def test_estimates_lie_in_their_intervals(replicates):
    assert (replicates["estimated"] >= replicates["predicted_low"] - 1e-12).all()
    assert (replicates["estimated"] <= replicates["predicted_high"] + 1e-12).all()
    widths = (replicates["predicted_high"] - replicates["predicted_low"]).round(9)
    assert set(widths[replicates["metric"] == "hamming"]) == {0.05}
    assert set(widths[replicates["metric"] != "hamming"]) == {0.1}


def test_estimates_of_exact_match_are_near_the_accuracy():
    part = mixture_replicates(SCORES, with_(candidates=("HP",), n_replicates=6))
    error = (part["estimated"] - part["accuracy"]).abs()
    assert np.average(error, weights=part["n"]) < 0.08


def test_the_interval_table_is_quantiles_of_the_replicates(replicates):
    table = interval_table(replicates)
    chosen = table.query("metric == 'exact' and model == 'MIX' and n_replicates == 2").iloc[0]
    values = replicates.query(
        f"metric == 'exact' and model == 'MIX' and predicted_low == {chosen['predicted_low']}"
    )["accuracy"]
    assert chosen["low"] == pytest.approx(np.quantile(values, 0.025))
    assert chosen["high"] == pytest.approx(np.quantile(values, 0.975))
    assert chosen["accuracy"] == pytest.approx(values.mean())


def test_an_interval_without_estimates_is_missing():
    rows = [("exact", "HP", 0, 0.1, 0.2, 5, 0.15, 0.1), ("exact", "SE", 0, 0.2, 0.3, 5, 0.25, 0.2)]
    columns = ["metric", "model", "replicate", "predicted_low", "predicted_high", "n"]
    table = interval_table(pd.DataFrame(rows, columns=[*columns, "estimated", "accuracy"]))
    missing = table[table["low"].isna()]
    assert missing[["predicted_low", "model", "n_replicates"]].to_numpy().tolist() == [
        [0.1, "SE", 0],
        [0.2, "HP", 0],
    ]
    assert not missing[["bold", "underlined"]].any(axis=None)


def test_published_marks_follow_our_rules():
    paper = published_table("intervals")
    ours = mark_intervals(paper.drop(columns=["bold", "underlined"]))
    assert (ours["underlined"] == paper["underlined"].astype(bool)).all()
    differs = ours[ours["bold"] != paper["bold"].astype(bool)]
    rows = differs[["metric", "predicted_low"]].drop_duplicates().to_numpy().tolist()
    # Three rows of 27 do not follow the paper's own rule; all others do.
    assert rows == [["hamming", 0.65], ["jaccard", 0.0], ["jaccard", 0.2]]


def test_bold_is_the_closest_interval():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "metric": "exact",
            "predicted_low": np.repeat([0.1, 0.2, 0.3], 4),
            "predicted_high": np.repeat([0.2, 0.3, 0.4], 4),
            "model": ["HP", "SE", "CE", "MIX"] * 3,
            "low": rng.uniform(0, 0.5, 12).round(3),
            "high": rng.uniform(0.5, 1, 12).round(3),
        }
    )
    table.loc[5, ["low", "high"]] = np.nan
    marked = mark_intervals(table)
    for (low, high), rows in marked.groupby(["predicted_low", "predicted_high"]):
        pairs = [
            (None, None) if np.isnan(a) else (a, b)
            for a, b in zip(rows["low"], rows["high"], strict=True)
        ]
        assert rows["bold"].tolist() == oracles.closest((low, high), pairs)


def test_ends_of_intervals_belong_to_the_lower_one():
    cut = _interval_means(
        "exact", np.array([0.0, 0.1, 0.1000001, 1.0]), np.array([0.0, 1.0, 1.0, 1.0])
    )
    assert cut["predicted_low"].tolist() == [0.0, 0.1, 0.9]
    assert cut["predicted_high"].tolist() == [0.1, 0.2, 1.0]
    assert cut["n"].tolist() == [2, 1, 1]
    assert cut["accuracy"].tolist() == [0.5, 1.0, 1.0]


def test_a_split_by_instance_keeps_all_classifiers_on_one_side():
    pooled = SCORES.query("repeat == 0").reset_index(drop=True)
    keys = [pooled["dataset"], pooled["instance"]]
    for fitted in _halves(pooled, with_(by_instance=True, n_replicates=3)):
        sides = pd.Series(fitted).groupby(keys).nunique()
        assert (sides == 1).all()
        assert fitted.mean() == pytest.approx(0.5, abs=0.01)
    by_row = next(_halves(pooled, ONE))
    assert pd.Series(by_row).groupby(keys).nunique().max() == 2


def test_a_mixture_is_repeatable_and_of_the_first_repeat():
    first = mixture_replicates(SCORES, ONE)
    pd.testing.assert_frame_equal(first, mixture_replicates(SCORES.query("repeat == 0"), ONE))
    assert not first.equals(mixture_replicates(SCORES.query("repeat == 1"), ONE))
    assert not first.equals(mixture_replicates(SCORES, with_(seed=1)))
    assert not first.equals(mixture_replicates(SCORES, with_(by_instance=True)))


def standardised(regression, rows):
    """Return all columns of rows with their zeros, standardised, and ones."""
    X = np.zeros((len(regression.columns), regression.places.max() + 1))
    for row, dataset in enumerate(regression.dataset):
        X[row, regression.places[dataset]] = regression.columns[row]
    X, weights = X[rows, 1:], regression.counts[:, rows].sum(axis=0)
    X = X - np.average(X, axis=0, weights=weights)
    X = X / np.sqrt(np.average(X**2, axis=0, weights=weights))
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard"])
def test_rates_minimise_the_ridge_objective(metric):
    """Against a general minimiser of the oracle's objective, with slopes by data set."""
    pooled = SCORES.query("repeat == 0").iloc[::9].sample(frac=1, random_state=0)
    regression = _Regression(pooled.reset_index(drop=True), metric, ("SE",), 0.0)
    fitted = np.arange(len(pooled)) % 5 > 0
    counts = regression.counts[:, fitted].T
    X = standardised(regression, fitted)
    shape = (counts.shape[1], X.shape[1])
    penalty = 1e-3 if metric == "jaccard" else 2e-3  # two classes have one set of coefficients

    def objective(flat):
        return oracles_estimation.ridge_objective(X, counts, flat.reshape(shape), penalty)

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxfun": 10**6}
    found = minimize(objective, np.zeros(shape).ravel(), method="L-BFGS-B", options=options)
    logits = X @ found.x.reshape(shape).T
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    rows, rates = regression.rates(fitted, regression.fit(fitted, 1e-3))
    place = np.searchsorted(np.flatnonzero(fitted), rows)
    assert sorted(place) == list(range(fitted.sum()))
    np.testing.assert_allclose(rates.T, expected[place], atol=2e-5)
    others, estimated = regression.estimate(fitted, 1e-3)
    assert sorted(others) == np.flatnonzero(~fitted).tolist()
    if metric == "jaccard":
        tp, fp, fn, _ = regression.rates(~fitted, regression.fit(fitted, 1e-3))[1]
        np.testing.assert_allclose(estimated, tp / (tp + fp + fn))


def test_a_fit_does_not_depend_on_its_start():
    pooled = SCORES.query("repeat == 0").reset_index(drop=True)
    regression = _Regression(pooled, "jaccard", ("SE", "TG"), 0.0)
    half = np.arange(len(pooled)) % 2 == 0
    cold = regression.fit(half, 1e-4)
    far = 10 * np.random.default_rng(0).normal(size=cold.shape)
    for start in (regression.fit(half, 10.0), far):
        warm = regression.fit(half, 1e-4, start)
        rates = [regression.rates(~half, found)[1] for found in (cold, warm)]
        np.testing.assert_allclose(*rates, atol=1e-7)


def test_a_class_that_no_fitted_row_has_gets_a_rate_of_zero():
    pooled = SCORES.query("repeat == 0").reset_index(drop=True).assign(fp=0)
    regression = _Regression(pooled, "jaccard", ("SE",), 0.0)
    half = np.arange(len(pooled)) % 2 == 0
    _, rates = regression.rates(~half, regression.fit(half, 1e-3))
    assert (rates[1] == 0).all()
    np.testing.assert_allclose(rates.sum(axis=0), 1)
    right = _Regression(pooled.assign(fn=0), "exact", ("SE",), 0.0)
    assert (right.estimate(half, 1e-3)[1] == 1).all()


def test_the_penalty_has_the_least_cross_validated_deviance():
    pooled = SCORES.query("repeat == 0").reset_index(drop=True)
    regression = _Regression(pooled, "exact", ("SE",), 0.0)
    half = np.arange(len(pooled)) % 2 == 0
    chosen = regression.choose_penalty(half, 0)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(half))

    def deviance(penalty):
        total = 0.0
        for k in range(10):
            in_fold = np.isin(np.arange(len(half)), rows[k::10])
            others, rates = regression.rates(in_fold, regression.fit(half & ~in_fold, penalty))
            total -= (regression.counts[:, others] * np.log(rates)).sum()
        return total

    coarse = min(PENALTIES, key=deviance)  # all of them, not only downhill
    finer = [coarse * factor for factor in (1, 10**-0.5, 10**0.5)]
    assert chosen == pytest.approx(min(finer, key=deviance))
    np.random.default_rng(0).shuffle(regression.columns[:, -1])
    assert regression.choose_penalty(half, 0) > chosen


def test_messages():
    with pytest.raises(ls.InputError, match="instance"):
        mixture_replicates(SCORES.drop(columns="instance"), with_(by_instance=True))


def test_a_data_set_that_a_half_does_not_hold_is_not_estimated_from_it():
    tiny = make_scores(n=2, datasets={"tiny": 3}, classifiers=("ECC",), n_repeats=1, seed=1)
    odd = make_scores(n=1, datasets={"scene": 4}, classifiers=("net",), n_repeats=1, seed=2)
    scores = pd.concat([SCORES.query("repeat == 0"), tiny, odd], ignore_index=True)
    replicates = mixture_replicates(scores, with_(n_replicates=8)).query("model == 'SE'")
    n = replicates.groupby("replicate")["n"].sum()
    estimated = []
    for half in _halves(scores, with_(n_replicates=8)):
        fitted, others = scores[half], scores[~half]
        known = [
            row.dataset in set(fitted["dataset"]) and row.classifier in set(fitted["classifier"])
            for row in others.itertuples()
        ]
        estimated.append(sum(known))
    assert n.tolist() == estimated
    assert min(estimated) < max(estimated)


def test_too_few_rows_to_halve():
    three = make_scores(n=3, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    replicates = mixture_replicates(three, ONE)
    assert replicates.empty
    assert list(replicates.columns) == [
        "metric", "model", "replicate", "predicted_low", "predicted_high", "n", "estimated",
        "accuracy",
    ]  # fmt: skip
    assert interval_table(replicates).empty
    four = make_scores(n=4, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    assert mixture_replicates(four, ONE).query("model == 'SE'")["n"].sum() == 2


def test_the_search_for_a_penalty_starts_in_the_middle_of_its_grid():
    assert PENALTIES[FIRST_PENALTY] == pytest.approx(1e-4)
    assert PENALTIES[0] == pytest.approx(1e-11)  # 3e-9 is chosen on the paper's data sets

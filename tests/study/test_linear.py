import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from score_tables import make_features, make_scores

import labelsure as ls
from labelsure.study.analyses import correlate, effects, robustness
from labelsure.study.conclusions import published_table

PUBLISHED = published_table("correlations")
FEATURES = pd.DataFrame(
    {
        "dataset": ["emotions", "scene", "yeast", "stare", "enron", "slashdot"],
        "n_labels": [6, 6, 14, 15, 20, 22],
        "n_labelsets": [26, 14, 161, 70, 80, 130],
        "cardinality": [1.87, 1.07, 4.24, 1.32, 0.64, 1.18],
        "n_features": [72, 294, 103, 44, 1001, 1079],
    }
)


def beside_the_paper(analysis, ours, key):
    paper = published_table("models").query(
        f"association == 'kendall' and analysis == '{analysis}'"
    )
    return ours.merge(paper, left_on=[key, "term"], right_on=["of", "term"])


def fit_of(models, term):
    """Return a statistic of each fit, in their order."""
    return models[models["term"] == term]["estimate"].tolist()


def stars(p_values):
    return ["*" * sum(p < level for level in (0.1, 0.05, 0.01)) for p in p_values]


def test_published_correlations_give_the_published_effects():
    both = beside_the_paper("effects", effects(PUBLISHED), "metric")
    terms = both[both["factor"] != "fit"]
    assert len(terms) == 30
    assert (terms["estimate_x"] - terms["estimate_y"]).abs().max() < 0.001
    assert (terms["standard_error_x"] - terms["standard_error_y"]).abs().max() < 0.001
    assert stars(terms["p_value"]) == terms["stars"].tolist()


def test_published_correlations_give_the_published_fit():
    both = beside_the_paper("effects", effects(PUBLISHED), "metric")
    fits = both[both["factor"] == "fit"]
    assert len(fits) == 3 * 4
    assert (fits["estimate_x"].astype(float).round(3) == fits["estimate_y"]).all()
    assert fit_of(effects(PUBLISHED), "n") == [72, 72, 72]


def test_published_correlations_give_the_published_rows_of_classifiers_and_metrics():
    ours = robustness(PUBLISHED, FEATURES)
    both = beside_the_paper("robustness", ours, "candidate")
    rows = both[both["term"].isin(["Indep", "CT", "hamming", "jaccard"])]
    assert len(rows) == 16
    assert (rows["estimate_x"] - rows["estimate_y"]).abs().max() < 0.001
    assert fit_of(ours, "n") == [54] * 4


def test_terms_come_in_the_order_of_the_correlations():
    assert effects(PUBLISHED).query("metric == 'exact'")["term"].tolist() == [
        "TG", "SE", "CE", "scene", "yeast", "stare", "enron", "slashdot", "CT", "Indep",
        "r_squared", "adjusted_r_squared", "n", "rmse",
    ]  # fmt: skip
    assert robustness(PUBLISHED, FEATURES)["term"][:8].tolist() == [
        "n_labels", "n_labelsets", "cardinality", "n_features", "CT", "Indep", "hamming", "jaccard",
    ]  # fmt: skip


def test_clustered_errors_and_inflation_are_those_of_statsmodels():
    ours = robustness(PUBLISHED, FEATURES).query("candidate == 'SE'").set_index("term")
    data = PUBLISHED.query("candidate == 'SE'").merge(FEATURES, on="dataset")
    data["z"] = np.arctanh(data["correlation"])
    formula = (
        "z ~ n_labels + n_labelsets + cardinality + n_features"
        " + C(classifier, Treatment('ECC')) + C(metric, Treatment('exact'))"
    )
    model = smf.ols(formula, data)
    groups = data["dataset"].astype("category").cat.codes
    clustered = model.fit(cov_type="cluster", cov_kwds={"groups": groups})
    plain = model.fit()
    assert ours.loc["cardinality", "estimate"] == pytest.approx(plain.params["cardinality"])
    assert ours.loc["cardinality", "standard_error"] == pytest.approx(plain.bse["cardinality"])
    assert ours.loc["cardinality", "clustered_standard_error"] == pytest.approx(
        clustered.bse["cardinality"], rel=1e-6
    )
    others = smf.ols("cardinality ~ n_labels + n_labelsets + n_features", data).fit()
    inflation = 1 / (1 - others.rsquared)
    assert ours.loc["cardinality", "variance_inflation"] == pytest.approx(inflation)


def test_repeats_are_averaged_and_not_counted_as_observations():
    twice = pd.concat([PUBLISHED.assign(repeat=0), PUBLISHED.assign(repeat=1)])
    pd.testing.assert_frame_equal(effects(twice), effects(PUBLISHED))
    once, both = robustness(PUBLISHED, FEATURES), robustness(twice, FEATURES)
    pd.testing.assert_frame_equal(both, once)


def test_missing_correlations_are_left_out():
    gaps = PUBLISHED.copy()
    gaps.loc[[3, 5], "correlation"] = np.nan
    gaps.loc[7, "correlation"] = 1.0
    assert fit_of(effects(gaps), "n") == [69, 72, 72]


def test_own_names_are_compared_with_the_first_of_them():
    frame = pd.DataFrame(
        {
            "metric": "f1",
            "dataset": ["a", "a", "b", "b"] * 2,
            "classifier": ["net"] * 4 + ["tree"] * 4,
            "candidate": ["HP", "SE"] * 4,
            "correlation": [0.1, 0.2, 0.15, 0.3, 0.2, 0.25, 0.2, 0.33],
        }
    )
    found = effects(frame)[:3]
    assert found["term"].tolist() == ["SE", "b", "tree"]
    assert found["baseline"].tolist() == ["HP", "a", "net"]
    turned = effects(frame[::-1])[:3]
    assert turned["term"].tolist() == ["SE", "a", "net"]
    assert turned["estimate"].tolist()[1:] == pytest.approx((-found["estimate"]).tolist()[1:])
    paper = effects(frame.assign(dataset=frame["dataset"].replace({"b": "yeast"})))[:3]
    assert paper["baseline"].tolist() == ["HP", "yeast", "net"]  # the paper's before one's own


def test_a_saturated_model_has_estimates_but_no_errors():
    frame = pd.DataFrame(
        {
            "metric": "exact",
            "dataset": "a",
            "classifier": "ECC",
            "candidate": ["HP", "SE"],
            "correlation": [0.1, 0.2],
        }
    )
    found = effects(frame)
    assert found["estimate"][0] == pytest.approx(np.arctanh(0.2) - np.arctanh(0.1))
    assert found[["standard_error", "p_value"]].isna().all(axis=None)
    assert np.isnan(fit_of(found, "rmse")).all()


def test_features_that_too_few_data_sets_cannot_tell_apart_are_missing():
    found = robustness(correlate(make_scores()), make_features()).query("candidate == 'HP'")
    estimates = found.set_index("term")["estimate"]
    assert estimates[["n_labels", "n_labelsets", "Indep", "CT", "hamming"]].notna().all()
    assert estimates[["cardinality", "n_features"]].isna().all()


def test_without_a_defined_correlation_there_are_no_rows():
    nothing = PUBLISHED.assign(correlation=np.nan)
    for found in (effects(nothing), robustness(nothing, FEATURES)):
        assert found.empty
        assert {"term", "estimate", "standard_error"} <= set(found)


def test_messages():
    with pytest.raises(ls.InputError, match="`correlations`"):
        effects(PUBLISHED.drop(columns="metric"))
    with pytest.raises(ls.InputError, match="correlations"):
        effects(PUBLISHED.assign(correlation=3.0))
    one_is_fine = PUBLISHED.assign(correlation=[1.0, -3.0, *PUBLISHED["correlation"][2:]])
    with pytest.raises(ls.InputError, match="correlations"):
        effects(one_is_fine)
    with pytest.raises(ls.InputError, match="`features`"):
        robustness(PUBLISHED, FEATURES.query("dataset != 'enron'"))
    with pytest.raises(ls.InputError, match="`features`"):
        robustness(PUBLISHED, FEATURES.drop(columns="cardinality"))
    with pytest.raises(ls.errors.UnknownNameError, match="effect"):
        published_table("effect")

"""Cells: the score table against brute force, and what its numbers depend on."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import labelsure as ls
from labelsure.metrics.registry import METRICS, Metric
from labelsure.study.cells import Cell, cell_key, feature_rows, plan_cells, score_cell, seed_of
from labelsure.study.plan import Plan, StudyData, load_plan

SETTINGS = load_plan("quick").to_dict()


def plan_with(**changes):
    return Plan.from_dict({**SETTINGS, **changes})


def loaded(plan):
    return {key: source.load(key) for key, source in plan.datasets.items()}


@pytest.fixture(scope="module")
def quick():
    plan = plan_with(n_repeats=1)
    sets = loaded(plan)
    return (
        plan,
        sets,
        {cell: score_cell(cell, plan, sets[cell.dataset]) for cell in plan_cells(plan)},
    )


def test_columns_are_those_of_the_score_table(quick):
    columns = [
        *("dataset", "classifier", "repeat", "instance", "n_labels", "decision", "method"),
        *("top", "runner_up", "entropy", "collision"),
        *("log_top", "log_runner_up", "log_collision", "tp", "fp", "fn", "tn", "p_empty"),
        *("expected_exact", "expected_hamming", "expected_jaccard", "expected_f1"),
        *(
            f"best_{metric}_{what}"
            for metric in ("hamming", "jaccard", "f1")
            for what in ("decision", "gap", "tp", "fp", "fn", "tn")
        ),
        *("true_expected_exact", "true_expected_hamming", "true_expected_jaccard"),
        "true_p_empty",
    ]
    for scores in quick[2].values():
        assert list(scores.columns) == columns
        assert not scores.isna().any(axis=None)


def jaccard(a, b, empty=0.0):
    union = sum(x or y for x, y in zip(a, b, strict=True))
    return sum(x and y for x, y in zip(a, b, strict=True)) / union if union else empty


def f1(a, b, empty):
    both = sum(a) + sum(b)
    return 2 * sum(x and y for x, y in zip(a, b, strict=True)) / both if both else empty


def hamming(a, b, empty):
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)


def counted(y, decision):
    found = [(y == a) & (np.array(decision) == b) for a, b in ((1, 1), (0, 1), (1, 0), (0, 0))]
    return tuple(int(f.sum()) for f in found)


def fit_again(quick, cell):
    """The data of a cell, its rows, its test instances, and their distributions, made by hand."""
    plan, sets, tables = quick
    data, scores = sets[cell.dataset].data, tables[cell]
    test = scores["instance"].to_numpy()
    train = np.setdiff1d(np.arange(len(data)), test)
    model = plan.classifier(cell.classifier, seed_of(plan.seed, cell.name))
    model.fit(data.X.iloc[train], data.Y[train])
    return data, scores, test, model.predict_distribution(data.X.iloc[test])


@pytest.mark.parametrize("classifier", ["Indep", "CT", "ECC"])
def test_rows_against_brute_force(quick, classifier):
    """Fit again by hand, write out all labelsets, and count."""
    plan, sets, _ = quick
    data, scores, test, dist = fit_again(quick, Cell("dependent", classifier, 0))
    everything = [labelset[::-1] for labelset in product([0, 1], repeat=4)]  # in order of codes
    true = sets["dependent"].truth[test].probabilities()
    for i, (row, P) in enumerate(zip(scores.itertuples(), dist.probabilities(), strict=True)):
        mode = everything[int(np.argmax(P))]
        assert row.decision == "".join(map(str, mode))
        assert np.isclose(
            [row.top, row.p_empty, row.expected_exact], [P.max(), P[0], P.max()]
        ).all()
        assert np.isclose(row.entropy, -(P * np.log(P)).sum())
        worth = np.array([jaccard(mode, labelset) for labelset in everything])
        assert np.isclose(row.expected_jaccard, worth @ P)
        assert np.isclose(row.true_expected_jaccard, worth @ true[i])
        assert np.isclose(row.true_p_empty, true[i][0])
        assert np.isclose(row.true_expected_exact, true[i][int(np.argmax(P))])
        y = data.Y[test[i]]
        assert (row.tp, row.fp, row.fn, row.tn) == counted(y, mode)
        for name, metric in (("hamming", hamming), ("jaccard", jaccard), ("f1", f1)):
            worths = [
                [metric(p, labelset, plan.empty) for labelset in everything] @ P for p in everything
            ]
            best = getattr(row, f"best_{name}_decision")
            assert np.isclose(worths[everything.index(tuple(map(int, best)))], max(worths))
            counts = tuple(getattr(row, f"best_{name}_{what}") for what in ("tp", "fp", "fn", "tn"))
            assert counts == counted(y, list(map(int, best)))
            assert getattr(row, f"best_{name}_gap") == 0


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("sklearn.ensemble.RandomForestClassifier", {"n_estimators": 7}),
        ("sklearn.multioutput.MultiOutputClassifier", {}),
        ("sklearn.neighbors.KNeighborsClassifier", {"n_neighbors": 9}),
    ],
)
def test_any_model_with_predict_proba_is_a_classifier(quick, path, settings):
    _, sets, _ = quick
    plan = plan_with(classifiers={"Any": {"class": path, **settings}})
    plan.check_classes()
    cell, data = Cell("dependent", "Any", 0), sets["dependent"].data
    scores = score_cell(cell, plan, sets["dependent"])
    test = scores["instance"].to_numpy()
    train = np.setdiff1d(np.arange(len(data)), test)
    model = plan.classifier("Any", seed_of(plan.seed, cell.name))
    model.fit(data.X.iloc[train], data.Y[train])
    dist = ls.as_distribution(model, data.X.iloc[test])
    np.testing.assert_allclose(scores["top"], np.exp(dist.profile().log_top))
    assert scores["decision"].tolist() == ["".join(map(str, y)) for y in dist.mode().tolist()]


def test_both_conventions_of_empty_come_from_the_table(quick):
    _, scores, _, dist = fit_again(quick, Cell("independent", "ECC", 0))
    nothing = (scores["tp"] + scores["fp"] == 0).to_numpy()
    assert nothing.any()
    for metric in ("jaccard", "f1"):
        for empty in (0.0, 0.3, 1.0):
            ours = scores[f"expected_{metric}"] + empty * nothing * scores["p_empty"]
            direct = ls.expected_accuracy(dist, metric=metric, empty=empty).value
            np.testing.assert_allclose(ours, direct, atol=1e-12)


def test_classifiers_are_scored_on_the_same_instances(quick):
    tables = quick[2]
    parts = [tables[Cell("dependent", name, 0)]["instance"] for name in ("Indep", "CT", "ECC")]
    assert parts[0].equals(parts[1])
    assert parts[0].equals(parts[2])


def test_repeats_are_other_splits(quick):
    plan, sets, tables = quick
    again = score_cell(Cell("dependent", "Indep", 1), plan, sets["dependent"])
    first = tables[Cell("dependent", "Indep", 0)]
    assert len(again) == len(first) == 80
    assert not again["instance"].equals(first["instance"])


def test_seeds_are_fixed_by_names():
    assert seed_of(0, "scene.ECC.0") == 2889150907  # from sha256sum
    assert len({seed_of(s, f"d.C.{r}") for s in range(3) for r in range(50)}) == 150


def test_another_data_set_changes_no_number(quick):
    _, _, tables = quick
    more = {"extra": {"simulated": {"n_samples": 50, "n_labels": 3}}, **SETTINGS["datasets"]}
    plan = plan_with(n_repeats=1, datasets=more)
    cell = Cell("dependent", "ECC", 0)
    again = score_cell(cell, plan, loaded(plan)["dependent"])
    pd.testing.assert_frame_equal(again, tables[cell], check_exact=True)


def test_keys_change_with_what_the_rows_depend_on_and_nothing_else(quick, monkeypatch):
    plan, sets, _ = quick
    cell, data = Cell("dependent", "ECC", 0), sets["dependent"]
    key = cell_key(cell, plan, data)
    same = [
        plan_with(n_repeats=7),
        plan_with(metrics=["exact"]),
        plan_with(candidates=["ME"], description="x"),
        plan_with(classifiers={**SETTINGS["classifiers"], "X": {"class": "BinaryRelevance"}}),
    ]
    chains = {"class": "EnsembleOfClassifierChains", "n_chains": 4}
    other = [
        plan_with(seed=1),
        plan_with(empty=0.0),
        plan_with(engine="certified"),
        plan_with(test_share=0.5),
        plan_with(metrics=["f1"]),  # with the true expected F1
        plan_with(base={**SETTINGS["base"], "C": 2.0}),
        plan_with(scaler={"class": "sklearn.preprocessing.StandardScaler"}),
        plan_with(classifiers={**SETTINGS["classifiers"], "ECC": chains}),
    ]
    assert {cell_key(cell, changed, data) for changed in same} == {key}
    keys = {cell_key(cell, changed, data) for changed in other}
    assert len(keys - {key}) == len(other)
    fewer = StudyData(data.data.select_labels("first3"))
    assert cell_key(cell, plan, fewer) != key
    # Two columns that are left out leave as many features as two others.
    without = [StudyData(data.data, columns={"drop": drop}) for drop in (["x0"], ["x1"])]
    assert len({key, *(cell_key(cell, plan, part) for part in without)}) == 3
    monkeypatch.setattr("labelsure.study.cells.digest_code", lambda *modules: "other code")
    assert cell_key(cell, plan, data) != key


def test_cells_without_the_columns_of_a_new_metric_are_computed_again(quick, monkeypatch):
    plan, sets, _ = quick
    cell, data = Cell("dependent", "Indep", 0), sets["dependent"]
    before = cell_key(cell, plan, data)
    new = Metric("new", lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn), (0.0, 1.0))
    monkeypatch.setitem(METRICS, "new", new)
    assert cell_key(cell, plan, data) == before
    assert cell_key(cell, plan_with(metrics=["exact", "new"]), data) != before


def test_features_describe_the_training_part(quick):
    plan, sets, tables = quick
    features = feature_rows(plan, sets).set_index("dataset")
    data = sets["dependent"].data
    test = tables[Cell("dependent", "Indep", 0)]["instance"]
    train = data.Y[np.setdiff1d(np.arange(len(data)), test)]
    row = features.loc["dependent"]
    assert row["n_train"] == len(train) == 120
    assert row["n_labelsets"] == len({tuple(y) for y in train})
    assert row["cardinality"] == pytest.approx(train.sum() / len(train))
    assert (row["n_labels"], row["n_features"], row["repeat"]) == (4, 10, 0)


def test_beyond_the_limit_chains_decide_by_their_likely_labelsets(quick, monkeypatch):
    plan, sets, tables = quick
    cell = Cell("dependent", "ECC", 0)
    monkeypatch.setattr("labelsure.study.cells.BEST_LABELS", 3)
    scores = score_cell(cell, plan, sets["dependent"])
    best = [name for name in scores if name.startswith("best_")]
    others = scores.drop(columns=best)
    pd.testing.assert_frame_equal(others, tables[cell].drop(columns=best))
    for metric in ("hamming", "jaccard", "f1"):
        gap = scores[f"best_{metric}_gap"]
        assert gap.between(0, 2e-3).all()  # all but the tolerance's mass was seen
        assert gap.any() or metric == "hamming"  # bounds of marginals decide every label
        same = scores[f"best_{metric}_decision"] == tables[cell][f"best_{metric}_decision"]
        assert same[gap == 0].all()
        assert same.mean() > 0.95


def test_scaled_sparse_features_stay_sparse_and_give_the_centred_model():
    """Centring does not matter to a learner whose intercept is not penalised."""
    data, _ = ls.make_labelsets(150, 3, random_state=3)
    base = {**SETTINGS["base"], "tol": 1e-10, "max_iter": 5000}
    plan = plan_with(scaler={"class": "sklearn.preprocessing.StandardScaler"}, base=base)
    cell = Cell("x", "CT", 0)
    dense = score_cell(cell, plan, StudyData(data))
    as_sparse = ls.Dataset(sparse.csr_matrix(data.X.to_numpy()), data.Y)
    scores = score_cell(cell, plan, StudyData(as_sparse))
    assert scores["decision"].equals(dense["decision"])
    np.testing.assert_allclose(scores["top"], dense["top"], atol=1e-6)
    assert scores["true_expected_exact"].isna().all()


def test_a_data_set_of_one_instance_fails_by_its_name_and_alone():
    plan = plan_with(n_repeats=2)
    sets = loaded(plan)
    source = next(iter(plan.datasets))
    sets[source] = StudyData(sets[source].data.take([0]))
    with pytest.raises(
        ls.DataError,
        match="dependent",
    ):
        score_cell(Cell(source, "Indep", 0), plan, sets[source])
    described = feature_rows(plan, sets)
    assert described["dataset"].tolist() == ["independent"] * 2
    assert described["repeat"].tolist() == [0, 1]
    sets[source] = StudyData(loaded(plan)[source].data.take([0, 1]))
    assert len(score_cell(Cell(source, "Indep", 0), plan, sets[source])) == 1
    assert feature_rows(plan, sets)["n_train"].tolist()[:2] == [1, 1]

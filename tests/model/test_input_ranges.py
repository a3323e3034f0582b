"""Rows far outside of the rows of `fit`: which they are, and what is proved without them."""

import json
import warnings

import numpy as np
import oracles_inputs as oracle
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from strategies import n_examples

import labelsure as ls
from labelsure.model._input_ranges import N_FOLDS, InputRanges
from labelsure.tables.inputs import ColumnRole

X, Y = make_problem(n_samples=400, n_labels=3, seed=2)
NAMES = [f"x{j}" for j in range(X.shape[1])]
TABLE = pd.DataFrame(X, columns=NAMES)
LINEAR = ls.BinaryRelevance(LogisticRegression())
MANY = MultiOutputClassifier(LogisticRegression())
ABSURD = np.full((1, X.shape[1]), 1e6)


def aware(estimator=LINEAR, **given):
    plain = {"metric": "hamming", "target": 0.3, "recalibration": None, "random_state": 0}
    return ls.AccuracyAwareClassifier(estimator, **{**plain, **given})


def fit_ranges(rows, estimator=LINEAR, seed=0):
    return InputRanges.fit(rows, np.arange(rows.shape[0]), estimator, seed)


numbers = hnp.arrays(
    np.float64,
    st.tuples(st.integers(5, 40), st.integers(1, 4)),
    elements=st.sampled_from([-3.0, -1.0, 0.0, 0.0, 0.0, 0.5, 2.0, 50.0]),
)


@n_examples(60)
@given(values=numbers, is_sparse=st.booleans(), has_missing=st.booleans())
def test_ranges_are_those_of_loops(values, is_sparse, has_missing):
    if has_missing and not is_sparse:
        values = values.copy()
        values[1, 0] = np.nan
    rows = sp.csr_array(values) if is_sparse else values
    found = fit_ranges(rows)
    order = np.random.default_rng(0).permutation(len(values))
    wanted = oracle.limit(values[order].tolist(), np.arange(len(values)) % N_FOLDS)
    columns = [oracle.column_range(column) for column in values.T.tolist()]
    # Quantiles between ranks, by which columns with missing numbers are measured, round.
    assert found.limit == pytest.approx(wanted, rel=0.2 if np.isnan(values).any() else 1e-9)
    new = np.concatenate([3 * values, -values, values + 0.25])
    outside = found.find_outside(sp.csr_array(new) if is_sparse else new)
    for row, said in zip(new.tolist(), outside, strict=True):
        size, place = oracle.deviation(row, columns)
        if abs(size - found.limit) > 1e-9:
            assert said == (f"column {place}" if size > found.limit else None)


@n_examples(30)
@given(seed=st.integers(0, 2**16), factor=st.sampled_from([1e-3, 7.0, -2.0]))
def test_units_of_columns_do_not_matter(seed, factor):
    rng = np.random.default_rng(seed)
    rows, new = rng.normal(size=(60, 3)), 3 * rng.normal(size=(50, 3))
    units, zeros = np.array([factor, 1.0, 1.0]), np.array([5.0, 0.0, 0.0])
    plain = fit_ranges(rows).find_outside(new)
    assert fit_ranges(rows * units + zeros).find_outside(new * units + zeros).tolist() == (
        plain.tolist()
    )


@pytest.mark.parametrize("n_rows", [200, 1000])
def test_few_ordinary_rows_are_outside(n_rows):
    rng = np.random.default_rng(0)
    shares = []
    for seed in range(20):
        rows = rng.standard_t(3, size=(n_rows + 2000, 10))
        found = fit_ranges(rows[:n_rows], seed=seed).find_outside(rows[n_rows:])
        shares.append(found.astype(bool).mean())
    assert np.mean(shares) < 0.01


def test_wide_rows_and_many_are_measured_by_a_sample(monkeypatch):
    monkeypatch.setattr("labelsure.model._input_ranges.MAX_ROWS", 50)
    monkeypatch.setattr("labelsure.model._input_ranges.MAX_CELLS", 60)
    rows = np.arange(300.0).reshape(100, 3)
    found = fit_ranges(rows)
    drawn = rows[np.random.default_rng(0).permutation(100)[:20]]
    assert (found.high == drawn.max(axis=0)).all()


FORMS = {
    "array, classifier of ours": (LINEAR, X, "column 0"),
    "table, classifier of ours": (LINEAR, TABLE, "x0"),
    "sparse, classifier of ours": (LINEAR, sp.csr_matrix(X), "column 0"),
    "array, another model": (MANY, X, "column 0"),
    "table, another model": (MANY, TABLE, "x0"),
    "sparse, another model": (MANY, sp.csr_array(X), "column 0"),
    "pipeline": (make_pipeline(StandardScaler(), LINEAR), TABLE, "x0"),
}


@pytest.mark.parametrize("cv", [0.4, 3])
@pytest.mark.parametrize("form", FORMS)
def test_absurd_rows_are_referred_in_every_form(form, cv):
    estimator, rows, name = FORMS[form]
    model = aware(estimator, cv=cv).fit(rows, Y)
    absurd = pd.DataFrame(ABSURD, columns=NAMES) if isinstance(rows, pd.DataFrame) else ABSURD
    absurd = sp.csr_array(absurd) if sp.issparse(rows) else absurd
    found = model.assess(absurd, shift="ignore")
    assert found.accepted.tolist() == [False]
    assert found.reason[0].startswith("input outside calibration data: ")
    own = absurd.copy() if not sp.issparse(absurd) else sp.lil_array(X[:1])
    if isinstance(own, pd.DataFrame):
        own = TABLE.iloc[:1].copy()
        own.iloc[0, 0] = 1e6
    else:
        own = own.tolil() if sp.issparse(own) else X[:1].copy()
        own[0, 0] = 1e6
        own = own.tocsr() if sp.issparse(own) else own
    assert model.assess(own, shift="ignore").reason[0].endswith(f": {name}")
    off = aware(estimator, cv=cv, check_inputs=False).fit(rows, Y)
    assert "outside" not in off.assess(absurd, shift="ignore").reason[0]


def test_reasons_of_all_kinds_and_of_some_rows():
    rows = X.copy()
    rows[:3, 1] = 1e6
    model = aware(FrozenEstimator(LINEAR.fit(X[:100], Y[:100])), target=None, share=0.5)
    found = model.fit(X[100:], Y[100:]).assess(rows, shift="ignore")
    reasons = pd.Series(found.reason)
    assert (reasons[:3] == "input outside calibration data: column 1").all()
    assert reasons.str.contains("below the threshold").sum() > 0
    assert (found[1:4].reason == found.reason[1:4]).all()
    accepted = reasons.str.contains("at least the threshold").to_numpy()
    assert (found.accepted == accepted).all()


def test_rows_without_a_target_have_the_reason_as_well():
    found = aware(target=None).fit(X, Y).assess(ABSURD, shift="ignore")
    assert found.accepted is None
    assert found.reason[0].startswith("input outside")


def test_what_is_proved_is_proved_for_rows_within():
    """Policy rows outside do not count; ranges come from no row that tests the policy."""
    rows = X.copy()
    frozen = FrozenEstimator(LINEAR.fit(X, Y))
    rows[::9, 0] = 1e9  # these have ranges as well, in the other half
    model = aware(frozen).fit(rows, Y)
    # Which rows those of the policy are, by their order in a fit that keeps all of them.
    order = np.random.RandomState(0).permutation(len(rows))
    own, tested = order[:200], order[200:]
    ranges = InputRanges.fit(rows, own, frozen, 0)
    assert model.fitted_.predictor.ranges.limit == ranges.limit
    inside = ~ranges.find_outside(rows[tested]).astype(bool)
    everything = aware(frozen, check_inputs=False).fit(rows, Y)
    assert model.policy_.n_samples_ == inside.sum()
    assert everything.policy_.n_samples_ == 200


def test_outside_rows_of_the_policy_are_left_out():
    rng = np.random.default_rng(0)
    frozen = FrozenEstimator(LINEAR.fit(X, Y))
    rows = X.copy()
    order = np.random.RandomState(0).permutation(len(rows))
    absurd = rng.choice(order[200:], 40, replace=False)
    rows[absurd] = 1e6
    model = aware(frozen, target=None, share=0.9).fit(rows, Y)
    assert model.policy_.n_samples_ == 160
    kept = aware(frozen, target=None, share=0.9, check_inputs=False).fit(X, Y)
    assert kept.policy_.n_samples_ == 200
    assert not model.assess(rows[absurd], shift="ignore").accepted.any()


def test_columns_that_a_model_drops_may_have_any_value():
    table = TABLE.assign(kind=np.where(X[:, 0] > 0, "a", "b"), number=np.arange(len(X)))
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), NAMES), ("kinds", OneHotEncoder(), ["kind"])]
    )
    model = aware(make_pipeline(columns, MANY), cv=3).fit(table, Y)
    later = table.assign(number=table["number"] + 10**6)
    assert not pd.Series(model.assess(later, shift="ignore").reason).str.contains("outside").any()
    broken = table.iloc[:50].copy()
    broken.loc[0, "x1"] = 1e6
    assert model.assess(broken, shift="ignore").reason[0].endswith(": x1")


def test_missing_numbers_are_not_outside():
    rows = X.copy()
    rows[::7, 1] = np.nan
    model = aware(RandomForestClassifier(10, random_state=0)).fit(rows, Y)
    reasons = pd.Series(model.assess(rows, shift="ignore").reason)
    assert reasons.str.contains("outside").mean() < 0.02


def test_probabilities_have_no_ranges():
    P = np.random.default_rng(0).uniform(size=Y.shape)
    model = aware(ls.PrecomputedProbabilities(), target=None).fit(P, Y)
    assert model.fitted_.predictor.ranges is None


def test_saved_models_and_pages_and_files_know_ranges(tmp_path):
    model = aware().fit(TABLE, Y)
    model.save(tmp_path / "m.labelsure")
    loaded = ls.load(tmp_path / "m.labelsure")
    rows = TABLE.copy()
    rows.iloc[5, 2] = 1e6
    before, after = (m.assess(rows, shift="ignore") for m in (model, loaded))
    assert before.reason.tolist() == after.reason.tolist()
    scored = ls.tables.score_frame(tmp_path / "m.labelsure", rows)
    assert scored["reason"].tolist() == before.reason.tolist()
    assert scored["accept"].tolist() == before.accepted.tolist()


def test_pages_do_not_accept_rows_outside():
    model = aware().fit(TABLE, Y)
    rows = TABLE.copy()
    rows.iloc[:12, 2] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ShiftWarning)
        accepted = model.accept(rows)
        page = model.report(rows)
    assert 0 < accepted.sum() <= 388
    text = json.dumps(page.data["answer"])
    assert f"{accepted.sum():,} of 400" in text
    acceptance = page.data["acceptance"]
    assert acceptance["n"][acceptance["own"]] == accepted.sum()
    histogram = page.data["batch"]["histogram"]
    assert sum(part["n"] for part in histogram) == 400
    assert sum(part["accepted"] for part in histogram) == accepted.sum()


BAD = {
    "no features": [{}],
    "one dict": {"x0": 1.0},
    "a list of numbers": [1.0, 2.0],
    "missing number": [dict.fromkeys(NAMES, float("nan"))],
    "text": [dict.fromkeys(NAMES, "much")],
    "nested": [{name: [1.0] for name in NAMES}],
    "missing column": [dict.fromkeys(NAMES[1:], 1.0)],
    "unknown column": [dict.fromkeys([*NAMES, "y"], 1.0)],
    "nothing": None,
    "ragged": [[1.0], [1.0, 2.0]],
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("estimator", [LINEAR, MANY], ids=["ours", "another"])
@pytest.mark.parametrize("bad", BAD)
def test_records_that_cannot_be_read_are_input_errors(bad, estimator):
    model = aware(estimator).fit(TABLE, Y)
    for answer in (model.predict, model.estimate, model.assess, model.predict_distribution):
        with pytest.raises(ls.InputError):
            answer(BAD[bad])


def test_records_in_any_order_of_names():
    model = aware().fit(TABLE, Y)
    record = TABLE.iloc[0].to_dict()
    turned = dict(reversed(record.items()))
    first, second = (model.assess([r], shift="ignore") for r in (record, turned))
    assert first.accuracy == second.accuracy


def test_columns_of_texts_are_compared_by_the_numbers_in_them():
    """Files are read as text; identifiers and categories have no range."""
    frame = TABLE[["x0", "x1"]].assign(id=range(len(X)), kind=np.where(X[:, 0] > 0, "a", "b"))
    roles = {"id": "id", "x0": "number", "x1": "number", "kind": "category"}
    columns = ls.tables.TableColumns([ColumnRole.of(*role) for role in roles.items()])
    model = aware(make_pipeline(columns, LINEAR), cv=3).fit(frame.astype(str), Y)
    assert model.fitted_.predictor.ranges.names == ["x0", "x1"]
    later = frame.astype(str).iloc[:3].assign(id=["9" * 9, "z", ""])
    later.iloc[0, 0] = "1e6"
    reasons = model.assess(later, shift="ignore").reason
    assert ["outside" in reason for reason in reasons] == [True, False, False]

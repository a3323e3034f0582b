"""Every answer about a batch says whether it is like the calibration set, or that nobody knows."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.model._model_report import PageBatch, make_model_report
from labelsure.tables.estimates import report_files
from labelsure.tables.scoring import score_files

COLUMNS = ["a", "b", "c"]


def draw(n_samples, seed, moved=0.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_samples, 3)), columns=COLUMNS)
    Y = (X + 0.7 * rng.normal(size=X.shape) > 0).astype(int).set_axis(["x", "y", "z"], axis=1)
    return X.assign(a=X["a"] + moved), Y


def fit(**settings):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), target=0.5, random_state=0, **{"cv": 0.5, **settings}
    )
    return model.fit(*draw(800, 0))


@pytest.fixture(scope="module")
def model():
    return fit()


USUAL, MOVED = draw(400, 1)[0], draw(400, 1, moved=2.0)[0]
ASKED = {
    "estimate": lambda model, X: model.estimate(X),
    "assess": lambda model, X: model.assess(X),
    "accept": lambda model, X: model.accept(X),
    "report": lambda model, X: model.report(X),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_shift_is_announced_by_every_answer(model, name):
    with pytest.warns(ls.ShiftWarning, match="Shift detected"):
        ASKED[name](model, MOVED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ASKED[name](model, USUAL)
        ASKED[name](model, MOVED[:20])  # too few to say anything


def test_the_summary_of_an_assessment_says_it(model):
    with pytest.warns(ls.ShiftWarning):
        found = model.assess(MOVED, k=1)
    assert found.shift.found
    assert "Do not rely on this. The batch differs from the reference (AUC" in str(found)
    assert "Do not rely on this" in found._repr_html_()
    assert "No sign that the batch differs" in str(model.assess(USUAL))
    assert str(model.assess(MOVED[:20])).endswith("Not tested for shift: fewer than 30 rows.")
    ignored = model.assess(MOVED, shift="ignore")
    assert (ignored.shift, ignored.untested) == (None, "")
    np.testing.assert_array_equal(ignored.accuracy, found.accuracy)
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown shift 'weighted'"):
        model.assess(MOVED, shift="weighted")


@pytest.mark.filterwarnings("ignore::labelsure.ShiftWarning")
def test_the_tests_of_all_answers_are_one(model):
    tested = ls.shift_test(model, MOVED)
    assert model.assess(MOVED).shift.auc == model.estimate(MOVED).shift.auc == tested.auc


def test_the_page_says_it(model):
    with pytest.warns(ls.ShiftWarning):
        page = model.report(MOVED)
    assert page.data["shift"]["found"]
    assert "Do not rely on this." in page.html
    assert "No bound holds here: this batch has shifted." in page.html
    usual = model.report(USUAL)
    assert not usual.data["shift"]["found"]
    assert "this batch has shifted" not in usual.html
    assert "Not tested for shift: fewer than 30 rows." in model.report(USUAL[:9]).html


def test_a_page_of_parts_tests_a_sample_of_all_of_them(model):
    """Half of the rows have moved, in the last of many parts."""
    rows = pd.concat([USUAL, MOVED], ignore_index=True)
    cuts = range(0, 800, 40)
    predict = model.fitted_.predictor.predict
    parts = [PageBatch(predict(rows[i : i + 40])) for i in cuts]
    with pytest.warns(ls.ShiftWarning) as caught:
        page = make_model_report(model.fitted_, parts, "x")
    assert len(caught) == 1
    assert page.data["shift"]["found"]


def test_files_are_tested_once_a_run_on_a_sample_of_all_rows(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelsure.tables.files.CHUNK_ROWS", 40)
    model.save("m.labelsure")
    pd.concat([USUAL, MOVED], ignore_index=True).to_csv("new.csv", index=False)
    with pytest.warns(ls.ShiftWarning) as caught:
        run = score_files("m.labelsure", "new.csv", "out.csv", n_jobs=1)
    assert len(caught) == 1
    assert run.shift_found
    assert run.shift.startswith("Do not rely on this. The batch differs from the reference")
    with pytest.warns(ls.ShiftWarning):
        whole = model.estimate(pd.read_csv("new.csv"))
    assert f"AUC {whole.shift.auc:.2f}" in run.shift  # however the rows are cut into parts
    USUAL.head(20).to_csv("few.csv", index=False)
    few = score_files("m.labelsure", "few.csv", "few_out.csv", n_jobs=1)
    assert few.shift == "Not tested for shift: fewer than 30 rows."
    with pytest.warns(ls.ShiftWarning):
        assert report_files("m.labelsure", "new.csv").data["shift"]["found"]


def test_a_run_that_goes_on_tests_the_rows_of_both(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelsure.tables.files.CHUNK_ROWS", 100)
    model.save("m.labelsure")
    rows = pd.concat([MOVED, USUAL], ignore_index=True)
    rows["a"] = rows["a"].astype(object)
    rows.loc[799, "a"] = "x"
    rows.to_csv("new.csv", index=False)
    asked = ("m.labelsure", "new.csv", "out")
    with pytest.raises(ls.InputError, match="parts are kept"):
        score_files(*asked, n_jobs=1)
    with pytest.warns(ls.ShiftWarning):
        run = score_files(*asked, n_jobs=1, bad_rows="bad.jsonl")
    assert (run.n_kept, run.n_bad, run.shift_found) == (7, 1, True)


@pytest.fixture(scope="module")
def folds():
    return fit(cv=3)


@pytest.mark.parametrize("name", ["estimate", "assess"])
def test_a_cross_fitted_model_says_that_nothing_is_tested(folds, name):
    """Also of inputs that anybody would see to be others."""
    found = ASKED[name](folds, MOVED * 0.01)
    assert found.shift is None
    assert "Not tested for shift: the model is cross-fitted" in str(found)
    assert "cv=0.4" in found.untested
    assert "Not tested for shift: the model is cross-fitted" in folds.report(MOVED).html
    assert folds.estimate(MOVED, shift="ignore").untested == ""
    assert "cross-fitted" in folds.estimate(MOVED, metric="micro-f1").untested


def test_a_cross_fitted_reference_is_refused(folds):
    with pytest.raises(ls.InputError, match="fitting"):
        ls.shift_test(folds, USUAL)
    batches = [folds.predict_distribution(X) for X in (USUAL, MOVED)]
    assert ls.shift_test(*batches).found


def test_a_band_is_that_of_the_model_that_predicts():
    """Trees of folds are surer than the last one or less sure: their band gave false alarms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    Y = (X + rng.normal(size=X.shape) > 0).astype(int)
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(DecisionTreeClassifier(max_depth=4, random_state=0)),
        cv=5,
        random_state=0,
    ).fit(X[:300], Y[:300])
    with pytest.raises(ls.InputError, match="`reference`"):
        ls.monitor(model, X[500:], chunk_size=50)
    table = ls.monitor(model, X[500:], chunk_size=50, reference=X[300:500]).to_frame()
    assert (table["alert"] == "none").all()


def test_terminals_say_it(model, tmp_path, monkeypatch, capsys):
    from labelsure.cli._app import main

    monkeypatch.chdir(tmp_path)
    model.save("m.labelsure")
    MOVED.to_csv("new.csv", index=False)

    def run(*words):
        assert main(list(words)) == 0
        return capsys.readouterr()

    scored = run("score", "m.labelsure", "new.csv", "--out", "out.csv", "--jobs", "1")
    said = "Do not rely on this. The batch differs from the reference"
    assert (scored.out.count(said), scored.err.count("not like")) == (1, 0)
    reported = run("report", "m.labelsure", "new.csv", "--out", "page.html")
    assert (reported.out.count(said), reported.err) == (1, "")
    found = json.loads(
        run("score", "m.labelsure", "new.csv", "--out", "o.csv", "--jobs", "1", "--json").out
    )
    assert found["shift_found"] is True

"""What most people write, as printed, for each form of X and Y."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls

NAMES = ["sea", "sky", "sun"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
Y = (X[:, :3] + 0.6 * RNG.normal(size=(900, 3)) > 0.2).astype(int)
CLF = MultiOutputClassifier(LogisticRegression()).fit(X[:300], Y[:300])
P = np.column_stack([p[:, 1] for p in CLF.predict_proba(X)])
CAL, NEW = slice(300, 700), slice(700, 900)


def names_of(rows):
    return [[NAMES[j] for j in np.flatnonzero(row)] for row in rows]


def aware(estimator, **settings):
    return ls.AccuracyAwareClassifier(estimator, "f1", random_state=0, **settings)


@pytest.fixture(scope="module")
def model():
    return aware(FrozenEstimator(CLF), target=0.7).fit(X[CAL], Y[CAL])


FORMS = {
    "arrays": (lambda P: P, lambda Y: Y),
    "sparse labels": (lambda P: P, csr_matrix),
    "pandas": (
        lambda P: pd.DataFrame(P, columns=NAMES),
        lambda Y: pd.DataFrame(Y, columns=NAMES),
    ),
    "polars": (lambda P: pl.DataFrame(P, NAMES), lambda Y: pl.DataFrame(Y, NAMES)),
    "names": (lambda P: pd.DataFrame(P, columns=NAMES), names_of),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("frozen", [False, True])
def test_probabilities_from_anywhere_are_all_calibration(form, frozen):
    of_X, of_Y = FORMS[form]
    system = ls.PrecomputedProbabilities()
    if frozen:
        system = FrozenEstimator(system.fit(of_X(P[CAL]), of_Y(Y[CAL])))
    model = aware(system, target=0.7).fit(of_X(P[CAL]), of_Y(Y[CAL]))
    expected = aware(ls.PrecomputedProbabilities(), target=0.7).fit(P[CAL], Y[CAL])
    assert model.guaranteed_
    assert (model.card_.n_training, model.policy_.n_samples_) == (0, 200)
    found = model.assess(of_X(P[NEW])).to_frame()
    np.testing.assert_allclose(found["estimated_accuracy"], expected.predict_accuracy(P[NEW]))
    rows = model.draw_audit(of_X(P[NEW]), n_rows=50, random_state=0)
    audited = model.estimate(of_X(P[NEW]), rows=rows, Y_true=of_Y(Y[NEW][rows]))
    assert audited.n_labelled == 50
    assert audited.mean == expected.estimate(P[NEW], rows=rows, Y_true=Y[NEW][rows]).mean


def test_a_frozen_model_accepts_with_a_guarantee(model):
    table = model.assess(X[NEW]).to_frame()
    assert model.guaranteed_
    assert table["accept"].any()
    assert table.attrs["judged"] == "the labelsets that maximise expected F1"
    accuracy = ls.accuracy(Y[NEW], model.predict(X[NEW]), "f1")
    assert accuracy[table["accept"].to_numpy(dtype=bool)].mean() > 0.7


@pytest.mark.parametrize(
    "metric",
    ["exact", "hamming", "jaccard", "f1", "recall", "precision", "macro-f1", "micro-f1"],
)
def test_every_metric_from_one_fit(model, metric):
    found = model.estimate(X[NEW], metric=metric)
    predicted = model.predict(X[NEW])
    if "-" not in metric:
        actual = ls.accuracy(Y[NEW], predicted, metric).mean()
    else:
        from sklearn.metrics import f1_score

        actual = f1_score(Y[NEW], predicted, average=metric.split("-")[0])
    assert found.low <= actual <= found.high
    assert found.shift is not None
    assert not found.shift.found
    again = ls.AccuracyAwareClassifier(FrozenEstimator(CLF), metric, random_state=0, target=0.1)
    if metric in ("exact", "hamming"):  # the same estimator as one that judges these decisions
        again.fit(X[CAL], Y[CAL], Y_pred=model.predict(X[CAL]))
        by_itself = again.estimate(X[NEW], Y_pred=predicted)
        assert found.mean == pytest.approx(by_itself.mean, abs=1e-9)


@pytest.mark.parametrize("metric", ["recall", "precision"])
def test_recall_and_precision_judge_other_decisions_than_the_best(metric):
    model = ls.AccuracyAwareClassifier(FrozenEstimator(CLF), metric, 0.5, random_state=0)
    with pytest.raises(ls.InputError, match=f'"best" for {metric}'):
        model.fit(X[CAL], Y[CAL])
    judged = {"mode": {}, "predict": {}, "best": {"Y_pred": CLF.predict(X[CAL])}}
    for decision, given in judged.items():
        model.set_params(decision=decision).fit(X[CAL], Y[CAL], **given)
        Y_pred = CLF.predict(X[NEW]) if given else None
        found = model.assess(X[NEW], Y_pred=Y_pred)
        batch = model.estimate(X[NEW], Y_pred=Y_pred)
        assert batch.low <= ls.accuracy(Y[NEW], found.Y_pred, metric).mean() <= batch.high
        assert batch.quantity == f"mean {metric}"


def test_other_metrics_survive_saving(tmp_path):
    model = aware(ls.BinaryRelevance()).fit(X[CAL], Y[CAL])
    model.save(tmp_path / "model.labelsure")
    loaded = ls.load(tmp_path / "model.labelsure")
    expected = model.estimate(X[NEW], metric="exact")
    assert loaded.estimate(X[NEW], metric="exact").mean == pytest.approx(expected.mean)


def test_unknown_metrics_are_refused(model):
    with pytest.raises(ls.InputError, match="Unknown metric 'accuracy'"):
        model.estimate(X[NEW], metric="accuracy")


def test_predictions_of_another_system_are_judged_by_what_they_did():
    mine = (P > 0.2).astype(int)
    model = aware(ls.PrecomputedProbabilities(), target=0.5)
    model.fit(P[CAL], Y[CAL], Y_pred=mine[CAL])
    found = model.assess(P[NEW], Y_pred=mine[NEW])
    np.testing.assert_array_equal(found.Y_pred, mine[NEW])
    assert "Accuracy is that of the predictions given as `Y_pred`." in model.summary_
    batch = model.estimate(P[NEW], Y_pred=mine[NEW])
    assert batch.low <= ls.accuracy(Y[NEW], mine[NEW], "f1").mean() <= batch.high
    np.testing.assert_array_equal(model.accept(P[NEW], Y_pred=mine[NEW]), found.accepted)
    with pytest.raises(ls.InputError, match="judges"):
        model.assess(P[NEW])
    model.fit(P[CAL], Y[CAL])
    with pytest.raises(ls.InputError, match="judges"):
        model.assess(P[NEW], Y_pred=mine[NEW])


def test_labelled_rows_compare_predictions_of_another_system(model):
    mine = (P[NEW] > 0.2).astype(int)
    rows = model.draw_audit(X[NEW], 100, random_state=0)
    found = model.estimate(X[NEW], Y_pred=mine, rows=rows, Y_true=Y[NEW][rows])
    assert found.low <= ls.accuracy(Y[NEW], mine, "f1").mean() <= found.high
    every = model.estimate(X[NEW], Y_pred=mine, rows=np.arange(200), Y_true=Y[NEW])
    assert every.mean == pytest.approx(ls.accuracy(Y[NEW], mine, "f1").mean())


def test_given_predictions_are_matched_by_index_and_name():
    frame = pd.DataFrame(P, columns=NAMES)
    mine = pd.DataFrame((P > 0.2).astype(int), columns=NAMES)
    truth = pd.DataFrame(Y, columns=NAMES)
    shuffled = mine.sample(frac=1, random_state=0)[NAMES[::-1]]
    plain, other = (
        aware(ls.PrecomputedProbabilities())
        .fit(frame[CAL], truth[CAL], Y_pred=given.loc[frame[CAL].index])
        .predict_accuracy(frame[NEW], Y_pred=given.loc[frame[NEW].index])
        for given in (mine, shuffled)
    )
    np.testing.assert_array_equal(plain, other)


def test_what_a_frozen_models_own_predict_does_is_said(model):
    ours, theirs = model.predict(X[CAL]), CLF.predict(X[CAL])
    n_others = int((ours != theirs).any(axis=1).sum())
    scores = [ls.accuracy(Y[CAL], Y_pred, "f1").mean() for Y_pred in (ours, theirs)]
    said = (
        f"On {n_others} of 400 calibration rows these differ from the model's own predict: mean F1 "
        f"{scores[0]:.3f} instead of {scores[1]:.3f}."
    )
    assert said in model.summary_
    assert said in str(model.card_)
    table = model.assess(X[NEW])[:50].to_frame(sep=";")
    for text, row in zip(table["own_predicted"], CLF.predict(X[NEW][:50]), strict=True):
        assert text == ";".join(f"y{j}" for j in np.flatnonzero(row))
    own = aware(FrozenEstimator(CLF), decision="predict").fit(X[CAL], Y[CAL])
    assert "own_predicted" not in own.assess(X[NEW]).to_frame()
    np.testing.assert_array_equal(own.predict(X[NEW]), CLF.predict(X[NEW]))
    assert "Accuracy is that of the model's own `predict`." in own.summary_
    assert own.card_.comparison == ""


def test_a_frozen_model_that_predicts_better_is_warned_of():
    class Better(type(CLF)):
        def predict(self, X):
            return TRUTH_OF[X.tobytes()]

    TRUTH_OF = {X[CAL][np.random.RandomState(0).permutation(400)].tobytes(): None}
    (key,) = TRUTH_OF
    TRUTH_OF[key] = Y[CAL][np.random.RandomState(0).permutation(400)]
    better = Better(LogisticRegression()).fit(X[:300], Y[:300])
    with pytest.warns(UserWarning, match="instead of 1.000"):
        aware(FrozenEstimator(better)).fit(X[CAL], Y[CAL])


def test_thresholds_can_decide():
    dist = ls.as_distribution(CLF, X[:300])
    thresholds = ls.LabelThresholds("each", "f1").fit(dist, Y[:300])
    model = aware(FrozenEstimator(CLF), decision=thresholds, recalibration=None)
    model.fit(X[CAL], Y[CAL])
    expected = thresholds.predict(ls.as_distribution(CLF, X[NEW]))
    np.testing.assert_array_equal(model.predict(X[NEW]), expected)
    assert model.accuracy_estimator_.decision_ == "thresholds"


def test_sets_and_monitoring_need_no_settings(model):
    region = model.predict_region(X[NEW])
    assert 0.84 <= region.contains(Y[NEW]).mean() <= 0.97
    assert "certain" not in model.assess(X[NEW]).to_frame()
    table = model.monitor([X[NEW], X[NEW] + 1]).to_frame()
    assert table["alert"].tolist() == ["none", "inputs"]
    pd.testing.assert_frame_equal(table, ls.monitor(model, [X[NEW], X[NEW] + 1]).to_frame())


def test_folds_refuse_what_needs_held_out_rows():
    model = aware(ls.BinaryRelevance(), target=0.5, cv=5).fit(X[CAL], Y[CAL])
    assert not model.guaranteed_
    assert "Not guaranteed" in model.summary_
    with pytest.raises(ls.InputError, match="Prediction"):
        model.predict_region(X[NEW])
    with pytest.raises(ls.InputError, match="`reference`"):
        model.monitor([X[NEW]])
    assert "cross-fitted" in model.estimate(X[NEW]).untested


def test_by_default_rows_are_held_out():
    model = aware(ls.BinaryRelevance(), target=0.5).fit(X[CAL], Y[CAL])
    card = model.card_
    assert (card.n_training, card.n_for_estimator, card.n_for_policy) == (240, 80, 80)
    assert model.guaranteed_
    assert model.estimate(X[NEW]).shift is not None


def test_few_held_out_rows_name_folds():
    model = aware(ls.BinaryRelevance())
    with pytest.warns(UserWarning, match="Only 40 of 100 rows are held out.*use cv=5"):
        model.fit(X[:100], Y[:100])
    model.set_params(cv=5).fit(X[:100], Y[:100])


def test_records_of_a_service():
    words = np.array(["calm", "blue", "hot"])
    texts = [" ".join(words[row == 1]) or "night" for row in Y[:400]]
    frame = pd.DataFrame({"text": texts, "age": np.arange(400) % 60})
    columns = make_column_transformer((CountVectorizer(), "text"), ("passthrough", ["age"]))
    inner = make_pipeline(columns, MultiOutputClassifier(LogisticRegression(max_iter=2000)))
    flipped = np.where(RNG.random(Y[:400].shape) < 0.1, 1 - Y[:400], Y[:400])
    model = aware(inner).fit(frame, pd.DataFrame(flipped, columns=NAMES))
    record = model.assess([{"text": "calm blue", "age": 31}]).to_frame().to_dict("records")[0]
    assert record["predicted"] == ("sea", "sky")
    many = frame.to_dict("records")
    np.testing.assert_array_equal(model.predict(many), model.predict(frame))
    same = aware(inner).fit(many, pd.DataFrame(flipped, columns=NAMES))
    np.testing.assert_allclose(same.predict_accuracy(many), model.predict_accuracy(frame))


def test_draws_for_an_audit(model):
    rows = model.draw_audit(X[NEW], n_rows=50, random_state=0)
    assert len(set(rows.tolist())) == 50
    assert rows.min() >= 0
    assert rows.max() < 200
    np.testing.assert_array_equal(rows, model.draw_audit(X[NEW], n_rows=50, random_state=0))
    often = np.mean([0 in model.draw_audit(X[NEW], 50, random_state=i) for i in range(400)])
    assert often == pytest.approx(0.25, abs=0.08)
    for n_rows in (0, 201, 2.5, True):
        with pytest.raises(ls.InputError, match="`n_rows`"):
            model.draw_audit(X[NEW], n_rows)


@pytest.mark.parametrize("estimator", [ls.BinaryRelevance(random_state=0), None])
def test_processes_do_not_change_what_is_fitted(estimator):
    models = [
        aware(estimator, cv=3, n_jobs=n_jobs).fit(X[CAL], Y[CAL]).predict_accuracy(X[NEW])
        for n_jobs in (None, 2)
    ]
    np.testing.assert_array_equal(*models)


def test_steps_are_printed_on_request(capsys):
    aware(ls.BinaryRelevance(), verbose=1).fit(X[CAL], Y[CAL])
    said = capsys.readouterr().err
    assert "240 rows for training, 160 for calibration" in said
    aware(ls.BinaryRelevance()).fit(X[CAL], Y[CAL])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("cv", [0.4, 5])
def test_weights_reach_the_recalibration(cv):
    recalibration = ls.TemperatureScaling(gate=False)
    weights = np.where(X[CAL][:, 0] > 0, 1.0, 0.01)
    plain, weighted = (
        aware(ls.BinaryRelevance(), recalibration=recalibration, cv=cv).fit(X[CAL], Y[CAL], given)
        for given in (np.ones(400), weights)
    )
    assert weighted.recalibration_.temperature_ != plain.recalibration_.temperature_
    if cv == 0.4:  # the first half of the held-out rows, in the order of the draw
        rows = np.random.RandomState(0).permutation(400)[:80]
        dist = weighted.estimator_.predict_distribution(X[CAL][rows])
        by_hand = ls.TemperatureScaling(gate=False).fit(dist, Y[CAL][rows], weights[rows])
        assert weighted.recalibration_.temperature_ == pytest.approx(by_hand.temperature_)


def test_small_batches_of_chains_give_the_same_answers(monkeypatch):
    model = aware(None, target=0.7).fit(X[CAL], Y[CAL])
    found = model.assess(X[NEW][:20])
    assert isinstance(found.distribution, ls.DenseDistribution)
    monkeypatch.setattr("labelsure.model._predictor.SMALL_JOINT", 0)
    plain = model.assess(X[NEW][:20])
    assert not isinstance(plain.distribution, ls.DenseDistribution)
    pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame(), rtol=1e-9)


def test_a_pipeline_that_ends_in_the_flagship_reaches_it():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), aware(None))
    pipeline.fit(X[CAL], Y[CAL])
    found = pipeline[-1].assess(pipeline[:-1].transform(X[NEW]))
    np.testing.assert_array_equal(found.Y_pred, pipeline.predict(X[NEW]))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_inner_pipelines_may_set_their_output(kind):
    inner = make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression()))
    plain, other = (
        aware(estimator).fit(X[CAL], Y[CAL]).predict_accuracy(X[NEW])
        for estimator in (inner, clone(inner).set_output(transform=kind))
    )
    np.testing.assert_allclose(plain, other)


def test_a_search_over_its_parameters():
    search = GridSearchCV(
        aware(ls.BinaryRelevance()), {"decision": ["best", "mode"], "cv": [0.3, 0.5]}, cv=2
    )
    assert search.fit(X[CAL], Y[CAL]).best_params_["cv"] in (0.3, 0.5)

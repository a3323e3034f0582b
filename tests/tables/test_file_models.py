"""From files to models: trained on a table, or around another system's predictions."""

import json
import re
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import labelsure as ls
from labelsure._runtime.progress import ProgressBar
from labelsure.saving import read_description
from labelsure.tables import files
from labelsure.tables.files import list_files, read_chunks, read_table
from labelsure.tables.inputs import InputTable
from labelsure.tables.training import (
    CLASSIFIERS,
    LEARNERS_PER_LABEL,
    calibrate_model,
    train_model,
)

NAMES = ["cold", "wet", "calm"]


def make_table(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 2)).round(4)
    season = rng.choice(["summer", "winter"], n_rows)
    cold = (season == "winter") ^ (rng.uniform(size=n_rows) < 0.1)
    wet = numbers[:, 0] + 0.5 * rng.normal(size=n_rows) > 0
    calm = numbers[:, 1] + 0.5 * rng.normal(size=n_rows) > 0
    frame = pd.DataFrame(numbers, columns=["humidity", "pressure"]).astype(str)
    frame.loc[::17, "pressure"] = ""
    frame.insert(0, "day", [f"d{i}" for i in range(n_rows)])
    frame["season"] = season
    note = np.where(cold, "a rather chilly morning", "a pleasant evening by the sea")
    frame["note"] = [f"{text} {i % 13}" for i, text in enumerate(note)]
    return frame.assign(cold=cold * 1, wet=wet * 1, calm=calm * 1)


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "days.csv"
    make_table().to_csv(path, index=False)
    return path


def test_a_model_of_a_table_with_all_kinds_of_columns(csv, tmp_path):
    model = train_model(csv, labels=NAMES, id_column="day", target=0.6, classifier="br")
    assert model.label_names_ == tuple(NAMES)
    assert [(c["name"], c["role"]) for c in model.card_.columns] == [
        ("day", "id"), ("humidity", "number"), ("pressure", "number"), ("season", "category"),
        ("note", "text"), ("cold", "label"), ("wet", "label"), ("calm", "label"),
    ]  # fmt: skip
    assert (model.card_.n_training, model.card_.n_for_estimator, model.card_.n_for_policy) == (
        180, 60, 60
    )  # fmt: skip
    assert model.guaranteed_
    assert model.card_.estimated > 0.6
    path = tmp_path / "m.labelsure"
    model.save(path)
    loaded = ls.load(path)
    assert read_description(path)["card"]["columns"] == model.card_.columns
    (file,) = list_files(csv)
    parts = []
    with mock.patch.object(files, "CHUNK_ROWS", 100):
        for chunk in read_chunks(file):
            X, ids = InputTable(loaded).read(chunk.read()[0], chunk.where)
            end = chunk.first_row + chunk.n_rows
            assert list(ids) == [f"d{i}" for i in range(chunk.first_row, end)]
            parts.append(loaded.predict_accuracy(X))
    assert len(parts) > 1
    whole = model.predict_accuracy(read_table(csv))
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)
    assert (
        np.corrcoef(model.predict(make_table(seed=1))[:, 0], make_table(seed=1)["cold"])[0, 1] > 0.9
    )


def test_frames_are_tables_too_and_fold_are_the_default_without_a_target(csv):
    of_file = train_model(csv, labels="cold,wet,calm", drop="day", classifier="pcc")
    of_frame = train_model(make_table().astype(str), labels=NAMES, drop=["day"], classifier="pcc")
    X = make_table(50, seed=3)
    np.testing.assert_array_equal(of_file.predict_accuracy(X), of_frame.predict_accuracy(X))
    assert of_file.cv == 0.4
    assert of_file.card_.n_training == 180
    assert of_file.policy_ is None
    assert of_file.card_.columns[0] == {"name": "day", "role": "left out", "note": "as asked for"}
    assert train_model(csv, labels=NAMES, classifier="br", cv=3).cv == 3
    held_out = train_model(csv, labels=NAMES, classifier="br", share=0.5)
    assert (held_out.cv, held_out.guaranteed_) == (0.4, True)
    assert train_model(csv, labels=NAMES, classifier="br", region=0.8).cv == 0.4
    folds = train_model(csv, labels=NAMES, classifier="br", target=0.5, cv=2, confidence=0.9)
    assert (folds.guaranteed_, folds.confidence) == (False, 0.9)


def test_names_of_labels_in_one_column(tmp_path):
    frame = make_table()
    tags = [";".join(name for name in NAMES if row[name]) for _, row in frame.iterrows()]
    by_columns = train_model(frame, labels=sorted(NAMES), drop="day", classifier="br")
    without = frame.drop(columns=NAMES)
    by_text = train_model(
        without.assign(tags=tags), label_column="tags", sep=";", drop="day", classifier="br"
    )
    lists = without.assign(tags=[text.split(";") if text else [] for text in tags])
    by_lists = train_model(lists, label_column="tags", drop="day", classifier="br")
    for model in (by_text, by_lists):
        assert model.label_names_ == ("calm", "cold", "wet")
        np.testing.assert_array_equal(model.predict(frame), by_columns.predict(frame))
    message = "Column 'tags' of the table must hold lists of label names, it holds text."
    with pytest.raises(ls.InputError, match=message):
        train_model(without.assign(tags=tags), label_column="tags")


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.slow
def test_every_classifier_is_trained_and_saved(csv, tmp_path, classifier):
    model = train_model(csv, labels=NAMES, id_column="day", classifier=classifier, cv=2)
    model.save(tmp_path / "m")
    loaded = ls.load(tmp_path / "m")
    X = make_table(20, seed=5)
    np.testing.assert_array_equal(loaded.predict_accuracy(X), model.predict_accuracy(X))
    other = train_model(
        csv, labels=NAMES, id_column="day", classifier=classifier, cv=2, random_state=1
    )
    assert not np.array_equal(other.predict_accuracy(X), model.predict_accuracy(X))


def test_roles_that_are_said_hold(csv):
    model = train_model(
        csv, labels=NAMES, drop=["day"], roles={"season": "text", "note": "left out"}, cv=2,
        classifier="br",
    )  # fmt: skip
    roles = {column["name"]: column["role"] for column in model.card_.columns}
    assert (roles["season"], roles["note"]) == ("text", "left out")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Either `labels` (columns of zeros and ones) or `label_column`"),
        ({"labels": "cold", "label_column": "wet"}, "must be given, got both."),
        ({"labels": "cod,wet"}, "Unknown column 'cod'. Did you mean 'cold'?"),
        ({"labels": "cold", "classifier": "eec"}, "Unknown classifier 'eec'. Did you mean 'ecc'?"),
        ({"labels": "cold", "id_column": "season"}, "'winter' is in rows 0 and 1"),
        ({"labels": "cold", "id_column": "key"}, "Unknown column 'key'."),
        ({"labels": "season"}, "Labels in 'days.csv' must be 0 or 1 (or false and true, no and ye"),
        ({"labels": "cold", "drop": "x*"}, "Unknown column 'x*'"),
        ({"labels": "cold", "metric": "jacard"}, "Unknown metric 'jacard'."),
        ({"labels": "pressure"}, "label 'pressure' is missing in row 0 (rows count from 0)."),
    ],
)
def test_what_cannot_be_trained(csv, settings, message):
    with pytest.raises(ls.InputError, match=re.escape(message)):
        train_model(csv, **settings)


def test_labels_that_never_change():
    frame = make_table().assign(wet=0)
    message = (
        "Each label in the table must be true in some rows and false in others, 'wet' is 0 in all "
        "300 rows. Leave that label out."
    )
    with pytest.raises(ls.DataError, match=re.escape(message)):
        train_model(frame, labels=NAMES)
    with pytest.raises(ls.DataError, match="'wet' is 1 in all 300 rows"):
        train_model(frame.assign(wet=1), labels=NAMES)


# Another system's predictions


def make_predictions(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.uniform(size=(n_rows, 3)).round(4)
    Y = (rng.uniform(size=P.shape) < P).astype(int)
    ids = [f"k{i}" for i in range(n_rows)]
    return (
        pd.DataFrame(P, columns=NAMES).assign(id=ids),
        pd.DataFrame(Y, columns=NAMES).assign(id=ids),
    )


SCORES, TRUTH = make_predictions()
EXPECTED = calibrate_model(SCORES, TRUTH, target=0.5)


def test_a_model_around_predictions_is_guaranteed():
    assert EXPECTED.guaranteed_
    assert EXPECTED.label_names_ == tuple(NAMES)
    assert (EXPECTED.card_.n_training, EXPECTED.card_.n_for_policy) == (0, 200)
    plain = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), target=0.5, random_state=0)
    frozen = ls.PrecomputedProbabilities().fit(SCORES[NAMES], TRUTH[NAMES])
    from sklearn.frozen import FrozenEstimator

    plain = ls.AccuracyAwareClassifier(FrozenEstimator(frozen), target=0.5, random_state=0)
    plain.fit(SCORES[NAMES], TRUTH[NAMES])
    np.testing.assert_array_equal(
        EXPECTED.predict_accuracy(SCORES), plain.predict_accuracy(SCORES[NAMES])
    )


def write_jsonl(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def pairs_of(row):
    return [{"label": name, "score": row[name]} for name in ("wet", "calm", "cold")]


def all_forms(folder):
    """Files that say the same: predictions, truth, and further arguments."""
    rows, truths = SCORES.to_dict("records"), TRUTH.to_dict("records")
    SCORES.to_csv(folder / "p.csv", index=False)
    SCORES[["calm", "id", "cold", "wet"]].to_parquet(folder / "p.parquet")
    lists = pd.DataFrame({"id": SCORES["id"], "scores": SCORES[NAMES].to_numpy().tolist()})
    lists.to_parquet(folder / "lists.parquet")
    np.save(folder / "p.npy", SCORES[NAMES].to_numpy())
    TRUTH.to_csv(folder / "t.csv", index=False)
    np.save(folder / "t.npy", TRUTH[NAMES].to_numpy())
    TRUTH[NAMES].to_csv(folder / "t_plain.csv", index=False)
    tags = [[name for name in NAMES if row[name]] for row in truths]
    text = pd.DataFrame({"id": TRUTH["id"], "tags": [";".join(some) for some in tags]})
    text.sample(frac=1, random_state=0).to_csv(folder / "t_text.csv", index=False)
    write_jsonl(
        folder / "t.jsonl",
        [{"id": row["id"], "labels": some} for row, some in zip(truths, tags, strict=True)],
    )
    write_jsonl(folder / "pairs.jsonl", [pairs_of(row) for row in rows])
    write_jsonl(folder / "ids.jsonl", [{"id": r["id"], "predictions": pairs_of(r)} for r in rows])
    write_jsonl(
        folder / "zero.jsonl",
        [{"id": r["id"], "labels": NAMES, "scores": [r[name] for name in NAMES]} for r in rows],
    )
    names = {"labels": NAMES}
    return {
        "CSV": ("p.csv", "t.csv", {}),
        "another order": ("p.parquet", "t.csv", names),
        "lists": ("lists.parquet", "t.csv", {}),
        "an array": ("p.npy", "t_plain.csv", {}),
        "two arrays": ("p.npy", "t.npy", names),
        "text": ("p.csv", "t_text.csv", {"sep": ";", "labels": "cold, wet,calm"}),
        "names": ("p.csv", "t.jsonl", {}),
        "pairs": ("pairs.jsonl", "t_plain.csv", names),
        "pairs by id": ("ids.jsonl", "t_text.csv", {"sep": ";", **names}),
        "zero-shot": ("zero.jsonl", "t.jsonl", {"id_column": "id"}),
        "zero-shot by columns": ("zero.jsonl", "t.csv", {}),
        "one column of several": ("p.csv", "t.jsonl", {"label_column": "labels"}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    return folder, all_forms(folder)


@pytest.mark.parametrize("form", [
    "CSV", "another order", "lists", "an array", "two arrays", "text",
    "names", "pairs", "pairs by id", "zero-shot", "zero-shot by columns", "one column of several",
])  # fmt: skip
def test_every_form_gives_the_same_model(forms, form, tmp_path):
    folder, all_of_them = forms
    predictions, truth, settings = all_of_them[form]
    model = calibrate_model(
        f"{folder}/{predictions}", folder / truth, target=0.5, random_state=0, **settings
    )
    assert model.label_names_ == tuple(NAMES)
    model.save(tmp_path / "m")
    loaded = ls.load(tmp_path / "m")
    X, ids = InputTable(loaded).read(read_table(f"{folder}/{predictions}"))
    assert (ids is not None) == (loaded.card_.columns[0]["role"] == "id")
    same_rows = "text" not in truth
    if same_rows:
        np.testing.assert_array_equal(loaded.predict_accuracy(X), EXPECTED.predict_accuracy(SCORES))
        assert loaded.policy_.threshold_ == EXPECTED.policy_.threshold_
    np.testing.assert_array_equal(loaded.predict(X), EXPECTED.predict(SCORES))


def test_truth_of_some_rows_and_numbers_for_ids():
    scores, truth = SCORES.assign(id=range(400)), TRUTH.assign(id=[str(i) for i in range(400)])
    model = calibrate_model(scores, truth.sample(100, random_state=0))
    assert model.card_.n_for_estimator == 100


def test_logits():
    logits = SCORES.assign(**{name: np.log(SCORES[name] / (1 - SCORES[name])) for name in NAMES})
    model = calibrate_model(logits, TRUTH, kind="logit")
    np.testing.assert_allclose(
        model.predict_proba(logits), EXPECTED.predict_proba(SCORES), atol=1e-12
    )
    message = (
        "Row 0 of the predictions (rows count from 0) cannot be used: the score of 'wet' must lie "
        "in [0, 1], got "
    )
    with pytest.raises(ls.errors.RowsError, match=re.escape(message)):
        calibrate_model(logits.assign(cold=0.5), TRUTH)


def test_answers_are_votes():
    rng = np.random.default_rng(0)
    answers = [
        [[n for n in NAMES if rng.uniform() < SCORES.loc[i, n]] for _ in range(rng.integers(2, 6))]
        for i in range(400)
    ]
    said = pd.DataFrame({"id": SCORES["id"], "answers": answers})
    model = calibrate_model(said, TRUTH, metric="hamming", target=0.5)
    assert model.label_names_ == tuple(sorted(NAMES))
    share = [sum("wet" in answer for answer in cell) / len(cell) for cell in answers]
    place = model.label_names_.index("wet")
    votes = model.fitted_.predictor.predict_raw(said)
    np.testing.assert_allclose(votes.marginals()[:, place], share)
    smooth = model.recalibration_.transform(votes).marginals()
    np.testing.assert_array_equal(model.predict_distribution(said).marginals(), smooth)
    some = said.iloc[[5, 3]]
    # Up to rounding: the last bits of a matrix product depend on how many rows it has.
    np.testing.assert_allclose(
        model.predict_accuracy(some), model.predict_accuracy(said)[[5, 3]], rtol=1e-14
    )
    named = calibrate_model(said, TRUTH, labels=NAMES)
    assert named.label_names_ == tuple(NAMES)


ANSWERS = pd.DataFrame({"id": range(60), "answers": [[["cold"], ["wet", "cold"]], [["wet"]]] * 30})
LISTED = pd.DataFrame({"id": range(60), "tags": [["cold"], ["wet"]] * 30})


@pytest.mark.filterwarnings("ignore::labelsure.ProbabilityWarning", "ignore:.*entirely right")
def test_words_that_only_answers_contain_are_labels_by_choice_alone():
    said = ANSWERS.assign(answers=[[*cell, ["cold", "chilly"]] for cell in ANSWERS["answers"]])
    with pytest.warns(ls.errors.UnseenValuesWarning, match="60 answers .*'chilly'"):
        assert calibrate_model(said, LISTED).label_names_ == ("cold", "wet")
    with pytest.raises(ls.errors.RowsError, match=r"Row 0 .*'chilly'"):
        calibrate_model(said, LISTED, unknown="refuse")
    as_columns = pd.DataFrame({"id": range(60), "cold": [1, 0] * 30, "wet": [0, 1] * 30})
    for truth in (LISTED, as_columns):
        model = calibrate_model(said, truth, unknown="keep", kind="votes")
        assert model.label_names_ == ("cold", "wet", "chilly")
        share = model.predict_distribution(said).marginals()[:2, 2]
        assert share == pytest.approx([1 / 3, 1 / 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ls.errors.UnseenValuesWarning)
        calibrate_model(ANSWERS, LISTED)


def test_the_kind_is_never_guessed():
    with pytest.raises(ls.InputError, match='kind="votes" alone'):
        calibrate_model(ANSWERS, LISTED, kind="marginal")
    with pytest.raises(ls.InputError, match='kind="votes" alone'):
        calibrate_model(SCORES, TRUTH, kind="votes")
    logs = SCORES.assign(**{name: np.log(SCORES[name]) for name in NAMES})
    found = calibrate_model(logs, TRUTH, kind="logprob").predict_distribution(logs)
    expected = calibrate_model(SCORES, TRUTH).predict_distribution(SCORES)
    np.testing.assert_allclose(found.marginals(), expected.marginals())


@pytest.mark.filterwarnings("ignore:.*entirely right")
def test_null_answers_and_unknown_words_are_left_out_and_counted():
    odd = ANSWERS.assign(
        answers=[
            [cell[0] + ["chilly"], None, *cell[1:]] if i < 7 else [None, *cell] if i < 10 else cell
            for i, cell in enumerate(ANSWERS["answers"])
        ]
    )
    sentence = (
        "10 answers null: not counted as a vote. 7 answers with words that are no label of the "
        "model, which are left out: 'chilly'."
    )
    plain = calibrate_model(ANSWERS, LISTED, labels=NAMES)
    with pytest.warns(ls.errors.UnseenValuesWarning, match=re.escape(sentence)):
        model = calibrate_model(odd, LISTED, labels=NAMES)
    with pytest.warns(ls.errors.UnseenValuesWarning, match=re.escape(sentence)):
        found = model.predict_distribution(odd).marginals()
    np.testing.assert_allclose(found, plain.predict_distribution(ANSWERS).marginals())
    empty = odd.assign(answers=[[None], *odd["answers"][1:]])
    with pytest.raises(ls.errors.RowsError, match="answer"):
        model.predict(empty)


def test_a_model_of_texts_takes_the_column_of_texts():
    texts = pd.DataFrame({"id": range(60), "body": ["ice and snow", "rain again"] * 30})
    pipeline = make_pipeline(TfidfVectorizer(), ls.BinaryRelevance())
    Y = pd.DataFrame({"cold": [1, 0] * 30, "wet": [0, 1] * 30})
    model = ls.AccuracyAwareClassifier(pipeline, cv=2, random_state=0).fit(texts["body"], Y)
    X, ids = InputTable(model, "id").read(texts)
    assert list(X) == list(texts["body"])
    assert list(ids) == list(texts["id"])
    np.testing.assert_array_equal(model.predict(X), Y)
    named = texts.rename(columns={"body": "text"})
    assert list(InputTable(model).read(named)[0]) == list(X)
    message = "'t.csv' must have one column of texts, or one called 'text', .* got 'id', 'body'"
    with pytest.raises(ls.InputError, match=message):
        InputTable(model).read(texts, "'t.csv'")
    with pytest.raises(ls.errors.RowsError, match="table"):
        InputTable(model).read(named.assign(text=[*named["text"][:3], None, *named["text"][4:]]))


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        ({"hot": 1}, r"Write \[record\]"),
        (pd.Series({"hot": 1}), "DataFrame"),
        (np.array([1.0]), "DataFrame"),
    ],
)
def test_one_row_is_a_table_of_one_row(csv, row, advice):
    model = train_model(csv, labels=NAMES, id_column="day")
    with pytest.raises(ls.InputError, match=advice):
        model.predict(row)


@pytest.mark.parametrize(
    ("scores", "truth", "settings", "message"),
    [
        (
            SCORES.drop(columns="id"), TRUTH[NAMES][:-1], {},
            "Predictions and truth must have the same rows where no column names them, got 400 in "
            "the predictions and 399 in the truth. Name a column of ids with `id_column`.",
        ),
        (SCORES[:-7], TRUTH, {}, "must be one row of the predictions, missing there: 'k393'"),
        (SCORES, TRUTH.assign(id="k0"), {}, "'k0' is in rows 0 and 1 (rows count from 0)"),
        (SCORES.assign(id="k0"), TRUTH, {}, "'k0' is in rows 0 and 1 (rows count from 0)"),
        (SCORES, TRUTH[NAMES], {"id_column": "id"}, "Unknown column 'id' of the truth."),
        (SCORES[NAMES], TRUTH, {"id_column": "id"}, "Unknown column 'id' of the predictions."),
        (
            SCORES, TRUTH.drop(columns="wet"), {},
            "The columns of `the truth` must be the labels of the predictions (say which with "
            "`labels`), in any order; missing are 'wet'.",
        ),
        (SCORES, TRUTH, {"labels": "cold,dry"}, "Unknown column 'dry' of the truth."),
        (SCORES.drop(columns="wet"), TRUTH, {"labels": NAMES}, "missing are 'wet'. Add or rename"),
        (SCORES, TRUTH.assign(cold="x"), {}, "Labels in the truth must be 0 or 1"),
        (SCORES, TRUTH[["id"]], {}, "The table the truth must have labels beside the id, it"),
        (SCORES, TRUTH, {"sep": ";"}, "`sep` needs one column of the truth that holds names"),
        (SCORES, TRUTH, {"label_column": "tags"}, "Unknown column 'tags' of the truth."),
        (
            SCORES, pd.DataFrame({"id": SCORES["id"], "tags": [["cold"]] * 399 + [None]}), {},
            "Column 'tags' of the truth must say for every row which labels it has, as a list "
            "of names, got None in row 399",
        ),
        (
            SCORES, pd.DataFrame({"id": SCORES["id"], "tags": ["cold;wet"] * 400}),
            {"labels": NAMES},
            "The truth in the truth must have a column for each label, got 'tags'. If one of them "
            "holds label names, name it with `label_column`",
        ),
        (
            SCORES, pd.DataFrame({"id": SCORES["id"], "tags": [["cool"]] * 400}), {},
            "Unknown label in row 0 of `truth`: 'cool'.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_calibrated(scores, truth, settings, message):
    with pytest.raises(ls.InputError, match=re.escape(message)):
        calibrate_model(scores, truth, **settings)


# Models that were made in Python


def test_a_model_that_knows_names_of_numbers():
    frame = make_table()[["humidity", "pressure"]].replace("", "0").astype(float)
    Y = make_table()[NAMES]
    for estimator in (ls.BinaryRelevance(), make_pipeline(ls.BinaryRelevance())):
        model = ls.AccuracyAwareClassifier(estimator, cv=2, random_state=0).fit(frame, Y)
        table = InputTable(model, "day")
        rows = frame.astype(str)[["pressure", "humidity"]].assign(day=range(300), more=1)
        X, ids = table.read(rows)
        pd.testing.assert_frame_equal(X, frame)
        assert list(ids) == list(range(300))
        with pytest.raises(ls.errors.RowsError, match="missing"):
            table.read(rows.assign(pressure=["1", "", *["2"] * 298]), "'t'")
        with pytest.raises(
            ls.InputError, match="`id_column` must name a column of the table, got 'day'"
        ):
            table.read(rows.drop(columns="day"))


def test_a_model_of_arrays():
    X = np.random.default_rng(0).normal(size=(100, 2))
    Y = (X > 0).astype(int)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=2, random_state=0).fit(X, Y)
    table = InputTable(model)
    found, ids = table.read(pd.DataFrame(X))
    np.testing.assert_array_equal(found, X)
    assert ids is None
    with pytest.raises(ls.InputError, match="training"):
        table.read(pd.DataFrame(X[:, :1]))
    with pytest.raises(ls.InputError, match="without names, like the training data, got columns"):
        table.read(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ls.errors.RowsError, match="Row 0 of the table"):
        table.read(pd.DataFrame(X).replace(X[0, 0], np.nan))


def test_a_model_of_precomputed_probabilities():
    logits = SCORES.assign(**{name: 6 * SCORES[name] - 3 for name in NAMES})
    for kind, scores in (("marginal", SCORES), ("logit", logits)):
        made = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(kind), cv=2, random_state=0)
        made.fit(scores[NAMES], TRUTH[NAMES])
        X, _ = InputTable(made).read(scores[["calm", "id", "wet", "cold"]].astype(str))
        np.testing.assert_array_equal(
            made.predict_accuracy(X), made.predict_accuracy(scores[NAMES])
        )
        two = scores.assign(cold=2.0)
        if kind == "marginal":
            with pytest.raises(ls.errors.RowsError, match="must lie in"):
                InputTable(made).read(two)
        else:
            assert InputTable(made).read(two)[0]["cold"].tolist() == [2.0] * 400
    array = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), cv=2, random_state=0)
    array.fit(SCORES[NAMES].to_numpy(), TRUTH[NAMES].to_numpy())
    X, _ = InputTable(array).read(pd.DataFrame(SCORES[NAMES].to_numpy()))
    assert X.shape == (400, 3)
    votes = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities("votes"), cv=2, random_state=0)
    cast = np.repeat(TRUTH[NAMES].to_numpy()[:, None], 2, axis=1)
    votes.fit(cast, TRUTH[NAMES].to_numpy()[::-1])  # of others, so that not all are right
    with pytest.raises(ls.InputError, match="votes"):
        InputTable(votes)


@pytest.mark.parametrize("form", ["array", "lists"])
def test_nameless_scores_are_not_matched_with_names(form, tmp_path):
    tags = [[name for name in NAMES if row[name]] for row in TRUTH.to_dict("records")]
    truth = write_jsonl(tmp_path / "t.jsonl", [{"labels": some} for some in tags])
    if form == "array":
        np.save(tmp_path / "p.npy", SCORES[NAMES].to_numpy())
        path = tmp_path / "p.npy"
    else:
        rows = [{"scores": row} for row in SCORES[NAMES].to_numpy().tolist()]
        path = write_jsonl(tmp_path / "p.jsonl", rows)
    with pytest.raises(ls.InputError, match="predictions"):
        calibrate_model(path, truth)
    model = calibrate_model(path, truth, labels=NAMES, target=0.5)
    np.testing.assert_array_equal(
        model.predict_accuracy(read_table(path)), EXPECTED.predict_accuracy(SCORES)
    )


def test_a_model_of_an_array_reads_named_columns_by_name(tmp_path):
    np.save(tmp_path / "p.npy", SCORES[NAMES].to_numpy())
    model = calibrate_model(tmp_path / "p.npy", TRUTH[NAMES], target=0.5)
    expected = model.predict(read_table(tmp_path / "p.npy"))
    np.testing.assert_array_equal(model.predict(SCORES[["id", "calm", "wet", "cold"]]), expected)
    with pytest.raises(ls.LabelsureError, match="'calm'"):
        model.predict(SCORES.rename(columns={"calm": "windy"}))


@pytest.mark.parametrize(
    ("classifier", "cv"), [("layer", 0.4), ("ecc", 0.4), ("br", 2), ("trellis", 0.4), ("pcc", 2)]
)
def test_the_bar_counts_the_base_learners_of_training(csv, monkeypatch, classifier, cv):
    counts = []
    monkeypatch.setattr(ProgressBar, "__call__", lambda self, *pair: counts.append((self, *pair)))
    train_model(csv, labels=NAMES, id_column="day", classifier=classifier, cv=cv)
    n_all = LEARNERS_PER_LABEL[classifier] * len(NAMES) * (cv + 1 if cv == 2 else 1)
    drawn = [pair for bar, *pair in counts if bar._title == "base learners"]
    assert drawn == [[k + 1, n_all] for k in range(n_all)]
    assert set(LEARNERS_PER_LABEL) <= set(CLASSIFIERS)

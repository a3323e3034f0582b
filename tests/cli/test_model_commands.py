"""`train`, `calibrate` and `info`: what they print, what they write, and one sentence otherwise."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

import labelsure as ls
from labelsure.cli._app import main
from labelsure.tables.training import train_model

LABELS = ["odd", "large"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    size = rng.normal(size=200).round(3)
    truth = pd.DataFrame({"id": [f"k{i}" for i in range(200)]})
    truth["odd"] = (rng.uniform(size=200) < 0.5) * 1
    truth["large"] = (size + 0.3 * rng.normal(size=200) > 0) * 1
    table = truth.assign(size=size, colour=np.where(truth["odd"] == 1, "red", "blue"))
    table.to_csv(folder / "t.csv", index=False)
    truth.to_csv(folder / "y.csv", index=False)
    scores = np.clip(truth[LABELS] * 0.8 + 0.1 + 0.1 * rng.normal(size=(200, 2)), 0, 1).round(4)
    scores.assign(id=truth["id"]).to_csv(folder / "p.csv", index=False)
    return folder


def run(capsys, *words, code=0):
    assert main([str(word) for word in words]) == code
    return capsys.readouterr()


def refused(capsys, *words):
    captured = run(capsys, *words, code=2)
    assert captured.out == ""
    assert captured.err.startswith("labelsure: ")
    assert captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1
    return captured.err


def training(files, *more):
    return ["train", files / "t.csv", "--labels", "odd,large", "--classifier", "br", *more]


def test_processes_that_fit_make_the_same_model(files, tmp_path, capsys):
    rows = pd.read_csv(files / "t.csv")
    found = []
    for n_jobs in (1, 2):
        out = tmp_path / f"{n_jobs}.labelsure"
        run(capsys, *training(files, "--cv", 2, "--jobs", n_jobs, "--out", out))
        model = ls.load(out)
        assert model.n_jobs == model.estimator_[-1].n_jobs == n_jobs
        found.append(model.predict_distribution(rows).marginals())
    np.testing.assert_array_equal(*found)


def test_the_separator_of_tables_to_learn_from(files, tmp_path, capsys):
    for name in ("t", "p", "y"):
        table = pd.read_csv(files / f"{name}.csv").rename(columns={"size": "size,cm"})
        table.to_csv(tmp_path / f"{name}.csv", index=False, sep=";", quoting=3)
    out = tmp_path / "m.labelsure"
    shared = ["--csv-sep", ";", "--id", "id", "--out", out, "--overwrite"]
    run(capsys, *training(tmp_path, *shared))
    assert "size,cm" in [column["name"] for column in ls.load(out).card_.columns]
    run(capsys, "calibrate", tmp_path / "p.csv", "--truth", tmp_path / "y.csv", *shared)
    assert ls.load(out).label_names_ == ("odd", "large")


def test_train_names_the_columns_that_it_does_not_use(files, tmp_path, capsys):
    table = pd.read_csv(files / "t.csv").assign(site="here")
    table.to_csv(tmp_path / "t.csv", index=False)
    found = run(capsys, *training(tmp_path, "--out", tmp_path / "m.labelsure"))
    assert "2 unused columns (id, site)" in found.out


def test_train_prints_what_was_done_and_saves_the_model(files, tmp_path, capsys):
    out = tmp_path / "m.labelsure"
    words = training(files, "--id", "id", "--target", 0.5, "--seed", 3, "--out", out)
    captured = run(capsys, *words)
    card = ls.load(out).card_
    interval = f"(95% interval {card.low:.3f} to {card.high:.3f})"
    facts = [line.split("  ", 1) for line in captured.out.splitlines()]
    expected = {
        "Rows": "120 for training, 80 for calibration",
        "Labels": "2",
        "Mean Jaccard": f"{card.estimated:.3f}, estimated {interval}",
        "Predictions": "The labelsets that maximise expected Jaccard.",
        "Policy": card.summary,
        "Model": str(out),
        "Next": f"labelsure score {out} NEW.csv --out predictions.csv",
        "": f"labelsure report {out} NEW.csv --out report.html",
    }
    told = [(name, text.strip()) for name, text in facts]
    assert told[0] == ("Columns", "1 numeric column, scaled; missing values imputed by the median")
    assert re.match("1 categorical column, one column for each value", told[1][1])
    assert told[2:] == list(expected.items())
    captured = run(capsys, *words, "--verbose", "--overwrite")
    for line in (
        r"size +│ number +│ scaled; missing values imputed by the median",
        r"colour +│ category +│ one column for each value",
        r"odd +│ label +│ to be predicted",
        r"id +│ id +│ names the rows",
        "rows: 120 for training, 40 for the accuracy estimator, 40 for the policy",
        r"estimated mean Jaccard: 0\.\d+ \(95% interval 0\.\d+ to ",
        "policy: Accept scores of .* Guaranteed: the policy has a calibration set of its own",
        r"features: 2",
    ):
        assert re.search(line, captured.out), line
    assert re.search(rf"^Model +{re.escape(str(out))}$", captured.out, re.MULTILINE)
    assert captured.err == ""
    expected = train_model(
        files / "t.csv", labels=LABELS, id_column="id", classifier="br", target=0.5, random_state=3
    )
    table = pd.read_csv(files / "t.csv")
    np.testing.assert_array_equal(
        ls.load(out).predict_accuracy(table), expected.predict_accuracy(table)
    )


def test_every_option_of_train_reaches_the_model(files, tmp_path, capsys):
    out = tmp_path / "m"
    words = training(
        files, "--drop", "id", "--role", "size=category", "--metric", "f1", "--share", 0.5,
        "--cv", "0.5", "--confidence", 0.8, "--region", 0.7, "--decision", "mode", "--out", out,
        "--guarantee", "approximate", "--json",
    )  # fmt: skip
    printed = json.loads(run(capsys, *words).out)
    model = ls.load(out)
    assert (model.metric, model.share, model.cv, model.confidence) == ("f1", 0.5, 0.5, 0.8)
    assert model.region_.coverage == model.region == 0.7
    assert (model.decision, model.guarantee) == ("mode", "approximate")
    assert printed["path"] == str(out)
    assert printed["trust"] == []
    assert printed["card"] == model.card_.to_dict()
    assert {c["name"]: c["role"] for c in printed["card"]["columns"]} == {
        "id": "left out", "odd": "label", "large": "label", "size": "category",
        "colour": "category",
    }  # fmt: skip
    run(capsys, *training(files, "--cv", "3", "--out", out, "--overwrite"))
    assert ls.load(out).cv == 3
    tags = pd.read_csv(files / "t.csv").drop(columns=LABELS)
    tags["tags"] = ["odd|large", "odd", "", "large"] * 50
    tags.to_csv(tmp_path / "tags.csv", index=False)
    words = [
        "train",
        tmp_path / "tags.csv",
        "--label-column",
        "tags",
        "--label-sep",
        "|",
        "--drop",
        "id",
    ]
    run(capsys, *words, "--out", out, "--quiet", "--overwrite")
    assert ls.load(out).label_names_ == ("large", "odd")
    run(capsys, *words, "--out", out, "--quiet", "--classifier", "pcc", "--overwrite")
    assert isinstance(ls.load(out).estimator_[1], ls.ProbabilisticClassifierChain)


def test_the_default_classifier_is_printed_with_its_reason(files, tmp_path, capsys):
    words = ["train", files / "t.csv", "--labels", "odd,large", "--id", "id"]
    printed = run(capsys, *words, "--out", tmp_path / "m").out
    assert re.match("Classifier +layer: binary relevance with recalibrated dependence", printed)
    estimator = ls.load(tmp_path / "m").estimator_[1]
    assert isinstance(estimator, ls.RecalibratedClassifier)
    assert estimator.method == "dependence"
    assert "Classifier" not in run(capsys, *training(files, "--out", tmp_path / "br")).out


def test_texts_of_train_are_those_of_score(files, tmp_path, capsys):
    out = tmp_path / "m"
    captured = run(capsys, *training(files, "--drop", "id", "--text", "colour", "--out", out))
    assert "1 text column, weights of its words (TF-IDF)" in captured.out
    run(capsys, "score", out, files / "t.csv", "--out", tmp_path / "p.csv", "--jobs", "1")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 200


def test_quiet_says_nothing(files, tmp_path, capsys):
    out = tmp_path / "m"
    captured = run(capsys, *training(files, "--out", out, "--quiet", "--target", "0.999"))
    assert (captured.out, captured.err) == ("", "")
    assert out.is_file()


def test_a_warning_that_the_summary_has_is_said_once(files, tmp_path, capsys):
    captured = run(capsys, *training(files, "--out", tmp_path / "m", "--target", "0.999"))
    assert captured.err == ""  # what it warns of is the policy, which the summary has
    assert "Policy        No threshold reaches a mean accuracy of 0.999" in captured.out


def test_a_forest_needs_no_trust(files, tmp_path, capsys):
    out = tmp_path / "m"
    words = ["train", files / "t.csv", "--labels", "odd,large", "--classifier", "forest"]
    assert "must be trusted" not in run(capsys, *words, "--cv", "2", "--out", out).out
    assert json.loads(run(capsys, "info", out, "--json").out)["trust"] == []


def test_labels_of_a_taxonomy(files, tmp_path, capsys):
    tree, out = tmp_path / "tree.csv", tmp_path / "m.labelsure"
    tree.write_text("child,parent\nodd,size\nsize,large\ntiny,odd\n")
    error = refused(capsys, *training(files, "--taxonomy", tree, "--out", out))
    assert "'odd' needs 'large'" in error
    for name in ("t", "y"):
        table = pd.read_csv(files / f"{name}.csv").assign(large=lambda t: t["large"] | t["odd"])
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    shared = ["--taxonomy", tree, "--id", "id", "--out", out, "--overwrite"]
    calibration = ["calibrate", files / "p.csv", "--truth", tmp_path / "y.csv"]
    for words in (training(tmp_path), calibration):
        assert "valid labelsets only" in run(capsys, *words, *shared).out
        dist = ls.load(out).predict_distribution(pd.read_csv(files / f"{words[1].stem}.csv"))
        assert dist.log_prob(np.tile([1, 0], (len(dist), 1))).max() == -np.inf
    broken = pd.read_csv(tmp_path / "t.csv").assign(large=0)
    broken.to_csv(tmp_path / "broken.csv", index=False)
    drawn = ["--truth", tmp_path / "broken.csv", "--id", "id"]
    for command in (
        ["estimate", *drawn],
        ["report", *drawn, "--out", tmp_path / "page.html"],
        ["monitor", *drawn, "--drawn", "0.5"],
    ):
        words = [command[0], out, files / "p.csv", *command[1:]]
        assert "'odd' needs 'large'" in refused(capsys, *words)
    missing = [*shared, "--taxonomy", tmp_path / "none.csv"]
    assert "CSV file" in refused(capsys, *calibration, *missing)


def test_calibrate(files, tmp_path, capsys):
    out = tmp_path / "m"
    words = ["calibrate", files / "p.csv", "--truth", files / "y.csv", "--out", out]
    captured = run(capsys, *words, "--target", 0.6, "--verbose")
    assert "odd    │ probability │ what the other system says of the label" in captured.out
    assert "rows: 0 for training, 100 for the accuracy estimator, 100 for" in captured.out
    assert "Guaranteed" in captured.out
    run(
        capsys, *words, "--labels", "large,odd", "--id", "id", "--metric", "hamming",
        "--confidence", 0.9, "--share", 0.4, "--region", 0.6, "--seed", 2, "--quiet", "--kind",
        "logit",        "--overwrite",
    )  # fmt: skip
    model = ls.load(out)
    assert model.label_names_ == ("large", "odd")
    assert (model.metric, model.confidence, model.share) == ("hamming", 0.9, 0.4)
    assert model.region_.coverage == 0.6
    assert model.random_state == 2
    assert model.estimator_.estimator[1].kind == "logit"
    names = tmp_path / "names.csv"
    pd.DataFrame(
        {"id": ["k1", "k0", "k3", "k2"], "tags": ["odd", "", "odd;large", "large"]}
    ).to_csv(names, index=False)
    words = ["calibrate", files / "p.csv", "--truth", names, "--out", out, "--quiet"]
    run(capsys, *words, "--label-sep", ";", "--label-column", "tags", "--overwrite")
    assert ls.load(out).card_.n_for_estimator == 4


def test_info_of_other_models(tmp_path, capsys):
    path = tmp_path / "m"
    ls.BinaryRelevance().fit([[0.0], [1.0]], [[0, 1], [1, 0]]).save(path)
    printed = run(capsys, "info", path).out
    assert printed.startswith("model: BinaryRelevance\nwritten by: labelsure ")
    assert printed.endswith(f"labels: 2 (y0, y1)\nModel {path}\n")
    found = json.loads(run(capsys, "info", path, "--json").out)
    assert (found["kind"], found["card"], found["label_names"]) == (
        "BinaryRelevance", None, ["y0", "y1"]
    )  # fmt: skip
    scores = np.random.default_rng(0).uniform(size=500)
    ls.AcceptPolicy(0.1).fit(scores, np.round(scores)).save(path)
    assert "labels:" not in run(capsys, "info", path).out


def test_info_of_a_file_that_says_something_else(files, tmp_path, capsys):
    from saved_files import change_json

    path = tmp_path / "m"
    run(capsys, *training(files, "--out", path, "--quiet"))
    content = path.read_bytes()
    for change in (
        lambda header: header["card"].update(calibration=3),
        lambda header: header["card"].pop("metric"),
        lambda header: header["card"].update(estimated="x"),
        lambda header: header.pop("kind"),
        lambda header: header.update(label_names=3, card=None),
    ):
        path.write_bytes(change_json(content, "labelsure.json", change))
        assert "must be as `save` wrote it" in refused(capsys, "info", path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--labels", "odd", "--cv", "x"], "`--cv` must be a number of folds, such as 5, or a sh"),
        (["--labels", "odd", "--cv", "1"], "`--cv` as a number of folds must be at least 2, got 1"),
        (["--labels", "odd", "--cv", "1.5"], "`--cv` as a share of held-out rows must lie"),
        (["--labels", "odd", "--role", "size"], "`--role` must be COLUMN=ROLE, e.g. zip=category"),
        (["--labels", "odd", "--role", "size=x"], "Unknown role of column 'size': 'x'."),
        (["--labels", "odd", "--target", "2"], "Invalid value for '--target'"),
        (
            ["--labels", "odd", "--target", "0.5", "--share", "0.5"],
            "Either `--target` or `--share` must be given",
        ),
        (["--labels", "od"], "Unknown column 'od'. Did you mean 'odd'?"),
        (["--labels", "odd", "--id", "odd"], "'odd' is in `--id` and in `--labels`."),
        (["--labels", "odd", "--id", "colour"], "every row to be the id, "),
        ([], "must be given, got neither"),
    ],
)
def test_mistakes_of_train(files, tmp_path, capsys, words, sentence):
    out = tmp_path / "m"
    said = refused(capsys, "train", files / "t.csv", "--out", out, *words)
    assert sentence in said
    assert not out.exists()


def test_places_where_no_model_can_be(files, tmp_path, capsys, monkeypatch):
    for out in (tmp_path, tmp_path / "none" / "m"):
        sentence = "must be a file in a folder that exists"
        assert sentence in refused(capsys, *training(files, "--out", out))
    sentence = "must not be one of the inputs"
    assert sentence in refused(capsys, *training(files, "--out", files / "t.csv"))
    words = ["calibrate", files / "p.csv", "--truth", files / "y.csv", "--out", files / "y.csv"]
    assert sentence in refused(capsys, *words)
    assert "null byte" in refused(capsys, *training(files, "--out", "a\0b"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "that exists and is yours" in refused(capsys, *training(files, "--out", tmp_path / "m"))


def test_mistakes_of_calibrate(files, tmp_path, capsys):
    words = ["calibrate", files / "p.csv", "--truth", files / "y.csv", "--out", tmp_path / "m"]
    both = [*words, "--target", "0.5", "--share", "0.5"]
    assert "Either `--target` or `--share` must be given" in refused(capsys, *both)
    no_sep = [*words, "--label-sep", ""]
    assert "`--label-sep` must be the text between two label names" in refused(capsys, *no_sep)
    logits = tmp_path / "logits.csv"
    pd.read_csv(files / "p.csv").assign(odd=-3).to_csv(logits, index=False)
    said = refused(capsys, "calibrate", logits, *words[2:])
    assert (
        "Row 0 of 'logits.csv' (rows count from 0) cannot be used: the score of 'odd' must" in said
    )
    assert "got -3; logits are read with `--kind`" in said
    assert "(199 more such rows here)" in said


def test_hints_name_options_once(files, tmp_path, capsys):
    tags = tmp_path / "tags.csv"
    pd.DataFrame({"size": range(4), "tags": ["a", "a;b", "b", ""]}).to_csv(tags, index=False)
    said = refused(capsys, "train", tags, "--label-column", "tags", "--out", tmp_path / "m")
    assert said.count("--label-sep") == 1
    assert "`--label-sep`, e.g. ';'" in said

"""From files of 100,000 labels to a model, predictions, an estimate and a page, by commands."""

import json
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import labelsure as ls
from labelsure.cli._app import main
from labelsure.tables.files import read_table

N_LABELS = 100_000
N_USED = 400  # labels that occur
N_LISTED = 6
USED = np.sort(np.random.default_rng(7).choice(N_LABELS, N_USED, replace=False))


def draw(n, seed):
    """Return probabilities that are right, and the truth, as sparse rows."""
    rng = np.random.default_rng(seed)
    listed = np.sort(np.stack([rng.choice(N_USED, N_LISTED, replace=False) for _ in range(n)]))
    p = rng.beta(0.4, 0.5, size=listed.shape).round(3)
    is_true = rng.random(p.shape) < p
    row = np.repeat(np.arange(n), N_LISTED)
    shape = (n, N_LABELS)
    true = np.flatnonzero(is_true)
    P = sparse.csr_array((p.ravel(), (row, USED[listed].ravel())), shape)
    ones = np.ones(len(true), dtype=np.int8)
    Y = sparse.csr_array((ones, (row[true], USED[listed].ravel()[true])), shape)
    return P, Y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with sparse files, and the model that `calibrate` makes of them."""
    folder = tmp_path_factory.mktemp("files")
    for name, n, seed in (("known", 1200, 0), ("new", 600, 1)):
        P, Y = draw(n, seed)
        sparse.save_npz(folder / f"{name}.npz", P)
        sparse.save_npz(folder / f"{name}_truth.npz", Y)
    words = ["calibrate", str(folder / "known.npz"), "--truth", str(folder / "known_truth.npz")]
    words += ["--metric", "f1", "--target", "0.8", "--quiet"]
    words += ["--out", str(folder / "tags.labelsure")]
    assert main(words) == 0
    return folder


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_model_says_what_it_is(files, capsys):
    assert main(["info", str(files / "tags.labelsure")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "labels: 100000 (y0, ..., y99999)" in told
    assert len(told) < 10_000


def test_predictions_name_labels(files, tmp_path):
    out = tmp_path / "out.jsonl"
    words = [str(files / "tags.labelsure"), str(files / "new.npz"), "--out", str(out)]
    assert main(["score", *words, "--jobs", "1", "--quiet"]) == 0
    P, _ = draw(600, 1)
    dist = ls.as_distribution(P)
    mode = dist.mode()
    rows = lines_of(out)
    assert len(rows) == 600
    for i in (0, 299, 599):
        first, last = mode.indptr[i : i + 2]
        assert rows[i]["predicted"] == [f"y{j}" for j in mode.indices[first:last]]
        assert rows[i]["top_1"] == rows[i]["predicted"]
        assert rows[i]["row"] == i
    assert len(rows[0]) < 30  # no column for each label
    model = ls.load(files / "tags.labelsure")
    assert model.guaranteed_
    accepted = np.array([row["accept"] for row in rows])
    _, Y = draw(600, 1)
    values = ls.accuracy(Y, mode, "f1")
    assert 0.1 < accepted.mean() < 1
    assert values[accepted].mean() > 0.77 > values.mean()  # 0.8, and what chance does


def test_the_estimate_holds_the_truth(files, capsys):
    words = [str(files / "tags.labelsure"), str(files / "new.npz"), "--jobs", "1", "--json"]
    assert main(["estimate", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    P, Y = draw(600, 1)
    actual = ls.accuracy(Y, ls.as_distribution(P).mode(), "f1").mean()
    assert told["low"] < actual < told["high"] < told["low"] + 0.1
    assert told["n_samples"] == 600


def test_an_estimate_with_the_labels_of_some_rows(files, tmp_path, capsys):
    _, Y = draw(600, 1)
    chosen = np.random.default_rng(0).choice(600, 60, replace=False)
    truth = tmp_path / "some.jsonl"
    truth.write_text("\n".join(
        json.dumps({"row": int(i), "labels": Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()})
        for i in chosen
    ))  # fmt: skip
    words = [str(files / "tags.labelsure"), str(files / "new.npz"), "--truth", str(truth)]
    assert main(["estimate", *words, "--jobs", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    actual = ls.accuracy(Y, ls.as_distribution(draw(600, 1)[0]).mode(), "f1").mean()
    assert told["low"] - 0.02 < actual < told["high"] + 0.02
    assert told["low"] < told["high"] < told["low"] + 0.25


@pytest.mark.parametrize("with_truth", [False, True])
def test_the_page_has_the_labels_that_occur(files, tmp_path, with_truth):
    out = tmp_path / "tags.html"
    words = [str(files / "tags.labelsure"), str(files / "new.npz"), "--out", str(out)]
    words += ["--truth", str(files / "new_truth.npz")] if with_truth else []
    assert main(["report", *words]) == 0
    assert out.stat().st_size < 1_000_000
    page = out.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    used, labels = {f"y{j}" for j in USED}, data["labels"]
    for row in data["explorer"]["instances"]:
        listed = [name for name, _ in row["probabilities"]]
        assert {*row["predicted"], *row["runner_up"], *row.get("truth", ()), *listed} <= used
    assert {row["name"] for row in labels["rows"]} <= used
    assert len(labels["rows"]) == 200
    assert 200 + labels["n_left_out"] + labels["n_absent"] == N_LABELS
    assert N_USED - 10 < 200 + labels["n_left_out"] <= N_USED  # a few are never predicted
    sentence = f"{labels['n_absent']:,} labels of the model are neither predicted nor true in any"
    assert sentence in page


def test_nothing_has_a_number_for_each_row_and_label(files, tmp_path):
    """600 rows of 100,000 labels are 60 MB of single bytes."""
    words = [str(files / "tags.labelsure"), str(files / "new.npz")]
    commands = [
        ["calibrate", str(files / "new.npz"), "--truth", str(files / "new_truth.npz"), "--quiet"],
        ["score", *words, "--jobs", "1", "--quiet"],
        ["report", *words, "--truth", str(files / "new_truth.npz")],
    ]
    for i, command in enumerate(commands):
        suffix = (".labelsure", ".csv", ".html")[i]
        assert main([*command, "--out", str(tmp_path / f"before{suffix}")]) == 0
        tracemalloc.start()
        assert main([*command, "--out", str(tmp_path / f"out{suffix}")]) == 0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6, command[0]


def test_names_and_ids_from_json_lines(tmp_path, capsys):
    P, Y = draw(300, 2)
    names = [f"tag {j}" for j in range(N_LABELS)]
    said, known = [], []
    for i in range(300):
        some = slice(P.indptr[i], P.indptr[i + 1])
        pairs = zip(P.indices[some].tolist(), P.data[some].tolist(), strict=True)
        scores = [{"label": names[j], "score": p} for j, p in pairs]
        said.append({"id": f"t{i}", "scores": scores})
        true = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        known.append({"id": f"t{i}", "labels": [names[j] for j in true]})
    for name, lines in (("said", said), ("known", known[::-1])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "names.txt").write_text("\n".join(names))
    words = ["calibrate", str(tmp_path / "said.jsonl"), "--truth", str(tmp_path / "known.jsonl")]
    words += ["--out", str(tmp_path / "m.labelsure"), "--quiet"]
    assert main(words) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "The rows of 'said.jsonl' list different labels: 'tag 1" in told
    assert "If rows list some labels of many, say so by `--sparse`" in told
    words += ["--sparse", "--labels-from", str(tmp_path / "names.txt")]
    assert main(words) == 0
    out = tmp_path / "out.jsonl"
    words = [str(tmp_path / "m.labelsure"), str(tmp_path / "said.jsonl"), "--out", str(out)]
    assert main(["score", *words, "--jobs", "1", "--quiet"]) == 0
    best = ls.decide(ls.as_distribution(P), ls.load(tmp_path / "m.labelsure").metric).labelsets
    for i, row in enumerate(lines_of(out)):
        some = best.indices[best.indptr[i] : best.indptr[i + 1]]
        assert (row["id"], row["predicted"]) == (f"t{i}", [names[j] for j in some])


def test_a_floor_is_kept_in_the_model(files, tmp_path, capsys):
    words = ["calibrate", str(files / "known.npz"), "--truth", str(files / "known_truth.npz")]
    words += ["--quiet", "--out", str(tmp_path / "m.labelsure")]
    assert main([*words, "--floor", "1e-6"]) == 0
    model = ls.load(tmp_path / "m.labelsure")
    frame = read_table(files / "new.npz")[:3]
    assert model.predict_distribution(frame).floor == 1e-6
    assert main([*words, "--floor", "0.5", "--overwrite"]) == 2
    assert "[0, 0.5), got 0.5" in " ".join(capsys.readouterr().err.split())


def test_a_floor_needs_labels_that_are_not_listed(tmp_path, capsys):
    np.save(tmp_path / "p.npy", np.full((4, 2), 0.5))
    np.save(tmp_path / "t.npy", np.ones((4, 2)))
    words = ["calibrate", str(tmp_path / "p.npy"), "--truth", str(tmp_path / "t.npy")]
    assert main([*words, "--floor", "1e-6", "--out", str(tmp_path / "m")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "must be None where rows list all labels" in told
    assert main([*words, "--sparse", "--out", str(tmp_path / "m")]) == 2
    assert "must list pairs of label and score" in capsys.readouterr().err


def test_the_labels_are_said_once(tmp_path, capsys):
    words = ["calibrate", "p.npz", "--truth", "t.npz", "--out", str(tmp_path / "m")]
    assert main([*words, "--labels", "a,b", "--labels-from", "names.txt"]) == 2
    assert "by `--labels` or by `--labels-from`" in capsys.readouterr().err

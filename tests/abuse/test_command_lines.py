"""Whatever words a command has: an exit code, one sentence, and nothing touched but `--out`."""

import contextlib
import io
import os
import random
import sys
from unittest import mock
from urllib.error import URLError

import pytest
import tomli_w
from scored_files import make_model, make_rows

from labelsure.cli._app import main as run_command
from labelsure.study.plan import load_plan

NOT_UTF8 = os.fsdecode(b"caf\xe9")
STRANGE = [
    "", " ", "-", "--", "-x", "--out", "=", "0", "-1", "1e9", "99999999999999999999", "nan",
    "1" * 5000, "~no-such-user/x", "\0", "two\nlines", "\x1b[31m", "[/bold]", "\ufeff", NOT_UTF8,
    "a" * 5000, "..", "/", "*", "%s%n", "{0}", "'", "quik", "--help", "--version",
]  # fmt: skip
ENCODINGS = ["latin-1", "utf-16", "rot13", "idna", "", "nan", "\0"]
METRICS = ["macro-f1", "exact", "f2", "", "MACRO-F1"]
COLUMNS = ["id", "a", "odd", "none", "", "two\nlines", "votes", "logit"]
NUMBERS = ["1", "2", "0", "-1", "0.5", "nan", "two", "99999999999999999999"]


class World:
    """A folder with inputs, right and wrong, and the words of commands about them."""

    def __init__(self, folder):
        self.folder, self.out, self.data = folder, folder / "out", folder / "data"
        self.out.mkdir()
        self.data.mkdir()
        rows = make_rows(40)
        rows.to_csv(self.data / "new.csv", index=False)
        rows.assign(odd=rows.index % 2, big=rows["a"] > 0).astype({"big": int}).to_csv(
            self.data / "train.csv", index=False
        )
        (self.data / "bad.csv").write_text('id,a,b\n1,2\n"')
        (self.data / "cut.parquet").write_bytes(b"PAR1")
        make_model().save(self.data / "model.labelsure")
        plan = {**load_plan("quick").to_dict(), "n_repeats": 1}
        (self.data / "plan.toml").write_text(tomli_w.dumps(plan).replace("BinaryRel", "NoRel"))

    def make_words(self, generator):
        choose = generator.choice
        file = str(self.data / choose(["new.csv", "train.csv", "bad.csv", "cut.parquet", "none"]))
        out = str(self.out / choose(["a.csv", "b.parquet", "c.labelsure", "d.xls", "e/"]))
        model = str(self.data / choose(["model.labelsure"] * 5 + ["new.csv"]))
        train = str(self.data / choose(["train.csv"] * 5 + ["bad.csv"]))
        words = choose(
            [
                ["score", model, file, "--out", out, "--top", choose(NUMBERS)],
                ["score", model, file, "--out", out, "--audit", choose(NUMBERS)],
                ["estimate", model, file, "--confidence", choose(NUMBERS)],
                ["train", train, "--labels", "odd,big", "--classifier", "br", "--out", out],
                ["calibrate", file, "--truth", train, "--out", out],
                ["report", model, file, "--out", out],
                ["info", model],
                ["score", model, file, "--out", out, "--encoding", choose(ENCODINGS)],
                ["score", model, file, "--out", out, "--bad-rows", str(self.out / "bad.jsonl")],
                ["estimate", model, file, "--metric", choose(METRICS), "--truth", train],
                ["estimate", model, file, "--by-file", "--fail-below", choose(NUMBERS)],
                ["monitor", model, file, "--time", choose(COLUMNS), "--out", out],
                ["monitor", model, file, "--time-format", choose(STRANGE), "--out", out],
                [
                    "train",
                    train,
                    "--label-column",
                    choose(COLUMNS),
                    "--label-sep",
                    " ",
                    "--out",
                    out,
                ],
                ["calibrate", file, "--truth", train, "--kind", choose(COLUMNS), "--out", out],
                [
                    "study",
                    "run",
                    str(self.data / "plan.toml"),
                    "--out",
                    out,
                    "--jobs",
                    choose(NUMBERS),
                ],
                ["study", "check", str(self.data)],
                ["data", "info", file],
                [choose(STRANGE)],
            ]
        )
        for _ in range(choose([0, 0, 0, 1, 2])):
            at = choose([i for i, word in enumerate(words) if word not in ("--out", out)] or [0])
            words[at:] = choose([[choose(STRANGE), *words[at + 1 :]], [*words[at:], words[at]]])
        return words

    def listing(self):
        """Return all files but those below the place for outputs, with their sizes and times."""
        found = {}
        for path in self.folder.rglob("*"):
            if path != self.out and self.out not in path.parents:
                status = path.lstat()
                found[path] = (status.st_size, status.st_mtime_ns if path.is_file() else 0)
        return found

    def assert_ends_well(self, words):
        """Run a command and return its exit code."""
        before = self.listing()
        output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = run_command(list(words))
        errors.seek(0)
        said = errors.read()
        sentences = [line for line in said.splitlines() if line.startswith("labelsure: ")]
        assert "Traceback" not in said, words
        assert code in (0, 1, 2, 3), (words, said)
        assert len(sentences) == (code in (1, 2)), (words, said)  # 1: the gate failed
        assert all(line.endswith(".") for line in sentences), (words, said)
        assert self.listing() == before, words
        return code


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Without a network, and without the study that runs where no plan is named."""
    world = World(tmp_path)
    monkeypatch.chdir(world.out)
    unreachable = mock.Mock(side_effect=URLError("no network"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    monkeypatch.setattr("labelsure.study.report.write_report", mock.Mock())
    monkeypatch.setattr("labelsure.study.plan.shipped_plans", lambda: ["paper"])
    return world


def test_words_at_random(world):
    generator = random.Random(0)
    codes = [world.assert_ends_well(world.make_words(generator)) for _ in range(80)]
    assert codes.count(0) > 5
    assert codes.count(2) > 30


@pytest.mark.parametrize(
    ("code", "said", "touched"),
    [
        (0, "", "file"),
        (2, "This is wrong.", None),
        (2, "labelsure: One.\nlabelsure: Two.", None),
        (70, "labelsure: Internal error.", None),
        (0, "Traceback (most recent call last):", None),
    ],
)
def test_what_is_wrong_is_noticed(world, monkeypatch, code, said, touched):
    def command(words):
        print(said, file=sys.stderr)
        if touched:
            (world.folder / touched).write_text("changed")
        return code

    monkeypatch.setitem(globals(), "run_command", command)
    with pytest.raises(AssertionError):
        world.assert_ends_well(["data", "list"])

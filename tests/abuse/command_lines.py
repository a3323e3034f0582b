"""Command lines made at random from right and wrong words, and what the program says to them.

`python tests/abuse/command_lines.py 10000` tries as many and prints a row of a table. Whatever the
words are, the program ends with one of its exit codes, says one sentence where it refuses, and
touches nothing but the folder that `--out` names.
"""

import contextlib
import io
import json
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock
from urllib.error import URLError

import tomli_w

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does

from abuse.damaged_files import DAMAGES, SETTINGS
from scored_files import make_model, make_rows

from labelsure.cli import main as run_command
from labelsure.study import Plan, run_study

CODES = {"study": {0, 2, 3}, "check": {0, 1, 2}}
"""Exit codes by command; all others have 0 and 2."""

NOT_UTF8 = os.fsdecode(b"caf\xe9")
STRANGE = [
    "", " ", "-", "--", "---", "-x", "--out", "--nonsense", "=", "--jobs=", "0", "-1", "1e9",
    "99999999999999999999", "nan", "1" * 5000, "~no-such-user/x", "~no-such-user", "\0", "a\0b",
    "two\nlines", "\r", "\x1b[31m", "[bold]", "[/bold]", "[red]x[/]", ":smile:", "é", "\ufeff",
    NOT_UTF8, "a" * 300, "a" * 5000, "x/" * 3000, "..", "/", "/dev/null", "/dev/zero", "file",
    "file/below", "*", "$HOME", "%s%n", "{}", "{0}", "'", '"', "`id`", ";", "|", "&&", "nul",
    "con.toml", "paper.toml", "Quick", "quik", "--help", "-h", "--version", "--debug",
]  # fmt: skip
OUTPUTS = [".csv", ".csv", ".parquet", ".jsonl", ".json", ".xls", "", "/", "\0.csv"]
ARFF = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@data\n0,1\n1,2\n"
SMALL = {
    **SETTINGS,
    "n_repeats": 1,
    "n_replicates": 1,
    "datasets": {"a": {"simulated": {"n_samples": 40, "n_labels": 2}}},
}
FAILING = {"Broken": {"class": "EnsembleOfClassifierChains", "n_chains": 0}}


class ModelFiles:
    """Tables, predictions and a saved model, right and wrong, for the commands about models.

    Parameters
    ----------
    folder
        Where to make them.
    """

    def __init__(self, folder):
        self.folder = folder / "models"
        self.folder.mkdir()
        lines = [
            f"{i},{i % 7},{'red' if i % 3 else 'blue'},{i % 2},{i % 7 > 3:d}" for i in range(60)
        ]
        (self.folder / "t.csv").write_text("id,size,colour,odd,large\n" + "\n".join(lines) + "\n")
        scores = [f"{i},{0.2 + 0.6 * (i % 2)},0.{1 + i % 7}" for i in range(60)]
        (self.folder / "p.csv").write_text("id,odd,large\n" + "\n".join(scores) + "\n")
        truth = [f"{i},{i % 2},{i % 7 > 3:d}" for i in range(60)]
        (self.folder / "y.csv").write_text("id,odd,large\n" + "\n".join(truth) + "\n")
        pairs = [{"label": "odd", "score": 0.5}, {"label": "large", "score": 0.1}]
        lines = [json.dumps({"id": i, "scores": pairs}) for i in range(60)]
        (self.folder / "p.jsonl").write_text("\n".join(lines))
        (self.folder / "bad.csv").write_text('id,odd,large\n1,2\n"')
        (self.folder / "empty.csv").write_text("id,odd,large\n")
        (self.folder / "bad.parquet").write_bytes(b"PAR1")
        (self.folder / "t.csv.gz").write_bytes(b"\x1f\x8b")
        (self.folder / "damaged.labelsure").write_bytes(b"PK\x03\x04")
        words = ["train", str(self.folder / "t.csv"), "--labels", "odd,large", "--quiet"]
        run_command([*words, "--classifier", "br", "--out", str(self.folder / "m.labelsure")])

    def make_words(self, generator, out):
        """Return the words of a command about models."""
        choose = generator.choice
        wrong = ["bad.csv", "empty.csv", "bad.parquet", "t.csv.gz", "none.csv", ""]
        table = self.folder / choose([*["t.csv"] * 12, *wrong])
        model = out / choose([*["m", "m.labelsure"] * 4, "no/m"])
        said = self.folder / choose([*["p.csv", "p.jsonl"] * 6, "t.csv", *wrong])
        truth = self.folder / choose([*["y.csv"] * 12, "t.csv", *wrong])
        labels = choose([*["odd,large"] * 12, "odd,lage", "odd", "id", "colour", "*", ""])
        saved = choose(["m.labelsure", "m.labelsure", "damaged.labelsure", "none", "t.csv", ""])
        return choose(
            [
                [
                    "train",
                    str(table),
                    "--labels",
                    labels,
                    "--classifier",
                    "br",
                    "--out",
                    str(model),
                ],
                ["calibrate", str(said), "--truth", str(truth), "--out", str(model)],
                ["info", str(self.folder / saved)],
            ]
        )

    def options(self, generator):
        """Return options of each command, right and wrong."""
        choose = generator.choice
        number = choose(["0.5", "0.9", "0", "1", "-1", "nan", "inf", "x", "1e400"])
        both = [
            *(["--id", choose(["id", "colour", "ids", ""])], ["--target", number], ["--json"]),
            *(["--coverage", number], ["--metric", choose(["f1", "f2", ""])], ["--level", number]),
            *(["--seed", choose(["1", "-1", "99999999999", "x"])], ["--quiet"]),
            *(["--sep", choose([";", ""])], ["--label-column", choose(["odd", "colour", "tags"])]),
        ]
        cv = choose(["2", "3", "0.5", "0", "1", "-1", "1.0", "nan", "x", "\u00b2", "1" * 400])
        role = choose(["size=text", "size=category", "size", "x=number", "=", "size=id"])
        more = [["--cv", cv], ["--drop", choose(["size", "*", "colour,odd", ""])], ["--role", role]]
        return {
            "train": [*both, *more],
            "calibrate": [
                *both,
                ["--logits"],
                ["--labels", choose(["odd,large", "large,odd", "x"])],
            ],
            "info": [["--json"], ["--help"]],
        }


class World:
    """A folder with plans, data and a finished run, and a place for what commands write.

    Parameters
    ----------
    folder
        Where to make it.
    seed
        Of all that is random.
    """

    def __init__(self, folder, seed=0):
        self.folder, self.random = folder, random.Random(seed)
        self.out, self.data = folder / "out", folder / "data"
        for path in (self.out, self.data, folder / "[bold]", folder / NOT_UTF8):
            path.mkdir()
        for name in ("mine", "[bold]", "[red]x[]", NOT_UTF8, "two\nlines"):
            (self.data / f"{name}.arff").write_text(ARFF)
        (self.data / "broken.arff").write_text(ARFF.replace("numeric", "{"))
        (self.data / "cut.arff.gz").write_bytes(b"\x1f\x8b\x08\x00")
        (folder / "file").touch()
        make_model().save(self.data / "model.labelsure")
        make_rows(20).to_csv(self.data / "new.csv", index=False)
        make_rows(9).assign(b="soon").to_csv(self.data / "bad.csv", index=False)
        self.plan = folder / "plan.toml"
        self.write_plan()
        self.models = ModelFiles(folder)
        run = run_study(Plan.from_dict(SMALL), folder / "run", n_jobs=1)
        run.analyses(n_jobs=1)  # which `check` would keep in the folder

    def write_plan(self):
        """Write a plan that is right, or one with a wrong value, or a damaged one."""
        choose, settings = self.random.choice, {**SMALL}
        if self.random.random() < 0.3:
            settings[choose([*SMALL, "unknown"])] = choose([*STRANGE, 0, -1, 2**62, 0.5, [], {}])
        elif self.random.random() < 0.1:
            settings["classifiers"] = FAILING
        text = tomli_w.dumps(settings).encode("utf-8", "backslashreplace")
        if self.random.random() < 0.1:
            text = bytes(choose(DAMAGES)(bytearray(text), self.random))
        self.plan.write_bytes(text)

    def make_words(self):
        """Return the words of a command, most of them right."""
        choose = self.random.choice
        folders = [self.data, self.folder / "none", self.plan, self.folder / NOT_UTF8]
        folder = choose([*map(str, folders), "~no-such-user/x"])
        name = choose(["digits", "mine", "broken", "cut", "emotions", "[bold]", NOT_UTF8, "\n"])
        plan = choose([*[self.plan] * 12, self.folder, "quik", "file", "", "~no-such-user/x.toml"])
        out = self.out / choose(["run0", "run1", "run2", "[bold]", NOT_UTF8])
        number = choose(["1", "2", "0", "-1", "100000000", "two", "1.5"])
        commands = [
            *[["study", str(plan), "--out", str(out)]] * 3,
            ["check", choose([str(self.folder / "run"), folder])],
            *[["score", *self.model_and_rows(), "--out", f"{out}{choose(OUTPUTS)}"]] * 2,
            ["estimate", *self.model_and_rows()],
            ["data", "list"],
            *[["data", "info", name]] * 2,
            *[self.models.make_words(self.random, self.out)] * 6,
            ["data", "fetch", name],
            [choose(STRANGE)],
        ]
        words = list(choose(commands))
        options = {
            "study": [
                *(["--jobs", "1"], ["-j", "x"], ["--repeats", number], ["--data", folder]),
                *(["--json"], ["--trust-imports"]),
            ],
            "score": [
                *(["--id", choose(["id", "none"])], ["--audit", number], ["--top", number]),
                *(["--to", choose(["argilla", "x"])], ["--bad-rows", f"{out}.jsonl"], ["--json"]),
                *(
                    ["--overwrite"],
                    ["--rows-per-unit", number],
                    ["--quiet"],
                    ["--sep", choose("x;")],
                ),
            ],
            "estimate": [["--level", number], ["--metric", name], ["--json"], ["--trust", name]],
            **self.models.options(self.random),
            "check": [["--strict"], ["--json"], ["--against", choose(["paper", "papers", ""])]],
        }.get(words[0], [["--data", folder], ["--json"]])
        for option in self.random.sample(options, k=self.random.randrange(3)):
            words += option
        return self.spoil(words)

    def model_and_rows(self):
        """Return a model and an input for it, most of them right."""
        models = ["model.labelsure", "model.labelsure", "new.csv", "none.labelsure"]
        inputs = ["new.csv", "new.csv", "bad.csv", "none.csv", "broken.arff", "model.labelsure", ""]
        choose = self.random.choice
        return str(self.data / choose(models)), str(self.data / choose(inputs))

    def spoil(self, words):
        """Add, exchange, lose or repeat some words, but not what `--out` names."""
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            kept = ("--out", str(self.out))
            at = self.random.choice(
                [i for i, word in enumerate(words) if not word.startswith(kept)] or [0]
            )
            is_kept = not words or words[at].startswith(kept)
            change = self.random.choice(["add", "append"] if is_kept else list(CHANGES))
            words = CHANGES[change](words, at, self.random.choice(STRANGE))
        return words

    def listing(self):
        """Return all files but those below the place for outputs, with their sizes and times."""
        found = {}
        for path in self.folder.rglob("*"):
            if path != self.out and self.out not in path.parents:
                status = path.lstat()
                found[path] = (status.st_size, status.st_mtime_ns if path.is_file() else 0)
        return found

    def try_words(self, words):
        """Run a command and return its exit code, or what is wrong with how it ended."""
        before = self.listing()
        output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                code = run_command(words)
            except BaseException as error:
                return f"RAISED {type(error).__name__}"
        errors.seek(0)
        said = errors.read().splitlines()
        sentences = [line for line in said if line.startswith("labelsure: ")]
        if self.listing() != before:
            return "TOUCHED ANOTHER FILE"
        if any("Traceback" in line for line in said) and "--debug" not in words:
            return "TRACEBACK"
        command = next((word for word in words if word in CODES), None)
        if code not in CODES.get(command, {0, 2}):
            return f"EXIT CODE {code}"
        if len(sentences) != (code == 2) or not all(line.endswith(".") for line in sentences):
            return f"{len(sentences)} SENTENCES"
        return f"exit code {code}"


CHANGES = {
    "add": lambda words, at, word: [*words[:at], word, *words[at:]],
    "append": lambda words, at, word: [*words, word],
    "exchange": lambda words, at, word: [*words[:at], word, *words[at + 1 :]],
    "lose": lambda words, at, word: [*words[:at], *words[at + 1 :]],
    "repeat": lambda words, at, word: [*words, words[at]],
}


@contextlib.contextmanager
def alone(world):
    """Work in the folder for outputs, without a network, worker processes, or what takes minutes.

    That is the study which runs where no plan is named, and its report.
    """
    unreachable = mock.Mock(side_effect=URLError("no network"))
    settings = {"LABELSURE_NUM_THREADS": "1", "SCIKIT_LEARN_DATA": str(world.out / "home")}
    here = Path.cwd()
    os.chdir(world.out)
    try:
        with (
            mock.patch("sklearn.datasets.fetch_openml", unreachable),
            mock.patch("labelsure.report.write_report"),
            mock.patch("labelsure.study._plan.shipped_plans", return_value=["paper"]),
            mock.patch.dict(os.environ, settings),
        ):
            yield
    finally:
        os.chdir(here)


def try_command_lines(n, folder, seed=0):
    """Try `n` command lines; return how many ended in which way, and the words of the wrong ones.

    Parameters
    ----------
    n
        How many.
    folder
        Where to work.
    seed
        Of the words and the plans.
    """
    world = World(folder, seed)
    counts, wrong = Counter(), []
    with alone(world):
        for _ in range(n):
            world.write_plan()
            words = world.make_words()
            ending = world.try_words(list(words))
            counts[ending] += 1
            if not ending.startswith("exit code"):
                wrong.append((ending, words, world.plan.read_bytes()))
    return counts, wrong


def main(n):
    """Print what came of `n` command lines."""
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = try_command_lines(n, Path(folder))
    said = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"| command lines | {n} | {said} |")
    for found in wrong[:20]:
        print(*found, file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]))

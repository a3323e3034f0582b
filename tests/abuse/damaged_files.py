"""Files of runs and of models, damaged at random, and what reading them gives.

`python tests/abuse/damaged_files.py 100000` damages as many and prints a row of a table for each
kind of file. Whatever happened to a file, it is refused, counts as absent, or gives what was
written.
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import labelsure as ls
from labelsure.errors import InputError
from labelsure.study import Plan, RunFolder, load_plan, run_study
from labelsure.study._kept_frames import read_frame, read_kept

SETTINGS = {
    **load_plan("quick").to_dict(),
    "classifiers": {"Indep": {"class": "BinaryRelevance"}},
    "datasets": {
        name: {"simulated": {"n_samples": 60, "n_labels": 3, "random_state": seed}}
        for seed, name in enumerate(["a", "b"])
    },
}
PLAN = Plan.from_dict(SETTINGS)
BLOCK = 64


def flip_bit(content, generator):
    """Change one bit."""
    place = generator.randrange(len(content))
    content[place] ^= 1 << generator.randrange(8)
    return content


def replace_byte(content, generator):
    """Put another byte somewhere."""
    content[generator.randrange(len(content))] = generator.randrange(256)
    return content


def replace_block(content, generator):
    """Put noise or zeros over a block."""
    start = generator.randrange(len(content))
    block = content[start : start + generator.randrange(1, BLOCK)]
    is_noise = generator.random() < 0.5
    content[start : start + len(block)] = (
        generator.randbytes(len(block)) if is_noise else bytes(len(block))
    )
    return content


def cut_off(content, generator):
    """Lose the end."""
    return content[: generator.randrange(len(content))]


def lose_block(content, generator):
    """Lose something in the middle."""
    start = generator.randrange(len(content))
    del content[start : start + generator.randrange(1, BLOCK)]
    return content


def repeat_block(content, generator):
    """Have something twice."""
    start = generator.randrange(len(content))
    content[start:start] = content[start : start + generator.randrange(1, BLOCK)]
    return content


def change_digit(content, generator):
    """Put another digit for one of those in the file, which leaves text as readable as before."""
    digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        content[generator.choice(digits)] = generator.randrange(48, 58)
    return content


DAMAGES = (
    flip_bit,
    replace_byte,
    replace_block,
    cut_off,
    lose_block,
    repeat_block,
    change_digit,
)


def same_frames(one, other):
    """Whether two frames have the same rows, columns, types and index."""
    try:
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    except AssertionError:
        return False
    return True


class KeptFrame:
    """A cell, or another table that is computed again where it is not whole."""

    name = "cells"

    def __init__(self, path):
        self.path = path
        self.frame, self.notes = read_frame(path)

    def judge(self):
        found = read_kept(self.path, self.notes["key"])
        if found is None:
            return "absent"
        return same_frames(found[0], self.frame) and found[1] == self.notes and "as written"


class Table:
    """The score table, or that of features."""

    name = "tables of scores and features"

    def __init__(self, path):
        self.path = path
        self.frame = read_frame(path)[0]

    def judge(self):
        try:
            found = RunFolder(self.path.parent).read_table(self.path.stem)
        except InputError:
            return "refused"
        return same_frames(found, self.frame) and "as written"


class Notes:
    """The manifest and the failures, which are only shown: any content of that form will do."""

    name = "manifest and failures"

    def __init__(self, path):
        self.path = path

    def judge(self):
        folder = RunFolder(self.path.parent)
        failures = folder.read_failures()
        texts = [text for failure in failures.values() for text in failure.values()]
        has_form = isinstance(folder.read_seconds(), float)
        return has_form and all(isinstance(text, str) for text in texts) and "read"


class PlanFile:
    """The plan of a run, which people may change: it is a plan or refused."""

    name = "plan of a run"

    def __init__(self, path):
        self.path = path

    def judge(self):
        try:
            settings = RunFolder(self.path.parent).read_plan_settings()
            plan = Plan.from_record(settings, ["a"], ["Indep"])
        except InputError:
            return "refused"
        return isinstance(plan, Plan) and "read"


class SavedModel:
    """A model on disk, which is as it was written or refused."""

    name = "saved models"

    def __init__(self, path):
        self.path = path
        self.X = np.linspace(-2, 2, 30).reshape(10, 3)
        self.before = ls.load(path).assess(self.X)

    def judge(self):
        try:
            found = ls.load(self.path).assess(self.X)
        except InputError:
            return "refused"
        return same_frames(found.to_frame(), self.before.to_frame()) and "as written"


def make_model(path):
    """Fit a small model and save it."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 3))
    Y = (X + generator.normal(size=X.shape) > 0).astype(int)
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), metric="hamming", coverage=0.5, cv=0.5, random_state=0
    )
    model.fit(X, Y).save(path)


def make_files(folder):
    """Run a study and save a model; return the files that are read back.

    Parameters
    ----------
    folder
        Where to put them.
    """
    run = run_study(PLAN, folder / "run", n_jobs=1)
    cells = [KeptFrame(path) for path in sorted((run.folder / "cells").iterdir())]
    tables = [Table(run.folder / f"{name}.parquet") for name in ("scores", "features")]
    notes = [Notes(run.folder / f"{name}.json") for name in ("manifest", "failures")]
    make_model(folder / "model.labelsure")
    saved = SavedModel(folder / "model.labelsure")
    return [*cells, *tables, *notes, PlanFile(run.folder / "plan.toml"), saved]


def damage(path, generator):
    """Damage a file in one to three ways and return what it was before.

    Parameters
    ----------
    path
        The file.
    generator
        A `random.Random`.
    """
    whole = path.read_bytes()
    content = bytearray(whole)
    for function in generator.choices(DAMAGES, k=generator.choice([1, 1, 1, 2, 3])):
        if content:
            content = function(content, generator)
    path.write_bytes(bytes(content))
    return whole


def damage_files(n, folder, seed=0):
    """Damage `n` files, one at a time, and count for each kind of file what reading them gave.

    Parameters
    ----------
    n
        How many.
    folder
        Where to make the files.
    seed
        Of the damages.
    """
    files = make_files(folder)
    kinds = sorted({file.name for file in files})
    generator = random.Random(seed)
    found = {kind: Counter() for kind in kinds}
    for i in range(n):
        kind = kinds[i % len(kinds)]
        file = generator.choice([file for file in files if file.name == kind])
        whole = damage(file.path, generator)
        try:
            found[kind][file.judge() or "WRONG"] += 1
        except Exception as error:
            found[kind][f"TRACEBACK {type(error).__name__}"] += 1
        finally:
            file.path.write_bytes(whole)
    return found


def main(n):
    """Print what came of `n` damaged files."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, counts in damage_files(n, Path(folder)).items():
            said = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            print(f"| damaged {kind} | {counts.total()} | {said} |")


if __name__ == "__main__":
    main(int(sys.argv[1]))

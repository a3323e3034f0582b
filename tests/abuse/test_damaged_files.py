"""Whatever happens to a file that is read back, it is refused, absent, or what was written."""

import random

import pandas as pd
from abuse.damaged_files import PLAN, damage, damage_files

from labelsure.study import run_study


def test_files_that_are_damaged_at_random(tmp_path):
    found = damage_files(500, tmp_path)
    assert {kind: counts.total() for kind, counts in found.items()} == dict.fromkeys(found, 100)
    fine = {"absent", "refused", "read", "as written"}
    assert {what for counts in found.values() for what in counts} <= fine
    assert found["cells"]["absent"] > 50
    assert found["saved models"]["refused"] > 90


def test_a_run_goes_on_whatever_was_damaged(tmp_path):
    first = run_study(PLAN, tmp_path, n_jobs=1)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock")
    generator = random.Random(0)
    for _ in range(5):
        for path in generator.sample(files, 4):
            damage(path, generator)
        again = run_study(PLAN, tmp_path, n_jobs=1)
        pd.testing.assert_frame_equal(again.scores, first.scores, check_exact=True)
        written = pd.read_parquet(tmp_path / "scores.parquet")
        pd.testing.assert_frame_equal(written, first.scores, check_exact=True)
